//! `std::sync::Condvar` of Rust 1.62 and later: a counter of notifications.
//!
//! Source: `library/std/src/sys/sync/condvar/futex.rs`.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::rust_mutex::rust_wait;
use super::{Family, Kind, Primitive};
use crate::function::Part;

pub(super) static FAMILY: Family = Family {
    primitives: &[&RustCondvar],
    rust_functions: &[("std::sys::sync::condvar", Part::Wait)],
    ..Family::NONE
};

/// Values with which threads also wait for the standard library's other primitives: a mutex (2),
/// and old and new versions of `Once` (3, 5, 6, 7).
const AMBIGUOUS: [u32; 5] = [2, 3, 5, 6, 7];

/// A word is a counter if threads slept on it with this many different values and it never
/// decreased.
const COUNTED: usize = 4;

#[derive(Debug)]
struct RustCondvar;

impl Primitive for RustCondvar {
    fn name(&self) -> &'static str {
        "Rust condition variable"
    }

    fn kind(&self) -> Kind {
        Kind::Condvar
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        let waits = evidence.all_waits(|wait| rust_wait(wait) && wait.value < 1 << 30)?;
        // A wait for a glibc condition variable with a timeout on the monotonic clock looks the
        // same.
        if evidence.fell() || super::glibc_condvar::target(evidence).is_some() {
            return None;
        }
        // Mutexes and `Once` have no waits with a timeout.
        let values = evidence.values_waited_with().len();
        let plain = waits.iter().any(|wait| wait.timed || !AMBIGUOUS.contains(&wait.value));
        let certain = values >= COUNTED && !super::rust_rwlock::is_writers_futex(evidence);
        let likely = (values > 1 || plain).then(|| Strength::certain_if(certain));
        let named = evidence.named(&[&["condvar", "utex", "Condvar", "wait"]]);
        Some(Claim::new(evidence.address(), named.or(likely)?))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }
}
