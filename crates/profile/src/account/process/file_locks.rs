//! Locks on files for which threads wait, and the processes that hold these locks.
//!
//! A thread asleep in flock(2) or fcntl(2) names the file by a descriptor. The kernel lists the
//! held locks, each with its file and, except for locks of open file descriptions, the process that
//! took the lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Instant;

use threadtoll_stacks::process::{FileId, SystemCall};

use crate::lookups::Lookups;
use crate::occupation::file_lock;
use crate::tally::count;

const MAX_FILES: usize = 256;
const MAX_STACKS: usize = 512;

const FILE_NS: u64 = 1_000_000_000;

/// Limits on how often the list of locks is read, because the kernel grants no file lock meanwhile.
/// Between two readings for one process, at least `LIST_NS` nanoseconds pass, as many again for
/// every `FEW_WAITERS` waiters, and at least `LIST_COST` times the duration of a reading.
const LIST_NS: u64 = 100_000_000;
const FEW_WAITERS: usize = 8;
const LIST_COST: u64 = 1_000;

const UNKNOWN: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct FileLocks {
    files: Vec<LockedFile>,
    /// Number of the file behind each descriptor, and the time at which this entry expires.
    by_descriptor: HashMap<u32, (Option<u32>, u64)>,
    at: HashMap<u32, HashMap<u32, u64>>,
    list_at: u64,
}

#[derive(Debug)]
pub(crate) struct LockedFile {
    id: FileId,
    pub(crate) path: PathBuf,
    /// Number of readings of the kernel's list in which the process waited for the file.
    pub(crate) lists: u64,
    /// By PID: number of readings of the kernel's list in which the process held a lock on the
    /// file.
    pub(crate) holders: HashMap<u32, u64>,
    /// By PID: number of readings in which the process held a lock while it waited for work.
    pub(crate) idle: HashMap<u32, u64>,
    pub(crate) names: HashMap<u32, String>,
}

impl FileLocks {
    pub(super) fn saw(
        &mut self,
        call: &SystemCall,
        stack: u32,
        process: u32,
        at: u64,
        lookups: &dyn Lookups,
    ) {
        let Some(descriptor) = file_lock(call) else { return };
        let number = self.number(descriptor, process, at, lookups);
        if self.at.len() < MAX_STACKS || self.at.contains_key(&stack) {
            count(self.at.entry(stack).or_default(), number.unwrap_or(UNKNOWN));
        }
        let Some(number) = number else { return };
        if at < self.list_at {
            return;
        }
        let begun = Instant::now();
        let contended = lookups.contended_file_locks();
        let waiters: usize = contended.iter().map(|lock| lock.waiters.len()).sum();
        let pid = lookups.pid(process);
        let file = &mut self.files[number as usize];
        // This code runs some time after the sample, so only locks for which the process still
        // waits count.
        let waits = |waiter: &Option<u32>| waiter.is_none() || *waiter == pid;
        let held = contended.into_iter().filter(|lock| lock.file == file.id);
        let held: Vec<Option<u32>> =
            held.filter(|lock| lock.waiters.iter().any(waits)).map(|lock| lock.holder).collect();
        file.lists += u64::from(!held.is_empty());
        // Several processes may hold read locks, and one process may hold locks on several parts of
        // the file.
        let mut holders: BTreeMap<u32, String> = BTreeMap::new();
        for holder in held {
            let mut name_of = |pid: u32| {
                let name = lookups.name_of_process(pid);
                (!name.is_empty()).then(|| holders.insert(pid, name))
            };
            // The process that took the lock may have ended and left the lock to its children.
            if holder.is_none_or(|pid| name_of(pid).is_none())
                && let Some(pid) = lookups.has_locked(file.id)
            {
                name_of(pid);
            }
        }
        for (pid, name) in holders {
            count(&mut file.holders, pid);
            if lookups.waits_for_work(pid) {
                count(&mut file.idle, pid);
            }
            if file.names.len() < MAX_FILES {
                file.names.entry(pid).or_insert(name);
            }
        }
        let spent = LIST_COST * begun.elapsed().as_nanos() as u64;
        self.list_at = at + spent.max(LIST_NS * (1 + waiters / FEW_WAITERS) as u64);
    }

