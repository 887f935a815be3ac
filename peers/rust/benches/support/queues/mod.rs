//! The queues compared: ours and the peers behind one trait.

pub(crate) mod blocking;
pub(crate) mod ours;
pub(crate) mod polled;

/// A kind of queue, its capacity and its way of waiting.
pub(crate) trait QueueKind: 'static {
    type Sender<T: Send + 'static>: Send;
    type Receiver<T: Send + 'static>: Send;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>);

    /// Sends a message, or drops it and returns `false` if the receiver is gone.
    fn send<T: Send + 'static>(sender: &mut Self::Sender<T>, message: T) -> bool;

    /// Receives a message, or returns `None` if no sender is left.
    fn receive<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T>;
}

/// [`QueueKind::send`] and [`QueueKind::receive`] of a queue with the verbs of std's channels.
macro_rules! send_and_receive {
    () => {
        #[inline(always)]
        fn send<T: Send + 'static>(sender: &mut Self::Sender<T>, message: T) -> bool {
            sender.send(message).is_ok()
        }

        #[inline(always)]
        fn receive<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
            receiver.recv().ok()
        }
    };
}

/// Declares a kind of queue with the verbs of std's channels: name, ends, and how it is made.
macro_rules! channel {
    (
        $(#[$doc:meta])* $name:ident[$($capacity:ident)?] =
            $($sender:ident)::+, $($receiver:ident)::+;
        $make:expr
    ) => {
        $(#[$doc])*
        pub(crate) struct $name$(<const $capacity: usize>)?;

        impl$(<const $capacity: usize>)? QueueKind for $name$(<$capacity>)? {
            type Sender<T: Send + 'static> = $($sender)::+<T>;
            type Receiver<T: Send + 'static> = $($receiver)::+<T>;

            fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
                $make
            }

            $crate::support::queues::send_and_receive!();
        }
    };
}

use {channel, send_and_receive};
