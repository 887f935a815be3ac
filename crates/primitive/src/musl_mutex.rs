//! `pthread_mutex_t` of musl.
//!
//! | offset | field |
//! |---|---|
//! | 0 | type: recursive, error-checking, robust, priority-inheriting, process-shared |
//! | 4 | futex: 0 if free, 16 or the owner's TID if held; top bit: threads wait |
//! | 8 | number of waiters |
//!
//! Source: `src/internal/pthread_impl.h`, `src/thread/pthread_mutex_timedlock.c` of musl 1.1 and
//! 1.2. musl's condition variables sleep on a word on each waiter's stack.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::pattern::{MAX_THREADS, MAX_TID};
use super::{Family, Hold, Kind, OwnerField, Primitive, Window};
use crate::futex::{FutexWait, Operation};

pub(super) static FAMILY: Family = Family { primitives: &[&MuslMutex], ..Family::NONE };

const FUTEX: u64 = 4;
const WAITERS: u64 = 8;

const TYPE: u32 = 3;
const ROBUST: u32 = 4;
const INHERIT: u32 = 8;
const SHARED: u32 = 128;
/// `EBUSY`, which a normal mutex stores in place of its owner's TID.
const HELD: u32 = 16;
const WAITED_FOR: u32 = 0x8000_0000;
const OWNER: u32 = 0x3fff_ffff;

#[derive(Debug)]
struct MuslMutex;

impl Primitive for MuslMutex {
    fn name(&self) -> &'static str {
        "musl mutex"
    }

    fn kind(&self) -> Kind {
        Kind::Mutex
    }

    fn claim(&self, evidence: &Evidence, context: &Context<'_>) -> Option<Claim> {
        let target = evidence.address().checked_sub(FUTEX)?;
        let waits = evidence
            .all_waits(|wait| wait.operation == Operation::Wait && wait.value & WAITED_FOR != 0)?;
        let fits = |window: &Window<'_>| {
            Fields::read(target, window).is_some_and(|fields| {
                let shape = waits.iter().all(|wait| fields.waited_for_by(wait));
                shape && fields.is_valid() && fields.owner().is_none_or(context.is_thread)
            })
        };
        let waited_for = |window: &Window<'_>| {
            Fields::read(target, window).is_some_and(|fields| fields.waiters > 0)
        };
        let fits = evidence.windows_show(fits, waited_for);
        fits.then(|| Claim::new(target, Strength::CERTAIN))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 12)
    }

    fn owner_field(&self, target: u64) -> OwnerField {
        OwnerField::Tid(target.wrapping_add(FUTEX))
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        match Fields::read(target, window) {
            None => Hold::Unseen,
            Some(fields) if fields.futex & OWNER == 0 => Hold::Free,
            Some(fields) => Hold::Held { owner: fields.owner() },
        }
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        Fields::read(target, window).is_some_and(|fields| !fields.is_valid())
    }
}

struct Fields {
    kind: u32,
    futex: u32,
    waiters: u32,
}

impl Fields {
    fn read(target: u64, window: &Window<'_>) -> Option<Fields> {
        Some(Fields {
            kind: window.u32(target)?,
            futex: window.u32(target.checked_add(FUTEX)?)?,
            waiters: window.u32(target.checked_add(WAITERS)?)?,
        })
    }

    fn is_normal(&self) -> bool {
        self.kind & (TYPE | ROBUST | INHERIT) == 0
    }

    fn owner(&self) -> Option<u32> {
        let owner = self.futex & OWNER;
        (owner != 0 && !self.is_normal()).then_some(owner)
    }

    fn is_valid(&self) -> bool {
        let kind = self.kind & !(TYPE | ROBUST | INHERIT | SHARED) == 0;
        let holder = match self.futex & OWNER {
            0 => true,
            HELD => true,
            owner => !self.is_normal() && owner < MAX_TID,
        };
        kind && holder && self.waiters <= MAX_THREADS
    }

    fn waited_for_by(&self, wait: &FutexWait) -> bool {
        let held = !self.is_normal() || wait.value == WAITED_FOR | HELD;
        held && wait.private == (self.kind & SHARED == 0)
    }
}
