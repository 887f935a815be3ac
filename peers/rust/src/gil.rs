//! `gil`: its ring for one sender and one receiver. Batches go through its buffer, without a copy
//! at the receiver.
//!
//! Polling only. Its parking ring (`gil::spsc::parking`, as of 0.9.0) publishes a message and then
//! checks if the receiver sleeps, without a fence between the two, so a processor may reorder them:
//! sooner or later both ends sleep, as in an ask-reply between two CPUs of an x86-64 machine within
//! seconds. A row that may never end cannot be measured.

use std::num::NonZeroUsize;

use gil::spsc::{Receiver, Sender, channel};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Slots, Source, Way};
use threadtoll_record::Wait;

use crate::{BACKOFF, TIGHT, bounded, pause, until};

pub(crate) fn row() -> Queue {
    bounded(
        "gil",
        env!("VERSION_GIL"),
        Slots::PLAIN.power_of_two(),
        [
            Way::one_sender::<Ring<TIGHT>>(Wait::Poll).in_batches(),
            Way::one_sender::<Ring<BACKOFF>>(Wait::PollBackoff).in_batches(),
        ],
        "gil::spsc, a ring for one sender and one receiver",
    )
}

pub(crate) struct Ring<const HOW: u32>;

impl<const HOW: u32> Channel for Ring<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = channel(NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN));
        Ok((To(to), From(from)))
    }
}

pub(crate) struct To<const HOW: u32>(Sender<u64>);

impl<const HOW: u32> Source for To<HOW> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        until::<HOW, _>(|| self.0.try_send(message).ok());
    }

    #[inline(always)]
    fn send_batch(&mut self, mut messages: &[u64]) {
        while !messages.is_empty() {
            let room = self.0.write_buffer();
            if room.is_empty() {
                pause::<HOW>();
                continue;
            }
            let (now, later) = messages.split_at(room.len().min(messages.len()));
            for (place, message) in room.iter_mut().zip(now) {
                place.write(*message);
            }
            // SAFETY: no more than the buffer had, all of it just written.
            unsafe { self.0.commit(now.len()) };
            messages = later;
        }
    }
}

pub(crate) struct From<const HOW: u32>(Receiver<u64>);

impl<const HOW: u32> Sink for From<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until::<HOW, _>(|| self.0.try_recv())
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        loop {
            let mut guard = self.0.read_guard();
            let count = guard.len().min(limit);
            if count > 0 {
                take(&guard.as_slice()[..count]);
                guard.advance(count);
                return count;
            }
            drop(guard);
            pause::<HOW>();
        }
    }
}
