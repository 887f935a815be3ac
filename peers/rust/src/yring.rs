//! `yring`: a ring for one sender and one receiver that publishes when it is told to. One at a time, every message is
//! published; in batches, every batch.

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way};
use threadtoll_record::Wait;
use yring::{Consumer, Producer};

use crate::{bounded, until};

pub(crate) const QUEUE: Queue = bounded(
    "yring",
    env!("VERSION_YRING"),
    &[Way::one_sender::<Ring>(Wait::Poll).in_batches()],
    "yring::spsc, a ring for one sender and one receiver that publishes in batches",
);

pub(crate) struct Ring;

impl Channel for Ring {
    type Source = To;
    type Sink = From;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = yring::spsc(capacity);
        Ok((To(to), From { from, batch: Vec::new() }))
    }
}

pub(crate) struct To(Producer<u64>);

impl Source for To {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        until(|| self.0.push_and_flush(message).ok());
    }

    #[inline(always)]
    fn send_batch(&mut self, messages: &[u64]) {
        for message in messages {
            while self.0.push(*message).is_err() {
                // Full of what the receiver may not know of yet.
                self.0.flush();
            }
        }
        self.0.flush();
    }
}

pub(crate) struct From {
    from: Consumer<u64>,
    batch: Vec<u64>,
}

impl Sink for From {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        until(|| self.from.prefetch_and_pop())
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        self.batch.clear();
        let (from, batch) = (&mut self.from, &mut self.batch);
        let received = until(|| {
            from.prefetch();
            Some(from.pop_into(batch, limit)).filter(|received| *received > 0)
        });
        from.release();
        take(batch);
        received
    }
}
