//! Locks and barriers of GCC's OpenMP library.
//!
//! A lock is 0 if it is free, 1 if it is held, and −1 if it is held and waited for. This is so for
//! critical sections, OpenMP's locks and the library's internal locks.
//!
//! At a barrier, threads wait for the end of a round, and so do idle threads of a team. Each round
//! adds 8 to the barrier's word, whose low bits are flags. A semaphore is negative while threads
//! wait for it.
//!
//! Source: libgomp, `config/linux/mutex.c`, `config/linux/bar.h` and `config/linux/sem.h`.

use super::evidence::{Caller, Claim, Context, Evidence, Strength};
use super::futex_lock::three_values;
use super::{Family, Hold, Kind, Primitive, Window};
use crate::function::Part;
use crate::futex::{FutexWait, Operation};

pub(super) static FAMILY: Family = Family {
    primitives: &[&GompMutex, &GompBarrier],
    functions: &[
        ("gomp_mutex_", Part::Lock),
        ("GOMP_critical_", Part::Lock),
        ("gomp_", Part::Library),
        ("GOMP_", Part::Library),
        ("libgomp.so", Part::Library),
    ],
    takes_lock: &["GOMP_critical_start", "GOMP_critical_name_start"],
    ..Family::NONE
};

const WAITED_FOR: u32 = u32::MAX;

/// Returns `true` for the only kind of wait that the library uses.
fn of_library(wait: &FutexWait) -> bool {
    wait.operation == Operation::Wait && wait.private && !wait.timed
}

/// Strength of a claim based on a waiter's stack; `None` if the library is not on the stack.
fn in_library(evidence: &Evidence) -> Option<Strength> {
    evidence.called_by(|caller: &Caller| {
        let file = caller.module.rsplit('/').next().unwrap_or_default();
        let named = caller.function.as_deref().is_some_and(|name| name.starts_with("gomp_"));
        file.starts_with("libgomp.so") || named
    })
}

#[derive(Debug)]
struct GompMutex;

impl Primitive for GompMutex {
    fn name(&self) -> &'static str {
        "libgomp mutex"
    }

    fn kind(&self) -> Kind {
        Kind::Futex
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(|wait| of_library(wait) && wait.value == WAITED_FOR)?;
        let fits = |value| matches!(value, 0 | 1 | WAITED_FOR);
        let strength = in_library(evidence).filter(|_| evidence.values_fit(fits))?;
        Some(Claim::new(evidence.address(), strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        three_values(window.u32(target))
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        window.u32(target).is_some_and(|word| !matches!(word, 0 | 1 | WAITED_FOR))
    }
}

#[derive(Debug)]
struct GompBarrier;

impl Primitive for GompBarrier {
    fn name(&self) -> &'static str {
        "libgomp barrier"
    }

    fn kind(&self) -> Kind {
        Kind::Barrier
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(|wait| of_library(wait) && wait.value <= i32::MAX as u32)?;
        let strength = in_library(evidence)?;
        Some(Claim::new(evidence.address(), strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }
}
