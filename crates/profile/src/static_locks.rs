//! Finds static variables that are locks or contain locks, by their types in debug information.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use threadtoll_stacks::StackTable;
use threadtoll_stacks::image::{CodeAddress, ImageId};
use threadtoll_stacks::symbol::{StaticVariable, StaticVariables};

use crate::primitive::{Identity, Role, declared, is_runtime_file};

#[derive(Debug, Default)]
pub(crate) struct StaticLocks {
    scans: VecDeque<Scan>,
    /// Static locks of each file, at addresses relative to the file.
    known: HashMap<ImageId, Vec<Identity>>,
}

#[derive(Debug)]
struct Scan {
    image: ImageId,
    process: u32,
    units: Option<StaticVariables<Identity>>,
}

impl StaticLocks {
    /// Searches the files that processes have mapped, but not after `until`. Returns the locks that
    /// were found, each with its process and its address in that process.
    pub(crate) fn find(&mut self, table: &mut StackTable, until: Instant) -> Vec<(u32, Identity)> {
        for (process, image) in table.newly_mapped() {
            // The runtime's own locks are rarely the problem. If threads wait for them, they are
            // seen anyway.
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
                        scan.units = table.static_variables(scan.image, lock_of_type);
                    }
                    let unit = scan.units.as_mut().and_then(Iterator::next);
                    unit.map(|found| found.into_iter().map(lock_of).collect())
                }
            };
            for lock in of_unit.iter().flatten() {
                let place = CodeAddress { image: scan.image, address: lock.address };
                let address = table.address_of(scan.process, place);
                found.extend(address.map(|address| (scan.process, lock.at(address))));
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

fn lock_of(variable: StaticVariable<Identity>) -> Identity {
    variable.kind.at(variable.address)
}

/// Returns the lock, at address 0, whose type has this path; `None` if the type is not a lock.
fn lock_of_type(path: &str) -> Option<Identity> {
    declared(path, 0).filter(|identity| identity.role() == Role::Lock)
}
