//! `tokio::sync::mpsc` outside of any runtime: its blocking ends, and its attempts.
//!
//! Its batch is `blocking_recv_many`, so there are batches only where the receiver blocks.

use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way};
use threadtoll_record::Wait;

use crate::{NOBODY, bounded, unbounded, until};

pub(crate) const BOUNDED: Queue = bounded(
    "tokio-mpsc-bounded",
    env!("VERSION_TOKIO"),
    &[
        Way::many_senders::<Bounded<false>>(Wait::Poll),
        Way::many_senders::<Bounded<true>>(Wait::Block).in_batches(),
    ],
    "tokio::sync::mpsc::channel with its blocking ends, outside of a runtime",
);

pub(crate) const UNBOUNDED: Queue = unbounded(
    "tokio-mpsc-unbounded",
    env!("VERSION_TOKIO"),
    &[
        Way::many_senders::<Unbounded<false>>(Wait::Poll),
        Way::many_senders::<Unbounded<true>>(Wait::Block).in_batches(),
    ],
    "tokio::sync::mpsc::unbounded_channel with its blocking receive, outside of a runtime",
);

pub(crate) struct Bounded<const BLOCK: bool>;

impl<const BLOCK: bool> Channel for Bounded<BLOCK> {
    type Source = To<BLOCK>;
    type Sink = From<BLOCK>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = channel(capacity);
        Ok((To(to), From { from, batch: Vec::new() }))
    }
}

#[derive(Clone)]
pub(crate) struct To<const BLOCK: bool>(Sender<u64>);

impl<const BLOCK: bool> Source for To<BLOCK> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        if BLOCK {
            let _ = self.0.blocking_send(message);
        } else {
            until(|| self.0.try_send(message).ok());
        }
    }
}

pub(crate) struct From<const BLOCK: bool> {
    from: Receiver<u64>,
    batch: Vec<u64>,
}

impl<const BLOCK: bool> Sink for From<BLOCK> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        if BLOCK { self.from.blocking_recv().unwrap_or(NOBODY) } else { until(|| self.from.try_recv().ok()) }
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        self.batch.clear();
        let received = self.from.blocking_recv_many(&mut self.batch, limit);
        take(&self.batch);
        // Nobody is left: what is handed on then is wrong, and the count keeps the caller from waiting for more.
        if received == 0 {
            take(&[NOBODY]);
        }
        received.max(1)
    }
}

pub(crate) struct Unbounded<const BLOCK: bool>;

impl<const BLOCK: bool> Channel for Unbounded<BLOCK> {
    type Source = UnboundedTo<BLOCK>;
    type Sink = UnboundedFrom<BLOCK>;

    fn open(_: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = unbounded_channel();
        Ok((UnboundedTo(to), UnboundedFrom { from, batch: Vec::new() }))
    }
}

#[derive(Clone)]
pub(crate) struct UnboundedTo<const BLOCK: bool>(UnboundedSender<u64>);

impl<const BLOCK: bool> Source for UnboundedTo<BLOCK> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        let _ = self.0.send(message);
    }
}

pub(crate) struct UnboundedFrom<const BLOCK: bool> {
    from: UnboundedReceiver<u64>,
    batch: Vec<u64>,
}

impl<const BLOCK: bool> Sink for UnboundedFrom<BLOCK> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        if BLOCK { self.from.blocking_recv().unwrap_or(NOBODY) } else { until(|| self.from.try_recv().ok()) }
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        self.batch.clear();
        let received = self.from.blocking_recv_many(&mut self.batch, limit);
        take(&self.batch);
        // Nobody is left: what is handed on then is wrong, and the count keeps the caller from waiting for more.
        if received == 0 {
            take(&[NOBODY]);
        }
        received.max(1)
    }
}
