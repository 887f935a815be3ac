//! Processes that a launched program leaves running when it ends.

use std::path::PathBuf;

use threadtoll_stacks::process::{Former, orphans, own_session};

use super::Profiler;
use super::launched::LaunchedProgram;
use crate::sample::Chunk;
use crate::watched::Watched;

const MAX_NAMED: usize = 20;

impl Profiler {
    fn running(&self) -> impl Iterator<Item = &Watched> {
        self.watched.values().filter(|watched| watched.ended.is_none())
    }

    fn launched_has_ended(&self) -> bool {
        self.launched.as_ref().is_some_and(LaunchedProgram::has_ended)
    }

    /// Finds and follows processes that a launched program has left behind. A process forked just
    /// before the program ended does not descend from any living process.
    pub(super) fn find_left_behind(&mut self) {
        // The kernel may already have reported these processes.
        self.fold(Chunk::default());
        self.refresh_family();
        // If the kernel reports forks, no process can be missing. While a process still runs, the
        // search is skipped, too: it might find processes of the same program that somebody else
        // started.
        if self.events.inherited || self.running().next().is_some() {
            return;
        }
        let Some(launched) = &self.launched else { return };
        let (since, first) = (launched.since, launched.pid());
        let seen = self.watched.values();
        let pids: Vec<u32> = seen.clone().map(|watched| watched.pid).chain([first]).collect();
        let programs: Vec<PathBuf> =
            seen.map(|watched| &watched.program).chain([&launched.file]).cloned().collect();
        let orphans = orphans(&Former { since, pids: &pids, programs: &programs });
        let forks: Vec<(u32, u32)> = orphans.into_iter().map(|pid| (pid, first)).collect();
        self.follow_forks(&forks);
        self.refresh_family();
    }

    /// Returns `true` if the launched program has ended and only daemons still run: processes
    /// outside the profiler's session.
    pub(super) fn is_in_background(&self) -> bool {
        let own = own_session();
        let is_daemon = |watched: &Watched| {
            let session = watched.process.as_ref().and_then(|process| process.session().ok());
            session.is_some() && session != own
        };
        self.launched_has_ended() && self.running().all(is_daemon)
    }

    pub(super) fn background(&self) -> Vec<u32> {
        if !self.launched_has_ended() {
            return Vec::new();
        }
        let is_running = |pid: u32| self.running().any(|watched| watched.pid == pid);
        let first = self.running().filter(|watched| !watched.parent.is_some_and(is_running));
        let mut pids: Vec<u32> = first.map(|watched| watched.pid).take(MAX_NAMED).collect();
        pids.dedup();
        pids
    }
}
