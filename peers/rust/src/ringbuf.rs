//! `ringbuf`: a ring for one sender and one receiver, whose ends cache each other's last seen
//! position. Batches go through its slices, which it copies.

use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{BATCH, Channel, Queue, Sink, Slots, Source, Way};
use threadtoll_record::Wait;

use crate::{BACKOFF, TIGHT, bounded, pause, until};

pub(crate) fn row() -> Queue {
    bounded(
        "ringbuf",
        env!("VERSION_RINGBUF"),
        Slots::PLAIN,
        [
            Way::one_sender::<Ring<TIGHT>>(Wait::Poll).in_batches(),
            Way::one_sender::<Ring<BACKOFF>>(Wait::PollBackoff).in_batches(),
        ],
        "ringbuf::HeapRb, a ring for one sender and one receiver",
    )
}

pub(crate) struct Ring<const HOW: u32>;

impl<const HOW: u32> Channel for Ring<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = HeapRb::new(capacity).split();
        Ok((To(to), From { from, batch: vec![0; BATCH as usize] }))
    }
}

pub(crate) struct To<const HOW: u32>(HeapProd<u64>);

impl<const HOW: u32> Source for To<HOW> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        until::<HOW, _>(|| self.0.try_push(message).ok());
    }

    #[inline(always)]
    fn send_batch(&mut self, mut messages: &[u64]) {
        while !messages.is_empty() {
            let sent = self.0.push_slice(messages);
            if sent == 0 {
                pause::<HOW>();
            }
            messages = &messages[sent..];
        }
    }
}

pub(crate) struct From<const HOW: u32> {
    from: HeapCons<u64>,
    batch: Vec<u64>,
}

impl<const HOW: u32> Sink for From<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until::<HOW, _>(|| self.from.try_pop())
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        let room = limit.min(self.batch.len());
        let batch = &mut self.batch[..room];
        let received =
            until::<HOW, _>(|| Some(self.from.pop_slice(batch)).filter(|received| *received > 0));
        take(&batch[..received]);
        received
    }
}
