//! Per-thread records to which some locks point instead of naming their holder.

use std::collections::{HashMap, HashSet};

use crate::primitive::{Identity, ReadMemory};

const MAX_RECORDS: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct HolderRecords {
    threads: HashMap<u64, Option<u32>>,
    new: Vec<(u64, Identity)>,
}

impl HolderRecords {
    /// Returns the thread of a record, if found. For a new record, [`find`](Self::find) will look
    /// for the thread.
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

    /// Finds the threads of new records in `alive`. `named` translates a TID in the process's
    /// memory.
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

    pub(crate) fn keep_those_of(&mut self, alive: &HashSet<u32>) {
        self.threads.retain(|_, tid| tid.is_some_and(|tid| alive.contains(&tid)));
    }
}
