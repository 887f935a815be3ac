//! HotSpot parks each thread on a condition variable of its own: for a monitor, for a
//! `ReentrantLock`, or in `Object.wait`. The lock is an object in the Java heap, which the profiler
//! cannot see.
//!
//! Functions on the stack distinguish `synchronized` from `Object.wait` and `Thread.sleep`.
//! `LockSupport.park` is called by Java code, which has no symbols. A thread that waits for a
//! `ReentrantLock` therefore looks like an idle thread of a pool.
//!
//! Source: `os/posix/os_posix.cpp` (`PlatformEvent`, `Parker`), `runtime/objectMonitor.cpp`
//! (`enter`, `EnterI`, `ReenterI`), `prims/unsafe.cpp` (`Unsafe_Park`) of JDK 8 to 21.

use super::evidence::{Caller, Claim, Context, Evidence, Strength, plain};
use super::{Family, Kind, ParkedFor, Primitive, Window};
use crate::function::Part;
use crate::library::LibraryLock;

pub(super) static FAMILY: Family = Family {
    primitives: &[&Jvm],
    functions: &[
        ("JavaCalls::", Part::Start),
        ("JavaThread::", Part::Start),
        ("Thread::call_run", Part::Start),
        ("thread_entry$", Part::Start),
        ("thread_native_entry$", Part::Start),
        ("Monitor::wait", Part::Wait),
        ("Mutex::lock", Part::Lock),
        ("ObjectMonitor::", Part::Lock),
        ("ObjectSynchronizer::", Part::Lock),
        ("Parker::park", Part::Wait),
        ("PosixSemaphore::", Part::Wait),
        ("Runtime1::", Part::Library),
        ("Semaphore::", Part::Wait),
        ("SharedRuntime::", Part::Library),
        ("os::Platform", Part::Wait),
    ],
    library_locks: &[LibraryLock {
        name: "Java's heap lock",
        functions: &[
            "ParallelScavengeHeap::mem_allocate*",
            "G1CollectedHeap::attempt_allocation*",
            "G1CollectedHeap::mem_allocate*",
            "GenCollectedHeap::mem_allocate*",
            "SerialHeap::mem_allocate*",
        ],
        files: &[],
        symbols: &[],
        anywhere: true,
        mend: "Give the heap more room (-Xmx), or allocate less: threads wait for garbage \
               collections.",
    }],
    spins: &["TrySpin"],
    ..Family::NONE
};

#[derive(Debug)]
struct Jvm;

impl Primitive for Jvm {
    fn name(&self) -> &'static str {
        "JVM parking"
    }

    fn kind(&self) -> Kind {
        Kind::Parker
    }

    fn claim(&self, evidence: &Evidence, context: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(plain)?;
        // Only condition variables: the virtual machine's own mutexes and semaphores keep their
        // kinds.
        let target = super::glibc_condvar::target(evidence)?;
        if context.jvm && evidence.callers().is_empty() {
            let fits = !evidence.shared() && evidence.windows_fit(|w| mutex_before(target, w));
            return fits.then(|| Claim::new(target, Strength::LIKELY));
        }
        let depth = evidence.callers().iter().take(4).position(|caller| {
            caller.module.rsplit('/').next().is_some_and(|file| file.starts_with("libjvm.so"))
        })?;
        Some(Claim::new(target, Strength::named(depth)))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 48)
    }

    fn locks_as_one(&self) -> Option<&'static str> {
        Some("synchronized (Java)")
    }

    fn parked_for(&self, callers: &[Caller]) -> ParkedFor {
        let functions = || callers.iter().filter_map(|caller| caller.function.as_deref());
        let on_stack = |names: &[&str]| {
            functions().any(|function| names.iter().any(|name| function.contains(name)))
        };
        if on_stack(&ENTERS_MONITOR) {
            ParkedFor::Lock
        } else if on_stack(&["JVM_Sleep"]) {
            ParkedFor::Sleep
        } else if functions().next().is_none() || on_stack(&["Unsafe_Park"]) {
            ParkedFor::Untold
        } else {
            ParkedFor::Idle
        }
    }
}

/// Functions that enter a monitor. After a notification, a thread in `Object.wait` enters its
/// monitor again.
const ENTERS_MONITOR: [&str; 3] =
    ["ObjectMonitor::enter", "ObjectMonitor::EnterI", "ObjectMonitor::ReenterI"];

/// Returns `true` if a mutex with a single user precedes the condition variable.
fn mutex_before(condvar: u64, window: &Window<'_>) -> bool {
    let word = |before| window.u32(condvar.wrapping_sub(before));
    let (owner, users, kind) = (word(32), word(28), word(24));
    owner == Some(0) && users == Some(1) && matches!(kind, Some(0 | 0x200))
}
