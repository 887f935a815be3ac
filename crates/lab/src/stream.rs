//! The protocol of a stream: senders and one receiver, in passes.
//!
//! A block ends by the receiver's clock, so that its length does not depend on the queue's speed.
//! The receiver must not wait for a message that is never sent, and the senders must not look at a
//! flag for each message. So senders look at it between rounds of messages, and a sender that has
//! seen it announces its total before it sends its last round: a receiver that has received all
//! messages has received the last ones, and with them every announcement. Every total is a whole
//! number of rounds, so as long as messages are missing, there is always another whole round to
//! come.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use threadtoll_machine::clock::Clock;

use crate::cache_padded::CachePadded;

/// The receiver's orders: receive stretches of `per_stretch` messages, with a mark before the first
/// and after each, until there were `stretches` of them or a mark was made at or after `until`;
/// then stop the senders and take what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamSpec {
    /// A whole number of rounds.
    pub(crate) per_stretch: u64,
    pub(crate) stretches: u64,
    /// By the clock of the marks.
    pub(crate) until: u64,
}

/// Result of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// All messages of the pass, those before the first mark and after the last included.
    pub(crate) messages: u64,
    /// The bits in which messages differed from what was due: 0 if all were right.
    pub(crate) wrong: u64,
}

/// The state by which the threads of a stream begin and end a pass together.
#[derive(Debug)]
pub(crate) struct StreamControl {
    /// Number of the current pass; a sender waits for its next one here.
    pass: CachePadded<AtomicU64>,
    /// Set by the receiver when its time is over.
    stop: CachePadded<AtomicBool>,
    /// By sender: number of messages in this pass; `RUNNING` until it knows.
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

    /// The receiver begins the pass with this number.
    pub(crate) fn begin(&self, pass: u64) {
        // Every sender is between passes and reads nothing but `pass`: its release orders the
        // rest.
        self.stop.0.store(false, Ordering::Relaxed);
        self.totals.iter().for_each(|total| total.0.store(RUNNING, Ordering::Relaxed));
        self.pass.0.store(pass, Ordering::Release);
    }

    /// A sender waits until that pass has begun.
    pub(crate) fn await_begin(&self, pass: u64) {
        let mut looks = 0u32;
        // Acquire: with `begin`, so that neither `stop` nor a total of the pass before is seen.
        while self.pass.0.load(Ordering::Acquire) < pass {
            looks += 1;
            // The receiver may need this very CPU to get there.
            if looks.is_multiple_of(256) {
                std::thread::yield_now()
            } else {
                std::hint::spin_loop()
            }
        }
    }

    /// Relaxed, as all below: it costs nothing if a sender sees it a round later, and the messages
    /// order the totals.
    #[inline(always)]
    pub(crate) fn stopped(&self) -> bool {
        self.stop.0.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stop.0.store(true, Ordering::Relaxed);
    }

    /// Announces the number of messages that a sender sends in this pass. Called before it sends
    /// the last round of them: the queue's own release and acquire carry the total to the receiver
    /// of that round.
    #[inline(always)]
    pub(crate) fn announce(&self, sender: usize, total: u64) {
        self.totals[sender].0.store(total, Ordering::Relaxed);
    }

    /// Number of messages in the pass; `None` while some sender has not announced its own.
    pub(crate) fn total(&self) -> Option<u64> {
        self.totals.iter().try_fold(0u64, |sum, total| match total.0.load(Ordering::Relaxed) {
            RUNNING => None,
            total => Some(sum + total),
        })
    }
}

/// The ends of a stream, ready to be given to threads.
pub(crate) struct Streams {
    pub(crate) senders: Vec<Box<dyn SenderLoop>>,
    pub(crate) receiver: Box<dyn ReceiverLoop>,
    /// Messages between two looks at the flag: stretches are whole multiples of it.
    pub(crate) round: u64,
}

/// A sending end, with its loop compiled for its queue.
pub(crate) trait SenderLoop: Send {
    fn enter(&mut self);
    /// Sends until it sees that it is to stop, and gives the number of messages.
    fn send(&mut self, sender: usize, control: &StreamControl) -> u64;
    /// Address of the measured loop.
    fn code(&self) -> usize;
}

/// The receiving end, likewise.
pub(crate) trait ReceiverLoop: Send {
    fn enter(&mut self);
    /// Receives the messages of a pass, and those left after it. Marks go into `times`, if any are
    /// to be kept.
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
