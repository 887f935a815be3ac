//! The funnel of `threadtoll`.

use std::marker::PhantomData;

use threadtoll::funnel::{Options, Receiver, Sender};
use threadtoll::wait::{Adaptive, Park, Spin, SpinYield, Wait as Waiting};
use threadtoll_record::{Origin, Wait};

use super::{Capacity, Channel, Message, Queue, Sink, Source, Way};
use crate::error::Unavailable;

pub(super) fn queues() -> [Queue; 1] {
    [queue()]
}

/// `funnel`.
pub fn queue() -> Queue {
    Queue {
        name: "funnel".into(),
        origin: Origin::Ours,
        version: threadtoll::VERSION.into(),
        sentence:
            "threadtoll's unbounded funnel: many senders, one receiver, one ticket per message"
                .into(),
        capacity: Capacity::Unbounded,
        ways: vec![
            Way::many_senders::<Unbounded<Spin>>(Wait::Spin).in_batches(),
            Way::many_senders::<Unbounded<SpinYield>>(Wait::SpinYield).in_batches(),
            Way::many_senders::<Unbounded<Adaptive>>(Wait::Adaptive).in_batches(),
            Way::many_senders::<Unbounded<Park>>(Wait::Park).in_batches(),
        ],
    }
}

/// An unbounded funnel.
#[derive(Debug)]
pub struct Unbounded<W>(PhantomData<W>);

impl<M: Message, W: Waiting> Channel<M> for Unbounded<W> {
    type Source = To<W, M>;
    type Sink = From<W, M>;

    fn open(_: usize) -> Result<(To<W, M>, From<W, M>), Unavailable> {
        let (to, from) = Options::new().wait(W::default()).unbounded();
        Ok((To(to), From(from)))
    }
}

/// The sending end.
#[derive(Debug)]
pub struct To<W: Waiting, M = u64>(Sender<M, W>);

impl<W: Waiting, M> Clone for To<W, M> {
    fn clone(&self) -> Self {
        To(self.0.clone())
    }
}

impl<M: Message, W: Waiting> Source<M> for To<W, M> {
    #[inline(always)]
    fn send(&mut self, message: M) {
        // The other end is gone only at the end of the run.
        let _ = self.0.send(message);
    }

    #[inline(always)]
    fn try_send(&mut self, message: M) -> bool {
        self.0.try_send(message).is_ok()
    }

    #[inline(always)]
    fn send_batch(&mut self, messages: &[M]) {
        let _ = self.0.send_all(messages.iter().copied());
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct From<W: Waiting, M = u64>(Receiver<M, W>);

impl<M: Message, W: Waiting> Sink<M> for From<W, M> {
    #[inline(always)]
    fn receive(&mut self) -> M {
        self.0.recv().unwrap_or_else(|_| M::all(0))
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[M])) -> usize {
        take(&[self.receive()]);
        1 + self.0.drain(limit - 1, |message| take(&[message]))
    }
}
