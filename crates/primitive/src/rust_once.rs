//! `Once`, `OnceLock` and `LazyLock` of Rust 1.62 and later.
//!
//! | | current versions | earlier versions |
//! |---|---|---|
//! | not begun | 3 | 0 |
//! | running | 1 | 2; 3 while a thread waits |
//! | done | 0 | 4 |
//!
//! Current versions add 4 while a thread waits.
//!
//! Source: `library/std/src/sys/sync/once/futex.rs`, in the current version and in that of 2024.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::rust_mutex::untimed;
use super::{Family, Kind, Primitive};
use crate::function::Part;

pub(super) static FAMILY: Family = Family {
    primitives: &[&RustOnce],
    rust_functions: &[("std::sys::sync::once", Part::Wait)],
    ..Family::NONE
};

#[derive(Debug)]
struct RustOnce;

impl Primitive for RustOnce {
    fn name(&self) -> &'static str {
        "Rust once"
    }

    fn kind(&self) -> Kind {
        Kind::Once
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(|wait| untimed(wait) && matches!(wait.value, 3 | 5 | 6 | 7))?;
        if !evidence.values_fit(|value| value <= 7) {
            return None;
        }
        // A condition variable's counter passes through these values, too, but never decreases.
        let fell = evidence.fell().then_some(Strength::LIKELY);
        let strength = evidence.named(&[&["once", "utex", "Once"]]).or(fell)?;
        Some(Claim::new(evidence.address(), strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }
}
