//! States of all threads of a process at instants when some of them waited for others.
//!
//! Such a wait does not show which thread is waited for. But some thread works meanwhile: one of
//! the threads that take turns, as with a lock built from condition variables; or a thread that
//! works for all the others, such as the leader of a group commit.

use std::collections::VecDeque;

use crate::account::trace::SampledState;
use crate::account::wait_target::WaitTarget;
use crate::perf::Timeline;

use super::Time;

const MAX_STATES: usize = 4096;

const MAX_THREADS: usize = 64;

/// Time, in nanoseconds, for which it is followed which of the waiting threads goes on first. The
/// timeline keeps a second.
const FOLLOWED_NS: u64 = 500_000_000;

/// A thread that ran within this time, in nanoseconds, before another went on may have woken it.
const WAKER_NS: u64 = 200_000;

/// The state of a thread at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadThen {
    pub(crate) tid: u32,
    pub(crate) state: SampledState,
    pub(crate) call: Option<u32>,
    pub(crate) stack: Option<u32>,
    /// For a thread that waits for others: time until it next got a CPU, if known.
    pub(crate) woken_us: Option<u32>,
    /// True unless it is known that the thread did not run just before the first of the waiting
    /// threads got a CPU.
    pub(crate) may_have_woken: bool,
}

#[derive(Debug)]
pub(crate) struct Instants {
    kept: Vec<Box<[ThreadThen]>>,
    states: usize,
    /// The latest instants, each with its time.
    followed: VecDeque<(u64, Box<[ThreadThen]>)>,
    now: Vec<ThreadThen>,
    /// One in this many instants is kept.
    every: u32,
    passed: u32,
}

impl Default for Instants {
    fn default() -> Instants {
        let (kept, followed) = (Vec::new(), VecDeque::new());
        Instants { kept, states: 0, followed, now: Vec::new(), every: 1, passed: 0 }
    }
}

impl ThreadThen {
    pub(crate) fn new(
        tid: u32,
        state: SampledState,
        call: Option<u32>,
        stack: Option<u32>,
    ) -> ThreadThen {
        ThreadThen { tid, state, call, stack, woken_us: None, may_have_woken: true }
    }

    /// Returns `true` if the thread waits for others, but not for a known lock.
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

    /// Ends a sample, taken at this time. `all` is `true` if it examined all threads.
    pub(super) fn end_sample(
        &mut self,
        at: u64,
        all: bool,
        targets: &[WaitTarget],
        timeline: Option<&Timeline>,
    ) {
        if let Some(timeline) = timeline {
            self.follow(at, targets, timeline);
        }
        let counts = all
            && (2..=MAX_THREADS).contains(&self.now.len())
            && self.now.iter().any(|thread| thread.waits_for_others(targets));
        if counts {
            self.passed += 1;
        }
        if counts && self.passed >= self.every {
            self.passed = 0;
            let instant = self.now.as_slice().into();
            match timeline {
                Some(_) => self.followed.push_back((at, instant)),
                None => self.keep(instant),
            }
        }
        self.now.clear();
    }

    /// Notes who went on after instants that are old enough. Each is looked up once: a pool has
    /// many threads that wait, and do so for long.
    fn follow(&mut self, now: u64, targets: &[WaitTarget], timeline: &Timeline) {
        let is_old = |(at, _): &mut (u64, _)| now.saturating_sub(*at) > FOLLOWED_NS;
        while let Some((at, mut instant)) = self.followed.pop_front_if(is_old) {
            note_wakings(&mut instant, at, targets, timeline);
            self.keep(instant);
        }
    }

    fn keep(&mut self, instant: Box<[ThreadThen]>) {
        self.states += instant.len();
        self.kept.push(instant);
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
        let followed = self.followed.iter().map(|(_, instant)| instant);
        self.kept.iter().chain(followed).map(|instant| &instant[..])
    }
}

/// Notes which of the threads that waited at an instant have got a CPU since, and which threads may
/// have woken the first of them.
fn note_wakings(instant: &mut [ThreadThen], at: u64, targets: &[WaitTarget], timeline: &Timeline) {
    let mut first: Option<(u64, u32)> = None;
    for thread in instant.iter_mut().filter(|thread| thread.waits_for_others(targets)) {
        if let Some(Some(woken)) = timeline.next_on_cpu(thread.tid, at) {
            thread.woken_us = u32::try_from((woken - at) / 1000).ok();
            first = first.into_iter().chain([(woken, thread.tid)]).min();
        }
    }
    let Some((woken, first)) = first else { return };
    for thread in instant.iter_mut() {
        let asleep = !thread.state.has_or_wants_cpu();
        let still = timeline.still_since(thread.tid, woken, asleep);
        let was_still = still.is_some_and(|since| since + WAKER_NS <= woken);
        thread.may_have_woken = thread.tid != first && !was_still;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::{Direction, Event};

    fn doing(tid: u32, time: Time) -> ThreadThen {
        ThreadThen::new(tid, SampledState::Doing(time), None, None)
    }

    #[test]
    fn instants_of_the_whole_profile_are_kept_within_bounds() {
        let mut instants = Instants::default();
        for sample in 0..100_000 {
            instants.saw(doing(sample, Time::Threads));
            instants.saw(doing(7, Time::Running));
            instants.end_sample(0, true, &[], None);
        }
        let kept: Vec<u32> = instants.all().map(|instant| instant[0].tid).collect();
        assert!((MAX_STATES / 4..=MAX_STATES / 2).contains(&kept.len()), "{}", kept.len());
        assert!(kept[0] < 200 && *kept.last().unwrap() > 99_000, "{kept:?}");
        let mut steps = kept.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(steps.all(|step| (64..128).contains(&step)), "{kept:?}");
    }

    #[test]
    fn the_timeline_shows_who_went_on_first_and_who_ran_before() {
        let mut timeline = Timeline::new(100);
        for (tid, at, direction) in [
            (1, 100, Direction::Out { preempted: false }),
            (2, 100, Direction::Out { preempted: false }),
            (3, 100, Direction::In),
            (4, 100, Direction::Out { preempted: false }),
            (1, 3_000_000, Direction::In),
            (3, 2_990_000, Direction::Out { preempted: false }),
            (2, 5_000_000, Direction::In),
        ] {
            timeline.note(&Event::Switch { tid, at, cpu: 0, direction });
        }
        timeline.complete_until(2 * FOLLOWED_NS);
        let mut instants = Instants::default();
        [1, 2, 4].into_iter().for_each(|tid| instants.saw(doing(tid, Time::Threads)));
        instants.saw(doing(3, Time::Running));
        instants.end_sample(1_000_000, true, &[], Some(&timeline));
        instants.end_sample(2 * FOLLOWED_NS, true, &[], Some(&timeline));
        let seen: Vec<_> = instants.all().flatten().collect();
        let seen: Vec<_> = seen.iter().map(|it| (it.tid, it.woken_us, it.may_have_woken)).collect();
        let expected =
            [(1, Some(2_000), false), (2, Some(4_000), false), (4, None, false), (3, None, true)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn instants_count_if_all_threads_were_seen_and_one_waited() {
        let kept = |threads: Vec<ThreadThen>, all: bool| {
            let mut instants = Instants::default();
            threads.into_iter().for_each(|thread| instants.saw(thread));
            instants.end_sample(0, all, &[], None);
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
