//! `ringbuf`: a ring for one sender and one receiver, whose ends remember what they last saw of each other. Batches go
//! through its slices, which it copies.

use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{BATCH, Channel, Queue, Sink, Source, Way};
use threadtoll_record::Wait;

use crate::{bounded, until};

pub(crate) const QUEUE: Queue = bounded(
    "ringbuf",
    env!("VERSION_RINGBUF"),
    &[Way::one_sender::<Ring>(Wait::Poll).in_batches()],
    "ringbuf::HeapRb, a ring for one sender and one receiver",
);

pub(crate) struct Ring;

impl Channel for Ring {
    type Source = To;
    type Sink = From;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = HeapRb::new(capacity).split();
        Ok((To(to), From { from, batch: vec![0; BATCH as usize] }))
    }
}

pub(crate) struct To(HeapProd<u64>);

impl Source for To {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        until(|| self.0.try_push(message).ok());
    }

    #[inline(always)]
    fn send_batch(&mut self, mut messages: &[u64]) {
        while !messages.is_empty() {
            messages = &messages[self.0.push_slice(messages)..];
        }
    }
}

pub(crate) struct From {
    from: HeapCons<u64>,
    batch: Vec<u64>,
}

impl Sink for From {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until(|| self.from.try_pop())
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        let room = limit.min(self.batch.len());
        let batch = &mut self.batch[..room];
        let received = until(|| Some(self.from.pop_slice(batch)).filter(|received| *received > 0));
        take(&batch[..received]);
        received
    }
}
