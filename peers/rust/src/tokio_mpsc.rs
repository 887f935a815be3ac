//! `tokio::sync::mpsc` outside of any runtime: its blocking ends, and its attempts.
//!
//! Its batch is `blocking_recv_many`, so there are batches only where the receiver blocks.

use tokio::sync::mpsc::{
    Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
};

use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::queue::{Channel, Queue, Sink, Slots, Source, Way};
use threadtoll_record::Wait;

use crate::{BACKOFF, BLOCK, NOBODY, TIGHT, bounded, unbounded, until};

pub(crate) fn bounded_row() -> Queue {
    bounded(
        "tokio-mpsc-bounded",
        env!("VERSION_TOKIO"),
        // Blocks of 32 messages with four words about them.
        Slots::groups(32, 288),
        [
            Way::many_senders::<Bounded<TIGHT>>(Wait::Poll),
            Way::many_senders::<Bounded<BACKOFF>>(Wait::PollBackoff),
            Way::many_senders::<Bounded<BLOCK>>(Wait::Block).in_batches(),
        ],
        "tokio::sync::mpsc::channel with its blocking ends, outside of a runtime",
    )
}

pub(crate) fn unbounded_row() -> Queue {
    unbounded(
        "tokio-mpsc-unbounded",
        env!("VERSION_TOKIO"),
        [
            Way::many_senders::<Unbounded<TIGHT>>(Wait::Poll),
            Way::many_senders::<Unbounded<BACKOFF>>(Wait::PollBackoff),
            Way::many_senders::<Unbounded<BLOCK>>(Wait::Block).in_batches(),
        ],
        "tokio::sync::mpsc::unbounded_channel with its blocking receive, outside of a runtime",
    )
}

pub(crate) struct Bounded<const HOW: u32>;

impl<const HOW: u32> Channel for Bounded<HOW> {
    type Source = To<HOW>;
    type Sink = From<HOW>;

    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = channel(capacity);
        Ok((To(to), From { from, batch: Vec::new() }))
    }
}

#[derive(Clone)]
pub(crate) struct To<const HOW: u32>(Sender<u64>);

impl<const HOW: u32> Source for To<HOW> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        if HOW == BLOCK {
            let _ = self.0.blocking_send(message);
        } else {
            until::<HOW, _>(|| self.0.try_send(message).ok());
        }
    }
}

pub(crate) struct From<const HOW: u32> {
    from: Receiver<u64>,
    batch: Vec<u64>,
}

impl<const HOW: u32> Sink for From<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        if HOW == BLOCK {
            self.from.blocking_recv().unwrap_or(NOBODY)
        } else {
            until::<HOW, _>(|| self.from.try_recv().ok())
        }
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        self.batch.clear();
        let received = self.from.blocking_recv_many(&mut self.batch, limit);
        take(&self.batch);
        // All senders are gone: the message handed on is wrong, and counting it keeps the caller
        // from waiting for more.
        if received == 0 {
            take(&[NOBODY]);
        }
        received.max(1)
    }
}

pub(crate) struct Unbounded<const HOW: u32>;

impl<const HOW: u32> Channel for Unbounded<HOW> {
    type Source = UnboundedTo<HOW>;
    type Sink = UnboundedFrom<HOW>;

    fn open(_: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        let (to, from) = unbounded_channel();
        Ok((UnboundedTo(to), UnboundedFrom { from, batch: Vec::new() }))
    }
}

#[derive(Clone)]
pub(crate) struct UnboundedTo<const HOW: u32>(UnboundedSender<u64>);

impl<const HOW: u32> Source for UnboundedTo<HOW> {
    #[inline(always)]
    fn send(&mut self, message: u64) {
        let _ = self.0.send(message);
    }
}

pub(crate) struct UnboundedFrom<const HOW: u32> {
    from: UnboundedReceiver<u64>,
    batch: Vec<u64>,
}

impl<const HOW: u32> Sink for UnboundedFrom<HOW> {
    #[inline(always)]
    fn receive(&mut self) -> u64 {
        if HOW == BLOCK {
            self.from.blocking_recv().unwrap_or(NOBODY)
        } else {
            until::<HOW, _>(|| self.from.try_recv().ok())
        }
    }

    #[inline(always)]
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        self.batch.clear();
        let received = self.from.blocking_recv_many(&mut self.batch, limit);
        take(&self.batch);
        // All senders are gone: the message handed on is wrong, and counting it keeps the caller
        // from waiting for more.
        if received == 0 {
            take(&[NOBODY]);
        }
        received.max(1)
    }
}
