//! Who holds a process's locks at a look, and what it does.
//!
//! Words that name their owner say it. Of the others the places of threads tell
//! ([`places`](threadtoll_judge::places)), once those threads are left out that have not run since the
//! word was last seen free.

use threadtoll_judge::cause::Holder;
use threadtoll_stacks::process::Activity;

use super::ProcessAccount;
use crate::account::object::{KeptScene, KeptThread, count};
use crate::circumstances::{Circumstances, Last};
use crate::occupation::Occupation;
use crate::perf::CpuState;
use crate::primitive::{Hold, Identity, Kind, ReadMemory};
use crate::sample::{Chunk, ThreadRead, Tick};

/// Most records of holders that are told apart.
const MAX_HOLDERS: usize = 4096;

/// A waiter that was woken for nothing has gone back to sleep after running this long at most: it
/// has looked at the word, perhaps spun for a while as parking_lot does, and called the kernel
/// (3 to 20 µs on a virtual machine). One that ran longer may have had the lock.
const RETRY_NS: u64 = 50_000;

impl ProcessAccount {
    /// The thread of a holder's record, if that has been found.
    pub(super) fn holder_of(&mut self, record: u64, lock: Identity) -> Option<u32> {
        if let Some(&tid) = self.holders.get(&record) {
            return tid;
        }
        if self.holders.len() < MAX_HOLDERS {
            self.holders.insert(record, None);
            self.new_records.push((record, lock));
        }
        None
    }

    /// Finds the threads of the holders' records that were seen for the first time.
    pub fn find_holders(&mut self, read: ReadMemory<'_>) {
        for (record, lock) in std::mem::take(&mut self.new_records) {
            let is_thread =
                |tid| self.thread_named(tid).is_some_and(|tid| self.threads.contains(&tid));
            let tid = lock.thread_of(record, read, &is_thread);
            let tid = tid.and_then(|tid| self.thread_named(tid));
            self.holders.insert(record, tid);
        }
    }

