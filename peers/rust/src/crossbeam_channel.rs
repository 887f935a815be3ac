//! `crossbeam-channel`: an array with a stamp per slot, and a list of blocks of 31 messages.

use crossbeam_channel::{Receiver, Sender};

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Slots, Source, Way};
use threadtoll_record::Wait;

use crate::{BACKOFF, BLOCK, NOBODY, TIGHT, bounded, unbounded, until};

pub(crate) fn bounded_row() -> Queue {
    bounded(
        "crossbeam-bounded",
        env!("VERSION_CROSSBEAM_CHANNEL"),
        Slots::NUMBERED,
        [
            Way::many_senders::<Bounded<TIGHT>>(Wait::Poll),
            Way::many_senders::<Bounded<BACKOFF>>(Wait::PollBackoff),
            Way::many_senders::<Bounded<BLOCK>>(Wait::Block),
        ],
        "crossbeam_channel::bounded, an array with a stamp per slot",
    )
}

pub(crate) fn unbounded_row() -> Queue {
    unbounded(
        "crossbeam-unbounded",
        env!("VERSION_CROSSBEAM_CHANNEL"),
        [
            Way::many_senders::<Unbounded<TIGHT>>(Wait::Poll),
            Way::many_senders::<Unbounded<BACKOFF>>(Wait::PollBackoff),
            Way::many_senders::<Unbounded<BLOCK>>(Wait::Block),
        ],
        "crossbeam_channel::unbounded, a list of blocks",
    )
}

pub(crate) struct Bounded<const HOW: u32>;

impl<const HOW: u32> Channel for Bounded<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = crossbeam_channel::bounded(capacity);
        Ok((To(to), From(from)))
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

pub(crate) struct From<const HOW: u32>(Receiver<u64>);

impl<const HOW: u32> Sink for From<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        if HOW == BLOCK {
            self.0.recv().unwrap_or(NOBODY)
        } else {
            until::<HOW, _>(|| self.0.try_recv().ok())
        }
    }
}

pub(crate) struct Unbounded<const HOW: u32>;

impl<const HOW: u32> Channel for Unbounded<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(_: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = crossbeam_channel::unbounded();
        Ok((To(to), From(from)))
    }
}
