//! The pipe of `threadtoll`, bounded and unbounded.

use std::marker::PhantomData;

use threadtoll::pipe::{Options, Receiver, Sender};
use threadtoll::wait::{Adaptive, Park, Spin, SpinYield, Wait as Waiting};
use threadtoll_record::{Origin, Wait};

use super::{Capacity, Channel, Queue, Sink, Slots, Source, Way};
use crate::error::Unavailable;

pub(super) fn queues() -> [Queue; 2] {
    [unbounded(), bounded()]
}

/// `pipe-bounded`.
pub fn bounded() -> Queue {
    Queue {
        name: "pipe-bounded".into(),
        origin: Origin::Ours,
        version: threadtoll::VERSION.into(),
        sentence: "threadtoll's bounded pipe: one sender, one receiver, a ring of cache lines"
            .into(),
        // A line carries seven messages and their count. Spare are the lines of the longest record
        // plus three.
        capacity: Capacity::Slots(Slots {
            spare: |lines| (lines / 4).clamp(1, 64) + 3,
            ..Slots::groups(7, 64)
        }),
        ways: vec![
            Way::one_sender::<Bounded<Spin>>(Wait::Spin).in_batches(),
            Way::one_sender::<Bounded<SpinYield>>(Wait::SpinYield).in_batches(),
            Way::one_sender::<Bounded<Adaptive>>(Wait::Adaptive).in_batches(),
            Way::one_sender::<Bounded<Park>>(Wait::Park).in_batches(),
        ],
    }
}

/// `pipe`.
pub fn unbounded() -> Queue {
    Queue {
        name: "pipe".into(),
        origin: Origin::Ours,
        version: threadtoll::VERSION.into(),
        sentence:
            "threadtoll's unbounded pipe: pipe-bounded without a limit, so its sender never waits"
                .into(),
        capacity: Capacity::Unbounded,
        ways: vec![
            Way::one_sender::<Unbounded<Spin>>(Wait::Spin).in_batches(),
            Way::one_sender::<Unbounded<SpinYield>>(Wait::SpinYield).in_batches(),
            Way::one_sender::<Unbounded<Adaptive>>(Wait::Adaptive).in_batches(),
            Way::one_sender::<Unbounded<Park>>(Wait::Park).in_batches(),
        ],
    }
}

/// A bounded pipe.
#[derive(Debug)]
pub struct Bounded<W>(PhantomData<W>);

impl<W: Waiting> Channel for Bounded<W> {
    type Source = To<W>;
    type Sink = From<W>;

    fn open(capacity: usize) -> Result<(To<W>, From<W>), Unavailable> {
        let (to, from) = Options::new().wait(W::default()).reserve().bounded(capacity);
        Ok((To(to), From(from)))
    }
}

/// An unbounded pipe.
#[derive(Debug)]
pub struct Unbounded<W>(PhantomData<W>);

impl<W: Waiting> Channel for Unbounded<W> {
    type Source = To<W>;
    type Sink = From<W>;

    fn open(_: usize) -> Result<(To<W>, From<W>), Unavailable> {
        let (to, from) = Options::new().wait(W::default()).reserve().unbounded();
        Ok((To(to), From(from)))
    }
}

/// The sending end.
#[derive(Debug)]
pub struct To<W: Waiting>(Sender<u64, W>);

impl<W: Waiting> Source for To<W> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        // The other end is gone only at the end of the run.
        let _ = self.0.send(message);
    }

    #[inline(always)]
    fn try_send(&mut self, message: u64) -> bool {
        self.0.try_send(message).is_ok()
    }

    #[inline(always)]
    fn send_batch(&mut self, messages: &[u64]) {
        let _ = self.0.send_slice(messages);
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct From<W: Waiting>(Receiver<u64, W>);

impl<W: Waiting> Sink for From<W> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.0.recv().unwrap_or(0)
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        let Ok(mut batch) = self.0.recv_batch() else {
            take(&[0]);
            return 1;
        };
        batch.truncate(limit);
        take(&batch);
        batch.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{CAPACITY, RING_BYTES};

    #[test]
    fn a_ring_takes_as_many_bytes_as_its_slots_say() {
        let queue = bounded();
        let slots = queue.slots().expect("it is bounded");
        for capacity in [1, 7, 100, CAPACITY, slots.capacity_within(RING_BYTES)] {
            let (sender, _receiver) = Options::new().reserve().bounded::<u64>(capacity as usize);
            assert_eq!(sender.memory().ring_bytes as u64, slots.ring_bytes(capacity), "{capacity}");
        }
    }
}
