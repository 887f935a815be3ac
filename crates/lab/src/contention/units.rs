//! Work that is counted in units: numbers drawn from a Mersenne Twister, as in *Locks aren't slow*
//! (J. Preshing, 2011), or time that is slept.

use std::hint::black_box;
use std::time::Duration;

use rand_mt::Mt;
use threadtoll_record::Work;

/// The work of a thread.
pub(crate) struct BusyWork {
    work: Work,
    twister: Box<Mt>,
}

impl BusyWork {
    pub(crate) fn new(work: Work, seed: u32) -> Self {
        BusyWork { work, twister: Box::new(Mt::new(seed)) }
    }

    /// Does this number of units: numbers drawn, or nanoseconds slept.
    #[inline(always)]
    pub(crate) fn work(&mut self, units: u64) {
        match self.work {
            Work::Spin => {
                let mut sum = 0u32;
                for _ in 0..units {
                    sum = sum.wrapping_add(self.twister.next_u32());
                }
                black_box(sum);
            }
            // Nothing to sleep is no system call either.
            Work::Sleep if units == 0 => {}
            Work::Sleep => std::thread::sleep(Duration::from_nanos(units)),
        }
    }
}

/// Lets the calling thread's sleeps end when they are due: the kernel otherwise lets them run 50 µs
/// over to save wake-ups.
pub(crate) fn sleep_exactly() {
    // SAFETY: plain numbers; it concerns this thread's timers alone, and where it is refused they
    // are merely less exact.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}
