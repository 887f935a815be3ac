//! `sem_t` of glibc 2.21 and later, on 64-bit architectures.
//!
//! | offset | field |
//! |---|---|
//! | 0 | futex: value |
//! | 4 | number of waiters |
//! | 8 | 0, or 128 if process-shared |
//!
//! Source: `sysdeps/nptl/internaltypes.h` (`struct new_sem`), `nptl/sem_waitcommon.c`.

use super::evidence::{Claim, Context, Evidence, Strength, abstimed};
use super::pattern::MAX_THREADS;
use super::{Family, Kind, Primitive, Window};
use crate::function::Part;

pub(super) static FAMILY: Family = Family {
    primitives: &[&GlibcSemaphore],
    functions: &[
        ("__new_sem_", Part::Wait),
        ("sem_clockwait", Part::Wait),
        ("sem_timedwait", Part::Wait),
        ("sem_wait", Part::Wait),
    ],
    sleeps_by_itself: true,
    ..Family::NONE
};

const WAITERS: u64 = 4;
const SHARED: u64 = 8;

#[derive(Debug)]
struct GlibcSemaphore;

impl Primitive for GlibcSemaphore {
    fn name(&self) -> &'static str {
        "glibc semaphore"
    }

    fn kind(&self) -> Kind {
        Kind::Semaphore
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        let target = evidence.address();
        let waits = evidence.all_waits(|wait| abstimed(wait) && wait.value == 0)?;
        let fits = |window: &Window<'_>| {
            let waiters = window.u32(target.wrapping_add(WAITERS));
            let shared = window.u32(target.wrapping_add(SHARED));
            let shape = waits.iter().all(|w| shared == Some(if w.private { 0 } else { 128 }));
            waiters.is_some_and(|waiters| waiters <= MAX_THREADS) && shape
        };
        let waited_for = |window: &Window<'_>| {
            window.u32(target.wrapping_add(WAITERS)).is_some_and(|waiters| waiters != 0)
        };
        let found = target.is_multiple_of(8) && evidence.windows_show(fits, waited_for);
        // Fields of a condition variable may look like a semaphore by chance, but then the whole
        // condition variable is recognised.
        let semaphore = found && super::glibc_condvar::target(evidence).is_none();
        semaphore.then(|| Claim::new(target, Strength::CERTAIN))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 16)
    }

    /// A counting semaphore sometimes has a value above 1. A semaphore that is used as a lock never
    /// has.
    fn may_lock(&self, target: u64, window: &Window<'_>) -> bool {
        window.u32(target).is_none_or(|value| value <= 1)
    }

    fn has_type(&self, path: &str) -> bool {
        path == "sem_t"
    }
}
