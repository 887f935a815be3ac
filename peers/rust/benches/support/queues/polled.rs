//! Peers that never block: their ends are polled, with some pause hints after a failed attempt.

use std::hint::spin_loop;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::QueueKind;

/// A ring with one attempt to send and one to receive.
pub(crate) trait Ring: 'static {
    type Producer<T: Send + 'static>: Send;
    type Consumer<T: Send + 'static>: Send;

    fn make<T: Send + 'static>(capacity: usize) -> (Self::Producer<T>, Self::Consumer<T>);

    /// Sends a message, or hands it back if the ring is full.
    fn push<T: Send + 'static>(producer: &mut Self::Producer<T>, message: T) -> Result<(), T>;

    /// Receives a message if there is one.
    fn pop<T: Send + 'static>(consumer: &mut Self::Consumer<T>) -> Option<T>;
}

/// A ring polled with `HINTS` pause hints between attempts. Its ends never see each other go.
pub(crate) struct Polled<R, const CAPACITY: usize, const HINTS: u32>(PhantomData<R>);

impl<R: Ring, const CAPACITY: usize, const HINTS: u32> QueueKind for Polled<R, CAPACITY, HINTS> {
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

/// Declares a ring: name, ends, and how it is made and called.
macro_rules! ring {
    (
        $(#[$doc:meta])* $name:ident = $($producer:ident)::+, $($consumer:ident)::+;
        |$capacity:ident| $make:expr;
        |$to:ident, $message:ident| $push:expr;
        |$from:ident| $pop:expr
    ) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl Ring for $name {
            type Producer<T: Send + 'static> = $($producer)::+<T>;
            type Consumer<T: Send + 'static> = $($consumer)::+<T>;

            fn make<T: Send + 'static>($capacity: usize) -> (Self::Producer<T>, Self::Consumer<T>) {
                $make
            }

            #[inline(always)]
            fn push<T: Send + 'static>($to: &mut Self::Producer<T>, $message: T) -> Result<(), T> {
                $push
            }

            #[inline(always)]
            fn pop<T: Send + 'static>($from: &mut Self::Consumer<T>) -> Option<T> {
                $pop
            }
        }
    };
}

ring! {
    /// `gil::spsc`.
    Gil = gil::spsc::Sender, gil::spsc::Receiver;
    |capacity| gil::spsc::channel(NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN));
    |sender, message| sender.try_send(message);
    |receiver| receiver.try_recv()
}

ring! {
    /// `rtrb`.
    Rtrb = rtrb::Producer, rtrb::Consumer;
    |capacity| rtrb::RingBuffer::new(capacity);
    |sender, message| sender.push(message).map_err(|rtrb::PushError::Full(message)| message);
    |receiver| receiver.pop().ok()
}

ring! {
    /// `nexus_queue::spsc`.
    Nexus = nexus_queue::spsc::Producer, nexus_queue::spsc::Consumer;
    |capacity| nexus_queue::spsc::ring_buffer(capacity);
    |sender, message| sender.push(message).map_err(|full| full.into_inner());
    |receiver| receiver.pop()
}

type Shared<T> = Arc<crossbeam_queue::ArrayQueue<T>>;

ring! {
    /// `crossbeam_queue::ArrayQueue`.
    Array = Shared, Shared;
    |capacity| {
        let queue = Arc::new(crossbeam_queue::ArrayQueue::new(capacity));
        (Arc::clone(&queue), queue)
    };
    |queue, message| queue.push(message);
    |queue| queue.pop()
}
