//! Twins: threadtoll's own queues, mechanisms and locks, compiled once more in this crate, as peers
//! are.
//!
//! A row and its twin run the same source. If their ratio differs from 1, the harness is the cause,
//! and ratios to peers may be off by as much.

use threadtoll_lab::lock::{Lock, RawLock};
use threadtoll_lab::mechanism::{Exchange, Mechanism, Unavailable};
use threadtoll_lab::queue::funnel::{self, Funnel};
use threadtoll_lab::queue::pipe::{self, Pipe};
use threadtoll_lab::queue::{Channel, Message, OUR_WAITS, Queue, Sink, Source, Way};
use threadtoll_lab::twin::{self, Wrap};
use threadtoll_record::Origin;

/// Twins of our queues.
pub fn queues() -> Vec<Queue> {
    let all = [pipe(), pipe_bounded(), funnel(), funnel_bounded()];
    all.map(|own| Queue { name: twin::name(&own.name), origin: Origin::Rust, ..own }).into()
}

/// Twins of the mechanisms that others are compared with.
pub fn mechanisms() -> Vec<Mechanism> {
    twin::mechanisms::<AsForeign>()
}

/// Twins of all locks.
pub fn locks() -> Vec<Lock> {
    twin::locks::<AsForeign>()
}

enum AsForeign {}

impl Wrap for AsForeign {
    type End<E: Exchange + 'static> = Twin<E>;
    type Lock<L: RawLock> = Twin<L>;

    fn end<E: Exchange + 'static>(end: E) -> Twin<E> {
        Twin(end)
    }

    fn lock<L: RawLock>(lock: L) -> Twin<L> {
        Twin(lock)
    }
}

macro_rules! twin {
    ($of:expr, $row:ident, $channel:path) => {
        Queue {
            ways: OUR_WAITS
                .map(|(waiting, wait)| Way::$row(TwinChannel($channel(waiting)), wait).in_batches())
                .into(),
            ..$of
        }
    };
}

fn pipe() -> Queue {
    twin!(pipe::unbounded(), one_sender_of, Pipe::unbounded)
}

fn pipe_bounded() -> Queue {
    twin!(pipe::bounded(), one_sender_of, Pipe::bounded)
}

fn funnel() -> Queue {
    twin!(funnel::unbounded(), many_senders_of, Funnel::unbounded)
}

fn funnel_bounded() -> Queue {
    twin!(funnel::bounded(), many_senders_of, Funnel::bounded)
}

#[derive(Clone)]
struct TwinChannel<C>(C);

impl<M: Message, C: Channel<M>> Channel<M> for TwinChannel<C> {
    type Source = Twin<C::Source>;
    type Sink = Twin<C::Sink>;

    const OVERWRITES: bool = C::OVERWRITES;
    const IN_PLACE: bool = C::IN_PLACE;

    fn open(&self, capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        self.0.open(capacity).map(|(to, from)| (Twin(to), Twin(from)))
    }
}

/// An end or a lock, compiled in this crate.
#[derive(Clone)]
struct Twin<T>(T);

impl<M: Message, E: Source<M>> Source<M> for Twin<E> {
    #[inline(always)]
    fn enter(&mut self) {
        self.0.enter();
    }

    #[inline(always)]
    fn send(&mut self, message: M) {
        self.0.send(message);
    }

    #[inline(always)]
    fn try_send(&mut self, message: M) -> bool {
        self.0.try_send(message)
    }

    #[inline(always)]
    fn force_send(&mut self, message: M) -> bool {
        self.0.force_send(message)
    }

    #[inline(always)]
    fn send_batch(&mut self, messages: &[M]) {
        self.0.send_batch(messages);
    }

    #[inline(always)]
    fn send_in_place(&mut self, number: u64) {
        self.0.send_in_place(number);
    }
}

impl<M: Message, E: Sink<M>> Sink<M> for Twin<E> {
    #[inline(always)]
    fn enter(&mut self) {
        self.0.enter();
    }

    #[inline(always)]
    fn receive(&mut self) -> M {
        self.0.receive()
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, take: impl FnMut(&[M])) -> usize {
        self.0.receive_batch(limit, take)
    }

    #[inline(always)]
    fn receive_in_place(&mut self, number: u64) -> u64 {
        self.0.receive_in_place(number)
    }
}

impl<E: Exchange> Exchange for Twin<E> {
    #[inline(always)]
    fn enter(&mut self) {
        self.0.enter();
    }

    #[inline(always)]
    fn send(&mut self, seq: u64) {
        self.0.send(seq);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.0.receive()
    }
}

impl<L: RawLock> RawLock for Twin<L> {
    type ThreadState = L::ThreadState;

    #[inline(always)]
    fn hold<R>(&self, state: &mut L::ThreadState, section: impl FnOnce() -> R) -> R {
        self.0.hold(state, section)
    }

    #[inline(always)]
    fn hold_shared<R>(&self, state: &mut L::ThreadState, section: impl FnOnce() -> R) -> R {
        self.0.hold_shared(state, section)
    }

    #[inline(always)]
    fn hold_bounded<R>(
        &self,
        state: &mut L::ThreadState,
        bound: u32,
        section: impl FnOnce() -> R,
    ) -> Option<R> {
        self.0.hold_bounded(state, bound, section)
    }

    #[inline(always)]
    fn queue_len(&self) -> Option<u64> {
        self.0.queue_len()
    }
}
