//! Work in units: numbers from a Mersenne Twister, as in *Locks aren't slow* (J. Preshing, 2011),
//! or nanoseconds of sleep.

use std::hint::black_box;
use std::time::Duration;

use rand_mt::Mt;
use threadtoll_record::Work;

pub(crate) struct BusyWork {
    work: Work,
    twister: Box<Mt>,
}

impl BusyWork {
    pub(crate) fn new(work: Work, seed: u32) -> Self {
        BusyWork { work, twister: Box::new(Mt::new(seed)) }
    }

    /// Never inlined: compiled once for the lock's section and once for the rest, a unit would take
    /// up to several percent longer in one of them.
    #[inline(never)]
    pub(crate) fn work(&mut self, units: u64) {
        match self.work {
            Work::Spin => {
                let mut sum = 0u32;
                for _ in 0..units {
                    sum = sum.wrapping_add(self.twister.next_u32());
                }
                black_box(sum);
            }
            // Sleeping for 0 ns must not be a system call.
            Work::Sleep if units == 0 => {}
            Work::Sleep => std::thread::sleep(Duration::from_nanos(units)),
        }
    }
}

/// Turns off timer slack for the calling thread: by default the kernel delays wake-ups by up to 50
/// µs to batch them.
pub(crate) fn sleep_exactly() {
    // SAFETY: passes plain numbers and affects only this thread's timers. If refused, sleeps are
    // merely less exact.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}
