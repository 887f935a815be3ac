//! Ends of queues without their types, so that a scenario's loops are compiled once instead of for
//! every queue: where a message takes a hundred nanoseconds or more, an indirect call does not
//! show.

use crate::error::Unavailable;

use super::{Channel, Sink, Source};

/// Any sending end.
pub(super) struct AnySource(Box<dyn SourceObject>);

/// Any receiving end.
pub(super) struct AnySink(Box<dyn SinkObject>);

trait SourceObject: Send {
    fn enter(&mut self);
    fn send(&mut self, message: u64);
    fn try_send(&mut self, message: u64) -> bool;
    fn force_send(&mut self, message: u64) -> bool;
}

impl<S: Source> SourceObject for S {
    fn enter(&mut self) {
        Source::enter(self);
    }

    fn send(&mut self, message: u64) {
        Source::send(self, message);
    }

    fn try_send(&mut self, message: u64) -> bool {
        Source::try_send(self, message)
    }

    fn force_send(&mut self, message: u64) -> bool {
        Source::force_send(self, message)
    }
}

trait SinkObject: Send {
    fn enter(&mut self);
    fn receive(&mut self) -> u64;
}

impl<S: Sink> SinkObject for S {
    fn enter(&mut self) {
        Sink::enter(self);
    }

    fn receive(&mut self) -> u64 {
        Sink::receive(self)
    }
}

impl Source for AnySource {
    fn enter(&mut self) {
        self.0.enter();
    }

    fn send(&mut self, message: u64) {
        self.0.send(message);
    }

    fn try_send(&mut self, message: u64) -> bool {
        self.0.try_send(message)
    }

    fn force_send(&mut self, message: u64) -> bool {
        self.0.force_send(message)
    }
}

impl Sink for AnySink {
    fn enter(&mut self) {
        self.0.enter();
    }

    fn receive(&mut self) -> u64 {
        self.0.receive()
    }
}

/// Opens a queue for one sender.
pub(super) fn open<C: Channel>(capacity: usize) -> Result<(AnySource, AnySink), Unavailable> {
    let (source, sink) = C::open(capacity)?;
    Ok((AnySource(Box::new(source)), AnySink(Box::new(sink))))
}

/// Opens a queue for this number of senders, at least one.
pub(super) fn open_for<C: Channel<Source: Clone>>(
    senders: usize,
    capacity: usize,
) -> Result<(Vec<AnySource>, AnySink), Unavailable> {
    let (source, sink) = C::open(capacity)?;
    let clones = (1..senders).map(|_| source.clone()).collect::<Vec<_>>();
    let sources = clones.into_iter().chain([source]);
    let sources = sources.map(|source| AnySource(Box::new(source))).collect();
    Ok((sources, AnySink(Box::new(sink))))
}