    fn number(
        &mut self,
        descriptor: u32,
        process: u32,
        at: u64,
        lookups: &dyn Lookups,
    ) -> Option<u32> {
        if let Some(&(number, until)) = self.by_descriptor.get(&descriptor)
            && at < until
        {
            return number;
        }
        let number = lookups.file(process, descriptor).and_then(|(id, path)| {
            let known = self.files.iter().position(|file| file.id == id);
            let number = known.unwrap_or(self.files.len());
            if number == MAX_FILES {
                return None;
            }
            if known.is_none() {
                let (holders, idle, names) = Default::default();
                self.files.push(LockedFile { id, path, lists: 0, holders, idle, names });
            }
            Some(number as u32)
        });
        if self.by_descriptor.len() >= MAX_FILES {
            self.by_descriptor.clear();
        }
        self.by_descriptor.insert(descriptor, (number, at + FILE_NS));
        number
    }

    /// Returns the only file that threads with these stacks waited for; `None` if there were
    /// several files or unknown ones.
    pub(crate) fn file<'a>(&self, stacks: impl Iterator<Item = &'a u32>) -> Option<&LockedFile> {
        let mut numbers: BTreeSet<u32> = BTreeSet::new();
        for stack in stacks {
            numbers.extend(self.at.get(stack)?.keys());
        }
        let mut numbers = numbers.into_iter();
        let number = numbers.next().filter(|_| numbers.next().is_none())?;
        self.files.get(number as usize)
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_stacks::process::ContendedFileLock;

    use super::*;
    use crate::lookups::Fixed;

    const FILE: FileId = FileId { device: [8, 1], inode: 42 };

    /// State after a thread of process 10 was seen three times, a second apart, waiting for a lock
    /// on descriptor 3.
    fn seen(holder: Option<u32>, waiters: &[Option<u32>]) -> FileLocks {
        let contended = vec![ContendedFileLock { file: FILE, holder, waiters: waiters.to_vec() }];
        let files = vec![(3, FILE)];
        let lookups = Fixed { files, contended, has_locked: Some(12), ..Fixed::NOTHING };
        let mut locks = FileLocks::default();
        for second in 1..4 {
            let call = SystemCall {
                number: libc::SYS_flock as u32,
                arguments: [3, 2, 0, 0, 0, 0],
                stack_pointer: 0,
                program_counter: 0,
            };
            locks.saw(&call, 5, 0, second * 1_000_000_000, &lookups);
        }
        locks
    }

    #[test]
    fn the_holder_is_the_one_for_whom_the_process_waits() {
        let locks = seen(Some(11), &[Some(10)]);
        let file = locks.file([5].iter()).unwrap();
        assert_eq!((file.lists, &file.holders), (3, &HashMap::from([(11, 3)])));
        assert_eq!(file.names[&11], "process 11");
        assert!(file.idle.is_empty());
        let locks = seen(Some(Fixed::IDLE), &[Some(10)]);
        assert_eq!(locks.file([5].iter()).unwrap().idle, HashMap::from([(Fixed::IDLE, 3)]));
        // Only another process waits, for another part of the file.
        let locks = seen(Some(11), &[Some(99)]);
        let file = locks.file([5].iter()).unwrap();
        assert_eq!((file.lists, file.holders.len()), (0, 0));
    }

    #[test]
    fn a_process_that_ended_has_left_its_lock_to_one_that_has_the_file_open() {
        for holder in [None, Some(Fixed::ENDED)] {
            let locks = seen(holder, &[Some(10)]);
            let file = locks.file([5].iter()).unwrap();
            assert_eq!(file.holders, HashMap::from([(12, 3)]), "{holder:?}");
        }
    }

    #[test]
    fn several_files_have_no_name() {
        let mut locks = seen(Some(11), &[Some(10)]);
        count(locks.at.entry(5).or_default(), UNKNOWN);
        assert!(locks.file([5].iter()).is_none() && locks.file([6].iter()).is_none());
    }
}
