//! Sentences about processes and threads that the profiler could not observe.

use std::collections::{BTreeMap, BTreeSet};

use threadtoll_stacks::process::ProcessError;

use crate::account::MAX_ENDED;
use crate::perf::Events;

const MAX_PROCESSES: usize = 20;

/// Minimum share of the samples without a process's memory for it to be mentioned.
const OFTEN_UNREAD: f64 = 0.02;

/// A larger budget would hardly help if the number of threads that ended before their events were
/// opened exceeds this multiple of the number of threads that still wait for events.
const MANY_ENDED: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Unobserved {
    processes: BTreeSet<String>,
    more: usize,
    /// Number of samples of each process in which its memory could not be read in time.
    unread: BTreeMap<u32, u32>,
    pub(super) not_followed: usize,
    /// Number of ended processes that are not listed, because their threads were seen least often.
    pub(super) not_listed: usize,
}

impl Unobserved {
    pub(super) fn process(&mut self, pid: u32, error: &ProcessError) {
        if self.processes.len() >= MAX_PROCESSES {
            self.more += 1;
        } else {
            self.processes.insert(format!("Process {pid} is not seen: {error}."));
        }
    }

    pub(super) fn unread(&mut self, pid: u32, samples: u32) {
        *self.unread.entry(pid).or_default() += samples;
    }

    /// `behind` is the number of threads whose events are not open yet; `samples` is the number of
    /// samples of the profile.
    pub(super) fn sentences(
        &self,
        behind: usize,
        events: Option<&Events>,
        samples: f64,
    ) -> Vec<String> {
        let mut unseen: Vec<String> = self.processes.iter().cloned().collect();
        let share = |unread: u32| f64::from(unread) / samples.max(1.0);
        let often = self.unread.iter().filter(|(_, unread)| share(**unread) >= OFTEN_UNREAD);
        unseen.extend(often.take(MAX_PROCESSES).map(|(pid, unread)| {
            format!(
                "The memory of process {pid} in {:.0}% of the samples, because reading it took \
                 more than a millisecond: the process changes its mappings all the time, or is \
                 swapped out. Locks and stacks are from the other samples.",
                100.0 * share(*unread)
            )
        }));
        if self.not_followed > MANY_ENDED * behind.max(1) {
            unseen.push(
                "Running and waiting for a CPU cannot be distinguished for threads that end before \
                 their perf events are opened."
                    .to_owned(),
            );
        } else if behind > 0 {
            unseen.push(format!(
                "Running and waiting for a CPU cannot be distinguished for {behind} threads, \
                 because their perf events would cost more than the budget; raise it with --budget."
            ));
        }
        unseen.extend(events.and_then(events_unseen));
        if self.more > 0 {
            unseen.push(format!("{} more processes are not seen.", self.more));
        }
        if self.not_listed > 0 {
            let are = if self.not_listed == 1 { "process is" } else { "processes are" };
            unseen.push(format!(
                "{} ended {are} not listed; the list has only the {MAX_ENDED} whose threads were \
                 seen most often.",
                self.not_listed
            ));
        }
        unseen
    }
}

fn events_unseen(events: &Events) -> Option<String> {
    let turns = events.turns().map(|turns| {
        format!(
            "Perf events follow only {} threads at a time, and {} wait for their turn ({}): until \
             then, running and waiting for a CPU cannot be distinguished, and running code has no \
             stacks.",
            turns.followed, turns.waiting, turns.why
        )
    });
    let paused = "Running and waiting for a CPU could not always be distinguished: threads \
                  switched so often that reports of all switches would have cost more than the \
                  budget.";
    turns.or_else(|| events.were_paused().then(|| paused.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_given_for_some_processes_and_all_are_counted() {
        let mut unseen = Unobserved::default();
        assert!(unseen.sentences(0, None, 1e3).is_empty());
        let processes = MAX_PROCESSES as u32 + 3;
        (0..processes).for_each(|pid| unseen.process(pid, &ProcessError::NotFound(pid)));
        unseen.not_listed = 2;
        let said = unseen.sentences(7, None, 1e3);
        assert_eq!(said.len(), MAX_PROCESSES + 3);
        assert!(said[0].starts_with("Process 0 is not seen: "), "{}", said[0]);
        assert!(said[MAX_PROCESSES].contains("for 7 threads"), "{said:?}");
        assert_eq!(said[MAX_PROCESSES + 1], "3 more processes are not seen.");
        let ended = "ended processes are not listed; the list has only the 500 whose threads were seen most often.";
        assert_eq!(said[MAX_PROCESSES + 2], format!("2 {ended}"));
        unseen.not_followed = 100;
        let said = unseen.sentences(7, None, 1e3);
        assert!(
            said[MAX_PROCESSES].ends_with("end before their perf events are opened."),
            "{said:?}"
        );
    }

    #[test]
    fn memory_that_is_often_read_too_late_is_mentioned() {
        let mut unseen = Unobserved::default();
        unseen.unread(5, 300);
        unseen.unread(5, 320);
        unseen.unread(6, 19);
        let said = unseen.sentences(0, None, 1e3);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("The memory of process 5 in 62% of the samples, "), "{said:?}");
    }
}
