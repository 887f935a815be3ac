//! Finds and counts the holders of a process's locks in each sample.

use super::ProcessAccount;
use super::rest::Rest;
use super::waiting::thread_named;
use crate::circumstances::Circumstances;
use crate::holder::{SampledLock, SampledThreads};
use crate::primitive::ReadMemory;
use crate::sample::{Chunk, Tick};

impl ProcessAccount {
    /// Finds the threads to which new holder records belong. Some locks point to such a record
    /// instead of naming a thread.
    pub fn find_holders(&mut self, read: ReadMemory<'_>) {
        let named = |tid| thread_named(self.inner.as_ref(), tid);
        self.records.find(&self.threads, &named, read);
    }

    pub(super) fn count_holder(
        &mut self,
        place: u32,
        chunk: &Chunk,
        tick: &Tick,
        seen: &Circumstances<'_>,
        contended: bool,
    ) {
        let (before, from_here) = self.targets.split_at_mut(place as usize);
        let Some((target, after)) = from_here.split_first_mut() else { return };
        let Some(hold) = target.now.hold.filter(|_| target.is_lock()) else { return };
        let identity = target.identity;
        let target_at = |word: u64| {
            // A parked thread sleeps on a word of its own, not on the word of the lock for which it
            // waits.
            let word = self.parked.get(&word).map_or(word, |&(lock, _)| lock);
            let &at = self.by_word.get(&word)?;
            let kind = match at.checked_sub(place) {
                None => before[at as usize].identity.kind(),
                Some(0) => identity.kind(),
                Some(further) => after[further as usize - 1].identity.kind(),
            };
            Some((at, kind))
        };
        let threads = SampledThreads {
            alive: &self.threads,
            read: chunk.threads(tick),
            last: &self.last,
            target_at: &target_at,
            rests: &|tid| self.resting.get(&tid).is_some_and(Rest::rests),
            at: tick.at,
            seen,
        };
        let (twin, hold_again) = (target.twin, target.now.hold_again);
        let waiters = &target.now.waiters;
        let lock = SampledLock { place, twin, waiters, identity, hold, hold_again };
        target.holder.count(&lock, &threads, tick, contended);
        self.nameless |= target.holder.nameless;
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_judge::cause::{Awaited, HolderCounts, HolderState};
    use threadtoll_stacks::process::{Activity, SystemCall};

    use super::*;
    use crate::circumstances::Last;
    use crate::lookups::NO_LOOKUPS;
    use crate::perf::{Direction, Event, Timeline};
    use crate::primitive::{Hold, declared};
    use crate::stacks::Stacks;

    const WAITER: u32 = 5;
    const HOLDER: u32 = 7;
    const MAIN: u32 = 8;
    const WORD: u64 = 0x1000;
    const BLOCKED: Direction = Direction::Out { preempted: false };
    const PREEMPTED: Direction = Direction::Out { preempted: true };

    fn asleep(call: libc::c_long) -> Activity {
        let (number, arguments) = (call as u32, [WORD, 128, 2, 0, 0, 0]);
        Activity::Asleep(SystemCall { number, arguments, stack_pointer: 0, program_counter: 0 })
    }

    fn timeline(switches: &[(u32, u64, Direction)]) -> Timeline {
        let mut timeline = Timeline::new(100);
        timeline.note(&Event::Followed { tid: MAIN, at: 100_000 });
        for &(tid, at, direction) in switches {
            timeline.note(&Event::Switch { tid, at, cpu: 0, direction });
        }
        timeline.complete_until(10_000_000);
        timeline
    }

    fn account() -> ProcessAccount {
        let mut account = ProcessAccount::new(1);
        account.set_threads(vec![WAITER, HOLDER, MAIN], None);
        let mutex = declared("std::sys::sync::mutex::futex::Mutex", WORD).unwrap();
        account.declare(mutex, 0).unwrap();
        account
    }

    fn sample(
        account: &mut ProcessAccount,
        timeline: &Timeline,
        at: u64,
        hold: Hold,
        threads: &[(u32, Activity)],
        throttled: bool,
    ) {
        sample_twice(account, Some(timeline), at, [hold; 2], threads, throttled);
    }

    fn sample_twice(
        account: &mut ProcessAccount,
        timeline: Option<&Timeline>,
        at: u64,
        [hold, again]: [Hold; 2],
        threads: &[(u32, Activity)],
        throttled: bool,
    ) {
        let mut chunk = Chunk::default();
        chunk.begin(at, 1);
        (chunk.tick().again_at, chunk.tick().checked_at) = (Some(at + 20_000), Some(at + 20_000));
        threads.iter().for_each(|&(tid, activity)| chunk.push_thread(0, tid, true, activity));
        let (tick, stacks) = (chunk.ticks[0], Stacks::default());
        let seen = Circumstances {
            sample: at,
            second: 0,
            due: at,
            gap_s: 1e-3,
            scale: 1.0,
            late: false,
            queue_late: false,
            timeline,
            stacks: &stacks,
            running: &[],
            throttled,
            lookups: &NO_LOOKUPS,
        };
        account.targets[0].see(at);
        account.targets[0].now.hold = Some(hold);
        account.targets[0].now.hold_again = Some(again);
        chunk.threads(&tick).iter().for_each(|read| _ = account.thread(read, at, &seen));
        account.count_holder(0, &chunk, &tick, &seen, true);
    }

    const HELD_BY_HOLDER: Hold = Hold::Held { owner: Some(HOLDER) };

    fn one_sample(timeline: Option<&Timeline>, again: Hold, holder: Activity) -> HolderState {
        let mut account = account();
        let threads = [(WAITER, asleep(libc::SYS_futex)), (HOLDER, holder)];
        sample_twice(&mut account, timeline, 3_000_000, [HELD_BY_HOLDER, again], &threads, false);
        let doing = doing(&account);
        let kinds = [
            HolderState::Asleep(libc::SYS_fsync as u32),
            HolderState::Running,
            HolderState::Preempted,
            HolderState::LetGo,
            HolderState::OffCpu,
            HolderState::NotSeen,
        ];
        kinds.into_iter().find(|&kind| doing == counts(&[kind])).unwrap()
    }

    #[test]
    fn a_sleep_counts_if_the_word_names_the_sleeper_before_and_after() {
        let fsync = asleep(libc::SYS_fsync);
        let slept = HolderState::Asleep(libc::SYS_fsync as u32);
        let other = Hold::Held { owner: Some(MAIN) };
        let all_the_time = timeline(&[(HOLDER, 2_000_000, BLOCKED)]);
        let computes = [(HOLDER, 2_000_000, Direction::In), (HOLDER, 3_005_000, BLOCKED)];
        let between = [(HOLDER, 3_012_000, Direction::In), (HOLDER, 3_015_000, BLOCKED)];
        let again = timeline(&[&[(HOLDER, 2_000_000, BLOCKED)], &between[..]].concat());
        let computes = timeline(&computes);
        for (timeline, unchanged, changed) in [
            (Some(&all_the_time), slept, HolderState::NotSeen),
            // The holder computed when the word was read, then fell asleep, with the lock or
            // without it.
            (Some(&computes), HolderState::Running, HolderState::Running),
            // The holder has run since. It was without a CPU when the word named it, but its call
            // is not known.
            (Some(&again), HolderState::OffCpu, HolderState::OffCpu),
            (None, slept, HolderState::LetGo),
        ] {
            let found = [HELD_BY_HOLDER, other].map(|again| one_sample(timeline, again, fsync));
            assert_eq!(found, [unchanged, changed]);
            assert_eq!(one_sample(timeline, Hold::Free, fsync), changed);
        }
        let preempted = timeline(&[(HOLDER, 2_000_000, PREEMPTED)]);
        assert_eq!(one_sample(Some(&preempted), other, fsync), HolderState::Preempted);
    }

    #[test]
    fn a_woken_thread_waits_for_a_cpu_only_if_it_gets_none_for_long() {
        for (runs_at, doing) in
            [(3_300_000, HolderState::OffCpu), (6_000_000, HolderState::Preempted)]
        {
            let woken = timeline(&[(HOLDER, 2_000_000, BLOCKED), (HOLDER, runs_at, Direction::In)]);
            assert_eq!(one_sample(Some(&woken), HELD_BY_HOLDER, Activity::OnCpu), doing);
        }
    }

    #[test]
    fn an_owner_that_sleeps_on_its_own_lock_for_long_is_not_being_woken() {
        let waits = asleep(libc::SYS_futex);
        let threads = [(WAITER, waits), (HOLDER, waits)];
        let mut account = account();
        let sample = |account: &mut ProcessAccount, ms: u64| {
            let hold = [HELD_BY_HOLDER; 2];
            sample_twice(account, None, ms * 1_000_000, hold, &threads, false);
        };
        [2, 4].into_iter().for_each(|ms| sample(&mut account, ms));
        assert_eq!(doing(&account), counts(&[HolderState::NotSeen; 2]));
        [160, 170].into_iter().for_each(|ms| sample(&mut account, ms));
        assert_eq!(doing(&account), counts(&[HolderState::Waiting(0); 4]));
    }

    #[test]
    fn a_holder_that_waits_on_no_lock_waits_for_other_threads() {
        let timeline = timeline(&[(HOLDER, 2_000_000, BLOCKED)]);
        let mut account = account();
        let condvar = declared("pthread_cond_t", 0x2000).unwrap();
        account.declare(condvar, 0).unwrap();
        for (at, word) in [(3_000_000, 0x2000), (3_001_000, 0x9000)] {
            let Activity::Asleep(call) = asleep(libc::SYS_futex) else { unreachable!() };
            let arguments = [word, 128, 2, 0, 0, 0];
            let holder = Activity::Asleep(SystemCall { arguments, ..call });
            let threads = [(WAITER, asleep(libc::SYS_futex)), (HOLDER, holder)];
            sample(&mut account, &timeline, at, HELD_BY_HOLDER, &threads, false);
        }
        let expected = [
            HolderState::WaitsFor(Awaited::Condvar, Some(1)),
            HolderState::WaitsFor(Awaited::Unknown, Some(2)),
        ];
        assert_eq!(doing(&account), counts(&expected));
    }

    #[test]
    fn a_waiter_that_has_gone_on_shows_that_the_lock_was_released() {
        // No sample sees the lock free, but another thread gets it while the main thread sleeps.
        let timeline = timeline(&[
            (MAIN, 500_000, BLOCKED),
            (WAITER, 1_000_000, BLOCKED),
            (HOLDER, 2_600_000, BLOCKED),
        ]);
        let (waits, works) = (asleep(libc::SYS_futex), asleep(libc::SYS_fsync));
        let joins = asleep(libc::SYS_rt_sigtimedwait);
        let before = [(WAITER, waits), (HOLDER, waits), (MAIN, joins)];
        let after = [(WAITER, waits), (HOLDER, works), (MAIN, joins)];
        let mut account = account();
        sample(&mut account, &timeline, 2_000_000, HELD, &before, false);
        sample(&mut account, &timeline, 3_000_000, HELD, &after, false);
        let fsync = HolderState::Asleep(libc::SYS_fsync as u32);
        let joining = HolderState::Asleep(libc::SYS_rt_sigtimedwait as u32);
        assert_eq!(doing(&account), counts(&[joining, fsync]));
    }

    fn doing(account: &ProcessAccount) -> HolderCounts {
        account.targets[0].holders(&Stacks::default()).doing
    }

    fn counts(holders: &[HolderState]) -> HolderCounts {
        let mut counts = HolderCounts::default();
        holders.iter().for_each(|&holder| counts.add(holder));
        counts
    }

    const HELD: Hold = Hold::Held { owner: None };

    #[test]
    fn threads_that_have_not_run_since_the_lock_was_free_do_not_hold_it() {
        let timeline = timeline(&[(HOLDER, 2_500_000, BLOCKED), (WAITER, 2_800_000, BLOCKED)]);
        let waits = asleep(libc::SYS_futex);
        let (works, joins) = (asleep(libc::SYS_fsync), asleep(libc::SYS_rt_sigtimedwait));
        let threads = [(WAITER, waits), (HOLDER, works), (MAIN, joins)];
        let mut account = account();
        sample(&mut account, &timeline, 3_000_000, HELD, &threads, false);
        assert_eq!(doing(&account), counts(&[HolderState::NotSeen]));
        sample(&mut account, &timeline, 2_000_000, Hold::Free, &threads, false);
        sample(&mut account, &timeline, 3_000_000, HELD, &threads, false);
        let fsync = HolderState::Asleep(libc::SYS_fsync as u32);
        let seen = counts(&[HolderState::NotSeen, HolderState::HandedOver, fsync]);
        assert_eq!(doing(&account), seen);
    }

    #[test]
    fn a_lock_stays_with_its_holder_while_that_does_not_run() {
        let timeline = timeline(&[
            (HOLDER, 2_500_000, PREEMPTED),
            (WAITER, 500_000, BLOCKED),
            (WAITER, 4_000_000, Direction::In),
            (WAITER, 4_100_000, PREEMPTED),
        ]);
        let mut account = account();
        account.set_threads(vec![WAITER, HOLDER], None);
        let before = [(WAITER, asleep(libc::SYS_nanosleep)), (HOLDER, Activity::OnCpu)];
        let after = [(WAITER, Activity::OnCpu), before[1]];
        sample(&mut account, &timeline, 2_000_000, Hold::Free, &before, false);
        sample(&mut account, &timeline, 3_000_000, HELD, &before, false);
        sample(&mut account, &timeline, 5_000_000, HELD, &after, false);
        let preempted = HolderState::Preempted;
        assert_eq!(doing(&account), counts(&[HolderState::HandedOver, preempted, preempted]));
        let holders = account.targets[0].holders(&Stacks::default());
        assert_eq!(holders.threads, [(HOLDER, 2)].into());
    }

    #[test]
    fn a_thread_that_was_woken_from_a_later_sleep_does_not_wait() {
        let waited =
            Last { at: 1_000_000, waiting_on: Some(0), asleep_at: 1_000_000, asleep_with: None };
        let slept = [(HOLDER, 500_000, BLOCKED)];
        let meanwhile =
            [slept[0], (HOLDER, 1_500_000, Direction::In), (HOLDER, 1_520_000, BLOCKED)];
        for (switches, holds) in [(&slept[..], false), (&meanwhile[..], true)] {
            let timeline = timeline(switches);
            let mut account = account();
            account.set_threads(vec![HOLDER], None);
            account.last.insert(HOLDER, waited);
            let threads = [(HOLDER, Activity::OnCpu)];
            sample(&mut account, &timeline, 3_000_000, HELD, &threads, false);
            let holder = if holds { HolderState::Preempted } else { HolderState::NotSeen };
            assert_eq!(doing(&account), counts(&[holder]));
        }
    }

    #[test]
    fn a_lock_that_nobody_has_quota_to_take_is_throttled() {
        let timeline = timeline(&[(WAITER, 500_000, BLOCKED), (HOLDER, 2_000_000, PREEMPTED)]);
        let mut account = account();
        account.set_threads(vec![WAITER, HOLDER], None);
        let waits = [(WAITER, asleep(libc::SYS_futex)), (HOLDER, Activity::OnCpu)];
        let woken = [(WAITER, Activity::OnCpu), waits[1]];
        sample(&mut account, &timeline, 2_500_000, HELD, &waits, true);
        sample(&mut account, &timeline, 3_000_000, Hold::Free, &woken, true);
        sample(&mut account, &timeline, 3_000_000, Hold::Free, &woken, false);
        let throttled = HolderState::Throttled;
        assert_eq!(doing(&account), counts(&[throttled, throttled, HolderState::HandedOver]));
    }

    #[test]
    fn a_mutex_may_be_released_while_its_owner_sleeps() {
        let nanosleep = asleep(libc::SYS_clock_nanosleep);
        let futex = asleep(libc::SYS_futex);
        let slept = (HOLDER, 500_000, BLOCKED);
        let woken = (HOLDER, 3_500_000, Direction::In);
        let cases = [
            (vec![slept], true),
            (vec![slept, woken, (HOLDER, 3_510_000, PREEMPTED)], false),
            (vec![slept, woken, (HOLDER, 3_600_000, BLOCKED)], false),
            (vec![(HOLDER, 2_500_000, BLOCKED)], false),
        ];
        for (switches, by_others) in cases {
            let timeline = timeline(&switches);
            let mut account = ProcessAccount::new(1);
            account.set_threads(vec![WAITER, HOLDER], None);
            account.declare(declared("pthread_mutex_t", WORD).unwrap(), 0).unwrap();
            let threads = [(WAITER, futex), (HOLDER, nanosleep)];
            sample(&mut account, &timeline, 3_000_000, HELD_BY_HOLDER, &threads, false);
            let next = Hold::Held { owner: Some(WAITER) };
            sample(&mut account, &timeline, 4_000_000, next, &threads, false);
            let holders = account.targets[0].holders(&Stacks::default());
            assert_eq!(holders.released_by_others, by_others, "{switches:?}");
        }
    }
}
