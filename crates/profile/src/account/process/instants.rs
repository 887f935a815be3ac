//! States of all threads of a process at instants when some of them waited for others.
//!
//! Such a wait does not show which thread is waited for. But some thread works meanwhile: one of
//! the threads that take turns, as with a lock built from condition variables; or a thread that
//! works for all the others, such as the leader of a group commit.

use crate::account::trace::SampledState;
use crate::account::wait_target::WaitTarget;

use super::Time;

const MAX_STATES: usize = 4096;

const MAX_THREADS: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadThen {
    pub(crate) tid: u32,
    pub(crate) state: SampledState,
    pub(crate) call: Option<u32>,
    pub(crate) stack: Option<u32>,
}

#[derive(Debug)]
pub(crate) struct Instants {
    kept: Vec<Box<[ThreadThen]>>,
    states: usize,
    now: Vec<ThreadThen>,
    /// One in this many instants is kept.
    every: u32,
    passed: u32,
}

impl Default for Instants {
    fn default() -> Instants {
        Instants { kept: Vec::new(), states: 0, now: Vec::new(), every: 1, passed: 0 }
    }
}

impl ThreadThen {
    pub(crate) fn waits_for_others(&self, targets: &[WaitTarget]) -> bool {
        match self.state {
            SampledState::On { place, .. } => !targets[place as usize].is_lock(),
            SampledState::Doing(time) => matches!(time, Time::Threads | Time::OwnPipe),
            SampledState::Lock => false,
        }
    }
}

impl Instants {
    pub(super) fn saw(&mut self, thread: ThreadThen) {
        if self.now.len() <= MAX_THREADS {
            self.now.push(thread);
        }
    }

    pub(super) fn end_sample(&mut self, all: bool, targets: &[WaitTarget]) {
        let counts = all
            && (2..=MAX_THREADS).contains(&self.now.len())
            && self.now.iter().any(|thread| thread.waits_for_others(targets));
        if counts {
            self.passed += 1;
        }
        if counts && self.passed >= self.every {
            self.passed = 0;
            self.states += self.now.len();
            self.kept.push(self.now.as_slice().into());
        }
        self.now.clear();
        if self.states > MAX_STATES {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.states = self.kept.iter().map(|instant| instant.len()).sum();
            self.every = self.every.saturating_mul(2);
        }
    }

    /// In chronological order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[ThreadThen]> {
        self.kept.iter().map(|instant| &instant[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doing(tid: u32, time: Time) -> ThreadThen {
        ThreadThen { tid, state: SampledState::Doing(time), call: None, stack: None }
    }

    #[test]
    fn instants_of_the_whole_profile_are_kept_within_bounds() {
        let mut instants = Instants::default();
        for sample in 0..100_000 {
            instants.saw(doing(sample, Time::Threads));
            instants.saw(doing(7, Time::Running));
            instants.end_sample(true, &[]);
        }
        let kept: Vec<u32> = instants.all().map(|instant| instant[0].tid).collect();
        assert!((MAX_STATES / 4..=MAX_STATES / 2).contains(&kept.len()), "{}", kept.len());
        assert!(kept[0] < 200 && *kept.last().unwrap() > 99_000, "{kept:?}");
        let mut steps = kept.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(steps.all(|step| (64..128).contains(&step)), "{kept:?}");
    }

    #[test]
    fn instants_count_if_all_threads_were_seen_and_one_waited() {
        let kept = |threads: Vec<ThreadThen>, all: bool| {
            let mut instants = Instants::default();
            threads.into_iter().for_each(|thread| instants.saw(thread));
            instants.end_sample(all, &[]);
            instants.all().count()
        };
        let waits = || vec![doing(1, Time::Threads), doing(2, Time::Running)];
        assert_eq!(kept(waits(), true), 1);
        assert_eq!(kept(waits(), false), 0);
        assert_eq!(kept(vec![doing(1, Time::Idle), doing(2, Time::Running)], true), 0);
        assert_eq!(kept(vec![doing(1, Time::Threads)], true), 0);
        let many = (0..=MAX_THREADS as u32).map(|tid| doing(tid, Time::Threads)).collect();
        assert_eq!(kept(many, true), 0);
    }
}
