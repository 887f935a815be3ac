//! Names and uses of System V semaphores.

use std::cmp::Reverse;

use threadtoll_record::profile::{LastChange, SemaphoreUse, SysvSemaphore};
use threadtoll_record::{Fraction, Text};

use crate::account::{AwaitedSemaphore, SemaphoreReadings};

pub(super) fn name(semaphore: &SysvSemaphore) -> String {
    let key = semaphore.key.map_or_else(String::new, |key| format!(" with key {key:#x}"));
    let of_set = format!("of System V set {}{key}", semaphore.set);
    match semaphore.number {
        Some(number) => format!("semaphore {number} {of_set}"),
        None => format!("a semaphore {of_set}"),
    }
}

pub(super) fn record(awaited: AwaitedSemaphore, read: Option<&SemaphoreReadings>) -> SysvSemaphore {
    let read = read.filter(|read| read.readings > 0);
    let usage = read.map_or(SemaphoreUse::Unknown, SemaphoreReadings::usage);
    let is_lock = usage == SemaphoreUse::Lock;
    let held = |read: &SemaphoreReadings| Fraction::new(read.taken as f64 / read.readings as f64);
    SysvSemaphore {
        // An ID is never negative.
        set: awaited.set.unsigned_abs(),
        number: awaited.number,
        key: read.and_then(|read| read.key),
        readings: read.map_or(0, |read| read.readings).into(),
        value_max: read.map(|read| read.value_max),
        usage,
        held_share: read.filter(|_| is_lock).map(held),
        changed_by: read.and_then(last_change),
    }
}

fn last_change(read: &SemaphoreReadings) -> Option<LastChange> {
    let of_all: u64 = read.changed_by.values().sum();
    let changes = read.changed_by.iter();
    let (&pid, &most) = changes.max_by_key(|&(&pid, &changes)| (changes, Reverse(pid)))?;
    Some(LastChange {
        pid,
        name: read.names.get(&pid).map(|name| Text::from(name.as_str())).unwrap_or_default(),
        share: Fraction::new(most as f64 / of_all as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semaphore_that_cannot_be_read_is_named() {
        let of = |number| record(AwaitedSemaphore { set: 65_538, number, goal: None }, None);
        let semaphore = of(Some(3));
        assert_eq!(name(&semaphore), "semaphore 3 of System V set 65538");
        assert_eq!((semaphore.value_max, semaphore.usage), (None, SemaphoreUse::Unknown));
        let semaphore = SysvSemaphore { key: Some(0x4d2), ..of(None) };
        assert_eq!(name(&semaphore), "a semaphore of System V set 65538 with key 0x4d2");
    }
}
