//! Loops of threads that contend for a lock, monomorphised for each lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_model::queue_trace::{Acquisition, share_within};

use crate::cache_padded::CachePadded;
use crate::exchange::on_a_line;
use crate::raw_lock::RawLock;

use crate::contention::lengths::Step;
use crate::contention::overload::door::{Answered, Door, End};
use crate::contention::units::BusyWork;

/// Window of a block: the interval in which work counts, from `from` until `until`, in clock ticks.
#[derive(Clone, Copy)]
pub(crate) struct WindowSpec<'a> {
    pub(crate) clock: &'a Clock,
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) steps: &'a [Step],
    /// Number of acquisitions between two readings of the clock; unused if each acquisition is
    /// stamped.
    pub(crate) batch: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Done {
    pub(crate) units: f64,
    pub(crate) acquisitions: f64,
    /// All acquisitions, including those before and after the window.
    pub(crate) all: u64,
}

/// A measured hand-off; times in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandoffSample {
    /// Time for which the thread had waited when the lock was released.
    pub(crate) waited: i64,
    pub(crate) took: i64,
}

/// A hand-off to be measured; times in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HandoffRound {
    /// Time for which the second thread is to wait.
    pub(crate) wait: u64,
    /// Times for which the first and the second thread compute after the hand-off.
    pub(crate) busy: [u64; 2],
}

#[derive(Debug, Default)]
pub(crate) struct HandoffProbe {
    /// Latest round in which the first thread has acquired the lock.
    held: AtomicU64,
    /// Latest round in which the second thread has begun to acquire the lock.
    asked: AtomicU64,
    /// Latest round in which the second thread has acquired and released the lock.
    done: AtomicU64,
    released: AtomicU64,
}

/// A thread's handle on the locks under test.
pub(crate) trait Contender: Send {
    /// Contends until the window ends or `acquisitions` is full. Stamps each acquisition, but keeps
    /// only the last one before the window. Returns the number of all acquisitions.
    fn stamped(
        &mut self,
        spec: WindowSpec<'_>,
        busy_work: &mut BusyWork,
        acquisitions: &mut Vec<Acquisition>,
    ) -> u64;

    /// Like [`stamped`](Self::stamped), but without stamps.
    fn counted(&mut self, spec: WindowSpec<'_>, busy_work: &mut BusyWork) -> Done;

    /// Returns the number of threads that waited just after each acquisition, summed over the
    /// acquisitions, if the lock itself counts them.
    fn tasks(
        &mut self,
        spec: WindowSpec<'_>,
        left: &AtomicU64,
        busy_work: &mut BusyWork,
        acquisitions: &mut Vec<Acquisition>,
    ) -> Option<u64>;

    /// Serves callers until the door has no more.
    fn callers(
        &mut self,
        clock: &Clock,
        door: &Door,
        busy_work: &mut BusyWork,
        answered: &mut Vec<Answered>,
    );

    /// First thread of a hand-off: in each round, holds the lock until the second thread has waited
    /// for the intended time. Sleeps meanwhile if `sleeps`; otherwise spins. Returns the duration
    /// of each release in ticks.
    fn hold_for_waiter(
        &mut self,
        clock: &Clock,
        probe: &HandoffProbe,
        rounds: &[HandoffRound],
        sleeps: bool,
    ) -> Vec<u64>;

    /// Second thread of a hand-off: waits for the lock once per round.
    fn measure_handoffs(
        &mut self,
        clock: &Clock,
        probe: &HandoffProbe,
        rounds: &[HandoffRound],
        samples: &mut Vec<HandoffSample>,
    );

    /// Addresses of the measured loops.
    fn code(&self) -> [usize; 3] {
        [
            Self::stamped as *const () as usize,
            Self::counted as *const () as usize,
            Self::tasks as *const () as usize,
        ]
    }

    #[cfg(test)]
    fn section(&mut self, reads: bool, section: &mut dyn FnMut());
}

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
    /// Index of the next step. Each block continues where the previous one ended.
    next: usize,
}

impl<L: RawLock> LockWorker<L> {
    #[inline(always)]
    fn take<R>(&mut self, step: Step, section: impl FnOnce(&L) -> R) -> R {
        let lock = &self.locks[step.stripe as usize].0;
        let state = &mut self.states[step.stripe as usize];
        let section = || section(lock);
        if step.reads { lock.hold_shared(state, section) } else { lock.hold(state, section) }
    }

    #[inline(always)]
    fn step(&mut self, steps: &[Step]) -> Step {
        let step = steps.get(self.next).copied().unwrap_or_default();
        self.next = if self.next + 1 < steps.len() { self.next + 1 } else { 0 };
        step
    }

