//! `pthread_rwlock_t` of glibc 2.25 and later, and `std::shared_mutex`.
//!
//! | offset | field |
//! |---|---|
//! | 0 | bit 0: write phase; bit 1: a writer holds or takes the lock |
//! | | bit 2: readers wait here; above: number of readers |
//! | 4 | number of waiting writers, and a bit for a hand-over |
//! | 8 | futex: 3 for readers until the write phase ends, 2 for the first writer until it begins |
//! | 12 | futex: 3 for further writers |
//! | 16, 20 | unused |
//! | 24 | TID of the writer |
//! | 28 | process-shared |
//! | 48 | preference for readers or writers |
//!
//! Source: `sysdeps/nptl/bits/struct_rwlock.h` and its x86 version, `nptl/pthread_rwlock_common.c`.

use super::evidence::{Claim, Context, Evidence, Strength, abstimed};
use super::pattern::MAX_THREADS;
use super::{Access, Family, Hold, Kind, OwnerField, Primitive, Wait, Window};
use crate::function::Part;
use crate::futex::FutexWait;

pub(super) static FAMILY: Family = Family {
    primitives: &[&GlibcRwLock],
    functions: &[
        ("___pthread_rwlock", Part::Lock),
        ("__pthread_rwlock", Part::Lock),
        ("__GI___pthread_rwlock", Part::Lock),
        ("pthread_rwlock", Part::Lock),
        ("__glibcxx_rwlock", Part::Lock),
        ("std::shared_lock::", Part::Lock),
        ("std::shared_mutex::", Part::Lock),
        ("std::shared_timed_mutex::", Part::Lock),
        ("std::__shared_mutex", Part::Lock),
        ("std::__shared_timed_mutex", Part::Lock),
    ],
    sleeps_by_itself: true,
    ..Family::NONE
};

const PHASE_FUTEX: u64 = 8;
const WRITERS_FUTEX: u64 = 12;
const WRITER: u64 = 24;

const WRITE_PHASE: u32 = 1;
const WRITE_LOCKED: u32 = 2;
const READERS_WAIT: u32 = 4;
const READER_SHIFT: u32 = 3;
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
const PREFER_WRITERS: u32 = 2;
const WRITER_HANDOVER: u32 = 1 << 31;

#[derive(Debug)]
struct GlibcRwLock;

impl Primitive for GlibcRwLock {
    fn name(&self) -> &'static str {
        "glibc rwlock"
    }

    fn kind(&self) -> Kind {
        Kind::RwLock
    }

    fn claim(&self, evidence: &Evidence, context: &Context<'_>) -> Option<Claim> {
        let waits = evidence.all_waits(abstimed)?;
        let mut found = None;
        for offset in [0, PHASE_FUTEX, WRITERS_FUTEX] {
            let Some(target) = evidence.address().checked_sub(offset) else { continue };
            let fits = |window: &Window<'_>| {
                let Some(fields) = Fields::read(target, window) else { return false };
                let writer = fields.writer().is_none_or(context.is_thread);
                fields.is_valid() && writer
            };
            let waited_for = |window: &Window<'_>| {
                let Some(fields) = Fields::read(target, window) else { return false };
                fields.in_use() && waits.iter().all(|wait| fields.waited_for_by(offset, wait))
            };
            if target.is_multiple_of(8) && evidence.windows_show(fits, waited_for) {
                if found.is_some() {
                    return None;
                }
                found = Some(target);
            }
        }
        found.map(|target| Claim::new(target, Strength::CERTAIN))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 32)
    }

    fn owner_field(&self, target: u64) -> OwnerField {
        OwnerField::Tid(target.wrapping_add(WRITER))
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        let Some(fields) = Fields::read(target, window) else { return Hold::Unseen };
        fields.hold()
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        Fields::read(target, window).is_some_and(|fields| !fields.is_valid())
    }

    fn access(&self, target: u64, wait: &Wait) -> Access {
        let Wait::Futex(wait) = wait else { return Access::Exclusive };
        match wait.address.wrapping_sub(target) {
            0 => Access::Shared,
            PHASE_FUTEX if wait.value & 1 != 0 => Access::Shared,
            _ => Access::Exclusive,
        }
    }

    /// Also matches the lock inside a C++ `std::shared_mutex`.
    fn has_type(&self, path: &str) -> bool {
        path == "pthread_rwlock_t"
    }
}

