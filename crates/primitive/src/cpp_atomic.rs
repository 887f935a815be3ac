//! libstdc++'s futexes, which are never marked private: `std::atomic::wait`, the semaphores,
//! latches and barriers built on it, futures, and guards of static variables.
//!
//! A thread that waits on an atomic of another size than `int` sleeps on one of sixteen pooled
//! words. The atomic's address selects the word, so unrelated atomics share it. That address is in
//! a register, which cannot be read while the thread sleeps, so the wait alone does not show its
//! purpose. An entry of the pool:
//!
//! | offset from the word | field |
//! |---|---|
//! | −64 | number of waiters |
//! | 0 | number of notifications |
//!
//! The entry fills two cache lines of 64 bytes. All of its other bytes are 0.
//!
//! Source: GCC's `bits/atomic_wait.h`, `bits/atomic_futex.h`, `libsupc++/guard.cc`.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::pattern::MAX_THREADS;
use super::{Family, Kind, Primitive, Window};
use crate::futex::{FutexWait, Operation};

pub(super) static FAMILY: Family =
    Family { primitives: &[&Semaphore, &Barrier, &Future, &StaticGuard, &Shared], ..Family::NONE };

/// Name of a word that several atomics share.
pub(super) const SHARED: &str = "C++ atomics' shared word";

/// A `std::future` has this bit set in its state while a thread waits.
const FUTURE_WAITED_FOR: u32 = 0x8000_0000;
/// Bytes of a guard, lowest first: not done (0), in progress (1), waited for (1).
const GUARD_WAITED_FOR: u32 = 0x0001_0100;

fn waits_so(wait: &FutexWait) -> bool {
    let operation = match wait.operation {
        Operation::Wait => !wait.timed,
        Operation::WaitBitset => wait.timed,
        _ => false,
    };
    operation && !wait.private
}

macro_rules! primitive {
    ($type:ident, $name:expr, $kind:expr, $claim:expr) => {
        #[derive(Debug)]
        struct $type;

        impl Primitive for $type {
            fn name(&self) -> &'static str {
                $name
            }

            fn kind(&self) -> Kind {
                $kind
            }

            fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
                evidence.all_waits(waits_so)?;
                let strength: fn(&Evidence) -> Option<Strength> = $claim;
                Some(Claim::new(evidence.address(), strength(evidence)?))
            }

            fn extent(&self) -> (u64, usize) {
                (0, 4)
            }
        }
    };
}

primitive!(Semaphore, "C++ semaphore", Kind::Semaphore, |evidence| {
    evidence.named(&[&["std::counting_semaphore"], &["std::__atomic_semaphore"]])
});

primitive!(Barrier, "C++ barrier", Kind::Barrier, |evidence| {
    evidence.named(&[&["std::latch"], &["std::barrier"], &["std::__tree_barrier"]])
});

primitive!(Future, "C++ future", Kind::Condvar, |evidence| {
    let waited = evidence.values_waited_with();
    let fits = |value| matches!(value, 0 | 1) || value == FUTURE_WAITED_FOR;
    let shape = waited == [FUTURE_WAITED_FOR] && evidence.values_fit(fits);
    let likely = shape.then_some(Strength::LIKELY);
    evidence.named(&[&["std::__atomic_futex_unsigned"], &["std::__future_base"]]).or(likely)
});

primitive!(StaticGuard, "C++ static guard", Kind::Once, |evidence| {
    let waited = evidence.values_waited_with() == [GUARD_WAITED_FOR];
    let likely = waited.then_some(Strength::LIKELY);
    evidence.named(&[&["__cxa_guard_acquire"]]).or(likely)
});

primitive!(Shared, SHARED, Kind::Unknown, |evidence| {
    let word = evidence.address();
    let fits = |window: &Window<'_>| is_of_pool(word, window);
    let alone = word.is_multiple_of(LINE) && !evidence.fell() && evidence.windows_fit(fits);
    alone.then_some(Strength::LIKELY)
});

const LINE: u64 = 64;

fn is_of_pool(word: u64, window: &Window<'_>) -> bool {
    let Some(entry) = word.checked_sub(LINE) else { return false };
    let waiters = window.u32(entry).is_some_and(|waiters| (1..=MAX_THREADS).contains(&waiters));
    let rest = (4..LINE).step_by(4).flat_map(|offset| [entry + offset, word.wrapping_add(offset)]);
    waiters && rest.into_iter().all(|address| window.u32(address) == Some(0))
}
