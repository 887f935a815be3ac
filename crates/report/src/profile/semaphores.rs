//! System V semaphores for which threads wait: their uses in words.

use threadtoll_record::profile::{SemaphoreUse, SysvSemaphore, Wait};

/// The process that was the last to change a semaphore is named if that was so in at least this
/// share of the readings.
const MOSTLY_CHANGED: f64 = 0.6;

/// Such as `semaphore 0 of System V set 7`.
pub(super) fn name(wait: &Wait) -> Option<String> {
    wait.name.as_deref().filter(|_| wait.semaphore.is_some()).map(crate::clean::clean)
}

/// The semaphore, if it is used as a lock.
pub(super) fn lock(wait: &Wait) -> Option<&SysvSemaphore> {
    wait.semaphore.as_ref().filter(|semaphore| semaphore.usage == SemaphoreUse::Lock)
}

/// Part of a sentence about a semaphore that is used as a lock.
pub(super) fn used_as_lock(semaphore: &SysvSemaphore) -> String {
    let readings = semaphore.readings.get();
    let held = semaphore.held_share.map_or_else(String::new, |share| {
        let held = (share.get() * readings as f64).round();
        format!(" (held in {held} of {readings} readings)")
    });
    format!("used as a lock{held}")
}

/// Advice on how to find out what the semaphore is for.
pub(super) fn advice(semaphore: Option<&SysvSemaphore>) -> String {
    let read = "read that code to see which";
    let value = semaphore.and_then(|semaphore| semaphore.value_max).unwrap_or(0);
    match semaphore.map(|semaphore| semaphore.usage) {
        Some(SemaphoreUse::Signal) => {
            let signal = "its waiters were the last to take it, so it is a signal and no lock";
            format!("{signal}: read that code to see what it waits for")
        }
        _ if value > 1 => {
            format!("its value was up to {value}, so it is a limit or a signal: {read}")
        }
        _ => {
            let changed_by = semaphore.and_then(changed_by).unwrap_or_default();
            format!("a semaphore may be a lock, a limit or a signal{changed_by}: {read}")
        }
    }
}

fn changed_by(semaphore: &SysvSemaphore) -> Option<String> {
    let last = semaphore.changed_by.as_ref().filter(|last| last.share.get() >= MOSTLY_CHANGED)?;
    let name = match crate::clean::clean(&last.name) {
        name if name.is_empty() => "a process that has ended".into(),
        name => name,
    };
    Some(format!(" (changed last by {name} (PID {}))", last.pid))
}
