//! `crossbeam-channel`: an array with a stamp per slot, and a list of blocks of 31 messages.

use crossbeam_channel::{Receiver, Sender};

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way};
use threadtoll_record::Wait;

use crate::{NOBODY, bounded, unbounded, until};

pub(crate) const BOUNDED: Queue = bounded(
    "crossbeam-bounded",
    env!("VERSION_CROSSBEAM_CHANNEL"),
    &[Way::many_senders::<Bounded<false>>(Wait::Poll), Way::many_senders::<Bounded<true>>(Wait::Block)],
    "crossbeam_channel::bounded, an array with a stamp per slot",
);

pub(crate) const UNBOUNDED: Queue = unbounded(
    "crossbeam-unbounded",
    env!("VERSION_CROSSBEAM_CHANNEL"),
    &[Way::many_senders::<Unbounded<false>>(Wait::Poll), Way::many_senders::<Unbounded<true>>(Wait::Block)],
    "crossbeam_channel::unbounded, a list of blocks",
);

pub(crate) struct Bounded<const BLOCK: bool>;

impl<const BLOCK: bool> Channel for Bounded<BLOCK> {
    type Source = To<BLOCK>;
    type Sink = From<BLOCK>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = crossbeam_channel::bounded(capacity);
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

pub(crate) struct Unbounded<const BLOCK: bool>;

impl<const BLOCK: bool> Channel for Unbounded<BLOCK> {
    type Source = To<BLOCK>;
    type Sink = From<BLOCK>;

    fn open(_: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = crossbeam_channel::unbounded();
        Ok((To(to), From(from)))
    }
}
