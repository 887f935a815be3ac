//! Peers that never block: their ends are polled, with some pause hints after an attempt in vain.

use std::hint::spin_loop;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::Kind;

/// A ring with one attempt to send and one to receive.
pub(crate) trait Ring: 'static {
    /// The end that sends.
    type Producer<T: Send + 'static>: Send;
    /// The end that receives.
    type Consumer<T: Send + 'static>: Send;

    /// Makes one.
    fn make<T: Send + 'static>(capacity: usize) -> (Self::Producer<T>, Self::Consumer<T>);

    /// Sends a message, or hands it back if the ring is full.
    fn push<T: Send + 'static>(producer: &mut Self::Producer<T>, message: T) -> Result<(), T>;

    /// Receives a message if there is one.
    fn pop<T: Send + 'static>(consumer: &mut Self::Consumer<T>) -> Option<T>;
}

/// A ring polled with `HINTS` pause hints between attempts. Its ends never see each other go.
pub(crate) struct Polled<R, const CAPACITY: usize, const HINTS: u32>(PhantomData<R>);

impl<R: Ring, const CAPACITY: usize, const HINTS: u32> Kind for Polled<R, CAPACITY, HINTS> {
    type Sender<T: Send + 'static> = R::Producer<T>;
    type Receiver<T: Send + 'static> = R::Consumer<T>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        R::make(CAPACITY)
    }

    #[inline(always)]
    fn send<T: Send + 'static>(sender: &mut Self::Sender<T>, mut message: T) -> bool {
        while let Err(back) = R::push(sender, message) {
            message = back;
            (0..HINTS).for_each(|_| spin_loop());
        }
        true
    }

    #[inline(always)]
    fn receive<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        loop {
            let message = R::pop(receiver);
            if message.is_some() {
                return message;
            }
            (0..HINTS).for_each(|_| spin_loop());
        }
    }
}

/// `gil::spsc`.
pub(crate) struct Gil;

impl Ring for Gil {
    type Producer<T: Send + 'static> = gil::spsc::Sender<T>;
    type Consumer<T: Send + 'static> = gil::spsc::Receiver<T>;

    fn make<T: Send + 'static>(capacity: usize) -> (Self::Producer<T>, Self::Consumer<T>) {
        gil::spsc::channel(NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN))
    }

    #[inline(always)]
    fn push<T: Send + 'static>(producer: &mut Self::Producer<T>, message: T) -> Result<(), T> {
        producer.try_send(message)
    }

    #[inline(always)]
    fn pop<T: Send + 'static>(consumer: &mut Self::Consumer<T>) -> Option<T> {
        consumer.try_recv()
    }
}

/// `rtrb`.
pub(crate) struct Rtrb;

impl Ring for Rtrb {
    type Producer<T: Send + 'static> = rtrb::Producer<T>;
    type Consumer<T: Send + 'static> = rtrb::Consumer<T>;

    fn make<T: Send + 'static>(capacity: usize) -> (Self::Producer<T>, Self::Consumer<T>) {
        rtrb::RingBuffer::new(capacity)
    }

    #[inline(always)]
    fn push<T: Send + 'static>(producer: &mut Self::Producer<T>, message: T) -> Result<(), T> {
        producer.push(message).map_err(|rtrb::PushError::Full(message)| message)
    }

    #[inline(always)]
    fn pop<T: Send + 'static>(consumer: &mut Self::Consumer<T>) -> Option<T> {
        consumer.pop().ok()
    }
}

/// `yring`, each message published at once.
pub(crate) struct Yring;

impl Ring for Yring {
    type Producer<T: Send + 'static> = yring::Producer<T>;
    type Consumer<T: Send + 'static> = yring::Consumer<T>;

    fn make<T: Send + 'static>(capacity: usize) -> (Self::Producer<T>, Self::Consumer<T>) {
        yring::spsc(capacity)
    }

    #[inline(always)]
    fn push<T: Send + 'static>(producer: &mut Self::Producer<T>, message: T) -> Result<(), T> {
        producer.push_and_flush(message)
    }

    #[inline(always)]
    fn pop<T: Send + 'static>(consumer: &mut Self::Consumer<T>) -> Option<T> {
        consumer.prefetch_and_pop()
    }
}

/// `nexus_queue::spsc`.
pub(crate) struct Nexus;

impl Ring for Nexus {
    type Producer<T: Send + 'static> = nexus_queue::spsc::Producer<T>;
    type Consumer<T: Send + 'static> = nexus_queue::spsc::Consumer<T>;

    fn make<T: Send + 'static>(capacity: usize) -> (Self::Producer<T>, Self::Consumer<T>) {
        nexus_queue::spsc::ring_buffer(capacity)
    }

    #[inline(always)]
    fn push<T: Send + 'static>(producer: &mut Self::Producer<T>, message: T) -> Result<(), T> {
        producer.push(message).map_err(|full| full.into_inner())
    }

    #[inline(always)]
    fn pop<T: Send + 'static>(consumer: &mut Self::Consumer<T>) -> Option<T> {
        consumer.pop()
    }
}

/// `crossbeam_queue::ArrayQueue`.
pub(crate) struct Array;

impl Ring for Array {
    type Producer<T: Send + 'static> = Arc<crossbeam_queue::ArrayQueue<T>>;
    type Consumer<T: Send + 'static> = Arc<crossbeam_queue::ArrayQueue<T>>;

    fn make<T: Send + 'static>(capacity: usize) -> (Self::Producer<T>, Self::Consumer<T>) {
        let queue = Arc::new(crossbeam_queue::ArrayQueue::new(capacity));
        (Arc::clone(&queue), queue)
    }

    #[inline(always)]
    fn push<T: Send + 'static>(producer: &mut Self::Producer<T>, message: T) -> Result<(), T> {
        producer.push(message)
    }

    #[inline(always)]
    fn pop<T: Send + 'static>(consumer: &mut Self::Consumer<T>) -> Option<T> {
        consumer.pop()
    }
}
