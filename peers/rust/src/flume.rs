//! `flume`: a deque behind a lock. Without its asynchronous part, which the blocking ends do not
//! use.
//!
//! Its batch is `drain`: all that is there at once, under one lock.

use flume::{Receiver, Sender};

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Slots, Source, Way};
use threadtoll_record::Wait;

use crate::surplus::Surplus;
use crate::{BACKOFF, BLOCK, NOBODY, TIGHT, bounded, unbounded, until};

pub(crate) fn bounded_row() -> Queue {
    bounded(
        "flume-bounded",
        env!("VERSION_FLUME"),
        Slots::PLAIN,
        [
            Way::many_senders::<Bounded<TIGHT>>(Wait::Poll).in_batches(),
            Way::many_senders::<Bounded<BACKOFF>>(Wait::PollBackoff).in_batches(),
            Way::many_senders::<Bounded<BLOCK>>(Wait::Block).in_batches(),
        ],
        "flume::bounded, a deque behind a lock",
    )
}

pub(crate) fn unbounded_row() -> Queue {
    unbounded(
        "flume-unbounded",
        env!("VERSION_FLUME"),
        [
            Way::many_senders::<Unbounded<TIGHT>>(Wait::Poll).in_batches(),
            Way::many_senders::<Unbounded<BACKOFF>>(Wait::PollBackoff).in_batches(),
            Way::many_senders::<Unbounded<BLOCK>>(Wait::Block).in_batches(),
        ],
        "flume::unbounded, a deque behind a lock",
    )
}

pub(crate) struct Bounded<const HOW: u32>;

impl<const HOW: u32> Channel for Bounded<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = flume::bounded(capacity);
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
            until::<HOW, _>(|| self.0.try_send(message).ok());
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
            until::<HOW, _>(|| self.from.try_recv().ok())
        }
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, take: impl FnMut(&[u64])) -> usize {
        if self.surplus.is_empty() {
            let messages = self.surplus.refill();
            if HOW == BLOCK {
                messages.push(self.from.recv().unwrap_or(NOBODY));
                messages.extend(self.from.drain());
            } else {
                until::<HOW, _>(|| {
                    messages.extend(self.from.drain());
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
        let (to, from) = flume::unbounded();
        Ok((To(to), From { from, surplus: Surplus::default() }))
    }
}
