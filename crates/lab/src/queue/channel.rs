//! The interface that a queue implements to be measured.

use threadtoll_record::Graph;

use super::message::{Message, Words};
use crate::error::Unavailable;

/// The sending end of a queue.
pub trait Source<M: Message = u64>: Send + 'static {
    /// Called once on the thread of this end, before the first message.
    fn enter(&mut self) {}

    /// Sends one message. Waits with the channel's wait strategy while the queue is full.
    fn send(&mut self, message: M);

    /// Sends one message, or returns `false` if the queue is full. The default calls `send`, which
    /// suits queues that are never full.
    fn try_send(&mut self, message: M) -> bool {
        self.send(message);
        true
    }

    /// Sends one message. If the queue is full, drops the oldest message and returns `true`. Only
    /// called if [`OVERWRITES`](Channel::OVERWRITES) is true.
    fn force_send(&mut self, message: M) -> bool {
        self.send(message);
        false
    }

    /// Sends all messages in order, with the queue's batch calls if it has any.
    fn send_batch(&mut self, messages: &[M]) {
        messages.iter().for_each(|message| self.send(*message));
    }

    /// Waits for a free slot as `send` does, writes message `number` into the slot, and sends it.
    /// Only called if [`IN_PLACE`](Channel::IN_PLACE) is true.
    #[inline(always)]
    fn send_in_place(&mut self, number: u64) {
        self.send(M::numbered(number));
    }
}

/// The receiving end of a queue. Every receive waits with the channel's wait strategy.
pub trait Sink<M: Message = u64>: Send + 'static {
    /// Called once on the thread of this end, before the first message.
    fn enter(&mut self) {}

    /// Waits for the next message and removes it.
    fn receive(&mut self) -> M;

    /// Waits for at least one message, then removes at most `limit` messages (never 0), with the
    /// queue's batch calls if it has any. Passes the messages in order to `take`, in any number of
    /// slices, and returns their number.
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[M])) -> usize
    where
        Self: Sized,
    {
        debug_assert!(limit > 0);
        take(&[self.receive()]);
        1
    }

    /// Waits for the next message, reads it in its slot, and releases the slot. Returns the bits in
    /// which it differs from message `number`. Only called if [`IN_PLACE`](Channel::IN_PLACE) is
    /// true.
    #[inline(always)]
    fn receive_in_place(&mut self, number: u64) -> u64 {
        self.receive().difference(number)
    }
}

/// A queue with one wait strategy. Adapters implement this trait.
pub trait Channel<M: Message = u64>: Clone + Send + Sync + 'static {
    /// Sending end.
    type Source: Source<M>;
    /// Receiving end.
    type Sink: Sink<M>;

    /// True if `force_send` can drop a message to make room.
    const OVERWRITES: bool = false;

    /// True if the sender can write a message in the queue's own slot, and the receiver can read it
    /// there.
    const IN_PLACE: bool = false;

    /// Creates both ends. The calling thread allocates and touches all memory that they share. A
    /// bounded queue holds `capacity` messages, or more if it cannot hold exactly that number.
    ///
    /// # Errors
    ///
    /// Returns an error if the machine refuses a resource.
    fn open(&self, capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable>;
}

/// A queue that gives every message to each of several receivers.
pub trait Broadcast: Clone + Send + Sync + 'static {
    /// Sending end.
    type Source: Source;
    /// Receiving end.
    type Sink: Sink;

    /// True if a receiver can come after others.
    const DIAMONDS: bool = true;

    /// Creates the sending end and `receivers` receiving ends, each of which sees every message. In
    /// a diamond, the last of them gets a message when all others have finished the batch that
    /// holds it. The calling thread allocates and touches all memory that they share. The queue
    /// holds `capacity` messages, or more if it cannot hold exactly that number.
    ///
    /// # Errors
    ///
    /// Returns an error if the machine refuses a resource.
    fn open(
        &self,
        graph: Graph,
        receivers: usize,
        capacity: usize,
    ) -> Result<(Self::Source, Vec<Self::Sink>), Unavailable>;
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
