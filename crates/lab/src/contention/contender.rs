//! The loops of a thread that takes a lock again and again, compiled anew for each lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use threadtoll_machine::clock::Clock;
use threadtoll_model::queue_trace::{Acquisition, share_within};

use crate::cache_padded::CachePadded;
use crate::lock::raw::RawLock;

use super::lengths::Step;
use super::units::BusyWork;

/// What the threads of a block are to do. Stamps are ticks of the clock, which is the same on all
/// CPUs.
#[derive(Clone, Copy)]
pub(crate) struct WindowSpec<'a> {
    pub(crate) clock: &'a Clock,
    /// When what is done begins to count.
    pub(crate) from: u64,
    /// When it ends to.
    pub(crate) until: u64,
    pub(crate) picks: &'a [Step],
    /// Acquisitions between two looks at the clock; where each is stamped, it is not used.
    pub(crate) batch: u32,
}

/// What a thread did in a window, without stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Done {
    pub(crate) units: f64,
    pub(crate) acquisitions: f64,
    /// All acquisitions, those before and after the window included.
    pub(crate) all: u64,
}

/// A hand-off, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandoffSample {
    /// How long the thread had waited when the lock was let go of.
    pub(crate) waited: i64,
    /// How long after that it had it.
    pub(crate) took: i64,
}

/// How two threads learn what a hand-off takes.
#[derive(Debug, Default)]
pub(crate) struct HandoffProbe {
    /// The round in which the first thread holds the lock.
    held: AtomicU64,
    /// The round in which the second thread is about to ask for it, and when.
    asked: AtomicU64,
    /// The round in which the second thread has had it.
    done: AtomicU64,
    /// When the first thread let go of it.
    released: AtomicU64,
}

/// A thread's handle on the locks under test.
pub(crate) trait Contender: Send {
    /// Takes and leaves the lock until the window is over, stamping each time, and says how often.
    /// Of what was over before the window only the last is kept. Stops early when `taken` is full.
    fn stamped(
        &mut self,
        course: WindowSpec<'_>,
        labour: &mut BusyWork,
        taken: &mut Vec<Acquisition>,
    ) -> u64;

    /// The same without a stamp for each.
    fn counted(&mut self, course: WindowSpec<'_>, labour: &mut BusyWork) -> Done;

    /// Takes and leaves the lock for as long as there are tasks, the lock first.
    fn tasks(
        &mut self,
        course: WindowSpec<'_>,
        left: &AtomicU64,
        labour: &mut BusyWork,
        taken: &mut Vec<Acquisition>,
    );

    /// Holds the lock until the other thread has waited for it for about so long, in ticks; once a
    /// round. Where the threads of the cell sleep while they hold it, so does this one, up to the
    /// moment at which it lets go.
    fn hold_for_waiter(
        &mut self,
        clock: &Clock,
        meeting: &HandoffProbe,
        rounds: &[u64],
        sleeps: bool,
    );

    /// Waits for the lock, once a round.
    fn wait(
        &mut self,
        clock: &Clock,
        meeting: &HandoffProbe,
        rounds: usize,
        passed: &mut Vec<HandoffSample>,
    );

    /// Runs the section with the lock, which readers share.
    #[cfg(test)]
    fn section(&mut self, reads: bool, section: &mut dyn FnMut());
}

/// Makes a contender for each thread; all of them share the locks.
pub(crate) fn contenders<L: RawLock>(locks: Vec<L>, threads: usize) -> Vec<Box<dyn Contender>> {
    let locks: Arc<[CachePadded<L>]> = locks.into_iter().map(CachePadded).collect();
    let contender = |_| -> Box<dyn Contender> {
        let states = locks.iter().map(|_| L::ThreadState::default()).collect();
        Box::new(LockWorker { locks: Arc::clone(&locks), states, next: 0 })
    };
    (0..threads).map(contender).collect()
}

struct LockWorker<L: RawLock> {
    locks: Arc<[CachePadded<L>]>,
    states: Vec<L::ThreadState>,
    /// Where in its lengths the thread is: a block goes on where the last one ended.
    next: usize,
}

impl<L: RawLock> LockWorker<L> {
    #[inline(always)]
    fn take<R>(&mut self, pick: Step, section: impl FnOnce() -> R) -> R {
        let lock = &self.locks[pick.stripe as usize].0;
        let state = &mut self.states[pick.stripe as usize];
        if pick.reads { lock.hold_shared(state, section) } else { lock.hold(state, section) }
    }

    #[inline(always)]
    fn pick(&mut self, picks: &[Step]) -> Step {
        let pick = picks.get(self.next).copied().unwrap_or_default();
        self.next = if self.next + 1 < picks.len() { self.next + 1 } else { 0 };
        pick
    }

