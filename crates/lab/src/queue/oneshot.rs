//! A request with a channel of its own for the answer: `threadtoll`'s one-shot, and the interface
//! through which peers are measured in the same way.
//!
//! ```text
//!   asker ──(number, sender of the answer)──▶ answerer     (one pipe for all requests)
//!         ◀──────────── number ─────────────               (a fresh channel for each)
//! ```
//!
//! A round trip contains making, using and dropping the channel of the answer.

use threadtoll::{oneshot, pipe};
use threadtoll_record::Wait;

use super::{Capacity, Queue, Way};
use crate::error::Unavailable;
use crate::exchange::{Ends, Exchange};

/// A channel for one answer.
pub trait Reply: 'static {
    /// Sending end.
    type Sender: Send + 'static;
    /// Receiving end.
    type Receiver: Send + 'static;

    /// Creates a channel.
    fn channel() -> (Self::Sender, Self::Receiver);

    /// Sends the answer. The receiver waits for it.
    fn send(sender: Self::Sender, answer: u64);

    /// Waits for the answer. Returns 0 if the sender was dropped.
    fn receive(receiver: Self::Receiver) -> u64;
}

pub(super) fn queues() -> [Queue; 1] {
    let ways = vec![Way::exchange_only(Wait::Adaptive, requests::<Oneshot>)];
    let sentence =
        "threadtoll's one-shot: each answer through a fresh channel, its request through a pipe";
    [Queue::ours("oneshot", sentence, Capacity::Fixed, ways)]
}

enum Oneshot {}

impl Reply for Oneshot {
    type Sender = oneshot::Sender<u64>;
    type Receiver = oneshot::Receiver<u64>;

    fn channel() -> (Self::Sender, Self::Receiver) {
        oneshot::channel()
    }

    #[inline(always)]
    fn send(sender: Self::Sender, answer: u64) {
        // Cannot fail: the asker waits.
        let _ = sender.send(answer);
    }

    #[inline(always)]
    fn receive(mut receiver: Self::Receiver) -> u64 {
        receiver.recv().unwrap_or(0)
    }
}

/// Capacity of the pipe: there is one request at a time.
const REQUESTS: usize = 1;

/// Creates an asker and an answerer, whose answers come through fresh channels of this kind.
///
/// # Errors
///
/// Never fails. The type is that of every row's constructor.
pub fn requests<R: Reply>() -> Result<Ends, Unavailable> {
    let (requests, inbox) = pipe::Options::new().reserve().bounded(REQUESTS);
    Ok(Ends::two(Asks::<R> { requests, answer: None }, Answers::<R> { inbox, reply: None }))
}

type Request<R> = (u64, <R as Reply>::Sender);

struct Asks<R: Reply> {
    requests: pipe::Sender<Request<R>>,
    answer: Option<R::Receiver>,
}

impl<R: Reply> Exchange for Asks<R> {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        let (reply, answer) = R::channel();
        // Cannot fail: the answerer is dropped only at the end of the run.
        let _ = self.requests.send((seq, reply));
        self.answer = Some(answer);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        self.answer.take().map_or(0, R::receive)
    }
}

struct Answers<R: Reply> {
    inbox: pipe::Receiver<Request<R>>,
    reply: Option<R::Sender>,
}

impl<R: Reply> Exchange for Answers<R> {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        if let Some(reply) = self.reply.take() {
            R::send(reply, seq);
        }
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        let Ok((seq, reply)) = self.inbox.recv() else { return 0 };
        self.reply = Some(reply);
        seq
    }
}
