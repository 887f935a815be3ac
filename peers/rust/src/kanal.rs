//! `kanal`: a deque behind a lock, and messages handed straight from stack to stack where an end waits. Its blocking ends.
//!
//! Its batch is `drain_into`: all that is there at once, under one lock.

use kanal::{Receiver, Sender};

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way};
use threadtoll_record::Wait;

use crate::surplus::Surplus;
use crate::{NOBODY, bounded, unbounded, until};

pub(crate) const BOUNDED: Queue = bounded(
    "kanal-bounded",
    env!("VERSION_KANAL"),
    &[
        Way::many_senders::<Bounded<false>>(Wait::Poll).in_batches(),
        Way::many_senders::<Bounded<true>>(Wait::Block).in_batches(),
    ],
    "kanal::bounded, its blocking ends",
);

pub(crate) const UNBOUNDED: Queue = unbounded(
    "kanal-unbounded",
    env!("VERSION_KANAL"),
    &[
        Way::many_senders::<Unbounded<false>>(Wait::Poll).in_batches(),
        Way::many_senders::<Unbounded<true>>(Wait::Block).in_batches(),
    ],
    "kanal::unbounded, its blocking ends",
);

pub(crate) struct Bounded<const BLOCK: bool>;

impl<const BLOCK: bool> Channel for Bounded<BLOCK> {
    type Source = To<BLOCK>;
    type Sink = From<BLOCK>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = kanal::bounded(capacity);
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
            until(|| self.0.try_send(message).ok().filter(|sent| *sent));
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
        if BLOCK { self.from.recv().unwrap_or(NOBODY) } else { until(|| self.from.try_recv().ok().flatten()) }
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, take: impl FnMut(&[u64])) -> usize {
        if self.surplus.is_empty() {
            let messages = self.surplus.refill();
            if BLOCK {
                messages.push(self.from.recv().unwrap_or(NOBODY));
                let _ = self.from.drain_into(messages);
            } else {
                while messages.is_empty() {
                    let _ = self.from.drain_into(messages);
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
        let (to, from) = kanal::unbounded();
        Ok((To(to), From { from, surplus: Surplus::default() }))
    }
}
