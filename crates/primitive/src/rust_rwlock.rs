//! `std::sync::RwLock` of Rust 1.62 and later.
//!
//! | offset | field |
//! |---|---|
//! | 0 | 30 bits: readers, or all ones for a writer; bit 30: readers wait; bit 31: writers wait |
//! | 4 | futex of the writers: a counter |
//!
//! Source: `library/std/src/sys/sync/rwlock/futex.rs`.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::pattern::MAX_THREADS;
use super::rust_mutex::{is_futex_of_std, untimed};
use super::{Access, Family, Hold, Kind, Primitive, Wait, Window};
use crate::function::Part;

pub(super) static FAMILY: Family = Family {
    primitives: &[&RustRwLock],
    rust_functions: &[
        ("std::sys::sync::rwlock", Part::Lock),
        ("std::sync::rwlock::", Part::Lock),
        ("std::sync::poison::rwlock::", Part::Lock),
    ],
    spins: &["read_contended", "write_contended"],
    ..Family::NONE
};

const WRITERS_FUTEX: u64 = 4;

const MASK: u32 = (1 << 30) - 1;
const READERS_WAIT: u32 = 1 << 30;
const WRITERS_WAIT: u32 = 1 << 31;

#[derive(Debug)]
struct RustRwLock;

impl Primitive for RustRwLock {
    fn name(&self) -> &'static str {
        "Rust rwlock"
    }

    fn kind(&self) -> Kind {
        Kind::RustRwLock
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        let waits = evidence.all_waits(untimed)?;
        let address = evidence.address();
        // A parked thread also waits with all bits set, but it is the only waiter on its word.
        let reader = |value: u32| value & READERS_WAIT != 0 && is_state(value);
        if waits.iter().all(|wait| reader(wait.value)) && evidence.values_fit(is_state) {
            let distinct = waits.iter().any(|wait| wait.value != u32::MAX);
            let likely = distinct || evidence.shared();
            let strength = likely.then(|| Strength::certain_if(distinct));
            return Some(Claim::new(address, named(evidence).or(strength)?));
        }
        let target = address.checked_sub(WRITERS_FUTEX)?;
        let fits = |window: &Window<'_>| window.u32(target).is_some_and(is_state);
        let waited_for = |window: &Window<'_>| {
            window.u32(target).is_some_and(|state| state & WRITERS_WAIT != 0 && state & MASK != 0)
        };
        if !evidence.windows_show(fits, waited_for) || evidence.fell() {
            return None;
        }
        let strength = Strength::certain_if(is_writers_futex(evidence));
        Some(Claim::new(target, named(evidence).unwrap_or(strength)))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 8)
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        match window.u32(target).map(|state| state & MASK) {
            None => Hold::Unseen,
            Some(0) => Hold::Free,
            Some(MASK) => Hold::Held { owner: None },
            Some(readers) => Hold::Readers(readers),
        }
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        window.u32(target).is_some_and(|state| !is_state(state))
    }

    fn access(&self, target: u64, wait: &Wait) -> Access {
        match wait {
            Wait::Futex(wait) if wait.address == target => Access::Shared,
            _ => Access::Exclusive,
        }
    }

    fn has_type(&self, path: &str) -> bool {
        is_futex_of_std(path) && path.ends_with("::RwLock")
    }
}

fn named(evidence: &Evidence) -> Option<Strength> {
    evidence.named(&[&["utex::RwLock", "_contended"], &["futex_rwlock::RwLock", "_contended"]])
}

/// Returns `true` if the word before this one is a locked rwlock with waiting writers. A word with
/// all bits set does not count: it may be a negative number in front of a condition variable.
pub(super) fn is_writers_futex(evidence: &Evidence) -> bool {
    let state = |window: Window<'_>| window.u32(evidence.address().checked_sub(WRITERS_FUTEX)?);
    evidence.windows().filter_map(state).any(|state| {
        state & WRITERS_WAIT != 0 && state & MASK != 0 && state != u32::MAX && is_state(state)
    })
}

fn is_state(word: u32) -> bool {
    let readers = word & MASK;
    readers == MASK || readers <= MAX_THREADS
}
