//! Letting the sender get ahead.
//!
//! A receiver that is faster than its sender looks at the very line that the sender is filling, so that every message takes the
//! line back and forth. If it stays away for a moment, the sender fills lines undisturbed, and both get more done. But a message that comes
//! alone is delayed by it. So the receiver tries now and then whether staying away brings it more than one message, and goes on as long as it
//! does.

use crate::sync::spin_loop;

/// How long the receiver stays away, in pause hints: some 100 ns.
const LAG: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 10 };
/// Messages without a wait among them that show by themselves that the sender does not wait for an answer.
const STREAM: u64 = 16;
/// Waits between two tries: where they are in vain, they cost less than a thousandth.
const TRY_EVERY: u32 = 512;

/// What the receiver knows of its sender's pace.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// What was taken at the last wait.
    taken: u64,
    /// Waits since the last try.
    waits: u32,
    lagging: bool,
}

impl Pace {
    /// Nothing is there, and so many messages were taken in all: stays away for a moment if that has paid.
    #[inline]
    pub(crate) fn lag(&mut self, taken: u64) {
        let got = taken - self.taken;
        self.taken = taken;
        self.waits += 1;
        if self.lagging && got < 2 {
            self.lagging = false;
        } else if got >= STREAM || self.waits >= TRY_EVERY {
            self.lagging = true;
            self.waits = 0;
        }
        if self.lagging {
            (0..LAG).for_each(|_| spin_loop());
        }
    }
}
