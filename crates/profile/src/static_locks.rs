//! Static variables that are locks, or contain some, by their types in debug information.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use threadtoll_stacks::StackTable;
use threadtoll_stacks::image::{CodeAddress, ImageId};
use threadtoll_stacks::symbol::{DeclaredType, StaticVariable, StaticVariables};

use crate::primitive::runtime::is_runtime_file;
use crate::primitive::{Identity, declared};

/// The search for static locks in the files of all processes.
#[derive(Debug, Default)]
pub(crate) struct StaticLocks {
    /// Files whose static locks are not all known yet.
    scans: VecDeque<Scan>,
    known: HashMap<ImageId, Vec<Lock>>,
}

/// The search in one file.
#[derive(Debug)]
struct Scan {
    image: ImageId,
    /// A process that has mapped it.
    process: u32,
    /// `None` before it has begun.
    units: Option<StaticVariables<&'static str>>,
}

/// Address of a static lock, as its file counts, and its type.
#[derive(Clone, Copy, Debug)]
struct Lock {
    address: u64,
    type_name: &'static str,
}

impl Lock {
    fn of(variable: StaticVariable<&'static str>) -> Lock {
        Lock { address: variable.address, type_name: variable.kind }
    }
}

impl StaticLocks {
    /// Goes on to search the files that processes have mapped, until it is so late. Returns the
    /// locks that were found, each with its process and at its address there.
    pub(crate) fn find(&mut self, table: &mut StackTable, until: Instant) -> Vec<(u32, Identity)> {
        for (process, image) in table.newly_mapped() {
            // The runtime's own locks are hardly ever at fault, and those that are waited for are
            // seen all the same.
            let of_runtime = table.image(image).is_none_or(|image| is_runtime_file(image.name()));
            if !of_runtime {
                self.scans.push_back(Scan { image, process, units: None });
            }
        }
        let mut found = Vec::new();
        while Instant::now() < until
            && let Some(scan) = self.scans.front_mut()
        {
            let of_unit = match self.known.get(&scan.image) {
                // Another process has mapped the same file.
                Some(known) if scan.units.is_none() => Some(known.clone()),
                _ => {
                    if scan.units.is_none() {
                        scan.units = table.static_variables(scan.image, lock_type);
                    }
                    let unit = scan.units.as_mut().and_then(Iterator::next);
                    unit.map(|found| found.into_iter().map(Lock::of).collect())
                }
            };
            for lock in of_unit.iter().flatten() {
                let place = CodeAddress { image: scan.image, address: lock.address };
                let address = table.address_of(scan.process, place);
                let identity = address.and_then(|address| declared(lock.type_name, address));
                found.extend(identity.map(|identity| (scan.process, identity)));
            }
            let again = scan.units.is_none();
            match of_unit {
                Some(locks) if !again => {
                    self.known.entry(scan.image).or_default().extend(locks);
                }
                _ => {
                    self.known.entry(scan.image).or_default();
                    self.scans.pop_front();
                }
            }
        }
        found
    }
}

/// Name by which [`declared`] knows a type whose first bytes are a lock's word; `None` if it is no
/// lock.
pub fn lock_type(declared: &DeclaredType<'_>) -> Option<&'static str> {
    if declared.is_typedef() {
        return match declared.name() {
            // Also in a C++ `std::mutex` and `std::shared_mutex`.
            "pthread_mutex_t" => Some("pthread_mutex_t"),
            "pthread_rwlock_t" => Some("pthread_rwlock_t"),
            _ => None,
        };
    }
    let mut scopes = declared.scopes();
    let outermost = [scopes.next().unwrap_or_default(), scopes.next().unwrap_or_default()];
    let in_futex = || declared.scopes().any(|name| name.contains("futex"));
    match (outermost, declared.name()) {
        (["std", "sys"], "Mutex") if in_futex() => Some("std::sync::poison::mutex::Mutex"),
        (["std", "sys"], "RwLock") if in_futex() => Some("std::sync::poison::rwlock::RwLock"),
        (["parking_lot", "raw_mutex"], "RawMutex") => {
            Some("lock_api::mutex::Mutex<parking_lot::raw_mutex::RawMutex>")
        }
        (["parking_lot", "raw_rwlock"], "RawRwLock") => {
            Some("lock_api::rwlock::RwLock<parking_lot::raw_rwlock::RawRwLock>")
        }
        _ => None,
    }
}
