//! `std::sync::Mutex` of Rust 1.62 and later: 0 free, 1 held, 2 held and waited for. The mutex
//! records no owner. `ReentrantLock`, which standard output uses, keeps the owner next to such a
//! mutex.
//!
//! Source: `library/std/src/sys/sync/mutex/futex.rs`.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::futex_lock::three_values;
use super::{Family, Hold, Kind, Primitive, Window};
use crate::function::Part;
use crate::futex::{FutexWait, Operation};
use crate::library::LibraryLock;

pub(super) static FAMILY: Family = Family {
    primitives: &[&RustMutex],
    rust_functions: &[
        ("std::sys::sync::mutex", Part::Lock),
        ("std::sys::locks::", Part::Lock),
        ("std::sys_common::mutex", Part::Lock),
        ("std::sync::mutex::", Part::Lock),
        ("std::sync::poison::mutex::", Part::Lock),
    ],
    spins: &["lock_contended"],
    library_locks: &[
        LibraryLock {
            name: "Rust's stdin",
            functions: &["std::io::stdio::Stdin*"],
            files: &[],
            symbols: &[],
            anywhere: true,
            mend: "Read from one thread, and hand the lines to the others.",
        },
        LibraryLock {
            name: "Rust's stdout or stderr",
            functions: &["std::io::stdio::*"],
            files: &[],
            symbols: &[],
            anywhere: true,
            mend: "Lock the stream once for many writes, through a BufWriter, or print from one \
                   thread.",
        },
    ],
    ..Family::NONE
};

const CONTENDED: u32 = 2;

#[derive(Debug)]
struct RustMutex;

impl Primitive for RustMutex {
    fn name(&self) -> &'static str {
        "Rust mutex"
    }

    fn kind(&self) -> Kind {
        Kind::RustMutex
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(|wait| untimed(wait) && wait.value == CONTENDED)?;
        if !evidence.values_fit(|value| value <= CONTENDED) {
            return None;
        }
        // A condition variable's counter may be 2, but never decreases. A semaphore with these
        // values goes down and up, but only one thread ever waits for it.
        let contended = evidence.rose_again() && evidence.shared();
        let fell = evidence.fell().then(|| Strength::certain_if(contended));
        let strength = evidence.named(&[&["utex::Mutex", "lock_contended"]]).or(fell)?;
        Some(Claim::new(evidence.address(), strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        three_values(window.u32(target))
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        window.u32(target).is_some_and(|word| word > CONTENDED)
    }

    /// Matches only the inner lock, which is not necessarily the first word of a
    /// `std::sync::Mutex`.
    fn has_type(&self, path: &str) -> bool {
        is_futex_of_std(path) && path.ends_with("::Mutex")
    }
}

/// Returns `true` for the standard library's futex types, such as
/// `std::sys::sync::mutex::futex::Mutex` or, in earlier versions,
/// `std::sys::unix::locks::futex_mutex::Mutex`.
pub(super) fn is_futex_of_std(path: &str) -> bool {
    path.starts_with("std::sys::") && path.contains("futex")
}

pub(super) fn untimed(wait: &FutexWait) -> bool {
    rust_wait(wait) && !wait.timed
}

/// Returns `true` for the only form in which Rust's standard library waits.
pub(super) fn rust_wait(wait: &FutexWait) -> bool {
    wait.operation == Operation::WaitBitset && wait.private && !wait.realtime
}
