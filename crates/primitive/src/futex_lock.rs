//! A lock with three values: 0 free, 1 held, 2 held and waited for. This is how glibc's internal
//! locks (of `FILE`s and malloc arenas) and most locks that programs implement themselves work.
//!
//! Source: U. Drepper, Futexes Are Tricky, "Mutex, Take 2"; glibc's `nptl/lowlevellock.c`.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::{Family, Hold, Kind, Primitive, Window};
use crate::function::Part;
use crate::futex::Operation;

pub(super) static FAMILY: Family = Family {
    primitives: &[&FutexLock],
    functions: &[
        ("__lll_", Part::Lock),
        ("lll_", Part::Lock),
        ("__GI___lll_", Part::Lock),
        ("__libc_lock_lock", Part::Lock),
        ("__lockfile$", Part::Lock),
        ("flockfile$", Part::Lock),
    ],
    ..Family::NONE
};

const CONTENDED: u32 = 2;

#[derive(Debug)]
struct FutexLock;

impl Primitive for FutexLock {
    fn name(&self) -> &'static str {
        "futex lock"
    }

    fn kind(&self) -> Kind {
        Kind::Futex
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(|wait| wait.operation == Operation::Wait && wait.value == CONTENDED)?;
        if !evidence.values_fit(|value| value <= CONTENDED) {
            return None;
        }
        // A counter that stays at 2 looks like a lock that is held for a long time. A semaphore on
        // which a thread waits for work (as in oneTBB) has these values, but no other waiter. An
        // event has them, too, but its waiters never hold it.
        let contended = evidence.contended();
        let alternates = contended.then_some(Strength::FALLBACK);
        let strength = evidence.named(&[&["__lll_lock_wait_private"]]).or(alternates)?;
        Some(Claim::new(evidence.address(), strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        three_values(window.u32(target))
    }

    /// Waiters of locks built on C++'s `std::atomic::wait` yield (`__atomic_spin` in GCC's
    /// `bits/atomic_wait.h`).
    fn waiters_yield(&self) -> bool {
        true
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        window.u32(target).is_some_and(|word| word > CONTENDED)
    }
}

/// Holder of a lock whose word is 0 when it is free.
pub(super) fn three_values(word: Option<u32>) -> Hold {
    match word {
        None => Hold::Unseen,
        Some(0) => Hold::Free,
        Some(_) => Hold::Held { owner: None },
    }
}
