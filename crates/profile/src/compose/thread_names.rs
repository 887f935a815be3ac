//! Names of threads that are alive, have ended, or belong to another process.

use threadtoll_stacks::process::ThreadFacts;

use super::One;
use crate::account::ProcessAccount;
use crate::watched::Watched;

#[derive(Debug, Default)]
pub(super) struct ThreadName {
    pub(super) name: String,
    pub(super) pid: Option<u32>,
    pub(super) ended: bool,
}

impl One<'_> {
    pub(super) fn name_of_thread(self, tid: u32) -> ThreadName {
        ThreadName::of(tid, self.process, self.watched)
    }
}

impl ThreadName {
    pub(super) fn of(tid: u32, process: &ProcessAccount, watched: &Watched) -> ThreadName {
        // The current name comes first, because some threads set their names late.
        let of_process = watched.process.as_ref();
        if let Some(name) = of_process.and_then(|process| process.thread_name(tid).ok()) {
            return ThreadName { name: name.to_string_lossy().into(), ..ThreadName::default() };
        }
        if let Some((pid, name)) = watched.strangers.get(&tid) {
            return ThreadName { name: name.clone(), pid: Some(*pid), ended: false };
        }
        let name = watched.names.get(&tid).cloned();
        // The TID of an ended thread may belong to another thread by now.
        let stranger = match name {
            None if of_process.is_some() && !process.had_thread(tid) => ThreadFacts::read(tid),
            _ => None,
        };
        match stranger {
            Some(facts) => ThreadName {
                name: facts.name.to_string_lossy().into(),
                pid: Some(facts.process),
                ended: false,
            },
            None => ThreadName { name: name.unwrap_or_default(), pid: None, ended: true },
        }
    }
}
