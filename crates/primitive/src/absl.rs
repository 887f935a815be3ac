//! Abseil: each thread sleeps on its own word, for an `absl::Mutex` as for anything else, so the
//! word does not identify the lock.
//!
//! Source: `absl/synchronization/internal/futex_waiter.cc`, `per_thread_sem.cc`.

use super::evidence::{Claim, Context, Evidence, plain};
use super::{Caller, Family, Kind, ParkedFor, Primitive};
use crate::function::Part;

pub(super) static FAMILY: Family = Family {
    primitives: &[&Absl],
    functions: &[
        ("absl::Mutex::", Part::Lock),
        ("absl::MutexLock::", Part::Lock),
        ("absl::ReaderMutexLock::", Part::Lock),
        ("absl::WriterMutexLock::", Part::Lock),
        ("absl::base_internal::SpinLock", Part::Lock),
        ("absl::", Part::Wait),
        ("AbslInternal", Part::Wait),
    ],
    spins: &["SlowLock", "LockSlow", "LockSlowLoop", "AbslInternalSpinLockDelay"],
    ..Family::NONE
};

/// Functions that wait for a condition, although some of them belong to the mutex.
const CONDITIONS: [&str; 6] = [
    "::CondVar::",
    "::Mutex::Await",
    "::Mutex::LockWhen",
    "::Notification::",
    "::BlockingCounter::",
    "::Barrier::",
];

#[derive(Debug)]
struct Absl;

impl Primitive for Absl {
    fn name(&self) -> &'static str {
        "absl parking"
    }

    fn kind(&self) -> Kind {
        Kind::Parker
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(plain)?;
        let patterns: [&[&str]; 3] = [
            &["absl::", "FutexWaiter"],
            &["absl::", "PerThreadSem"],
            &["AbslInternalPerThreadSemWait"],
        ];
        let strength = evidence.named(&patterns)?;
        Some(Claim::new(evidence.address(), strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 4)
    }

    fn parked_for(&self, callers: &[Caller]) -> ParkedFor {
        let functions = || callers.iter().filter_map(|caller| caller.function.as_deref());
        let of_absl = |name: &str| functions().any(|f| f.contains("absl::") && f.contains(name));
        if CONDITIONS.iter().any(|name| of_absl(name)) {
            ParkedFor::Idle
        } else if of_absl("::Mutex::") {
            ParkedFor::Lock
        } else {
            ParkedFor::Untold
        }
    }
}