    /// A waiter has been woken and does not run yet: the thread that has taken the lock meanwhile,
    /// or `Some(None)` if the lock is the waiter's. `None` if it is not known which.
    ///
    /// The kernel does not show from which wait a thread was woken. It is taken to be the lock's if
    /// all runs since it was seen asleep there were too short to use the lock. So a thread that
    /// sleeps briefly in many other places meanwhile is mistaken for one that is woken in vain.
    pub(super) fn turn(
        &self,
        place: u32,
        tid: u32,
        last: Last,
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Option<Option<u32>> {
        let object = &self.objects[place as usize];
        let timeline = seen.timeline.filter(|_| object.is_lock() && !seen.late)?;
        if timeline.longest_run(tid, last.asleep_at, at)? > RETRY_NS {
            return None;
        }
        let owner = match object.now.hold? {
            Hold::Free => return Some(None),
            Hold::Held { owner } => owner,
            Hold::Readers(_) | Hold::Unseen => return None,
        };
        // A lock that is handed over is held before its new holder runs.
        if owner == Some(tid) || timeline.next_run(tid, at)? > RETRY_NS {
            return Some(None);
        }
        if owner.is_some() {
            return Some(owner);
        }
        // A word that names no owner: if a single thread has a CPU, then that one took it.
        let awake = |&&tid: &&u32| {
            matches!(timeline.state(tid, at), Some(CpuState::Running | CpuState::Preempted))
        };
        let mut awake = self.threads.iter().filter(awake);
        let first = awake.next()?;
        awake.next().is_none().then_some(Some(*first))
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
        let threads = chunk.threads(tick);
        let object = &self.objects[place as usize];
        let Some(hold) = object.now.hold.filter(|_| object.is_lock()) else { return };
        if let Hold::Held { owner: Some(owner) } = hold {
            let read = threads.iter().find(|read| read.tid == owner);
            // The sampler looks at owners that words name. Those that records name are seen when
            // they happen to be picked, whatever they do: the other looks tell nothing.
            if read.is_none() && object.identity.interpreter_lock().is_some() {
                return;
            }
            let doing = read.map_or(Holder::NotSeen, |read| self.doing(place, read, tick.at, seen));
            let stack = read.and_then(|read| seen.stack(read, tick.at));
            let named = &mut self.objects[place as usize].named;
            if contended {
                named.doing.add(doing);
                count(&mut named.threads, owner);
                // One that was woken to take the lock stands where it waited.
                if let Some(stack) = stack.filter(|_| doing != Holder::HandedOver) {
                    count(&mut named.stacks, stack);
                }
            }
            return;
        }
        let held = match hold {
            Hold::Held { .. } | Hold::Readers(_) => true,
            Hold::Free => false,
            Hold::Unseen => return,
        };
        let handed_over = self.handed_over(place, threads, tick.at, seen);
        if object.names_owner && !held {
            if contended {
                self.objects[place as usize].named.doing.add(handed_over);
            }
            return;
        }
        // Of several readers none is the holder.
        let shared = matches!(object.identity.kind(), Kind::RwLock | Kind::RustRwLock);
        if shared && held {
            if contended {
                self.objects[place as usize].named.doing.add(Holder::NotSeen);
            }
            return;
        }
        let object = &mut self.objects[place as usize];
        object.nameless |= held && contended && !object.names_owner;
        self.nameless |= object.nameless;
        if !held {
            (object.free_at, object.able) = (Some(tick.at), None);
        }
        // Where no stacks were read, threads on CPUs can still be told from one another.
        let with_stacks = tick.again_at.is_some();
        // A lock that changed hands meanwhile says nothing about who stood where.
        let changed = with_stacks && object.now.hold != object.now.hold_again;
        if shared || changed || !with_stacks && !object.nameless {
            return;
        }
        let object = &self.objects[place as usize];
        let still = |tid: u32| seen.timeline.and_then(|it| it.still_since(tid, tick.at, false));
        let still_of = |tid: u32| {
            let read = threads.iter().find(|read| read.tid == tid);
            read.map_or_else(|| still(tid), |read| seen.still_since(read, tick.at))
        };
        // While none of those has run that may hold it, the others cannot get it.
        let unchanged = object.able.as_ref().filter(|able| {
            held && able.tids.iter().all(|&tid| still_of(tid).is_some_and(|since| since <= able.at))
        });
        let is_bystander = |tid: u32, still_since: Option<u64>| {
            let free = still_since.zip(object.free_at);
            free.is_some_and(|(since, free_at)| since <= free_at)
                || unchanged.is_some_and(|able| !able.tids.contains(&tid))
        };
        // Std's mutex belongs to whoever takes it first.
        let hands_over = object.identity.kind() != Kind::RustMutex;
        let kept = |read: &ThreadRead| {
            let still_since = seen.still_since(read, tick.at);
            let woken = seen.is_woken(read, tick.at);
            let waits = self.waits(place, read, tick.at, seen);
            KeptThread {
                tid: read.tid,
                waits,
                granted: waits && woken && hands_over,
                stack: seen.stack(read, tick.at).or_else(|| self.slept_at(read, tick.at, seen)),
                asleep: read.activity != Activity::OnCpu,
                woken,
                bystander: is_bystander(read.tid, still_since),
                still_since,
                doing: self.doing(place, read, tick.at, seen),
            }
        };
        // It may have changed hands and look as before.
        let switched = |read: &ThreadRead| {
            let until = tick.again_at.unwrap_or(tick.at);
            let last = seen.timeline.and_then(|it| it.state_since(read.tid, until));
            last.is_some_and(|(_, since)| since > tick.at)
        };
        let looked_at = |tid: u32| threads.iter().any(|read| read.tid == tid);
        let scene = KeptScene {
            held,
            complete: self
                .threads
                .iter()
                .all(|&tid| looked_at(tid) || is_bystander(tid, still(tid))),
            counts: contended && with_stacks,
            teaches: !threads.iter().any(switched),
            handed_over,
            threads: threads.iter().map(kept).collect(),
        };
        let settled = scene.held && scene.complete && scene.teaches;
        let object = &mut self.objects[place as usize];
        if let Some(able) = settled.then(|| scene.able(tick.at)).flatten() {
            object.able = Some(able);
        }
        object.learn(scene, seen.stacks);
    }

    /// The stack with which a thread was seen in the sleep from which it has not run since.
    fn slept_at(&self, read: &ThreadRead, at: u64, seen: &Circumstances<'_>) -> Option<u32> {
        let (stack, seen_at) = self.last.get(&read.tid)?.asleep_with?;
        (seen.still_since(read, at)? <= seen_at).then_some(stack)
    }

    /// It waits for a lock, or has been woken from that wait and has not run since.
    fn waits(&self, lock: u32, read: &ThreadRead, at: u64, seen: &Circumstances<'_>) -> bool {
        let last = self.last.get(&read.tid);
        let Some(last) = last.filter(|last| last.waiting_on == Some(lock)) else { return false };
        match seen.is_woken(read, at) {
            true => seen.still_since(read, at).is_some_and(|since| since <= last.asleep_at),
            false => true,
        }
    }

    /// What keeps threads waiting for a lock that nobody holds.
    fn handed_over(
        &self,
        lock: u32,
        threads: &[ThreadRead],
        at: u64,
        seen: &Circumstances<'_>,
    ) -> Holder {
        let next = |read: &ThreadRead| seen.is_woken(read, at) && self.waits(lock, read, at, seen);
        match seen.throttled && threads.iter().any(next) {
            true => Holder::Throttled,
            false => Holder::HandedOver,
        }
    }

    /// What a thread does that holds a lock.
    fn doing(&self, lock: u32, read: &ThreadRead, at: u64, seen: &Circumstances<'_>) -> Holder {
        match Occupation::of(&read.activity) {
            Occupation::Futex(wait) => match self.by_word.get(&wait.address) {
                // It has been given the lock in its sleep.
                Some(&waits) if waits == lock => Holder::HandedOver,
                Some(&waits) if self.objects[waits as usize].is_lock() => Holder::Waiting(waits),
                _ => Holder::Asleep(libc::SYS_futex as u32),
            },
            Occupation::OnCpu => match seen.state(read.tid, at) {
                None => Holder::OnCpu,
                Some(CpuState::Running) => Holder::Running,
                Some(_) if seen.throttled => Holder::Throttled,
                Some(_) if self.waits(lock, read, at, seen) => Holder::HandedOver,
                Some(_) => Holder::Preempted,
            },
            _ => match read.activity {
                Activity::Asleep(call) => Holder::Asleep(call.number),
                _ => Holder::NotSeen,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_judge::cause::HolderCounts;
    use threadtoll_stacks::process::SystemCall;

    use super::*;
    use crate::occupation::NoDescriptors;
    use crate::perf::{Direction, Event, Timeline};
    use crate::primitive::declared;
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
        account.objects[0].holders(&Stacks::default()).doing
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
        let holders = account.objects[0].holders(&Stacks::default());
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
