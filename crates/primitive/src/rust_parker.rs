//! `std::thread::park` of Rust 1.62 and later, on which channels and scopes sleep. Each thread has
//! one word: 0 if empty, 1 if notified, and all bits set while the thread sleeps.
//!
//! Source: `library/std/src/sys/sync/thread_parking/futex.rs`.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::rust_mutex::rust_wait;
use super::{Family, Kind, Primitive};
use crate::function::Part;

pub(super) static FAMILY: Family = Family {
    primitives: &[&RustParker],
    rust_functions: &[("std::sys::sync::thread_parking", Part::Wait)],
    ..Family::NONE
};

const PARKED: u32 = u32::MAX;

#[derive(Debug)]
struct RustParker;

impl Primitive for RustParker {
    fn name(&self) -> &'static str {
        "Rust thread::park"
    }

    fn kind(&self) -> Kind {
        Kind::Parker
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(|wait| rust_wait(wait) && wait.value == PARKED)?;
        let fits = evidence.values_fit(|value| value <= 1 || value == PARKED);
        if !fits || evidence.shared() {
            return None;
        }
        // A `RwLock` with waiting readers and writers also has all bits set, but not for long.
        let strength = Strength::certain_if(evidence.values().len() > 1 && evidence.often_read());
        let named = evidence.named(&[&["thread_park", "Parker", "park"]]);
        Some(Claim::new(evidence.address(), named.unwrap_or(strength)))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }
}
