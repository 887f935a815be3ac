//! `kanal`: a deque behind a lock, and messages handed straight from stack to stack where an end
//! waits. Its blocking ends.
//!
//! Its batch is `drain_into`: all that is there at once, under one lock.

use kanal::{Receiver, Sender};

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Slots, Source, Way};
use threadtoll_record::Wait;

use crate::surplus::Surplus;
use crate::{BACKOFF, BLOCK, NOBODY, TIGHT, bounded, unbounded, until};

pub(crate) fn bounded_row() -> Queue {
    bounded(
        "kanal-bounded",
        env!("VERSION_KANAL"),
        Slots::PLAIN,
        [
            Way::many_senders::<Bounded<TIGHT>>(Wait::Poll).in_batches(),
            Way::many_senders::<Bounded<BACKOFF>>(Wait::PollBackoff).in_batches(),
            Way::many_senders::<Bounded<BLOCK>>(Wait::Block).in_batches(),
        ],
        "kanal::bounded, its blocking ends",
    )
}

pub(crate) fn unbounded_row() -> Queue {
    unbounded(
        "kanal-unbounded",
        env!("VERSION_KANAL"),
        [
            Way::many_senders::<Unbounded<TIGHT>>(Wait::Poll).in_batches(),
            Way::many_senders::<Unbounded<BACKOFF>>(Wait::PollBackoff).in_batches(),
            Way::many_senders::<Unbounded<BLOCK>>(Wait::Block).in_batches(),
        ],
        "kanal::unbounded, its blocking ends",
    )
}

pub(crate) struct Bounded<const HOW: u32>;

impl<const HOW: u32> Channel for Bounded<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = kanal::bounded(capacity);
        Ok((To(to), From { from, surplus: Surplus::default() }))
    }
}

#[derive(Clone)]
pub(crate) struct To<const HOW: u32>(Sender<u64>);

impl<const HOW: u32> Source for To<HOW> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        if HOW == BLOCK {
            let _ = self.0.send(message);
        } else {
            until::<HOW, _>(|| self.0.try_send(message).ok().filter(|sent| *sent));
        }
    }
}

pub(crate) struct From<const HOW: u32> {
    from: Receiver<u64>,
    surplus: Surplus,
}

impl<const HOW: u32> Sink for From<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        if HOW == BLOCK {
            self.from.recv().unwrap_or(NOBODY)
        } else {
            until::<HOW, _>(|| self.from.try_recv().ok().flatten())
        }
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, take: impl FnMut(&[u64])) -> usize {
        if self.surplus.is_empty() {
            let messages = self.surplus.refill();
            if HOW == BLOCK {
                messages.push(self.from.recv().unwrap_or(NOBODY));
                let _ = self.from.drain_into(messages);
            } else {
                until::<HOW, _>(|| {
                    let _ = self.from.drain_into(messages);
                    (!messages.is_empty()).then_some(())
                });
            }
        }
        self.surplus.take(limit, take)
    }
}

pub(crate) struct Unbounded<const HOW: u32>;

impl<const HOW: u32> Channel for Unbounded<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(_: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = kanal::unbounded();
        Ok((To(to), From { from, surplus: Surplus::default() }))
    }
}
