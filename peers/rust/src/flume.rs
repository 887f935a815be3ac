//! `flume`: a deque behind a lock. Without its asynchronous part, which the blocking ends do not use.
//!
//! Its batch is `drain`: all that is there at once, under one lock.

use flume::{Receiver, Sender};

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way};
use threadtoll_record::Wait;

use crate::surplus::Surplus;
use crate::{NOBODY, bounded, unbounded, until};

pub(crate) const BOUNDED: Queue = bounded(
    "flume-bounded",
    env!("VERSION_FLUME"),
    &[
        Way::many_senders::<Bounded<false>>(Wait::Poll).in_batches(),
        Way::many_senders::<Bounded<true>>(Wait::Block).in_batches(),
    ],
    "flume::bounded, a deque behind a lock",
);

pub(crate) const UNBOUNDED: Queue = unbounded(
    "flume-unbounded",
    env!("VERSION_FLUME"),
    &[
        Way::many_senders::<Unbounded<false>>(Wait::Poll).in_batches(),
        Way::many_senders::<Unbounded<true>>(Wait::Block).in_batches(),
    ],
    "flume::unbounded, a deque behind a lock",
);

pub(crate) struct Bounded<const BLOCK: bool>;

impl<const BLOCK: bool> Channel for Bounded<BLOCK> {
    type Source = To<BLOCK>;
    type Sink = From<BLOCK>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = flume::bounded(capacity);
        Ok((To(to), From { from, surplus: Surplus::default() }))
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

pub(crate) struct From<const BLOCK: bool> {
    from: Receiver<u64>,
    surplus: Surplus,
}

impl<const BLOCK: bool> Sink for From<BLOCK> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        if BLOCK { self.from.recv().unwrap_or(NOBODY) } else { until(|| self.from.try_recv().ok()) }
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, take: impl FnMut(&[u64])) -> usize {
        if self.surplus.is_empty() {
            let messages = self.surplus.refill();
            if BLOCK {
                messages.push(self.from.recv().unwrap_or(NOBODY));
                messages.extend(self.from.drain());
            } else {
                while messages.is_empty() {
                    messages.extend(self.from.drain());
                }
            }
        }
        self.surplus.take(limit, take)
    }
}

pub(crate) struct Unbounded<const BLOCK: bool>;

impl<const BLOCK: bool> Channel for Unbounded<BLOCK> {
    type Source = To<BLOCK>;
    type Sink = From<BLOCK>;

    fn open(_: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = flume::unbounded();
        Ok((To(to), From { from, surplus: Surplus::default() }))
    }
}
