//! CPython's global interpreter lock. Threads wait on a condition variable, five milliseconds at a
//! time, until a flag shows that the lock is free.
//!
//! | offset from the condition variable | field |
//! |---|---|
//! | −32 | interval in microseconds, 64 bits |
//! | −24 | address of the last holder's thread state |
//! | −16 | 1 while the lock is held |
//! | −8 | number of switches, 64 bits |
//! | 0 | the condition variable |
//! | 48 | mutex of that condition variable |
//! | 88 | condition variable on which a holder waits for the next holder |
//! | 136 | mutex of that condition variable |
//!
//! The thread state identifies its thread. Since 3.11, it contains glibc's `pthread_t`
//! (`thread_id`), followed by the TID (`native_thread_id`). Before 3.11, it contains only
//! `thread_id`, which points to glibc's descriptor of the thread. The descriptor contains the TID.
//!
//! Source: `Include/internal/pycore_gil.h` of CPython 3.7 to 3.13 (`struct _gil_runtime_state`),
//! `Python/ceval_gil.c`; `struct _ts` in `Include/cpython/pystate.h`; `nptl/descr.h` of glibc.

use super::evidence::{Claim, Context, Evidence, Strength};
use super::futex_lock::three_values;
use super::pattern::user_address;
use super::{Family, Hold, Kind, OwnerField, Primitive, ReadMemory, Window};
use crate::function::Part;

pub(super) static FAMILY: Family = Family {
    primitives: &[&Gil],
    functions: &[("PyCOND_", Part::Wait), ("PyThread_", Part::Wait)],
    ..Family::NONE
};

const CONDVAR: u64 = 32;
const LAST_HOLDER: u64 = 8;
const HELD: u64 = 16;
const MUTEX: u64 = 80;
const SWITCH: u64 = 120;
const SWITCH_MUTEX: u64 = 168;
const END: u64 = 208;
/// Number of bytes of a thread state that are searched for the thread's ID.
const STATE: usize = 512;
const DEFAULT_INTERVAL_US: u64 = 5000;
/// No program sets the interval to more than a second.
const MAX_INTERVAL_US: u64 = 1_000_000;

#[derive(Debug)]
struct Gil;

impl Primitive for Gil {
    fn name(&self) -> &'static str {
        "CPython global interpreter lock"
    }

    fn kind(&self) -> Kind {
        Kind::Mutex
    }

    fn claim(&self, evidence: &Evidence, _: &Context<'_>) -> Option<Claim> {
        evidence.all_waits(|wait| wait.timed)?;
        let target = super::glibc_condvar::target(evidence)?.checked_sub(CONDVAR)?;
        let fits = |window: &Window<'_>| is_gil(target, window) == Some(true);
        if !evidence.windows_fit(fits) {
            return None;
        }
        // Without symbols, only the default interval is convincing.
        let usual = |window: Window<'_>| window.u64(target) == Some(DEFAULT_INTERVAL_US);
        let strength = evidence.windows().all(usual).then_some(Strength::CONTAINING);
        let strength = evidence.named(&[&["take_gil"]]).or(strength)?;
        Some(Claim::new(target, strength))
    }

    fn extent(&self) -> (u64, usize) {
        (0, 20)
    }

    fn hold(&self, target: u64, window: &Window<'_>) -> Hold {
        three_values(window.u32(target.wrapping_add(HELD)))
    }

    fn owner_field(&self, _: u64) -> OwnerField {
        OwnerField::Record
    }

    fn holder_record(&self, target: u64, window: &Window<'_>) -> Option<u64> {
        let held = window.u32(target.wrapping_add(HELD)) == Some(1);
        let state = window.u64(target.wrapping_add(LAST_HOLDER))?;
        (held && user_address(state)).then_some(state)
    }

    fn thread_of(
        &self,
        record: u64,
        read: ReadMemory<'_>,
        is_thread: &dyn Fn(u32) -> bool,
    ) -> Option<u32> {
        let mut bytes = [0; STATE];
        let length = read(record, &mut bytes).min(STATE);
        let state = Window { address: record, bytes: &bytes[..length] };
        let offsets = (0..length as u64).step_by(8);
        let words: Vec<u64> =
            offsets.map_while(|offset| state.u64(record.checked_add(offset)?)).collect();
        let native = words.windows(2).find_map(|pair| {
            let tid = u32::try_from(pair[1]).ok()?;
            (user_address(pair[0]) && is_thread(tid)).then_some(tid)
        });
        let mut threads = words.iter().filter(|&&word| user_address(word));
        native.or_else(|| threads.find_map(|&thread| tid_of(thread, read, is_thread)))
    }

    fn interpreter_lock(&self) -> Option<&'static str> {
        Some("CPython's GIL")
    }

    fn part(&self, offset: u64) -> Option<&'static str> {
        match offset {
            MUTEX..SWITCH => Some("mutex"),
            SWITCH..SWITCH_MUTEX => Some("switch"),
            SWITCH_MUTEX..END => Some("switch mutex"),
            _ => None,
        }
    }

    fn contradicted(&self, target: u64, window: &Window<'_>) -> bool {
        is_gil(target, window) == Some(false)
    }
}

/// TID of a glibc thread. The third word of the thread's descriptor is the descriptor's own
/// address.
#[cfg(target_arch = "x86_64")]
fn tid_of(thread: u64, read: ReadMemory<'_>, is_thread: &dyn Fn(u32) -> bool) -> Option<u32> {
    const SELF: u64 = 16;
    const TID: u64 = 720;
    let mut bytes = [0; TID as usize + 4];
    let length = read(thread, &mut bytes).min(bytes.len());
    let descriptor = Window { address: thread, bytes: &bytes[..length] };
    let is_descriptor = descriptor.u64(thread.checked_add(SELF)?)? == thread;
    let tid = descriptor.u32(thread.checked_add(TID)?)?;
    (is_descriptor && is_thread(tid)).then_some(tid)
}

/// On other architectures, a thread's descriptor cannot be identified.
#[cfg(not(target_arch = "x86_64"))]
fn tid_of(_: u64, _: ReadMemory<'_>, _: &dyn Fn(u32) -> bool) -> Option<u32> {
    None
}

fn is_gil(target: u64, window: &Window<'_>) -> Option<bool> {
    let interval = window.u64(target)?;
    let holder = window.u64(target.checked_add(LAST_HOLDER)?)?;
    let held = window.u32(target.checked_add(HELD)?)?;
    let interval = (1..=MAX_INTERVAL_US).contains(&interval);
    Some(interval && (holder == 0 || user_address(holder)) && held <= 1)
}
