//! Protocol of a stream from several senders to one receiver.
//!
//! The receiver sets a stop flag when its time is up. Reading the flag for each message would slow
//! the senders down, so they read it once per round (a fixed number of messages). A sender that
//! sees the flag announces its total, then sends one last round.
//!
//! The receiver never waits for a message that is not sent: every total is a whole number of
//! rounds, so while messages are missing, at least one whole round is still to come. Along with the
//! last rounds, the receiver gets all announcements.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use threadtoll_machine::clock::Clock;

use crate::cache_padded::CachePadded;
use crate::polling::poll_until;

/// One pass of the receiver: stretches of `per_stretch` messages, with a mark (a reading of the
/// clock) before the first stretch and after each. After `stretches` stretches, or at the first
/// mark that is not before `until`, the receiver stops the senders and drains the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamSpec {
    /// A whole number of rounds.
    pub(crate) per_stretch: u64,
    pub(crate) stretches: u64,
    /// In clock ticks.
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
        // Relaxed: between passes, senders read only `pass`, whose release store publishes the
        // rest.
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

    /// Relaxed, as below: a sender may notice the flag a round late, and the totals become visible
    /// along with the messages.
    #[inline(always)]
    pub(crate) fn stopped(&self) -> bool {
        self.stop.0.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stop.0.store(true, Ordering::Relaxed);
    }

    /// Called before the sender's last round, so that the queue's release and acquire carry the
    /// total to the receiver along with that round.
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

pub(crate) struct Streams {
    pub(crate) senders: Vec<Box<dyn SenderLoop>>,
    pub(crate) receiver: Box<dyn ReceiverLoop>,
}

pub(crate) trait SenderLoop: Send {
    fn enter(&mut self);
    /// Sends until it sees the stop flag, and returns the number of messages.
    fn send(&mut self, sender: usize, control: &StreamControl) -> u64;
    /// Address of the measured loop.
    fn code(&self) -> usize;
}

pub(crate) trait ReceiverLoop: Send {
    fn enter(&mut self);
    /// Receives all messages of a pass. Marks go to `times`, if given.
    fn receive(
        &mut self,
        spec: StreamSpec,
        control: &StreamControl,
        clock: &Clock,
        times: Option<&mut Vec<u64>>,
    ) -> Received;
    fn code(&self) -> usize;
}
