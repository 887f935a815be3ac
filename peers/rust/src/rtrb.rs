//! `rtrb`: a ring for one sender and one receiver. Batches go through its slices, which it copies.

use rtrb::{Consumer, Producer, RingBuffer};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way};
use threadtoll_record::Wait;

use crate::{bounded, until};

pub(crate) const QUEUE: Queue = bounded(
    "rtrb",
    env!("VERSION_RTRB"),
    &[Way::one_sender::<Ring>(Wait::Poll).in_batches()],
    "rtrb::RingBuffer, a ring for one sender and one receiver",
);

pub(crate) struct Ring;

impl Channel for Ring {
    type Source = To;
    type Sink = From;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = RingBuffer::new(capacity);
        Ok((To(to), From(from)))
    }
}

pub(crate) struct To(Producer<u64>);

impl Source for To {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        until(|| self.0.push(message).ok());
    }

    #[inline(always)]
    fn send_batch(&mut self, mut messages: &[u64]) {
        while let (_, rest @ [_, ..]) = self.0.push_partial_slice(messages) {
            messages = rest;
        }
    }
}

pub(crate) struct From(Consumer<u64>);

impl Sink for From {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until(|| self.0.pop().ok())
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        let there = until(|| Some(self.0.slots()).filter(|there| *there > 0)).min(limit);
        // As many as were there a moment ago are there still.
        let Ok(chunk) = self.0.read_chunk(there) else { return 0 };
        let (first, second) = chunk.as_slices();
        take(first);
        take(second);
        chunk.commit_all();
        there
    }
}
