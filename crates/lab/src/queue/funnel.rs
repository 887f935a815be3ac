//! `threadtoll`'s funnel, bounded and unbounded.

use threadtoll::funnel::{Options, Receiver, Sender};
use threadtoll::wait::Wait;

use super::way::ways;
use super::{Capacity, Channel, Message, Queue, Sink, Slots, Source, Way};
use crate::error::Unavailable;

pub(super) fn queues() -> [Queue; 2] {
    [unbounded(), bounded()]
}

/// The queue `funnel`.
pub fn unbounded() -> Queue {
    Queue::ours(
        "funnel",
        "threadtoll's unbounded funnel: many senders, one receiver, one ticket per message",
        Capacity::Unbounded,
        ways(|waiting, wait| Way::many_senders_of(Funnel::unbounded(waiting), wait)),
    )
}

/// The queue `funnel-bounded`.
pub fn bounded() -> Queue {
    Queue::ours(
        "funnel-bounded",
        "threadtoll's bounded funnel: senders wait, or are refused, while it is full",
        Capacity::Slots(slots(8)),
        ways(|waiting, wait| Way::many_senders_of(Funnel::bounded(waiting), wait)),
    )
}

/// A chunk is 16 KiB, or 32 slots if messages are large. A slot holds a message and its stamp. A
/// full funnel has one chunk more than its messages fill, because its oldest message may be in the
/// middle of a chunk.
fn slots(message_bytes: u64) -> Slots {
    let slot_bytes = message_bytes + 8;
    let messages = 1 << ((16 << 10) / slot_bytes).max(32).ilog2();
    Slots { spare: |_| 1, larger: Some(slots), ..Slots::groups(messages, messages * slot_bytes) }
}

/// A funnel.
#[derive(Clone, Copy, Debug)]
pub struct Funnel {
    wait: Wait,
    bounded: bool,
}

impl Funnel {
    /// A bounded funnel.
    pub fn bounded(wait: Wait) -> Self {
        Funnel { wait, bounded: true }
    }

    /// An unbounded funnel.
    pub fn unbounded(wait: Wait) -> Self {
        Funnel { wait, bounded: false }
    }
}

impl<M: Message> Channel<M> for Funnel {
    type Source = To<M>;
    type Sink = From<M>;

    fn open(&self, capacity: usize) -> Result<(To<M>, From<M>), Unavailable> {
        let options = Options::new().wait(self.wait);
        let (to, from) = if self.bounded { options.bounded(capacity) } else { options.unbounded() };
        Ok((To(to), From(from)))
    }
}

/// The sending end.
#[derive(Debug)]
pub struct To<M = u64>(Sender<M>);

impl<M> Clone for To<M> {
    fn clone(&self) -> Self {
        To(self.0.clone())
    }
}

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
        let _ = self.0.send_all(messages.iter().copied());
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
        take(&[self.receive()]);
        1 + self.0.drain(limit - 1, |message| take(&[message]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Words;

    /// Fills a funnel from the middle of a chunk on.
    fn fills_as_many_bytes_as_its_slots_say<M: Message>() {
        let slots = slots(8).of(size_of::<M>() as u64);
        let chunk_bytes = slots.bytes as usize;
        for capacity in [1, 100, 3 * slots.messages] {
            let options = Options::new().wait(Wait::Spin).retain(0);
            let (sender, mut receiver) = options.bounded::<M>(capacity as usize);
            for _ in 0..slots.messages / 2 {
                sender.send(M::all(0)).unwrap();
                receiver.recv().unwrap();
            }
            while sender.try_send(M::all(0)).is_ok() {}
            let expected = slots.ring_bytes(capacity) as usize;
            let used = receiver.memory().used_bytes;
            let header = 256;
            assert!(used <= expected + expected / chunk_bytes * header, "{capacity}: {used}");
            assert!(used + chunk_bytes >= expected, "{capacity}: {used}, not {expected}");
        }
    }

    #[test]
    fn a_full_funnel_takes_as_many_bytes_as_its_slots_say() {
        fills_as_many_bytes_as_its_slots_say::<u64>();
        fills_as_many_bytes_as_its_slots_say::<Words<8>>();
        fills_as_many_bytes_as_its_slots_say::<Words<512>>();
    }
}
