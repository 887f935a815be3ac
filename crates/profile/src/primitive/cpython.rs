//! CPython's global interpreter lock: a condition variable on which threads wait five milliseconds
//! at a time until a flag shows that the lock is free.
//!
//! | offset from the condition variable | field |
//! |---|---|
//! | −32 | interval in microseconds, 64 bits |
//! | −24 | address of the thread state that held it last |
//! | −16 | 1 while it is held |
//! | −8 | number of switches, 64 bits |
//! | 0 | the condition variable |
//! | 48 | its mutex |
//!
//! Source: `Include/internal/pycore_gil.h` of CPython 3.7 to 3.13 (`struct _gil_runtime_state`),
//! `Python/ceval_gil.c`.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::futex_lock::three_values;
use super::pattern::user_address;
use super::{Hold, Kind, Primitive, Window};

pub(super) static PRIMITIVES: &[&dyn Primitive] = &[&Gil];

const CONDVAR: u64 = 32;
const LAST_HOLDER: u64 = 8;
const HELD: u64 = 16;
const DEFAULT_INTERVAL_US: u64 = 5000;
/// A second: nobody sets the interval to more.
const MAX_INTERVAL_US: u64 = 1_000_000;

#[derive(Debug)]
struct Gil;

impl Primitive for Gil {
    fn name(&self) -> &'static str {
        "CPython global interpreter lock"
    }

    fn kind(&self) -> Kind {
        Kind::Mutex
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(|wait| wait.timed)?;
        let object = super::glibc_condvar::object(evidence)?.checked_sub(CONDVAR)?;
        let fits = |window: &Window<'_>| is_gil(object, window) == Some(true);
        if !evidence.windows_fit(fits) {
            return None;
        }
        // Without symbols, only the usual interval convinces.
        let usual = |window: Window<'_>| window.u64(object) == Some(DEFAULT_INTERVAL_US);
        let strength = evidence.windows().all(usual).then_some(Strength::CONTAINING);
        let strength = evidence.named(&[&["take_gil"]]).or(strength)?;
        Some(Claim::new(object, strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 20)
    }

    fn hold(&self, object: u64, window: &Window<'_>) -> Hold {
        three_values(window.u32(object.wrapping_add(HELD)))
    }

    fn contradicted(&self, object: u64, window: &Window<'_>) -> bool {
        is_gil(object, window) == Some(false)
    }
}

fn is_gil(object: u64, window: &Window<'_>) -> Option<bool> {
    let interval = window.u64(object)?;
    let holder = window.u64(object.checked_add(LAST_HOLDER)?)?;
    let held = window.u32(object.checked_add(HELD)?)?;
    let interval = (1..=MAX_INTERVAL_US).contains(&interval);
    Some(interval && (holder == 0 || user_address(holder)) && held <= 1)
}
