//! Asks the kernel about threads that do not move, and about programs that are stopped.

use threadtoll_stacks::process::{KernelState, ThreadFacts};

use super::Profiler;
use crate::clock::now;
use crate::perf::CpuState;

/// Maximum number of threads whose switches are counted, at the end of a stretch and before the
/// last report. Each thread takes about 10 µs.
const COUNTED: usize = 16;
const COUNTED_LAST: usize = 256;

/// Maximum number of processes that are checked for being stopped. A build has hundreds of
/// short-lived processes.
const ASKED: usize = 16;

/// Number of threads of which one that has a CPU, or was preempted, shows that the process is not
/// stopped. Looking at their switches is cheaper than asking the kernel.
const LOOKED_AT: usize = 8;

impl Profiler {
    pub(super) fn ask_about_sleepers(&mut self, last: bool) {
        let mut left = if last { COUNTED_LAST } else { COUNTED };
        let timeline = &self.timeline;
        let (followed, until) = (self.events.open.is_ok(), timeline.known_until());
        for (_, process) in self.account.all_living() {
            if followed {
                // These threads were last seen asleep, so they still sleep unless a switch has been
                // recorded since.
                let still_since = |tid| timeline.still_since(tid, until, true);
                process.standing.ask_records(until, still_since);
            }
            if !process.targets.iter().any(|target| target.is_lock()) {
                continue;
            }
            let to_count = process.standing.to_count(now(), left, last);
            left -= to_count.len().min(left);
            for tid in to_count {
                let Some(facts) = ThreadFacts::read(tid) else { continue };
                if facts.state == KernelState::Asleep
                    && facts.process == process.pid
                    && let Some(switches) = facts.switches
                {
                    process.standing.count(tid, switches.all(), now());
                }
            }
        }
    }

    pub(super) fn ask_if_stopped(&mut self) {
        let living = self.watched.iter().filter(|(_, watched)| watched.ended.is_none());
        for (&index, watched) in living.take(ASKED) {
            let Some(process) = self.account.living(index) else { continue };
            let mut looked_at = watched.followed.iter().rev().take(LOOKED_AT);
            let until = self.timeline.known_until();
            let runs = looked_at.any(|&tid| {
                let state = self.timeline.state(tid, until);
                matches!(state, Some(CpuState::Running | CpuState::Preempted))
            });
            let stopped = match &watched.process {
                _ if runs => Some(None),
                Some(process) => process.stopped().ok(),
                None => None,
            };
            if let Some(stopped) = stopped {
                process.stops.note(stopped, now());
            }
        }
    }
}
