//! Simulation of threads that serve callers under one lock.
//!
//! A free thread takes the next caller in order of arrival, sleeps until that caller arrives, and
//! asks for the lock. While all threads wait, callers wait in front of the lock for a thread.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::{share, threads, time};
use crate::random::unit;
use crate::{HandOff, ModelError};

use super::{Caller, Fate, Rules};

/// A lock, and the threads that take it for their callers.
#[derive(Clone, Debug, PartialEq)]
pub struct OverloadedLock {
    /// Time for which each caller holds the lock, in nanoseconds.
    pub hold_ns: f64,
    /// Time from a release until a waiting thread has the lock.
    pub hand_off: HandOff,
    /// Probability that a thread gets the lock if it asks before the waiting thread to which the
    /// lock was just released: 0 if the lock serves in order.
    pub overtaken_share: f64,
    /// Delay with which a sleeping thread notices that its caller has arrived, in nanoseconds.
    pub late_ns: f64,
    /// Number of threads.
    pub threads: u32,
}

impl OverloadedLock {
    fn check(&self) -> Result<(), ModelError> {
        time("hold time", self.hold_ns)?;
        time("delay of a thread", self.late_ns)?;
        share("share of overtaken threads", self.overtaken_share)?;
        threads(self.threads)?;
        Ok(())
    }
}

/// Simulates callers who arrive at these times, which must be in ascending order.
///
/// # Errors
///
/// If a figure is out of range.
pub fn simulate(
    lock: &OverloadedLock,
    rules: &Rules,
    due_ns: &[f64],
    seed: u64,
) -> Result<Vec<Caller>, ModelError> {
    lock.check()?;
    time("deadline", rules.deadline_ns)?;
    due_ns.iter().try_for_each(|due| time("time of arrival", *due).map(drop))?;
    let caller = |due_ns: &f64| Caller { due_ns: *due_ns, in_front: false, fate: Fate::Refused };
    let mut engine = Engine {
        lock,
        rules,
        rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        callers: due_ns.iter().map(caller).collect(),
        next: 0,
        events: BinaryHeap::new(),
        scheduled: 0,
        admitted: 0,
        left_ns: Vec::new(),
        held: false,
        holds: 0,
        overtakable: false,
        waiting: VecDeque::new(),
    };
    engine.run();
    Ok(engine.callers)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The thread that sleeps for this caller wakes up.
    Arrival(usize),
    /// The thread that waits first runs, after the hold with this number.
    Woken(u64),
    /// The holder releases the lock.
    Release,
}

struct Engine<'a> {
    lock: &'a OverloadedLock,
    rules: &'a Rules,
    rng: Xoshiro256PlusPlus,
    callers: Vec<Caller>,
    /// The next caller that no thread has taken.
    next: usize,
    /// Time, order of scheduling, and event. Times are never negative, so their bits sort like the
    /// times.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    /// Number of callers who were not refused, and times at which they left, in ascending order.
    admitted: usize,
    left_ns: Vec<f64>,
    held: bool,
    /// Number of holds so far. A thread that was woken after an earlier hold comes too late.
    holds: u64,
    /// True if another thread may get the lock before the one to which it was released.
    overtakable: bool,
    /// Waiting callers, and the times since when their threads have waited for the lock.
    waiting: VecDeque<(usize, f64)>,
}

