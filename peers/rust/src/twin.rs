//! Twins: queues of ours once more, compiled in this crate and reached by the door that peers use.
//!
//! A row and its twin run the same source. Where their ratio differs from 1, the harness makes the
//! difference, and ratios to peers may be off by as much.

use std::marker::PhantomData;

use threadtoll::wait::{Adaptive, Park, Spin};
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Source, Way, funnel, pipe};
use threadtoll_record::{Origin, Wait};

pub(crate) fn pipe_row() -> Queue {
    let ways = vec![
        Way::one_sender::<Twin<pipe::Unbounded<Spin>>>(Wait::Spin).in_batches(),
        Way::one_sender::<Twin<pipe::Unbounded<Adaptive>>>(Wait::Adaptive).in_batches(),
        Way::one_sender::<Twin<pipe::Unbounded<Park>>>(Wait::Park).in_batches(),
    ];
    Queue { origin: Origin::Twin, ways, ..pipe::unbounded() }
}

pub(crate) fn pipe_bounded_row() -> Queue {
    let ways = vec![
        Way::one_sender::<Twin<pipe::Bounded<Spin>>>(Wait::Spin).in_batches(),
        Way::one_sender::<Twin<pipe::Bounded<Adaptive>>>(Wait::Adaptive).in_batches(),
        Way::one_sender::<Twin<pipe::Bounded<Park>>>(Wait::Park).in_batches(),
    ];
    Queue { origin: Origin::Twin, ways, ..pipe::bounded() }
}

pub(crate) fn funnel_row() -> Queue {
    let ways = vec![
        Way::many_senders::<Twin<funnel::Unbounded<Spin>>>(Wait::Spin).in_batches(),
        Way::many_senders::<Twin<funnel::Unbounded<Adaptive>>>(Wait::Adaptive).in_batches(),
        Way::many_senders::<Twin<funnel::Unbounded<Park>>>(Wait::Park).in_batches(),
    ];
    Queue { origin: Origin::Twin, ways, ..funnel::queue() }
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
