//! `nexus-queue`: its ring for one sender and one receiver, whose ends remember what they last saw of each other.

use nexus_queue::spsc::{Consumer, Producer, ring_buffer};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way};
use threadtoll_record::Wait;

use crate::{bounded, until};

pub(crate) const QUEUE: Queue = bounded(
    "nexus-queue",
    env!("VERSION_NEXUS_QUEUE"),
    &[Way::one_sender::<Ring>(Wait::Poll)],
    "nexus_queue::spsc, a ring for one sender and one receiver",
);

pub(crate) struct Ring;

impl Channel for Ring {
    type Source = To;
    type Sink = From;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = ring_buffer(capacity);
        Ok((To(to), From(from)))
    }
}

pub(crate) struct To(Producer<u64>);

impl Source for To {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        until(|| self.0.push(message).ok());
    }
}

pub(crate) struct From(Consumer<u64>);

impl Sink for From {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until(|| self.0.pop())
    }
}