impl Engine<'_> {
    fn run(&mut self) {
        for _ in 0..self.lock.threads.min(self.callers.len() as u32) {
            self.take(0.0);
        }
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            let now = f64::from_bits(at);
            match event {
                Event::Arrival(caller) => {
                    if self.admits(caller) {
                        self.ask(caller, now);
                    } else {
                        self.take(now);
                    }
                }
                Event::Woken(hold) if hold == self.holds && !self.held => {
                    if let Some((caller, _)) = self.waiting.pop_front() {
                        self.acquire(caller, now);
                    }
                }
                Event::Woken(_) => {}
                Event::Release => self.release(now),
            }
        }
    }

    fn schedule(&mut self, at_ns: f64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at_ns.to_bits(), self.scheduled, event)));
    }

    /// A thread becomes free, and takes the next caller who is not turned away.
    fn take(&mut self, now: f64) {
        while let Some(Caller { due_ns, .. }) = self.callers.get(self.next).copied() {
            let caller = self.next;
            self.next += 1;
            if due_ns > now {
                return self.schedule(due_ns + self.lock.late_ns, Event::Arrival(caller));
            }
            self.callers[caller].in_front = true;
            if self.rules.gives_up && now > due_ns + self.rules.deadline_ns {
                self.callers[caller].fate = Fate::GaveUp;
            } else if self.admits(caller) {
                return self.ask(caller, now);
            }
        }
    }

    /// Decides by those who were there when the caller arrived: the holder, and as many others as
    /// may wait.
    fn admits(&mut self, caller: usize) -> bool {
        let due_ns = self.callers[caller].due_ns;
        let left = self.left_ns.partition_point(|at| *at <= due_ns);
        let inside = self.admitted - left;
        let admits = self.rules.bound.is_none_or(|bound| inside <= bound as usize);
        self.admitted += usize::from(admits);
        admits
    }

    fn ask(&mut self, caller: usize, now: f64) {
        if !self.held && (self.waiting.is_empty() || self.overtakable) {
            self.acquire(caller, now);
        } else {
            self.waiting.push_back((caller, now));
        }
    }

    fn acquire(&mut self, caller: usize, now: f64) {
        self.held = true;
        self.holds += 1;
        let over = now > self.callers[caller].due_ns + self.rules.deadline_ns;
        // A caller whose deadline has passed gives the lock back at once.
        let (fate, hold_ns) = match self.rules.gives_up && over {
            true => (Fate::GaveUp, 0.0),
            false => (Fate::Served(now), self.lock.hold_ns),
        };
        self.callers[caller].fate = fate;
        self.schedule(now + hold_ns, Event::Release);
    }

    fn release(&mut self, now: f64) {
        self.held = false;
        self.left_ns.push(now);
        if let Some((_, since)) = self.waiting.front() {
            self.overtakable = unit(&mut self.rng) < self.lock.overtaken_share;
            let runs_ns = now + self.lock.hand_off.after(now - since);
            self.schedule(runs_ns, Event::Woken(self.holds));
        }
        // The thread that released the lock is still running.
        self.take(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN_ORDER: Rules = Rules { bound: None, deadline_ns: 1e3, gives_up: false };

    fn lock(overtaken_share: f64, threads: u32) -> OverloadedLock {
        let hand_off = HandOff::fixed(1.0).unwrap();
        OverloadedLock { hold_ns: 10.0, hand_off, overtaken_share, late_ns: 0.5, threads }
    }

    fn fates(lock: &OverloadedLock, rules: &Rules, due_ns: &[f64]) -> Vec<Fate> {
        let callers = simulate(lock, rules, due_ns, 1).unwrap();
        callers.into_iter().map(|caller| caller.fate).collect()
    }

    #[test]
    fn the_first_callers_are_served_as_worked_out_by_hand() {
        let due = [1.0, 2.0, 3.0, 40.0];
        // Each caller is noticed half a nanosecond late, and each hand-off takes one.
        let expected = [1.5, 12.5, 23.5, 40.5].map(Fate::Served);
        assert_eq!(fates(&lock(0.0, 3), &IN_ORDER, &due), expected);
        // With one thread, others wait in front, and nothing is handed over.
        let expected = [1.5, 11.5, 21.5, 40.5].map(Fate::Served);
        assert_eq!(fates(&lock(0.0, 1), &IN_ORDER, &due), expected);
        // The thread that releases the lock serves the third caller before the second one's thread
        // wakes up.
        let expected = [1.5, 22.5, 11.5, 40.5].map(Fate::Served);
        assert_eq!(fates(&lock(1.0, 2), &IN_ORDER, &due), expected);
    }

    #[test]
    fn callers_who_find_no_free_thread_wait_in_front() {
        let in_front = |threads| -> Vec<bool> {
            let callers = simulate(&lock(0.0, threads), &IN_ORDER, &[1.0, 2.0, 3.0, 40.0], 1);
            callers.unwrap().iter().map(|caller| caller.in_front).collect()
        };
        assert_eq!(in_front(1), [false, true, true, false]);
        assert_eq!(in_front(2), [false, false, true, false]);
        assert_eq!(in_front(3), [false; 4]);
    }

    #[test]
    fn callers_beyond_the_bound_are_refused_however_few_threads_there_are() {
        let due = [1.0, 2.0, 3.0, 4.0, 13.0];
        let rules = Rules { bound: Some(1), ..IN_ORDER };
        let refused = |threads| {
            let fates = fates(&lock(0.0, threads), &rules, &due);
            fates.iter().map(|fate| *fate == Fate::Refused).collect::<Vec<_>>()
        };
        for threads in [1, 2, 9] {
            assert_eq!(refused(threads), [false, false, true, true, false], "{threads}");
        }
        let none_may_wait = Rules { bound: Some(0), ..IN_ORDER };
        let fates = fates(&lock(0.0, 4), &none_may_wait, &due);
        assert_eq!(fates.iter().filter(|fate| **fate == Fate::Refused).count(), 3, "{fates:?}");
    }

    #[test]
    fn callers_give_up_in_front_of_the_lock_and_at_it() {
        let due = [1.0, 2.0, 3.0, 4.0];
        let rules = Rules { bound: None, deadline_ns: 15.0, gives_up: true };
        // The third gets the lock at 23.5, 20.5 after its arrival, and gives it back at once; the
        // fourth gets it a hand-off later.
        let expected = [Fate::Served(1.5), Fate::Served(12.5), Fate::GaveUp, Fate::GaveUp];
        assert_eq!(fates(&lock(0.0, 4), &rules, &due), expected);
        assert_eq!(fates(&lock(0.0, 1), &rules, &due)[2..], [Fate::GaveUp; 2]);
    }

    #[test]
    fn figures_out_of_range_are_refused() {
        let due = [1.0];
        for (lock, rules) in [
            (OverloadedLock { hold_ns: f64::NAN, ..lock(0.0, 1) }, IN_ORDER),
            (OverloadedLock { late_ns: -1.0, ..lock(0.0, 1) }, IN_ORDER),
            (lock(1.5, 1), IN_ORDER),
            (lock(0.0, 0), IN_ORDER),
            (lock(0.0, 1), Rules { deadline_ns: -1.0, ..IN_ORDER }),
        ] {
            assert!(simulate(&lock, &rules, &due, 1).is_err(), "{lock:?} {rules:?}");
        }
        assert!(simulate(&lock(0.0, 1), &IN_ORDER, &[f64::INFINITY], 1).is_err());
        assert_eq!(simulate(&lock(0.0, 1), &IN_ORDER, &[], 1), Ok(Vec::new()));
    }
}
