//! Our queues: all that the benchmarks use of the library.

use std::marker::PhantomData;

use threadtoll::call::{self, Callee, Caller};
use threadtoll::funnel;
use threadtoll::pipe;
pub(crate) use threadtoll::wait;
use threadtoll::wait::Wait;

use super::{QueueKind, send_and_receive};

/// One sender; unbounded if `CAPACITY` is 0.
pub(crate) struct Pipe<W, const CAPACITY: usize>(PhantomData<W>);

impl<W: Wait, const CAPACITY: usize> QueueKind for Pipe<W, CAPACITY> {
    type Sender<T: Send + 'static> = pipe::Sender<T, W>;
    type Receiver<T: Send + 'static> = pipe::Receiver<T, W>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        let options = pipe::Options::new().wait(W::default());
        if CAPACITY == 0 { options.unbounded() } else { options.bounded(CAPACITY) }
    }

    send_and_receive!();
}

/// One sender, unbounded; each send executes a fence, so that a sleep interrupts no thread.
pub(crate) struct FencedPipe<W>(PhantomData<W>);

impl<W: Wait> QueueKind for FencedPipe<W> {
    type Sender<T: Send + 'static> = pipe::Sender<T, W>;
    type Receiver<T: Send + 'static> = pipe::Receiver<T, W>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        pipe::Options::new().wait(W::default()).fence().unbounded()
    }

    send_and_receive!();
}

/// Many senders; unbounded if `CAPACITY` is 0.
pub(crate) struct Funnel<W, const CAPACITY: usize>(PhantomData<W>);

impl<W: Wait, const CAPACITY: usize> QueueKind for Funnel<W, CAPACITY> {
    type Sender<T: Send + 'static> = funnel::Sender<T, W>;
    type Receiver<T: Send + 'static> = funnel::Receiver<T, W>;

    fn make<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        let options = funnel::Options::new().wait(W::default());
        match CAPACITY {
            0 => options.unbounded(),
            _ => options.bounded(CAPACITY),
        }
    }

    send_and_receive!();
}

/// A call's line.
pub(crate) fn line() -> (Caller<u64, u64>, Callee<u64, u64>) {
    call::line()
}