    /// Calls `enter` just after the acquisition, of which the caller must set `idle_at` and
    /// `think_units`.
    #[inline(always)]
    fn stamp(
        &mut self,
        clock: &Clock,
        step: Step,
        busy_work: &mut BusyWork,
        enter: impl FnOnce(&L),
    ) -> Acquisition {
        let requested_at = clock.stamp();
        let (acquired_at, released_at) = self.take(step, |lock| {
            let acquired_at = clock.stamp();
            enter(lock);
            busy_work.work(step.hold);
            (acquired_at, clock.stamp())
        });
        Acquisition {
            requested_at,
            acquired_at,
            released_at,
            hold_units: step.hold,
            ..Acquisition::default()
        }
    }
}

/// Returns `true` if it had to wait.
fn sleep_until(clock: &Clock, due: u64) -> bool {
    let mut slept = false;
    loop {
        let now = clock.stamp();
        if now >= due {
            return slept;
        }
        slept = true;
        std::thread::sleep(Duration::from_nanos(clock.ns(due - now).max(1.0) as u64));
    }
}

fn spin_for(clock: &Clock, ticks: u64) {
    let until = clock.stamp().saturating_add(ticks);
    while clock.stamp() < until {
        std::hint::spin_loop();
    }
}

impl<L: RawLock> Contender for LockWorker<L> {
    fn stamped(
        &mut self,
        spec: WindowSpec<'_>,
        busy_work: &mut BusyWork,
        acquisitions: &mut Vec<Acquisition>,
    ) -> u64 {
        on_a_line();
        let mut all = 0;
        let mut idle_at = spec.clock.stamp();
        while idle_at < spec.until && acquisitions.len() < acquisitions.capacity() {
            let step = self.step(spec.steps);
            busy_work.work(step.think);
            let one = self.stamp(spec.clock, step, busy_work, |_| {});
            if one.released_at < spec.from {
                acquisitions.clear();
            }
            acquisitions.push(Acquisition { idle_at, think_units: step.think, ..one });
            all += 1;
            idle_at = spec.clock.stamp();
        }
        all
    }

    fn counted(&mut self, spec: WindowSpec<'_>, busy_work: &mut BusyWork) -> Done {
        on_a_line();
        let mut done = Done::default();
        let mut begin = spec.clock.stamp();
        while begin < spec.until {
            let mut units = 0;
            for _ in 0..spec.batch {
                let step = self.step(spec.steps);
                busy_work.work(step.think);
                self.take(step, |_| busy_work.work(step.hold));
                units += step.think + step.hold;
            }
            let end = spec.clock.stamp();
            let share = share_within(begin, end, spec.from, spec.until);
            done.units += share * units as f64;
            done.acquisitions += share * f64::from(spec.batch);
            done.all += u64::from(spec.batch);
            begin = end;
        }
        done
    }

    fn tasks(
        &mut self,
        spec: WindowSpec<'_>,
        left: &AtomicU64,
        busy_work: &mut BusyWork,
        acquisitions: &mut Vec<Acquisition>,
    ) -> Option<u64> {
        on_a_line();
        // Relaxed: this is a counter, which orders nothing.
        let more = || {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
        };
        let mut queues = None;
        let mut idle_at = spec.clock.stamp();
        while acquisitions.len() < acquisitions.capacity() && more() {
            let step = self.step(spec.steps);
            let one = self.stamp(spec.clock, step, busy_work, |lock| {
                queues = lock.queue_len().map(|queue| queue + queues.unwrap_or(0));
            });
            busy_work.work(step.think);
            acquisitions.push(Acquisition { idle_at, think_units: step.think, ..one });
            idle_at = spec.clock.stamp();
        }
        // An empty acquisition marks the end of the last task.
        if acquisitions.len() < acquisitions.capacity() {
            acquisitions.push(Acquisition {
                idle_at,
                requested_at: idle_at,
                acquired_at: idle_at,
                released_at: idle_at,
                ..Acquisition::default()
            });
        }
        queues
    }

    fn callers(
        &mut self,
        clock: &Clock,
        door: &Door,
        busy_work: &mut BusyWork,
        answered: &mut Vec<Answered>,
    ) {
        on_a_line();
        let step = Step { hold: door.hold(), ..Step::default() };
        while let Some((caller, due)) = door.next() {
            let in_front = !sleep_until(clock, due);
            let turned_at = clock.stamp();
            let end = if in_front && door.gives_up(due, turned_at) {
                End::GaveUp
            } else if !door.admits(due) {
                End::Refused
            } else {
                let mut section = || {
                    let at = clock.stamp();
                    let works = !door.gives_up(due, at);
                    if works {
                        busy_work.work(step.hold);
                    }
                    let released_at = clock.stamp();
                    door.leaves(released_at);
                    End::Acquired { at, released_at, works }
                };
                match door.bound_of_lock() {
                    Some(bound) => self.locks[0]
                        .0
                        .hold_bounded(&mut self.states[0], bound, section)
                        .unwrap_or(End::Refused),
                    None => self.take(step, |_| section()),
                }
            };
            answered.push(Answered { caller, in_front, turned_at, end });
        }
    }

