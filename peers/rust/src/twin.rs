//! Twins: our queues compiled once more, in this crate and as peers are.
//!
//! A row and its twin run the same source. If their ratio differs from 1, the harness is the cause,
//! and ratios to peers may be off by as much.

use std::marker::PhantomData;

use threadtoll::wait::{Adaptive, Park, Spin};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way, funnel, pipe};
use threadtoll_record::{Origin, Wait};

macro_rules! twin {
    ($of:expr, $senders:ident, $channel:ident :: $form:ident) => {
        Queue {
            origin: Origin::Twin,
            ways: vec![
                Way::$senders::<Twin<$channel::$form<Spin>>>(Wait::Spin).in_batches(),
                Way::$senders::<Twin<$channel::$form<Adaptive>>>(Wait::Adaptive).in_batches(),
                Way::$senders::<Twin<$channel::$form<Park>>>(Wait::Park).in_batches(),
            ],
            ..$of
        }
    };
}

pub(crate) fn pipe() -> Queue {
    twin!(pipe::unbounded(), one_sender, pipe::Unbounded)
}

pub(crate) fn pipe_bounded() -> Queue {
    twin!(pipe::bounded(), one_sender, pipe::Bounded)
}

pub(crate) fn funnel() -> Queue {
    twin!(funnel::queue(), many_senders, funnel::Unbounded)
}

/// The twin of a channel.
pub(crate) struct Twin<C>(PhantomData<C>);

impl<C: Channel> Channel for Twin<C> {
    type Source = End<C::Source>;
    type Sink = End<C::Sink>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        C::open(capacity).map(|(to, from)| (End(to), End(from)))
    }
}

/// An end of it.
#[derive(Clone)]
pub(crate) struct End<E>(E);

impl<E: Source> Source for End<E> {
    #[inline(always)]
    fn enter(&mut self) {
        self.0.enter();
    }

    #[inline(always)]
    fn send(&mut self, message: u64) {
        self.0.send(message);
    }

    #[inline(always)]
    fn send_batch(&mut self, messages: &[u64]) {
        self.0.send_batch(messages);
    }
}

impl<E: Sink> Sink for End<E> {
    #[inline(always)]
    fn enter(&mut self) {
        self.0.enter();
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.0.receive()
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, take: impl FnMut(&[u64])) -> usize {
        self.0.receive_batch(limit, take)
    }
}
