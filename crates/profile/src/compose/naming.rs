//! Names of locks and of other wait targets.

use std::collections::HashMap;

use threadtoll_primitive::function::plain;
use threadtoll_record::profile::NameFrom;
use threadtoll_stacks::symbol::Variable;

use super::One;
use crate::account::WaitTarget;
use crate::primitive::Kind;
use crate::primitive::library::{LibraryLock, at_symbol, waited_for};
use crate::stacks::Stacks;

const MAX_STACKS: usize = 3;

/// Minimum number of locks, at distances that fit an array, for a variable to count as an array.
const MIN_ELEMENTS: usize = 3;

const MAX_ARRAY: u64 = 1 << 30;

/// Prefix of the variables that GCC creates for named critical sections of OpenMP.
const CRITICAL: &str = ".gomp_critical_user_";

#[derive(Debug)]
pub(super) struct Named {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) of_both: String,
    pub(super) name_from: NameFrom,
    pub(super) library: Option<&'static LibraryLock>,
    /// For a readers-writer lock: `true` for the readers' account, `false` for the writers'.
    pub(super) for_readers: Option<bool>,
    pub(super) address: u64,
}

impl One<'_> {
    pub(super) fn names(self, locks: &[(usize, &WaitTarget)], stacks: &mut Stacks) -> Vec<Named> {
        let strides = Strides::of(self, stacks);
        let mut names: Vec<Named> = locks
            .iter()
            .map(|&(place, target)| {
                let (name, name_from, library) = self.name_of(target, &strides, stacks);
                let reads_and_writes = target.identity.kind() == Kind::RwLock;
                Named {
                    id: place as u32 + 1,
                    of_both: name.clone(),
                    name,
                    name_from,
                    library,
                    for_readers: reads_and_writes.then_some(target.for_readers),
                    address: target.identity.address,
                }
            })
            .collect();
        tell_apart(&mut names);
        names
    }

    pub(super) fn name(self, target: &WaitTarget, stacks: &mut Stacks) -> (String, NameFrom) {
        let (name, name_from, _) = self.name_of(target, &Strides::default(), stacks);
        (name, name_from)
    }

    /// Returns `true` if the variable, which begins with `target`, also contains another wait
    /// target.
    fn is_shared(self, variable: &Variable, target: &WaitTarget) -> bool {
        let begin = target.address;
        let inside = (begin + 1)..begin.saturating_add(variable.size);
        let others = self.process.targets.iter().filter(|other| {
            other.identity.address != target.identity.address
                && target.identity.part_at(other.address).is_none()
        });
        others.into_iter().any(|other| inside.contains(&other.identity.address))
    }

    fn name_of(
        self,
        target: &WaitTarget,
        strides: &Strides,
        stacks: &mut Stacks,
    ) -> (String, NameFrom, Option<&'static LibraryLock>) {
        if let Some(name) = target.identity.interpreter_lock() {
            return (name.to_owned(), NameFrom::Symbol, None);
        }
        let mut others = self.process.targets.iter();
        if let Some(part) = others.find_map(|other| other.identity.part_at(target.address)) {
            return (part, NameFrom::Symbol, None);
        }
        let mut waiting: Vec<(&u32, &u64)> = target.waiting_at.iter().collect();
        waiting.sort_by_key(|&(stack, samples)| (std::cmp::Reverse(samples), stack));
        let mut most = waiting.iter().take(MAX_STACKS);
        let by_waiter = match target.is_lock() {
            true => most.find_map(|&(&stack, _)| waited_for(&stacks.callers(stack))),
            false => None,
        };
        if let Some((variable, in_runtime)) = stacks.variable(self.index, target.address) {
            let section = variable.name.strip_prefix(CRITICAL).filter(|_| variable.offset == 0);
            let name = match (section, strides.element(&variable)) {
                (Some(section), _) => format!("critical section {section}"),
                (None, Some(index)) => format!("{}[{index}]", variable.name),
                // The variable is more than this lock, so its name alone would mislead.
                (None, None) if variable.offset == 0 && self.is_shared(&variable, target) => {
                    format!("{}+0x0", variable.name)
                }
                (None, None) => variable.to_string(),
            };
            if !in_runtime {
                return (name, NameFrom::Symbol, None);
            }
            // A name such as `lock` says nothing without its library.
            let library = at_symbol(&variable.name).or(by_waiter);
            let name = match library {
                Some(library) if library.name == name || name == "lock" || name.contains("+0x") => {
                    library.name.to_owned()
                }
                Some(library) => format!("{} ({name})", library.name),
                None => name,
            };
            return (name, NameFrom::Symbol, library);
        }
        if let Some(library) = by_waiter {
            return (library.name.to_owned(), NameFrom::WaiterSite, Some(library));
        }
        match waiting.first().and_then(|&(&stack, _)| stacks.caller(stack)) {
            Some(caller) if !caller.trim().is_empty() => {
                (format!("lock in {}", plain(&caller)), NameFrom::WaiterSite, None)
            }
            _ => (format!("{:#x}", target.address), NameFrom::Address, None),
        }
    }
}

