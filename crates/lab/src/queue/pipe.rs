//! `threadtoll`'s pipe, bounded and unbounded.

use threadtoll::pipe::{Options, Receiver, Sender};
use threadtoll::wait::Wait;

use super::way::ways;
use super::{Capacity, Channel, Message, Queue, Sink, Slots, Source, Way};
use crate::error::Unavailable;

pub(super) fn queues() -> [Queue; 2] {
    [unbounded(), bounded()]
}

/// The queue `pipe-bounded`.
pub fn bounded() -> Queue {
    // A line holds seven messages and their count. The number of spare lines is that of the longest
    // run (a batch with one count) plus three.
    let slots = Slots {
        spare: |lines| (lines / 4).clamp(1, 65) + 3,
        larger: Some(larger),
        ..Slots::groups(7, 64)
    };
    Queue::ours(
        "pipe-bounded",
        "threadtoll's bounded pipe: one sender, one receiver, a ring of cache lines",
        Capacity::Slots(slots),
        ways(|waiting, wait| Way::one_sender_of(Pipe::bounded(waiting), wait)),
    )
}

/// Layout for messages of more than 8 bytes (a multiple of 8). Small messages share a line with
/// their count. A message that does not fit into one line with its count takes several lines. If
/// such a message fills whole lines, up to seven messages share one extra line for their count. The
/// spare memory holds four such groups.
fn larger(message_bytes: u64) -> Slots {
    let several = 56 / message_bytes;
    if several > 0 {
        return Slots { spare: |lines| (lines / 4).clamp(1, 65) + 3, ..Slots::groups(several, 64) };
    }
    let messages =
        if message_bytes.is_multiple_of(64) { (2048 / message_bytes).clamp(1, 7) } else { 1 };
    let bytes = (8 + messages * message_bytes).next_multiple_of(64);
    Slots { spare: |_| 4, ..Slots::groups(messages, bytes) }
}

/// The queue `pipe`.
pub fn unbounded() -> Queue {
    Queue::ours(
        "pipe",
        "threadtoll's unbounded pipe: like pipe-bounded, but without a limit, so its sender never \
         waits",
        Capacity::Unbounded,
        ways(|waiting, wait| Way::one_sender_of(Pipe::unbounded(waiting), wait)),
    )
}

/// A pipe.
#[derive(Clone, Copy, Debug)]
pub struct Pipe {
    wait: Wait,
    bounded: bool,
}

impl Pipe {
    /// A bounded pipe.
    pub fn bounded(wait: Wait) -> Self {
        Pipe { wait, bounded: true }
    }

    /// An unbounded pipe.
    pub fn unbounded(wait: Wait) -> Self {
        Pipe { wait, bounded: false }
    }
}

impl<M: Message> Channel<M> for Pipe {
    type Source = To<M>;
    type Sink = From<M>;

    const IN_PLACE: bool = true;

    fn open(&self, capacity: usize) -> Result<(To<M>, From<M>), Unavailable> {
        let options = Options::new().wait(self.wait).reserve();
        let (to, from) = if self.bounded { options.bounded(capacity) } else { options.unbounded() };
        Ok((To(to), From(from)))
    }
}

/// The sending end.
#[derive(Debug)]
pub struct To<M = u64>(Sender<M>);

impl<M: Message> Source<M> for To<M> {
    #[inline(always)]
    fn send(&mut self, message: M) {
        // Sending cannot fail: the receiver is dropped only at the end of the run.
        let _ = self.0.send(message);
    }

    #[inline(always)]
    fn try_send(&mut self, message: M) -> bool {
        self.0.try_send(message).is_ok()
    }

    #[inline(always)]
    fn send_batch(&mut self, messages: &[M]) {
        let _ = self.0.send_slice(messages);
    }

    #[inline(always)]
    fn send_in_place(&mut self, number: u64) {
        let Ok(mut claim) = self.0.claim(1) else { return };
        M::fill(&mut claim.room()[0], number);
        // SAFETY: `fill` wrote the whole of the first slot.
        let _ = unsafe { claim.send(1) };
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct From<M = u64>(Receiver<M>);

impl<M: Message> Sink<M> for From<M> {
    #[inline(always)]
    fn receive(&mut self) -> M {
        self.0.recv().unwrap_or_else(|_| M::all(0))
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[M])) -> usize {
        let Ok(mut batch) = self.0.recv_batch() else {
            take(&[M::all(0)]);
            return 1;
        };
        batch.truncate(limit);
        take(&batch);
        batch.len()
    }

    #[inline(always)]
    fn receive_in_place(&mut self, number: u64) -> u64 {
        let Ok(mut batch) = self.0.recv_batch() else { return u64::MAX };
        batch.truncate(1);
        batch.first().map_or(u64::MAX, |message| message.difference(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{CAPACITY, RING_BYTES, Words};

    #[test]
    fn a_ring_takes_as_many_bytes_as_its_slots_say() {
        let queue = bounded();
        let slots = queue.slots().expect("it is bounded");
        for capacity in [1, 7, 100, CAPACITY, slots.capacity_within(RING_BYTES)] {
            let (sender, _receiver) = Options::new().reserve().bounded::<u64>(capacity as usize);
            assert_eq!(sender.memory().ring_bytes as u64, slots.ring_bytes(capacity), "{capacity}");
        }
        fn larger<M: Message>(slots: &Slots) {
            let slots = slots.of(size_of::<M>() as u64);
            for capacity in [2, 3, 100] {
                let (sender, _receiver) = Options::new().reserve().bounded::<M>(capacity);
                let expected = slots.ring_bytes(capacity as u64);
                assert_eq!(sender.memory().ring_bytes as u64, expected, "{capacity}");
            }
        }
        larger::<Words<2>>(slots);
        larger::<Words<7>>(slots);
        larger::<Words<8>>(slots);
        larger::<Words<64>>(slots);
        larger::<Words<512>>(slots);
        larger::<Words<8192>>(slots);
    }
}
