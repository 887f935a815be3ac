//! `std::sync::mpsc`: since 1.67 the code of crossbeam-channel.
//!
//! The bounded form is the standard library's synchronous channel.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way};
use threadtoll_record::Wait;

use crate::{NOBODY, bounded, unbounded, until};

pub(crate) const BOUNDED: Queue = bounded(
    "std-mpsc-bounded",
    env!("VERSION_STD"),
    &[Way::many_senders::<Bounded<false>>(Wait::Poll), Way::many_senders::<Bounded<true>>(Wait::Block)],
    "std::sync::mpsc::sync_channel",
);

pub(crate) const UNBOUNDED: Queue = unbounded(
    "std-mpsc-unbounded",
    env!("VERSION_STD"),
    &[Way::many_senders::<Unbounded<false>>(Wait::Poll), Way::many_senders::<Unbounded<true>>(Wait::Block)],
    "std::sync::mpsc::channel",
);

pub(crate) struct Bounded<const BLOCK: bool>;

impl<const BLOCK: bool> Channel for Bounded<BLOCK> {
    type Source = SyncTo<BLOCK>;
    type Sink = From<BLOCK>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = sync_channel(capacity);
        Ok((SyncTo(to), From(from)))
    }
}

#[derive(Clone)]
pub(crate) struct SyncTo<const BLOCK: bool>(SyncSender<u64>);

impl<const BLOCK: bool> Source for SyncTo<BLOCK> {
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
        let (to, from) = channel();
        Ok((To(to), From(from)))
    }
}

#[derive(Clone)]
pub(crate) struct To<const BLOCK: bool>(Sender<u64>);

impl<const BLOCK: bool> Source for To<BLOCK> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        let _ = self.0.send(message);
    }
}
