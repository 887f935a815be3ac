//! `thingbuf`, its blocking channel: an array of slots that messages are written into in place.

use thingbuf::mpsc::blocking::{Receiver, Sender, channel};

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way};
use threadtoll_record::Wait;

use crate::{NOBODY, bounded, until};

pub(crate) const QUEUE: Queue = bounded(
    "thingbuf",
    env!("VERSION_THINGBUF"),
    &[Way::many_senders::<Bounded<false>>(Wait::Poll), Way::many_senders::<Bounded<true>>(Wait::Block)],
    "thingbuf::mpsc::blocking::channel, an array of reused slots",
);

pub(crate) struct Bounded<const BLOCK: bool>;

impl<const BLOCK: bool> Channel for Bounded<BLOCK> {
    type Source = To<BLOCK>;
    type Sink = From<BLOCK>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = channel(capacity);
        Ok((To(to), From(from)))
    }
}

#[derive(Clone)]
pub(crate) struct To<const BLOCK: bool>(Sender<u64>);

impl<const BLOCK: bool> Source for To<BLOCK> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        if BLOCK {
            let _ = self.0.send(message);
        } else {
            until(|| self.0.try_send(message).ok());
        }
    }
}

pub(crate) struct From<const BLOCK: bool>(Receiver<u64>);

impl<const BLOCK: bool> Sink for From<BLOCK> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        if BLOCK { self.0.recv().unwrap_or(NOBODY) } else { until(|| self.0.try_recv().ok()) }
    }
}
