//! `pthread_mutex_t` of glibc, and locks built on it: `std::mutex`, `mtx_t`, Rust's `Mutex` until
//! 1.61.
//!
//! | offset | field |
//! |---|---|
//! | 0 | lock: 0 free, 1 held, 2 held and waited for |
//! | 4 | depth of a recursive mutex |
//! | 8 | TID of the owner |
//! | 12 | users: the owner, and threads that wait on a condition variable with the mutex |
//! | 16 | kind: type, robust, priority, process-shared, elision |
//!
//! A robust or priority-inheriting mutex keeps the owner's TID and the kernel's bits in the lock
//! word.
//!
//! Source: `sysdeps/nptl/bits/thread-shared-types.h`, `nptl/pthreadP.h`,
//! `nptl/pthread_mutex_lock.c`. The layout is that of every glibc since 2.4.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::pattern::{MAX_THREADS, MAX_TID};
use super::{Family, Hold, Kind, OwnerField, Primitive, Window};
use crate::function::Part;
use crate::futex::{FutexWait, Operation};

pub(super) static FAMILY: Family = Family {
    primitives: &[&GlibcMutex],
    functions: &[
        ("___pthread_mutex", Part::Lock),
        ("__pthread_mutex", Part::Lock),
        ("__GI___pthread_mutex", Part::Lock),
        ("pthread_mutex", Part::Lock),
        ("mtx_lock", Part::Lock),
        ("mtx_timedlock", Part::Lock),
        ("mtx_unlock", Part::Lock),
        ("__gthread", Part::Lock),
        ("std::mutex::", Part::Lock),
        ("std::timed_mutex::", Part::Lock),
        ("std::recursive_mutex::", Part::Lock),
        ("std::recursive_timed_mutex::", Part::Lock),
        ("std::__recursive_mutex_base", Part::Lock),
        ("std::__mutex_base", Part::Lock),
        ("std::__1::mutex::", Part::Lock),
        ("std::lock_guard::", Part::Lock),
        ("std::unique_lock::", Part::Lock),
        ("std::scoped_lock::", Part::Lock),
        ("std::lock", Part::Lock),
    ],
    sleeps_by_itself: true,
    ..Family::NONE
};

const OWNER: u64 = 8;
const USERS: u64 = 12;
const KIND: u64 = 16;

const ROBUST: u32 = 16;
const PRIO_INHERIT: u32 = 32;
const PRIO_PROTECT: u32 = 64;
const SHARED: u32 = 128;
/// All types and flags that a mutex may have.
const KIND_BITS: u32 = 0x3 | ROBUST | PRIO_INHERIT | PRIO_PROTECT | SHARED | 256 | 512;
/// A priority-protected mutex stores its ceiling in the high bits of the lock word and of the kind.
const CEILING: u32 = 0xfff8_0000;
/// Bits of the kernel's futex word that contain a TID.
const TID: u32 = 0x3fff_ffff;

#[derive(Debug)]
struct GlibcMutex;

impl Primitive for GlibcMutex {
    fn name(&self) -> &'static str {
        "glibc mutex"
    }

    fn kind(&self) -> Kind {
        Kind::Mutex
    }

    fn claim(&self, evidence: &Evidence, context: &Context<'_>) -> Option<Claim> {
        let target = evidence.address();
        let waits = evidence.all_waits(waits_for_mutex)?;
        // The owner's TID distinguishes this mutex from other locks with three values. If no thread
        // has that TID, the owner may have ended without releasing the mutex.
        let owned_by = |is_owner: &dyn Fn(u32) -> bool| {
            let fits = |window: &Window<'_>| {
                let Some(fields) = Fields::read(target, window) else { return false };
                let shape = waits.iter().all(|wait| fields.waited_for_by(wait));
                shape && fields.is_valid() && fields.owner().is_none_or(is_owner)
            };
            let owned = |window: &Window<'_>| {
                Fields::read(target, window).is_some_and(|fields| fields.owner().is_some())
            };
            evidence.windows_show(fits, owned)
        };
        if owned_by(context.is_thread) {
            return Some(Claim::new(target, Strength::CERTAIN));
        }
        let likely = owned_by(&|tid| (2..MAX_TID).contains(&tid));
        likely.then(|| Claim::new(target, Strength::LIKELY))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 20)
    }

    fn owner_field(&self, target: u64) -> OwnerField {
        OwnerField::Tid(target.wrapping_add(OWNER))
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        let Some(fields) = Fields::read(target, window) else { return Hold::Unseen };
        if fields.is_free() { Hold::Free } else { Hold::Held { owner: fields.owner() } }
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        Fields::read(target, window).is_some_and(|fields| !fields.is_valid())
    }

    /// Also matches the mutex inside a C++ `std::mutex`.
    fn has_type(&self, path: &str) -> bool {
        path == "pthread_mutex_t"
    }
}

/// Returns `true` if this may be a wait for a mutex, which names no clock unless it has a timeout.
fn waits_for_mutex(wait: &FutexWait) -> bool {
    match wait.operation {
        Operation::Wait => true,
        Operation::WaitBitset => wait.timed,
        Operation::LockPi => true,
        Operation::WaitRequeuePi | Operation::WaitMasked => false,
    }
}

struct Fields {
    lock: u32,
    owner: u32,
    users: u32,
    kind: u32,
}

impl Fields {
    fn read(target: u64, window: &Window<'_>) -> Option<Fields> {
        Some(Fields {
            lock: window.u32(target)?,
            owner: window.u32(target.checked_add(OWNER)?)?,
            users: window.u32(target.checked_add(USERS)?)?,
            kind: window.u32(target.checked_add(KIND)?)?,
        })
    }

    /// True if the lock word contains a TID and the kernel's bits.
    fn holds_tid(&self) -> bool {
        self.kind & (ROBUST | PRIO_INHERIT) != 0
    }

    fn lock(&self) -> u32 {
        match self.kind {
            _ if self.holds_tid() => self.lock & TID,
            kind if kind & PRIO_PROTECT != 0 => self.lock & !CEILING,
            _ => self.lock,
        }
    }

    fn is_free(&self) -> bool {
        self.lock() == 0
    }

    fn owner(&self) -> Option<u32> {
        let owner = if self.holds_tid() { self.lock() } else { self.owner };
        (owner != 0 && !self.is_free()).then_some(owner)
    }

    fn is_valid(&self) -> bool {
        let ceiling = if self.kind & PRIO_PROTECT == 0 { 0 } else { CEILING };
        let kind = self.kind & !(KIND_BITS | ceiling) == 0;
        let lock = self.holds_tid() || self.lock() <= 2;
        kind && lock && self.users <= MAX_THREADS
    }

    fn waited_for_by(&self, wait: &FutexWait) -> bool {
        if wait.operation == Operation::LockPi {
            return self.kind & PRIO_INHERIT != 0;
        }
        // Waits for a robust mutex are never private, even if only one process uses the mutex.
        let private = self.kind & (SHARED | ROBUST) == 0;
        let value = match self.kind {
            kind if kind & ROBUST != 0 => wait.value & !TID != 0,
            kind if kind & PRIO_PROTECT != 0 => wait.value & !CEILING == 2,
            _ => wait.value == 2,
        };
        self.kind & PRIO_INHERIT == 0 && private == wait.private && value
    }
}
