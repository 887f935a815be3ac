//! `nexus-queue`: its ring for one sender and one receiver, whose ends cache each other's last seen
//! position.

use nexus_queue::spsc::{Consumer, Producer, ring_buffer};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Slots, Source, Way};
use threadtoll_record::Wait;

use crate::{BACKOFF, TIGHT, bounded, until};

pub(crate) fn row() -> Queue {
    bounded(
        "nexus-queue",
        env!("VERSION_NEXUS_QUEUE"),
        Slots::PLAIN.power_of_two(),
        [
            Way::one_sender::<Ring<TIGHT>>(Wait::Poll),
            Way::one_sender::<Ring<BACKOFF>>(Wait::PollBackoff),
        ],
        "nexus_queue::spsc, a ring for one sender and one receiver",
    )
}

pub(crate) struct Ring<const HOW: u32>;

impl<const HOW: u32> Channel for Ring<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = ring_buffer(capacity);
        Ok((To(to), From(from)))
    }
}

pub(crate) struct To<const HOW: u32>(Producer<u64>);

impl<const HOW: u32> Source for To<HOW> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        until::<HOW, _>(|| self.0.push(message).ok());
    }
}

pub(crate) struct From<const HOW: u32>(Consumer<u64>);

impl<const HOW: u32> Sink for From<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until::<HOW, _>(|| self.0.pop())
    }
}
