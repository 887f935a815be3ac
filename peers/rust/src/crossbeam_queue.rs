//! `crossbeam-queue`: queues that never wait by themselves, shared by reference.

use std::sync::Arc;

use crossbeam_queue::{ArrayQueue, SegQueue};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Slots, Source, Way};
use threadtoll_record::Wait;

use crate::{BACKOFF, TIGHT, bounded, unbounded, until};

pub(crate) fn array_row() -> Queue {
    bounded(
        "crossbeam-array-queue",
        env!("VERSION_CROSSBEAM_QUEUE"),
        Slots::NUMBERED,
        [
            Way::many_senders::<Array<TIGHT>>(Wait::Poll),
            Way::many_senders::<Array<BACKOFF>>(Wait::PollBackoff),
        ],
        "crossbeam_queue::ArrayQueue, an array with a stamp per slot",
    )
}

pub(crate) fn segmented_row() -> Queue {
    unbounded(
        "crossbeam-seg-queue",
        env!("VERSION_CROSSBEAM_QUEUE"),
        [
            Way::many_senders::<Segmented<TIGHT>>(Wait::Poll),
            Way::many_senders::<Segmented<BACKOFF>>(Wait::PollBackoff),
        ],
        "crossbeam_queue::SegQueue, a list of blocks",
    )
}

pub(crate) struct Array<const HOW: u32>;

#[derive(Clone)]
pub(crate) struct ArrayEnd<const HOW: u32>(Arc<ArrayQueue<u64>>);

impl<const HOW: u32> Channel for Array<HOW> {
    type Source = ArrayEnd<HOW>;
    type Sink = ArrayEnd<HOW>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let queue = Arc::new(ArrayQueue::new(capacity));
        Ok((ArrayEnd(Arc::clone(&queue)), ArrayEnd(queue)))
    }
}

impl<const HOW: u32> Source for ArrayEnd<HOW> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        until::<HOW, _>(|| self.0.push(message).ok());
    }
}

impl<const HOW: u32> Sink for ArrayEnd<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until::<HOW, _>(|| self.0.pop())
    }
}

pub(crate) struct Segmented<const HOW: u32>;

#[derive(Clone)]
pub(crate) struct SegmentedEnd<const HOW: u32>(Arc<SegQueue<u64>>);

impl<const HOW: u32> Channel for Segmented<HOW> {
    type Source = SegmentedEnd<HOW>;
    type Sink = SegmentedEnd<HOW>;

    fn open(_: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let queue = Arc::new(SegQueue::new());
        Ok((SegmentedEnd(Arc::clone(&queue)), SegmentedEnd(queue)))
    }
}

impl<const HOW: u32> Source for SegmentedEnd<HOW> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        self.0.push(message);
    }
}

impl<const HOW: u32> Sink for SegmentedEnd<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until::<HOW, _>(|| self.0.pop())
    }
}
