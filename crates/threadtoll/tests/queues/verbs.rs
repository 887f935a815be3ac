//! The methods that all queues have, as traits.

use std::time::Duration;

use threadtoll::error::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
use threadtoll::{funnel, pipe};

/// The state of a queue as one end reports it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) len: usize,
    pub(crate) is_empty: bool,
    pub(crate) is_full: bool,
    pub(crate) is_disconnected: bool,
    pub(crate) capacity: Option<usize>,
}

/// Methods of every sender.
pub(crate) trait SenderVerbs<T> {
    fn send(&mut self, message: T) -> Result<(), SendError<T>>;
    fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>>;
    fn send_timeout(&mut self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>>;
    fn send_slice(&mut self, messages: &[T]) -> Result<(), SendError<usize>>
    where
        T: Copy;
    fn state(&self) -> State;
}

/// Methods of every receiver.
pub(crate) trait ReceiverVerbs<T> {
    fn recv(&mut self) -> Result<T, RecvError>;
    fn try_recv(&mut self) -> Result<T, TryRecvError>;
    fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError>;
    fn recv_many(&mut self, messages: &mut Vec<T>, most: usize) -> Result<usize, RecvError>;
    fn drain(&mut self, most: usize, body: impl FnMut(T)) -> usize;
    fn try_iter(&mut self) -> impl Iterator<Item = T>;
    fn peek(&mut self) -> Option<&T>;
    fn state(&self) -> State;
}

macro_rules! state {
    ($end:expr) => {
        State {
            len: $end.len(),
            is_empty: $end.is_empty(),
            is_full: $end.is_full(),
            is_disconnected: $end.is_disconnected(),
            capacity: $end.capacity(),
        }
    };
}

macro_rules! verbs_of {
    ($($queue:ident)+) => {$(
        impl<T> SenderVerbs<T> for $queue::Sender<T> {
            fn send(&mut self, message: T) -> Result<(), SendError<T>> {
                Self::send(self, message)
            }

            fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>> {
                Self::try_send(self, message)
            }

            fn send_timeout(
                &mut self,
                message: T,
                timeout: Duration,
            ) -> Result<(), SendTimeoutError<T>> {
                Self::send_timeout(self, message, timeout)
            }

            fn send_slice(&mut self, messages: &[T]) -> Result<(), SendError<usize>>
            where
                T: Copy,
            {
                Self::send_slice(self, messages)
            }

            fn state(&self) -> State {
                state!(self)
            }
        }

        impl<T> ReceiverVerbs<T> for $queue::Receiver<T> {
            fn recv(&mut self) -> Result<T, RecvError> {
                Self::recv(self)
            }

            fn try_recv(&mut self) -> Result<T, TryRecvError> {
                Self::try_recv(self)
            }

            fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
                Self::recv_timeout(self, timeout)
            }

            fn recv_many(
                &mut self,
                messages: &mut Vec<T>,
                most: usize,
            ) -> Result<usize, RecvError> {
                Self::recv_many(self, messages, most)
            }

            fn drain(&mut self, most: usize, body: impl FnMut(T)) -> usize {
                Self::drain(self, most, body)
            }

            fn try_iter(&mut self) -> impl Iterator<Item = T> {
                Self::try_iter(self)
            }

            fn peek(&mut self) -> Option<&T> {
                Self::peek(self)
            }

            fn state(&self) -> State {
                state!(self)
            }
        }
    )+};
}

verbs_of! { pipe funnel }
