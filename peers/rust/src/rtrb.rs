//! `rtrb`: a ring for one sender and one receiver. Batches go through its slices, which it copies.

use rtrb::{Consumer, Producer, RingBuffer};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Slots, Source, Way};
use threadtoll_record::Wait;

use crate::{BACKOFF, TIGHT, bounded, pause, until};

pub(crate) fn row() -> Queue {
    bounded(
        "rtrb",
        env!("VERSION_RTRB"),
        Slots::PLAIN,
        [
            Way::one_sender::<Ring<TIGHT>>(Wait::Poll).in_batches(),
            Way::one_sender::<Ring<BACKOFF>>(Wait::PollBackoff).in_batches(),
        ],
        "rtrb::RingBuffer, a ring for one sender and one receiver",
    )
}

pub(crate) struct Ring<const HOW: u32>;

impl<const HOW: u32> Channel for Ring<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = RingBuffer::new(capacity);
        Ok((To(to), From(from)))
    }
}

pub(crate) struct To<const HOW: u32>(Producer<u64>);

impl<const HOW: u32> Source for To<HOW> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        until::<HOW, _>(|| self.0.push(message).ok());
    }

    #[inline(always)]
    fn send_batch(&mut self, mut messages: &[u64]) {
        while let (_, rest @ [_, ..]) = self.0.push_partial_slice(messages) {
            if rest.len() == messages.len() {
                pause::<HOW>();
            }
            messages = rest;
        }
    }
}

pub(crate) struct From<const HOW: u32>(Consumer<u64>);

impl<const HOW: u32> Sink for From<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until::<HOW, _>(|| self.0.pop().ok())
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        let there = until::<HOW, _>(|| Some(self.0.slots()).filter(|there| *there > 0)).min(limit);
        // As many as were there a moment ago are there still.
        let Ok(chunk) = self.0.read_chunk(there) else { return 0 };
        let (first, second) = chunk.as_slices();
        take(first);
        take(second);
        chunk.commit_all();
        there
    }
}
