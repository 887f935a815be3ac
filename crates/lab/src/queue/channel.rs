//! The interface that a queue implements to be measured.

use super::message::{Message, Words};
use crate::error::Unavailable;

/// The sending end of a queue.
pub trait Source<M: Message = u64>: Send + 'static {
    /// Called once on the thread of this end, before the first message.
    fn enter(&mut self) {}

    /// Sends one message. If the queue is full, waits according to the row's wait strategy.
    fn send(&mut self, message: M);

    /// Sends one message, unless the queue is full; returns `false` if it is. Queues that are never
    /// full may use this default, which calls `send`.
    fn try_send(&mut self, message: M) -> bool {
        self.send(message);
        true
    }

    /// Sends one message. If the queue is full, drops the oldest one and returns `true`. Only
    /// called if the queue [overwrites](Channel::OVERWRITES).
    fn force_send(&mut self, message: M) -> bool {
        self.send(message);
        false
    }

    /// Sends all messages in order, with the queue's own batch calls if it has any.
    fn send_batch(&mut self, messages: &[M]) {
        messages.iter().for_each(|message| self.send(*message));
    }

    /// Waits for a free slot as `send` does, fills it with the message that has this number, and
    /// sends the message. Only called if messages can be sent [in place](Channel::IN_PLACE).
    #[inline(always)]
    fn send_in_place(&mut self, number: u64) {
        self.send(M::numbered(number));
    }
}

/// The receiving end of a queue; it waits according to the row's wait strategy.
pub trait Sink<M: Message = u64>: Send + 'static {
    /// Called once on the thread of this end, before the first message.
    fn enter(&mut self) {}

    /// Waits for the next message and removes it.
    fn receive(&mut self) -> M;

    /// Waits for at least one message, then removes at most `limit` (never 0), with the queue's own
    /// batch calls if it has any. Passes the messages to `take` in order, in any number of slices,
    /// and returns their number.
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[M])) -> usize
    where
        Self: Sized,
    {
        debug_assert!(limit > 0);
        take(&[self.receive()]);
        1
    }

    /// Waits for the next message, reads it in its slot, and releases the slot. Returns the bits in
    /// which the message differs from the message with this number. Only called if messages can be
    /// sent [in place](Channel::IN_PLACE).
    #[inline(always)]
    fn receive_in_place(&mut self, number: u64) -> u64 {
        self.receive().difference(number)
    }
}

/// A queue with one wait strategy, for adapters to implement. Implementations contain no data if
/// the queue is known at compile time.
pub trait Channel<M: Message = u64>: Clone + Send + Sync + 'static {
    /// Its sending end.
    type Source: Source<M>;
    /// Its receiving end.
    type Sink: Sink<M>;

    /// True if `force_send` can make room for a message.
    const OVERWRITES: bool = false;

    /// True if messages can be written and read in the queue's own slots, at both ends.
    const IN_PLACE: bool = false;

    /// Creates both ends, with every byte that they share allocated and touched on the calling
    /// thread. Bounded queues hold `capacity` messages, or more if they cannot hold exactly that
    /// number.
    ///
    /// # Errors
    ///
    /// If the machine refuses a resource.
    fn open(&self, capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable>;
}

/// A queue that carries messages of all sizes in [`MESSAGE_BYTES`](super::MESSAGE_BYTES).
pub trait AnySize:
    Channel + Channel<Words<8>> + Channel<Words<64>> + Channel<Words<512>> + Channel<Words<8192>>
{
}

impl<C> AnySize for C where
    C: Channel
        + Channel<Words<8>>
        + Channel<Words<64>>
        + Channel<Words<512>>
        + Channel<Words<8192>>
{
}

/// A queue that carries messages of all sizes from several senders.
pub trait ManySenders:
    AnySize
    + Channel<Source: Clone>
    + Channel<Words<8>, Source: Clone>
    + Channel<Words<64>, Source: Clone>
    + Channel<Words<512>, Source: Clone>
    + Channel<Words<8192>, Source: Clone>
{
}

impl<C> ManySenders for C where
    C: AnySize
        + Channel<Source: Clone>
        + Channel<Words<8>, Source: Clone>
        + Channel<Words<64>, Source: Clone>
        + Channel<Words<512>, Source: Clone>
        + Channel<Words<8192>, Source: Clone>
{
}