#[derive(Debug, Default)]
struct Strides(HashMap<String, Array>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Array {
    first: u64,
    stride: u64,
}

impl Strides {
    fn of(one: One<'_>, stacks: &mut Stacks) -> Strides {
        let mut offsets: HashMap<String, (u64, Vec<u64>)> = HashMap::new();
        let locks = one.process.targets.iter().filter(|target| target.is_lock());
        for lock in locks.filter(|lock| !lock.for_readers) {
            let Some((variable, _)) = stacks.variable(one.index, lock.address) else { continue };
            let (_, known) = offsets.entry(variable.name).or_insert((variable.size, Vec::new()));
            known.push(variable.offset);
        }
        let array = |(name, (size, offsets))| Some((name, Array::of(size, offsets)?));
        Strides(offsets.into_iter().filter_map(array).collect())
    }

    fn element(&self, variable: &Variable) -> Option<u64> {
        self.0.get(&variable.name).map(|array| (variable.offset - array.first) / array.stride)
    }
}

impl Array {
    /// Returns the array if a variable of this size with locks at these offsets is one. The size of
    /// an element is the smallest distance between two locks. The other distances must be multiples
    /// of that size, and elements of that size must fill the variable.
    fn of(size: u64, mut offsets: Vec<u64>) -> Option<Array> {
        offsets.sort_unstable();
        offsets.dedup();
        let &lowest = offsets.first()?;
        let stride = offsets.windows(2).map(|pair| pair[1] - pair[0]).min()?;
        let fits = offsets.iter().all(|offset| (offset - lowest).is_multiple_of(stride));
        let fills = size.is_multiple_of(stride) && size / stride >= MIN_ELEMENTS as u64;
        let is_array = offsets.len() >= MIN_ELEMENTS && size <= MAX_ARRAY && fits && fills;
        is_array.then_some(Array { first: lowest % stride, stride })
    }
}

/// Makes names unique. Adds "for readers" and "for writers" to the two names of a readers-writer
/// lock, and a number to a name that several locks have, such as locks taken in one function.
fn tell_apart(locks: &mut [Named]) {
    let mut rows: HashMap<u64, u32> = HashMap::new();
    for lock in locks.iter().filter(|lock| lock.for_readers.is_some()) {
        *rows.entry(lock.address).or_default() += 1;
    }
    let mut times: HashMap<String, u32> = HashMap::new();
    for lock in locks.iter_mut() {
        let both = rows.get(&lock.address).is_some_and(|&rows| rows > 1);
        match lock.for_readers.filter(|_| both) {
            Some(true) => lock.name.push_str(" for readers"),
            Some(false) => lock.name.push_str(" for writers"),
            None => {}
        }
        *times.entry(lock.name.clone()).or_default() += 1;
    }
    for lock in locks.iter_mut().filter(|lock| times[&lock.name] > 1) {
        lock.name = match lock.name.strip_prefix("lock in ") {
            Some(site) => format!("lock {} in {site}", lock.id),
            None => format!("{} #{}", lock.name, lock.id),
        };
        lock.of_both.clone_from(&lock.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(id: u32, name: &str) -> Named {
        Named {
            id,
            name: name.into(),
            of_both: name.into(),
            name_from: NameFrom::Symbol,
            library: None,
            for_readers: None,
            address: u64::from(id),
        }
    }

    #[test]
    fn locks_of_one_site_have_numbers() {
        let names = ["lock in item_get", "log", "lock in item_get", "slabs_lock", "log"];
        let mut locks: Vec<Named> = (1..).zip(names).map(|(id, name)| named(id, name)).collect();
        tell_apart(&mut locks);
        let names: Vec<&str> = locks.iter().map(|lock| &*lock.name).collect();
        let expected =
            ["lock 1 in item_get", "log #2", "lock 3 in item_get", "slabs_lock", "log #5"];
        assert_eq!(names, expected);
    }

    #[test]
    fn readers_and_writers_of_a_lock_are_called_so() {
        let row = |id, address, for_readers| Named {
            address,
            for_readers: Some(for_readers),
            ..named(id, "table")
        };
        let mut locks = vec![row(1, 0x10, false), row(2, 0x10, true)];
        tell_apart(&mut locks);
        let names: Vec<&str> = locks.iter().map(|lock| &*lock.name).collect();
        assert_eq!(names, ["table for writers", "table for readers"]);
        let mut alone = vec![row(1, 0x10, false)];
        tell_apart(&mut alone);
        assert_eq!(alone[0].name, "table");
    }

    #[test]
    fn locks_at_equal_distances_are_an_array() {
        let array = |size, offsets: &[u64]| Array::of(size, offsets.to_vec());
        let of = |first, stride| Some(Array { first, stride });
        assert_eq!(array(64 * 8, &[0, 64, 192]), of(0, 64));
        assert_eq!(array(64 * 8, &[448, 72, 136, 8 + 64 * 3]), None);
        assert_eq!(array(64 * 8, &[8, 72, 136]), of(8, 64));
        assert_eq!(array(128, &[0, 64]), None);
        assert_eq!(array(100, &[0, 40, 80]), None);
        assert_eq!(array(4096, &[]), None);
    }
}
