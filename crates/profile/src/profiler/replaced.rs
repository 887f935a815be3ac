//! Processes that have executed another program. The sampler notices them first.

use std::time::{Duration, Instant};

use threadtoll_stacks::process::FamilyEvent;

use super::{PATIENCE, Profiler};

/// Share of the budget for following, at once, processes that have executed another program. Beyond
/// it, these processes are found within a second.
const SHARE: f64 = 0.1;

const RETRY: Duration = Duration::from_millis(2);

/// Time after which a process that looks unchanged is taken to have executed the same program
/// again. Without address randomisation, the two runs look alike.
const SAME_PROGRAM: Duration = Duration::from_millis(50);

impl Profiler {
    pub(super) fn replaced(&mut self, index: u32) {
        if let Some(watched) = self.watched.get_mut(&index) {
            watched.replaced.get_or_insert_with(Instant::now);
        }
    }

    /// Follows processes that have executed another program. Returns the time after which this must
    /// be called again.
    pub(super) fn follow_replaced(&mut self) -> Duration {
        let is_replaced = |(_, watched): &(_, &super::Watched)| {
            watched.ended.is_none() && watched.replaced.is_some()
        };
        if !self.watched.iter().any(|watched| is_replaced(&watched)) {
            return PATIENCE;
        }
        let allowed = self.allowed(SHARE);
        let began = Instant::now();
        let replaced: Vec<(u32, Option<Instant>)> = self
            .watched
            .iter()
            .filter(is_replaced)
            .map(|(_, watched)| (watched.pid, watched.replaced))
            .collect();
        for (pid, since) in replaced {
            // The remaining processes are found later.
            if self.replacing > allowed {
                break;
            }
            let mut changes = Vec::new();
            self.family.check(pid, &mut |event| changes.push(event));
            let waited = since.is_some_and(|since| since.elapsed() >= SAME_PROGRAM);
            if let (true, true, Some(process)) = (changes.is_empty(), waited, self.process_of(pid))
            {
                let start_time = process.start_time();
                // If the process is ending, opening it will fail.
                changes.push(FamilyEvent::Replaced { pid, start_time });
            }
            self.change_family(changes);
        }
        self.replacing += began.elapsed();
        RETRY
    }

    fn process_of(&self, pid: u32) -> Option<&threadtoll_stacks::process::Process> {
        let alive = |watched: &&super::Watched| watched.pid == pid && watched.ended.is_none();
        self.watched.values().rfind(alive)?.process.as_ref()
    }
}