struct Fields {
    readers: u32,
    writers: u32,
    phase_futex: u32,
    writers_futex: u32,
    unused: u64,
    writer: u32,
    shared: u32,
    preference: Option<u32>,
}

impl Fields {
    fn read(target: u64, window: &Window<'_>) -> Option<Fields> {
        let at = |offset| target.checked_add(offset);
        Some(Fields {
            readers: window.u32(target)?,
            writers: window.u32(at(4)?)?,
            phase_futex: window.u32(at(PHASE_FUTEX)?)?,
            writers_futex: window.u32(at(WRITERS_FUTEX)?)?,
            unused: window.u64(at(16)?)?,
            writer: window.u32(at(WRITER)?)?,
            shared: window.u32(at(28)?)?,
            preference: window.u32(at(48)?),
        })
    }

    fn reader_count(&self) -> u32 {
        self.readers >> READER_SHIFT
    }

    fn hold(&self) -> Hold {
        let write_phase = self.readers & WRITE_PHASE != 0;
        let write_locked = self.readers & WRITE_LOCKED != 0;
        match (self.writer(), self.reader_count()) {
            // In the write phase, the counted readers wait for the phase to end.
            (_, readers) if readers > 0 && !write_phase => Hold::Readers(readers),
            (Some(owner), _) if write_locked => Hold::Held { owner: Some(owner) },
            // A lock that was handed to a writer counts as free until the writer runs and stores
            // its TID.
            _ => Hold::Free,
        }
    }

    fn writer(&self) -> Option<u32> {
        (self.writer != 0).then_some(self.writer)
    }

    fn is_valid(&self) -> bool {
        self.reader_count() <= MAX_THREADS
            && self.writers & !WRITER_HANDOVER <= MAX_THREADS
            && self.phase_futex <= 3
            && self.writers_futex <= 3
            && self.unused == 0
            && self.shared <= 1
    }

    fn in_use(&self) -> bool {
        self.readers >> READER_SHIFT != 0 || self.readers & WRITE_LOCKED != 0
    }

    fn waited_for_by(&self, offset: u64, wait: &FutexWait) -> bool {
        let value = match offset {
            // While readers hold the lock and a writer waits, further readers queue behind the
            // writer.
            0 => {
                let state = wait.value & (WRITE_PHASE | WRITE_LOCKED | READERS_WAIT);
                let readers = (1..=MAX_THREADS).contains(&(wait.value >> READER_SHIFT));
                let passing = state == WRITE_LOCKED | READERS_WAIT;
                passing && readers && self.preference == Some(PREFER_WRITERS)
            }
            PHASE_FUTEX => wait.value == 2 || wait.value == 3 && self.reader_count() != 0,
            _ => wait.value == 3,
        };
        value && wait.private == (self.shared == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_handed_over_is_free() {
        const TID: u32 = 7;
        let reads = |count: u32| count << READER_SHIFT;
        let locked = WRITE_PHASE | WRITE_LOCKED;
        for (readers, writer, hold) in [
            (0, 0, Hold::Free),
            (WRITE_PHASE, 0, Hold::Free),
            (reads(2), 0, Hold::Readers(2)),
            // The first writer waits for two readers to leave.
            (reads(2) | WRITE_LOCKED, 0, Hold::Readers(2)),
            // The last reader has left, and the writer has not run yet.
            (locked, 0, Hold::Free),
            (locked, TID, Hold::Held { owner: Some(TID) }),
            // Readers wait for the end of the writer's phase.
            (reads(3) | locked, TID, Hold::Held { owner: Some(TID) }),
            // The writer hands the lock to another writer.
            (reads(3) | locked, 0, Hold::Free),
        ] {
            let mut words = [0; 8];
            (words[0], words[6]) = (readers, writer);
            let bytes = words.map(u32::to_le_bytes).concat();
            let window = Window { address: 0x1000, bytes: &bytes };
            assert_eq!(GlibcRwLock.hold(0x1000, &window), hold, "{readers:#x}, {writer}");
        }
    }
}
