//! `crossbeam-queue`: queues that never wait by themselves, shared by reference.

use std::sync::Arc;

use crossbeam_queue::{ArrayQueue, SegQueue};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way};
use threadtoll_record::Wait;

use crate::{bounded, unbounded, until};

pub(crate) const ARRAY: Queue = bounded(
    "crossbeam-array-queue",
    env!("VERSION_CROSSBEAM_QUEUE"),
    &[Way::many_senders::<Array>(Wait::Poll)],
    "crossbeam_queue::ArrayQueue, an array with a stamp per slot",
);

pub(crate) const SEGMENTED: Queue = unbounded(
    "crossbeam-seg-queue",
    env!("VERSION_CROSSBEAM_QUEUE"),
    &[Way::many_senders::<Segmented>(Wait::Poll)],
    "crossbeam_queue::SegQueue, a list of blocks",
);

pub(crate) struct Array;

#[derive(Clone)]
pub(crate) struct ArrayEnd(Arc<ArrayQueue<u64>>);

impl Channel for Array {
    type Source = ArrayEnd;
    type Sink = ArrayEnd;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let queue = Arc::new(ArrayQueue::new(capacity));
        Ok((ArrayEnd(Arc::clone(&queue)), ArrayEnd(queue)))
    }
}

impl Source for ArrayEnd {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        until(|| self.0.push(message).ok());
    }
}

impl Sink for ArrayEnd {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until(|| self.0.pop())
    }
}

pub(crate) struct Segmented;

#[derive(Clone)]
pub(crate) struct SegmentedEnd(Arc<SegQueue<u64>>);

impl Channel for Segmented {
    type Source = SegmentedEnd;
    type Sink = SegmentedEnd;

    fn open(_: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let queue = Arc::new(SegQueue::new());
        Ok((SegmentedEnd(Arc::clone(&queue)), SegmentedEnd(queue)))
    }
}

impl Source for SegmentedEnd {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        self.0.push(message);
    }
}

impl Sink for SegmentedEnd {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until(|| self.0.pop())
    }
}
