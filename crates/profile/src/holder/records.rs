//! Per-thread records that some locks point to instead of naming the thread that holds them.

use std::collections::{HashMap, HashSet};

use crate::primitive::{Identity, ReadMemory};

/// Maximum number of records that are tracked.
const MAX_RECORDS: usize = 4096;

/// Records of one process.
#[derive(Debug, Default)]
pub(crate) struct HolderRecords {
    /// The thread of each record; `None` if none was found.
    threads: HashMap<u64, Option<u32>>,
    /// Records whose threads have yet to be found, each with its lock.
    new: Vec<(u64, Identity)>,
}

impl HolderRecords {
    /// The thread to which a record belongs, if already found. If the record is new,
    /// [`find`](Self::find) will look for its thread.
    pub(crate) fn thread(&mut self, record: u64, lock: Identity) -> Option<u32> {
        if let Some(&tid) = self.threads.get(&record) {
            return tid;
        }
        if self.threads.len() < MAX_RECORDS {
            self.threads.insert(record, None);
            self.new.push((record, lock));
        }
        None
    }

    /// Finds the threads of new records among the threads in `alive`. `named` returns the thread
    /// that a TID in the process's memory names.
    pub(crate) fn find(
        &mut self,
        alive: &HashSet<u32>,
        named: &dyn Fn(u32) -> Option<u32>,
        read: ReadMemory<'_>,
    ) {
        for (record, lock) in std::mem::take(&mut self.new) {
            let is_thread = |tid| named(tid).is_some_and(|tid| alive.contains(&tid));
            let tid = lock.thread_of(record, read, &is_thread);
            self.threads.insert(record, tid.and_then(named));
        }
    }

    /// Forgets the records of threads that have ended.
    pub(crate) fn keep_those_of(&mut self, alive: &HashSet<u32>) {
        self.threads.retain(|_, tid| tid.is_some_and(|tid| alive.contains(&tid)));
    }
}
