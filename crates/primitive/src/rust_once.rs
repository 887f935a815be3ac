//! `Once`, `OnceLock`, `LazyLock` of Rust 1.62 and later. In current versions, the word is 3 before
//! the initialisation begins, 1 while it runs, and 0 when it is done, plus 4 while a thread waits.
//! In earlier versions, it is 0 before the initialisation begins, 2 while it runs, 3 while it runs
//! and a thread waits, and 4 when it is done.
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
        // The counter of a condition variable passes through these values, too, but never
        // decreases.
        let fell = evidence.fell().then_some(Strength::LIKELY);
        let strength = evidence.named(&[&["once", "utex", "Once"]]).or(fell)?;
        Some(Claim::new(evidence.address(), strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }
}
