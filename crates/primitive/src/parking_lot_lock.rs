//! parking_lot's locks, at the addresses that parked threads wait for.
//!
//! | | state |
//! |---|---|
//! | mutex | one byte: 1 held, 2 threads are parked |
//! | rwlock | 8 bytes: 1 parked, 2 writer parked, 4 upgradable reader, 8 writer; above: readers |
//! | condition variable | 8 bytes: the mutex's address while threads wait |
//! | once | one byte: 1 done, 2 poisoned, 4 running, 8 parked |
//!
//! Threads that wait for a mutex or an rwlock spin and yield about ten times before they park
//! (`SpinWait`, parking_lot_core 0.9). Threads that wait for an rwlock leave tokens; others leave
//! none.
//!
//! Source: parking_lot 0.12 and 0.13, `raw_mutex.rs`, `raw_rwlock.rs`, `condvar.rs`, `once.rs`.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::futex_lock::three_values;
use super::pattern::{MAX_THREADS, user_address};
use super::{Access, Family, Hold, Kind, Primitive, Wait, Window};
use crate::function::Part;

pub(super) static FAMILY: Family = Family {
    primitives: &[&Mutex, &RwLock, &Condvar, &Once],
    rust_functions: &[
        ("parking_lot::raw_mutex", Part::Lock),
        ("parking_lot::raw_rwlock", Part::Lock),
        ("parking_lot::raw_fair_mutex", Part::Lock),
        ("lock_api::", Part::Lock),
    ],
    spins: &["lock_slow", "lock_shared_slow", "lock_exclusive_slow", "lock_upgradable_slow"],
    ..Family::NONE
};

const LOCKED: u8 = 1;
const PARKED: u8 = 2;
const MUTEX_BITS: u8 = LOCKED | PARKED;

/// An initialisation runs, and threads are parked for it.
const ONCE_WAITED_FOR: u8 = 4 | 8;

const WRITER: u64 = 8;
const READER_SHIFT: u32 = 4;

const TOKEN_NONE: u64 = 0;
const TOKEN_WRITER: u64 = 0x8;
const TOKEN_READER: u64 = 0x10;

#[derive(Debug)]
struct Mutex;

impl Primitive for Mutex {
    fn name(&self) -> &'static str {
        "parking_lot mutex"
    }

    fn kind(&self) -> Kind {
        Kind::Mutex
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        let target = evidence.address();
        let found = no_tokens(evidence) && states_of_mutex(evidence);
        found.then(|| Claim::new(target, Strength::CERTAIN))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 1)
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        three_values(window.u8(target).map(|byte| u32::from(byte & LOCKED)))
    }

    fn waiters_yield(&self) -> bool {
        true
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        window.u8(target).is_some_and(|byte| byte > MUTEX_BITS)
    }

    fn has_type(&self, path: &str) -> bool {
        path == "parking_lot::raw_mutex::RawMutex"
    }
}

#[derive(Debug)]
struct RwLock;

impl Primitive for RwLock {
    fn name(&self) -> &'static str {
        "parking_lot rwlock"
    }

    fn kind(&self) -> Kind {
        Kind::RwLock
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        let tokens = evidence.tokens()?;
        let target = evidence.address();
        let fits = |window: &Window<'_>| window.u64(target).is_some_and(is_rwlock);
        let found = tokens.iter().all(|&token| token != TOKEN_NONE) && evidence.windows_fit(fits);
        found.then(|| Claim::new(target, Strength::CERTAIN))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 8)
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        let Some(state) = window.u64(target) else { return Hold::Unseen };
        match (state & WRITER != 0, (state >> READER_SHIFT) as u32) {
            // A writer sets its bit before the readers have left, so the bit counts only without
            // readers.
            (true, 0) => Hold::Held { owner: None },
            (false, 0) => Hold::Free,
            (_, readers) => Hold::Readers(readers),
        }
    }

    fn waiters_yield(&self) -> bool {
        true
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        window.u64(target).is_some_and(|state| !is_rwlock(state))
    }

    fn access(&self, _: u64, wait: &Wait) -> Access {
        match wait {
            Wait::Parked { token: TOKEN_WRITER } => Access::Exclusive,
            Wait::Parked { token } if *token == TOKEN_READER => Access::Shared,
            // An upgradable reader excludes other upgradable readers.
            _ => Access::Exclusive,
        }
    }

    fn has_type(&self, path: &str) -> bool {
        path == "parking_lot::raw_rwlock::RawRwLock"
    }
}

#[derive(Debug)]
struct Condvar;

impl Primitive for Condvar {
    fn name(&self) -> &'static str {
        "parking_lot condition variable"
    }

    fn kind(&self) -> Kind {
        Kind::Condvar
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        let target = evidence.address();
        let mutex = |window: &Window<'_>| window.u64(target).is_some_and(user_address);
        let fits = target.is_multiple_of(8) && evidence.windows_fit(mutex);
        if !fits || !no_tokens(evidence) || states_of_mutex(evidence) {
            return None;
        }
        // If the first byte fits a mutex, this may be a mutex that was read while no thread was
        // parked for it, followed by an address.
        let beyond = |window: Window<'_>| window.u8(target).is_some_and(|byte| byte > MUTEX_BITS);
        let strength = Strength::certain_if(evidence.windows().all(beyond));
        Some(Claim::new(target, strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 8)
    }
}

#[derive(Debug)]
struct Once;

impl Primitive for Once {
    fn name(&self) -> &'static str {
        "parking_lot once"
    }

    fn kind(&self) -> Kind {
        Kind::Once
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        let target = evidence.address();
        let fits = |window: &Window<'_>| window.u8(target) == Some(ONCE_WAITED_FOR);
        let found = no_tokens(evidence) && evidence.windows_fit(fits);
        found.then(|| Claim::new(target, Strength::LIKELY))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 1)
    }
}

fn no_tokens(evidence: &Evidence) -> bool {
    let none = |tokens: Vec<u64>| tokens.iter().all(|&token| token == TOKEN_NONE);
    evidence.tokens().is_some_and(none)
}

/// Returns `true` if every value of the byte fits a mutex, and one of them says that threads wait.
fn states_of_mutex(evidence: &Evidence) -> bool {
    let states = || evidence.windows().filter_map(|window| window.u8(evidence.address()));
    states().all(|byte| byte <= MUTEX_BITS) && states().any(|byte| byte & PARKED != 0)
}

fn is_rwlock(state: u64) -> bool {
    state >> READER_SHIFT <= u64::from(MAX_THREADS)
}
