//! The protocol of a stream: senders and one receiver, in passes.
//!
//! A block ends by the receiver's clock, so its length does not depend on the queue's speed. The
//! receiver must not wait for a message that is never sent, and the senders must not check a flag
//! for each message. So senders check the flag between rounds of messages. A sender that sees the
//! flag announces its total before it sends its last round. Once the receiver has received every
//! message, it has received the last rounds, and with them all announcements. Every total is a
//! whole number of rounds, so as long as messages are missing, at least one whole round is still to
//! come.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use threadtoll_machine::clock::Clock;

use crate::cache_padded::CachePadded;
use crate::polling::poll_until;

/// Instructions for the receiver: receive stretches of `per_stretch` messages, with a mark before
/// the first and after each, until `stretches` are done or a mark is at or after `until`; then stop
/// the senders and drain the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamSpec {
    /// A whole number of rounds.
    pub(crate) per_stretch: u64,
    pub(crate) stretches: u64,
    /// Time after which the pass ends, on the clock with which marks are stamped.
    pub(crate) until: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Number of messages in the pass, including those before the first mark and after the last.
    pub(crate) messages: u64,
    /// Bits in which messages differed from the expected ones; 0 if all were right.
    pub(crate) wrong: u64,
}

#[derive(Debug)]
pub(crate) struct StreamControl {
    /// Number of the current pass; senders wait here for the next one.
    pass: CachePadded<AtomicU64>,
    /// Set by the receiver when its time is up.
    stop: CachePadded<AtomicBool>,
    /// Number of messages in this pass, by sender; `RUNNING` until announced.
    totals: Vec<CachePadded<AtomicU64>>,
}

const RUNNING: u64 = u64::MAX;

impl StreamControl {
    pub(crate) fn new(senders: u32) -> Self {
        StreamControl {
            pass: CachePadded::default(),
            stop: CachePadded::default(),
            totals: (0..senders).map(|_| CachePadded(AtomicU64::new(RUNNING))).collect(),
        }
    }

    /// Called by the receiver.
    pub(crate) fn begin(&self, pass: u64) {
        // All senders are between passes and read only `pass`, whose release orders the rest.
        self.stop.0.store(false, Ordering::Relaxed);
        self.totals.iter().for_each(|total| total.0.store(RUNNING, Ordering::Relaxed));
        self.pass.0.store(pass, Ordering::Release);
    }

    /// Called by each sender.
    pub(crate) fn await_begin(&self, pass: u64) {
        // Acquire: pairs with `begin`, so that `stop` and the totals are not those of an earlier
        // pass.
        poll_until(|| self.pass.0.load(Ordering::Acquire) >= pass);
    }

    /// Relaxed, like all operations below: it does no harm if a sender notices the flag a round
    /// later, and the totals become visible with the messages.
    #[inline(always)]
    pub(crate) fn stopped(&self) -> bool {
        self.stop.0.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stop.0.store(true, Ordering::Relaxed);
    }

    /// Announces a sender's total for this pass. Called before the sender sends its last round: the
    /// queue's release and acquire carry the total to the receiver of that round.
    #[inline(always)]
    pub(crate) fn announce(&self, sender: usize, total: u64) {
        self.totals[sender].0.store(total, Ordering::Relaxed);
    }

    /// Number of messages in the pass; `None` until every sender has announced its total.
    pub(crate) fn total(&self) -> Option<u64> {
        self.totals.iter().try_fold(0u64, |sum, total| match total.0.load(Ordering::Relaxed) {
            RUNNING => None,
            total => Some(sum + total),
        })
    }
}

/// The ends of a stream, ready to move to their threads.
pub(crate) struct Streams {
    pub(crate) senders: Vec<Box<dyn SenderLoop>>,
    pub(crate) receiver: Box<dyn ReceiverLoop>,
}

/// A sending end with its loop compiled for its queue.
pub(crate) trait SenderLoop: Send {
    fn enter(&mut self);
    /// Sends until it sees the stop flag, and returns the number of messages.
    fn send(&mut self, sender: usize, control: &StreamControl) -> u64;
    /// Address of the measured loop.
    fn code(&self) -> usize;
}

/// A receiving end with its loop compiled for its queue.
pub(crate) trait ReceiverLoop: Send {
    fn enter(&mut self);
    /// Receives the messages of a pass and drains the queue. Marks go into `times`, if it is given.
    fn receive(
        &mut self,
        spec: StreamSpec,
        control: &StreamControl,
        clock: &Clock,
        times: Option<&mut Vec<u64>>,
    ) -> Received;
    /// Address of the measured loop.
    fn code(&self) -> usize;
}
