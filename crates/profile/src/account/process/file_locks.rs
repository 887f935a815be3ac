//! Locks on files for which threads wait, and the processes that hold them.
//!
//! A thread asleep in flock(2) or fcntl(2) names the file by a descriptor. The kernel lists the
//! locks that are held, each with its file and, except for locks of open file descriptions, the
//! process that took it.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use threadtoll_stacks::process::{FileId, SystemCall};

use crate::circumstances::Circumstances;
use crate::clock::thread_cpu;
use crate::occupation::file_lock;
use crate::tally::count;

/// Maximum numbers of files, and of stacks that wait for them, that are distinguished.
const MAX_FILES: usize = 256;
const MAX_STACKS: usize = 512;

/// Time for which the file behind a descriptor is cached, in nanoseconds.
const FILE_NS: u64 = 1_000_000_000;

/// Minimum time between two readings of the list of locks: this many nanoseconds, or this multiple
/// of the CPU time that the reading took, if that is longer.
const LIST_NS: u64 = 50_000_000;
const LIST_COST: u64 = 1_000;

/// Files whose locks threads wait for.
#[derive(Debug, Default)]
pub(crate) struct FileLocks {
    files: Vec<LockedFile>,
    /// Number of the file behind each descriptor, and when that expires.
    by_descriptor: HashMap<u32, (Option<u32>, u64)>,
    /// Number of samples by file, for each stack that waits.
    at: HashMap<u32, HashMap<u32, u64>>,
    /// When the list of locks may be read again.
    list_at: u64,
}

/// A file whose lock threads wait for.
#[derive(Debug)]
pub(crate) struct LockedFile {
    id: FileId,
    pub(crate) path: PathBuf,
    /// Number of times that the list of locks was read while a thread waited for the file.
    pub(crate) lists: u64,
    /// Number of these lists by process that held a lock on the file.
    pub(crate) holders: HashMap<u32, u64>,
    /// Names of these processes.
    pub(crate) names: HashMap<u32, String>,
}

impl FileLocks {
    /// Notes a thread of this process that sleeps in a system call with this stack, if it waits for
    /// a lock on a file.
    pub(super) fn saw(
        &mut self,
        call: &SystemCall,
        stack: u32,
        process: u32,
        at: u64,
        seen: &Circumstances<'_>,
    ) {
        let Some(descriptor) = file_lock(call) else { return };
        let Some(number) = self.number(descriptor, process, at, seen) else { return };
        if self.at.len() < MAX_STACKS || self.at.contains_key(&stack) {
            count(self.at.entry(stack).or_default(), number);
        }
        if at < self.list_at {
            return;
        }
        let began = thread_cpu();
        let held = seen.lookups.held_file_locks();
        let file = &mut self.files[number as usize];
        file.lists += 1;
        let of_file = held.iter().filter(|lock| lock.file == file.id);
        // Readers may hold one each; a process may hold several parts of a file.
        let (known, unknown): (BTreeSet<_>, BTreeSet<_>) =
            of_file.map(|lock| lock.pid).partition(Option::is_some);
        let mut holders: BTreeSet<u32> = known.into_iter().flatten().collect();
        if !unknown.is_empty() {
            holders.extend(seen.lookups.has_locked(file.id));
        }
        for pid in holders {
            count(&mut file.holders, pid);
            if file.names.len() < MAX_FILES {
                file.names.entry(pid).or_insert_with(|| seen.lookups.name_of_process(pid));
            }
        }
        self.list_at = at + LIST_NS.max(LIST_COST * (thread_cpu() - began));
    }

    fn number(
        &mut self,
        descriptor: u32,
        process: u32,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Option<u32> {
        if let Some(&(number, until)) = self.by_descriptor.get(&descriptor)
            && at < until
        {
            return number;
        }
        let number = seen.lookups.file(process, descriptor).and_then(|(id, path)| {
            let known = self.files.iter().position(|file| file.id == id);
            let number = known.unwrap_or(self.files.len());
            if number == MAX_FILES {
                return None;
            }
            if known.is_none() {
                let (holders, names) = Default::default();
                self.files.push(LockedFile { id, path, lists: 0, holders, names });
            }
            Some(number as u32)
        });
        if self.by_descriptor.len() >= MAX_FILES {
            self.by_descriptor.clear();
        }
        self.by_descriptor.insert(descriptor, (number, at + FILE_NS));
        number
    }

    /// The file that threads with any of these stacks waited for; `None` if they waited for several
    /// or unknown files.
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
