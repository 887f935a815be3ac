//! Threads that every sample saw asleep in the same place in their code.
//!
//! Without records of context switches, one long sleep looks like many short ones. But a thread
//! that takes a lock again and again is occasionally seen on a CPU or in another wait.

use crate::sample::ThreadRead;

/// Minimum number of samples, and minimum time in nanoseconds, for which a thread must be seen
/// asleep in one place to count as resting.
const SAMPLES: u32 = 50;
const NS: u64 = 500_000_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Stack pointer and program counter of the sleeping thread; `None` once the thread has been
    /// seen elsewhere.
    place: Option<(u64, u64)>,
    since: u64,
    last: u64,
    samples: u32,
}

impl Rest {
    pub(super) fn of(read: &ThreadRead, at: u64) -> Rest {
        Rest { place: read.activity.position(), since: at, last: at, samples: 0 }
    }

    pub(super) fn see(&mut self, read: &ThreadRead, at: u64) {
        if self.place.is_some() && self.place != read.activity.position() {
            self.place = None;
        }
        self.last = at;
        self.samples = self.samples.saturating_add(1);
    }

    pub(super) fn rests(&self) -> bool {
        self.place.is_some() && self.samples >= SAMPLES && self.last - self.since >= NS
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_stacks::process::{Activity, SystemCall};

    use super::*;

    fn read(stack_pointer: u64) -> ThreadRead {
        let (number, arguments) = (libc::SYS_pause as u32, [0; 6]);
        let call = SystemCall { number, arguments, stack_pointer, program_counter: 7 };
        ThreadRead::new(0, 1, true, Activity::Asleep(call))
    }

    #[test]
    fn a_thread_that_was_seen_elsewhere_once_does_not_rest() {
        let mut rest = Rest::of(&read(1), 0);
        (0..100).for_each(|sample| rest.see(&read(1), sample * 1_000_000));
        assert!(!rest.rests());
        (0..60).for_each(|sample| rest.see(&read(1), 100_000_000 + sample * 10_000_000));
        assert!(rest.rests());
        rest.see(&read(2), 800_000_000);
        rest.see(&read(1), 900_000_000);
        assert!(!rest.rests());
    }
}