    /// One acquisition with its stamps; `idle_at` and `think_units` are the caller's to fill in.
    #[inline(always)]
    fn stamp(&mut self, clock: &Clock, pick: Step, labour: &mut BusyWork) -> Acquisition {
        let requested_at = clock.stamp();
        let (acquired_at, released_at) = self.take(pick, || {
            let acquired_at = clock.stamp();
            labour.work(pick.hold);
            (acquired_at, clock.stamp())
        });
        Acquisition {
            requested_at,
            acquired_at,
            released_at,
            hold_units: pick.hold,
            ..Acquisition::default()
        }
    }
}

impl<L: RawLock> Contender for LockWorker<L> {
    fn stamped(
        &mut self,
        course: WindowSpec<'_>,
        labour: &mut BusyWork,
        taken: &mut Vec<Acquisition>,
    ) -> u64 {
        let mut all = 0;
        let mut idle_at = course.clock.stamp();
        while idle_at < course.until && taken.len() < taken.capacity() {
            let pick = self.pick(course.picks);
            labour.work(pick.think);
            let one = self.stamp(course.clock, pick, labour);
            if one.released_at < course.from {
                taken.clear();
            }
            taken.push(Acquisition { idle_at, think_units: pick.think, ..one });
            all += 1;
            idle_at = course.clock.stamp();
        }
        all
    }

    fn counted(&mut self, course: WindowSpec<'_>, labour: &mut BusyWork) -> Done {
        let mut done = Done::default();
        let mut begin = course.clock.stamp();
        while begin < course.until {
            let mut units = 0;
            for _ in 0..course.batch {
                let pick = self.pick(course.picks);
                labour.work(pick.think);
                self.take(pick, || labour.work(pick.hold));
                units += pick.think + pick.hold;
            }
            let end = course.clock.stamp();
            let share = share_within(begin, end, course.from, course.until);
            done.units += share * units as f64;
            done.acquisitions += share * f64::from(course.batch);
            done.all += u64::from(course.batch);
            begin = end;
        }
        done
    }

    fn tasks(
        &mut self,
        course: WindowSpec<'_>,
        left: &AtomicU64,
        labour: &mut BusyWork,
        taken: &mut Vec<Acquisition>,
    ) {
        // Relaxed: it only has to be counted.
        let more = || {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
        };
        let mut idle_at = course.clock.stamp();
        while taken.len() < taken.capacity() && more() {
            let pick = self.pick(course.picks);
            let one = self.stamp(course.clock, pick, labour);
            labour.work(pick.think);
            taken.push(Acquisition { idle_at, think_units: pick.think, ..one });
            idle_at = course.clock.stamp();
        }
        // The end of the last task, as an acquisition that takes nothing.
        if taken.len() < taken.capacity() {
            taken.push(Acquisition {
                idle_at,
                requested_at: idle_at,
                acquired_at: idle_at,
                released_at: idle_at,
                ..Acquisition::default()
            });
        }
    }

    fn hold_for_waiter(
        &mut self,
        clock: &Clock,
        meeting: &HandoffProbe,
        rounds: &[u64],
        sleeps: bool,
    ) {
        for (round, wait) in (1..).zip(rounds.iter().copied()) {
            self.take(Step::default(), || {
                meeting.held.store(round, Ordering::Release);
                while meeting.asked.load(Ordering::Acquire) < round {
                    // They may share a CPU.
                    std::thread::yield_now();
                }
                if sleeps {
                    std::thread::sleep(std::time::Duration::from_nanos(clock.ns(wait) as u64));
                } else {
                    let until = clock.stamp().saturating_add(wait);
                    while clock.stamp() < until {
                        std::hint::spin_loop();
                    }
                }
                meeting.released.store(clock.stamp(), Ordering::Release);
            });
            while meeting.done.load(Ordering::Acquire) < round {
                std::thread::yield_now();
            }
        }
    }

    fn wait(
        &mut self,
        clock: &Clock,
        meeting: &HandoffProbe,
        rounds: usize,
        passed: &mut Vec<HandoffSample>,
    ) {
        for round in 1..=rounds as u64 {
            while meeting.held.load(Ordering::Acquire) < round {
                std::thread::yield_now();
            }
            meeting.asked.store(round, Ordering::Release);
            let want = clock.stamp();
            let got = self.take(Step::default(), || clock.stamp());
            // The lock orders this after the other thread's store; a lock that does not would show
            // up as a negative time.
            let released = meeting.released.load(Ordering::Acquire);
            let ticks = |end: u64, begin: u64| end.wrapping_sub(begin) as i64;
            passed
                .push(HandoffSample { waited: ticks(released, want), took: ticks(got, released) });
            meeting.done.store(round, Ordering::Release);
        }
    }

    #[cfg(test)]
    fn section(&mut self, reads: bool, section: &mut dyn FnMut()) {
        self.take(Step { reads, ..Step::default() }, section);
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_record::Work;

    use super::*;
    use crate::lock::Locks;

    #[test]
    fn what_is_over_before_the_window_takes_no_room() {
        let clock = Clock::gate().unwrap().0;
        let mut contender =
            Locks::default().parse("std-mutex").unwrap().contenders(1).unwrap().remove(0);
        let mut labour = BusyWork::new(Work::Spin, 1);
        let mut taken = Vec::with_capacity(64);
        // The machine may keep us away until the window has begun.
        let all = (0..100).map(|_| {
            taken.clear();
            let from = clock.stamp() + clock.ticks(2e6);
            let course = WindowSpec { clock: &clock, from, until: u64::MAX, picks: &[], batch: 1 };
            (from, contender.stamped(course, &mut labour, &mut taken))
        });
        let (from, all) = all.into_iter().find(|(_, all)| *all > 64).unwrap();
        // Two milliseconds that are not kept, and room for far less.
        assert!(taken.len() == taken.capacity(), "{all}, {}", taken.len());
        assert!(
            taken[0].released_at < from && taken[1..].iter().all(|one| one.released_at >= from)
        );
    }
}