    fn hold_for_waiter(
        &mut self,
        clock: &Clock,
        probe: &HandoffProbe,
        rounds: &[HandoffRound],
        sleeps: bool,
    ) -> Vec<u64> {
        let mut releases = Vec::with_capacity(rounds.len());
        for (round, HandoffRound { wait, busy }) in (1..).zip(rounds.iter().copied()) {
            let released = self.take(Step::default(), |_| {
                probe.held.store(round, Ordering::Release);
                while probe.asked.load(Ordering::Acquire) < round {
                    // The two threads may share a CPU.
                    std::thread::yield_now();
                }
                if sleeps {
                    std::thread::sleep(Duration::from_nanos(clock.ns(wait) as u64));
                } else {
                    spin_for(clock, wait);
                }
                let released = clock.stamp();
                probe.released.store(released, Ordering::Release);
                released
            });
            releases.push(clock.stamp().saturating_sub(released));
            spin_for(clock, busy[0]);
            while probe.done.load(Ordering::Acquire) < round {
                std::thread::yield_now();
            }
        }
        releases
    }

    fn measure_handoffs(
        &mut self,
        clock: &Clock,
        probe: &HandoffProbe,
        rounds: &[HandoffRound],
        samples: &mut Vec<HandoffSample>,
    ) {
        for (round, HandoffRound { busy, .. }) in (1..).zip(rounds) {
            while probe.held.load(Ordering::Acquire) < round {
                std::thread::yield_now();
            }
            probe.asked.store(round, Ordering::Release);
            let want = clock.stamp();
            let got = self.take(Step::default(), |_| clock.stamp());
            // The lock orders this load after the other thread's store. A broken lock would show as
            // a negative time.
            let released = probe.released.load(Ordering::Acquire);
            let ticks = |end: u64, begin: u64| end.wrapping_sub(begin) as i64;
            samples
                .push(HandoffSample { waited: ticks(released, want), took: ticks(got, released) });
            spin_for(clock, busy[1]);
            probe.done.store(round, Ordering::Release);
        }
    }

    #[cfg(test)]
    fn section(&mut self, reads: bool, section: &mut dyn FnMut()) {
        self.take(Step { reads, ..Step::default() }, |_| section());
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_record::Work;

    use super::*;
    use crate::lock::{LockSpec, Locks};

    #[test]
    fn locks_that_are_said_to_count_their_waiters_do() {
        let clock = Clock::gate().unwrap().0;
        for lock in Locks::default().all() {
            let spec = LockSpec { lock: Some(lock.clone()), stripes: 1 };
            let Ok(mut contenders) = spec.contenders(1) else {
                println!("{lock:?} skipped: this machine does not let us have it");
                continue;
            };
            let spec = WindowSpec { clock: &clock, from: 0, until: u64::MAX, steps: &[], batch: 1 };
            let (tasks, mut busy_work) = (AtomicU64::new(3), BusyWork::new(Work::Spin, 1));
            let mut acquisitions = Vec::with_capacity(8);
            let queues = contenders[0].tasks(spec, &tasks, &mut busy_work, &mut acquisitions);
            assert_eq!(queues, lock.counts_waiters.then_some(0), "{lock:?}");
        }
    }

    #[test]
    fn what_is_over_before_the_window_takes_no_room() {
        let clock = Clock::gate().unwrap().0;
        let mut contender =
            Locks::default().parse("std-mutex").unwrap().contenders(1).unwrap().remove(0);
        let mut busy_work = BusyWork::new(Work::Spin, 1);
        let mut acquisitions = Vec::with_capacity(64);
        // The machine may delay this thread until the window has begun.
        let all = (0..100).map(|_| {
            acquisitions.clear();
            let from = clock.stamp() + clock.ticks(2e6);
            let spec = WindowSpec { clock: &clock, from, until: u64::MAX, steps: &[], batch: 1 };
            (from, contender.stamped(spec, &mut busy_work, &mut acquisitions))
        });
        let (from, all) = all.into_iter().find(|(_, all)| *all > 64).unwrap();
        // The buffer has room for far fewer acquisitions than happen in the 2 ms before the window.
        assert!(acquisitions.len() == acquisitions.capacity(), "{all}, {}", acquisitions.len());
        assert!(
            acquisitions[0].released_at < from
                && acquisitions[1..].iter().all(|one| one.released_at >= from)
        );
    }
}
