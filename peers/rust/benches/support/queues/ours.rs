//! Our queues: all that the benchmarks use of the library.

use std::marker::PhantomData;

use threadtoll::call::{self, Callee, Caller};
use threadtoll::funnel;
use threadtoll::oneshot;
use threadtoll::pipe;

use self::wait::Waits;
use super::{QueueKind, send_and_receive};

/// Waits as types, because each queue of these benchmarks is a type.
pub(crate) mod wait {
    use threadtoll::wait::Wait;

    pub(crate) trait Waits: 'static {
        const WAIT: Wait;
    }

    pub(crate) enum Adaptive {}
    pub(crate) enum Park {}
    pub(crate) enum Spin {}

    impl Waits for Adaptive {
        const WAIT: Wait = Wait::Adaptive;
    }

    impl Waits for Park {
        const WAIT: Wait = Wait::Park;
    }

    impl Waits for Spin {
        const WAIT: Wait = Wait::Spin;
    }
}

/// One sender; unbounded if `CAPACITY` is 0.
pub(crate) struct Pipe<W, const CAPACITY: usize>(PhantomData<W>);

impl<W: Waits, const CAPACITY: usize> QueueKind for Pipe<W, CAPACITY> {
    type Sender<T: Send + 'static> = pipe::Sender<T>;
    type Receiver<T: Send + 'static> = pipe::Receiver<T>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        let options = pipe::Options::new().wait(W::WAIT);
        if CAPACITY == 0 { options.unbounded() } else { options.bounded(CAPACITY) }
    }

    send_and_receive!();
}

/// One sender, unbounded; each send executes a fence, so that a sleep interrupts no thread.
pub(crate) struct FencedPipe<W>(PhantomData<W>);

impl<W: Waits> QueueKind for FencedPipe<W> {
    type Sender<T: Send + 'static> = pipe::Sender<T>;
    type Receiver<T: Send + 'static> = pipe::Receiver<T>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        pipe::Options::new().wait(W::WAIT).fence().unbounded()
    }

    send_and_receive!();
}

/// Many senders; unbounded if `CAPACITY` is 0.
pub(crate) struct Funnel<W, const CAPACITY: usize>(PhantomData<W>);

impl<W: Waits, const CAPACITY: usize> QueueKind for Funnel<W, CAPACITY> {
    type Sender<T: Send + 'static> = funnel::Sender<T>;
    type Receiver<T: Send + 'static> = funnel::Receiver<T>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        let options = funnel::Options::new().wait(W::WAIT);
        match CAPACITY {
            0 => options.unbounded(),
            _ => options.bounded(CAPACITY),
        }
    }

    send_and_receive!();
}

/// For one message, which takes the sender along.
pub(crate) struct OneShot;

impl QueueKind for OneShot {
    type Sender<T: Send + 'static> = Option<oneshot::Sender<T>>;
    type Receiver<T: Send + 'static> = oneshot::Receiver<T>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Some(sender), receiver)
    }

    #[inline(always)]
    fn send<T: Send + 'static>(sender: &mut Self::Sender<T>, message: T) -> bool {
        sender.take().is_some_and(|sender| sender.send(message).is_ok())
    }

    #[inline(always)]
    fn receive<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.recv().ok()
    }
}

/// A call's line.
pub(crate) fn line() -> (Caller<u64, u64>, Callee<u64, u64>) {
    call::line()
}
