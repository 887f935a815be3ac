//! Holders of a process's locks, look by look.

use super::{ProcessAccount, thread_named};
use crate::circumstances::Circumstances;
use crate::holder::{Lock, Threads};
use crate::primitive::ReadMemory;
use crate::sample::{Chunk, Tick};

impl ProcessAccount {
    /// Finds the threads of the holders' records that were seen for the first time.
    pub fn find_holders(&mut self, read: ReadMemory<'_>) {
        let named = |tid| thread_named(self.inner.as_ref(), tid);
        self.records.find(&self.threads, &named, read);
    }

    /// Counts the holder of a lock, and what it was doing.
    pub(super) fn count_holder(
        &mut self,
        place: u32,
        chunk: &Chunk,
        tick: &Tick,
        seen: &Circumstances<'_>,
        contended: bool,
    ) {
        let (before, from_here) = self.objects.split_at_mut(place as usize);
        let Some((object, after)) = from_here.split_first_mut() else { return };
        let Some(hold) = object.now.hold.filter(|_| object.is_lock()) else { return };
        let lock_at = |word: u64| {
            let &at = self.by_word.get(&word)?;
            let is_lock = match at.checked_sub(place) {
                None => before[at as usize].is_lock(),
                Some(0) => true,
                Some(further) => after[further as usize - 1].is_lock(),
            };
            is_lock.then_some(at)
        };
        let threads = Threads {
            alive: &self.threads,
            read: chunk.threads(tick),
            last: &self.last,
            lock_at: &lock_at,
            at: tick.at,
            seen,
        };
        let (identity, hold_again) = (object.identity, object.now.hold_again);
        let lock = Lock { place, identity, hold, hold_again };
        object.holder.count(&lock, &threads, tick, contended);
        self.nameless |= object.holder.nameless;
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_judge::cause::{Holder, HolderCounts};
    use threadtoll_stacks::process::{Activity, SystemCall};

    use super::*;
    use crate::circumstances::Last;
    use crate::occupation::NoDescriptors;
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
        let mutex = declared("std::sync::poison::mutex::Mutex", WORD).unwrap();
        account.declare(mutex, 0).unwrap();
        account
    }

    /// Takes a look at this time that finds the lock so, and threads that do this.
    fn look(
        account: &mut ProcessAccount,
        timeline: &Timeline,
        at: u64,
        hold: Hold,
        threads: &[(u32, Activity)],
        throttled: bool,
    ) {
        let mut chunk = Chunk::default();
        chunk.begin(at, 1);
        chunk.tick().again_at = Some(at + 20_000);
        threads.iter().for_each(|&(tid, activity)| chunk.push_thread(0, tid, true, activity));
        let (tick, stacks) = (chunk.ticks[0], Stacks::default());
        let seen = Circumstances {
            look: at,
            second: 0,
            due: at,
            gap_s: 1e-3,
            scale: 1.0,
            late: false,
            queue_late: false,
            timeline: Some(timeline),
            stacks: &stacks,
            running: &[],
            throttled,
            descriptors: &NoDescriptors,
        };
        account.objects[0].see(at);
        account.objects[0].now.hold = Some(hold);
        account.objects[0].now.hold_again = Some(hold);
        chunk.threads(&tick).iter().for_each(|read| account.thread(read, at, &seen));
        account.count_holder(0, &chunk, &tick, &seen, true);
    }

    fn doing(account: &ProcessAccount) -> HolderCounts {
        account.objects[0].holder.holders(&Stacks::default()).doing
    }

    fn counts(holders: &[Holder]) -> HolderCounts {
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
        look(&mut account, &timeline, 3_000_000, HELD, &threads, false);
        assert_eq!(doing(&account), counts(&[Holder::NotSeen]));
        look(&mut account, &timeline, 2_000_000, Hold::Free, &threads, false);
        look(&mut account, &timeline, 3_000_000, HELD, &threads, false);
        let fsync = Holder::Asleep(libc::SYS_fsync as u32);
        let seen = counts(&[Holder::NotSeen, Holder::HandedOver, fsync]);
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
        look(&mut account, &timeline, 2_000_000, Hold::Free, &before, false);
        look(&mut account, &timeline, 3_000_000, HELD, &before, false);
        look(&mut account, &timeline, 5_000_000, HELD, &after, false);
        let preempted = Holder::Preempted;
        assert_eq!(doing(&account), counts(&[Holder::HandedOver, preempted, preempted]));
        let holders = account.objects[0].holder.holders(&Stacks::default());
        assert_eq!(holders.threads, [(HOLDER, 2)].into());
    }

    #[test]
    fn a_thread_that_was_woken_from_a_later_sleep_does_not_wait() {
        let waited =
            Last { at: 1_000_000, waiting_on: Some(0), asleep_at: 1_000_000, asleep_with: None };
        let slept = [(HOLDER, 500_000, BLOCKED)];
        // It takes the lock, and soon sleeps in it.
        let meanwhile =
            [slept[0], (HOLDER, 1_500_000, Direction::In), (HOLDER, 1_520_000, BLOCKED)];
        for (switches, holds) in [(&slept[..], false), (&meanwhile[..], true)] {
            let timeline = timeline(switches);
            let mut account = account();
            account.set_threads(vec![HOLDER], None);
            account.last.insert(HOLDER, waited);
            let threads = [(HOLDER, Activity::OnCpu)];
            look(&mut account, &timeline, 3_000_000, HELD, &threads, false);
            let holder = if holds { Holder::Preempted } else { Holder::NotSeen };
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
        look(&mut account, &timeline, 2_500_000, HELD, &waits, true);
        look(&mut account, &timeline, 3_000_000, Hold::Free, &woken, true);
        look(&mut account, &timeline, 3_000_000, Hold::Free, &woken, false);
        let throttled = Holder::Throttled;
        assert_eq!(doing(&account), counts(&[throttled, throttled, Holder::HandedOver]));
    }
}
