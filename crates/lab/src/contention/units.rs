//! Units of work: numbers from a Mersenne Twister, as in *Locks aren't slow* (J. Preshing, 2011),
//! or nanoseconds of sleep.

use std::hint::black_box;
use std::time::Duration;

use rand_mt::Mt;
use threadtoll_record::Work;

pub(crate) struct BusyWork {
    work: Work,
    twister: Box<OnAPage>,
}

/// Aligned to a page. At arbitrary addresses, the speed of a single thread differed by up to 7%
/// between runs; at the start of a page, by 2%.
#[repr(align(4096))]
struct OnAPage(Mt);

impl BusyWork {
    pub(crate) fn new(work: Work, seed: u32) -> Self {
        BusyWork { work, twister: Box::new(OnAPage(Mt::new(seed))) }
    }

    /// Never inlined: with one copy for work under the lock and another for other work, a unit
    /// would take up to several percent longer in one of the copies.
    #[inline(never)]
    pub(crate) fn work(&mut self, units: u64) {
        match self.work {
            Work::Spin => {
                let mut sum = 0u32;
                for _ in 0..units {
                    sum = sum.wrapping_add(self.twister.0.next_u32());
                }
                black_box(sum);
            }
            // Sleeping for 0 ns must not be a system call.
            Work::Sleep if units == 0 => {}
            Work::Sleep => std::thread::sleep(Duration::from_nanos(units)),
        }
    }
}

/// Clears the upper halves of the calling thread's vector registers.
///
/// Once AVX code has written to these halves, even zeros, every context switch restores them as in
/// use. On a Zen 5, code that needs only the lower halves, such as our units of work, then takes
/// 4.4% longer once the thread has slept.
pub(crate) fn clear_upper_halves() {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx")]
        fn clear() {
            std::arch::x86_64::_mm256_zeroupper();
        }
        if std::arch::is_x86_feature_detected!("avx") {
            // SAFETY: the CPU has AVX, and the kernel saves its registers.
            unsafe { clear() };
        }
    }
}

/// Turns off timer slack for the calling thread: by default, the kernel delays wake-ups by up to 50
/// µs to batch them.
pub(crate) fn sleep_exactly() {
    // SAFETY: passes plain numbers and affects only this thread's timers. If refused, sleeps are
    // merely less exact.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}
