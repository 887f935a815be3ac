//! `yring`: a ring for one sender and one receiver that publishes on request. One at a time, every
//! message is published; in batches, every batch.

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Slots, Source, Way};
use threadtoll_record::Wait;
use yring::{Consumer, Producer};

use crate::{BACKOFF, TIGHT, bounded, pause, until};

pub(crate) fn row() -> Queue {
    bounded(
        "yring",
        env!("VERSION_YRING"),
        Slots::PLAIN.power_of_two(),
        [
            Way::one_sender::<Ring<TIGHT>>(Wait::Poll).in_batches(),
            Way::one_sender::<Ring<BACKOFF>>(Wait::PollBackoff).in_batches(),
        ],
        "yring::spsc, a ring for one sender and one receiver that publishes in batches",
    )
}

pub(crate) struct Ring<const HOW: u32>;

impl<const HOW: u32> Channel for Ring<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = yring::spsc(capacity);
        Ok((To(to), From { from, batch: Vec::new() }))
    }
}

pub(crate) struct To<const HOW: u32>(Producer<u64>);

impl<const HOW: u32> Source for To<HOW> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        until::<HOW, _>(|| self.0.push_and_flush(message).ok());
    }

    #[inline(always)]
    fn send_batch(&mut self, messages: &[u64]) {
        for message in messages {
            while self.0.push(*message).is_err() {
                // Full of what the receiver may not know of yet.
                self.0.flush();
                pause::<HOW>();
            }
        }
        self.0.flush();
    }
}

pub(crate) struct From<const HOW: u32> {
    from: Consumer<u64>,
    batch: Vec<u64>,
}

impl<const HOW: u32> Sink for From<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until::<HOW, _>(|| self.from.prefetch_and_pop())
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        self.batch.clear();
        let (from, batch) = (&mut self.from, &mut self.batch);
        let received = until::<HOW, _>(|| {
            from.prefetch();
            Some(from.pop_into(batch, limit)).filter(|received| *received > 0)
        });
        from.release();
        take(batch);
        received
    }
}
