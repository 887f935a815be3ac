//! Throughput that a program would gain without the queue of one lock.
//!
//! The longest queue is not the worst one: threads that no longer wait for this lock run into the
//! next limit, which is another lock that they pass or the CPUs (F. Zhou, Y. Gan, S. Ma and
//! Y. Wang, *wPerf: generic off-CPU analysis to identify bottleneck waiting events*, OSDI 2018).
//! Threads that wait for work, idle, are no part of the account.
//!
//! Where the CPUs are full, a lock costs what it takes of them, too: system calls, cache lines that
//! move, tries in vain. Nothing measures that exactly, so that the gain is a range, or not told.

use threadtoll_stats::interval::Estimate;

/// The rest of the program, as seen over the whole run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surroundings<'a> {
    /// Mean number of threads that work: on a CPU, ready to run, in I/O, or asleep for a time. Not
    /// those that wait for a lock or, idle, for work.
    pub working: f64,
    /// Mean number of threads on a CPU, or waiting for one.
    pub on_cpu: f64,
    /// CPUs that the program may use.
    pub cpus: f64,
    /// Mean number of threads on a CPU, or waiting for one, of those that use the judged lock.
    pub users_on_cpu: f64,
    /// The busiest of the locks that the threads pass that wait for this one.
    pub others: &'a [OtherLock],
    /// CPU time that goes into locking.
    pub locking: Locking,
}

/// Another lock that threads pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherLock {
    /// Share of the threads waiting for the judged lock that pass this one, too: at least, and at
    /// most.
    pub share: [f64; 2],
    /// Share of time for which it is held or handed over, but for the time in which its holder
    /// waits for the judged lock.
    pub busy: f64,
}

/// CPU time that goes into taking and freeing locks, as a share of the program's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Locking {
    /// As seen.
    pub seen: f64,
    /// At most.
    pub most: f64,
}

/// Largest gain: with next to no thread at work, the ratio to those that wait means nothing.
const MAX_GAIN: f64 = 100.0;

/// Least part of the threads that work by their mean number which may work, where the queue is not
/// known exactly.
const LEAST_WORKING: f64 = 0.5;

/// Largest ratio between the throughputs at the ends of a range for which it is told.
const MAX_RANGE: f64 = 4.0;

/// Largest share of the CPU time that goes into locking.
const MAX_LOCKING: f64 = 0.99;

/// Part of the threads on a CPU, or waiting for one, that the users of a lock are if it is they who
/// fill the CPUs.
const MAIN_USERS: f64 = 0.5;

/// Share of its CPUs that a program's threads take, or wait for, from which they are full.
const FULL: f64 = 0.9;

/// Threads that wait for a lock, relative to those that work, up to which it is hardly waited for.
const LEAST_QUEUE: f64 = 0.01;

/// CPU time that an acquisition takes at most: to sleep and to be woken, on a virtual machine.
const ACQUISITION_S: f64 = 20e-6;

impl Locking {
    /// Bounded by the number of acquisitions a second, for locks whose holds were timed.
    pub fn bounded_by(self, acquisitions_per_s: Option<f64>, on_cpu: f64) -> Locking {
        let bound = acquisitions_per_s.map_or(1.0, |per_s| per_s * ACQUISITION_S / on_cpu);
        Locking { seen: self.seen.min(bound), most: self.most.min(bound) }
    }
}

/// Throughput that the program would gain if nobody waited for a lock, by which so many threads
/// are [freed](super::chain::freed), relative to the present: 0.2 is a fifth more. `None` if the
/// lock may cost anything.
///
/// Threads that work and those that wait would all work, as far as the other limits allow.
pub fn gain(freed: Estimate, program: Surroundings<'_>) -> Option<Estimate> {
    let Surroundings { working, on_cpu, cpus, others, users_on_cpu, .. } = program;
    let are_full = on_cpu >= FULL * cpus;
    let is_waited_for = freed.high > LEAST_QUEUE * working;
    // Other threads fill the CPUs: those that wait here would take from them.
    if are_full && is_waited_for && users_on_cpu < MAIN_USERS * on_cpu {
        return None;
    }
    // A lock that hardly anybody waits for takes hardly any CPU time from the others.
    let locking = if are_full && is_waited_for { program.locking } else { Locking::default() };
    let average = freed.value;
    let throughput = |freed: f64, locking: f64, least_in_common: bool| {
        // Of so many threads, those that do not wait work.
        let working = (working + average - freed).max(LEAST_WORKING * working);
        let freed = freed.max(0.0);
        let working = working.max(freed / MAX_GAIN).max(f64::MIN_POSITIVE);
        let all = match are_full {
            true if freed > 0.0 => 1.0 / (1.0 - locking.min(MAX_LOCKING)),
            true => 1.0,
            false => ((working + freed) / working).min(cpus / on_cpu.max(f64::MIN_POSITIVE)),
        };
        let behind = |lock: &OtherLock| {
            let share = lock.share[usize::from(!least_in_common)].clamp(0.0, 1.0);
            let limit = 1.0 / lock.busy.clamp(f64::MIN_POSITIVE, 1.0);
            share * all.min(limit) + (1.0 - share) * all
        };
        others.iter().map(behind).fold(all, f64::min).clamp(1.0, MAX_GAIN + 1.0)
    };
    let value = throughput(freed.value, locking.seen, false);
    let low = throughput(freed.low, 0.0, false).min(value);
    let high = throughput(freed.high, locking.most, true).max(value);
    let untold = locking.most > 1.0 - 1.0 / MAX_RANGE && high > MAX_RANGE * low;
    (!untold).then_some(Estimate { value: value - 1.0, low: low - 1.0, high: high - 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Surroundings<'_> = Surroundings {
        working: 4.0,
        on_cpu: 0.1,
        cpus: 8.0,
        users_on_cpu: 0.1,
        others: &[],
        locking: Locking { seen: 0.0, most: 0.0 },
    };

    const FULL_CPUS: Surroundings<'_> =
        Surroundings { working: 14.0, on_cpu: 13.0, users_on_cpu: 13.0, ..IDLE };

    fn value(queue: f64, program: Surroundings<'_>) -> f64 {
        gain(Estimate::exact(queue), program).unwrap().value
    }

    #[test]
    fn waiting_threads_would_work() {
        let gained = gain(Estimate { value: 1.0, low: 0.0, high: 4.0 }, IDLE).unwrap();
        assert_eq!((gained.low, gained.value, gained.high), (0.0, 0.25, 2.0));
    }

    #[test]
    fn another_limit_takes_over() {
        let others = |share, busy| [OtherLock { share: [share, share], busy }];
        let other_lock = value(4.0, Surroundings { others: &others(1.0, 0.8), ..IDLE });
        assert!((other_lock - 0.25).abs() < 1e-12);
        let full_cpus = value(4.0, FULL_CPUS);
        assert_eq!(full_cpus, 0.0);
        // Of threads that do not pass it, it is no limit.
        assert_eq!(value(4.0, Surroundings { others: &others(0.0, 1.0), ..IDLE }), 1.0);
        assert_eq!(value(4.0, Surroundings { others: &others(0.5, 1.0), ..IDLE }), 0.5);
    }

    #[test]
    fn threads_that_were_not_all_seen_leave_the_limit_open() {
        let others = [OtherLock { share: [0.0, 1.0], busy: 1.0 }];
        let gained = gain(Estimate::exact(4.0), Surroundings { others: &others, ..IDLE }).unwrap();
        assert_eq!((gained.low, gained.value, gained.high), (0.0, 0.0, 1.0));
    }

    #[test]
    fn locking_that_fills_the_cpus_is_given_back() {
        let locking = |seen, most| {
            let full = Surroundings { locking: Locking { seen, most }, ..FULL_CPUS };
            gain(Estimate { value: 6.0, low: 5.0, high: 7.0 }, full)
        };
        let some = locking(0.2, 0.5).unwrap();
        assert!((some.value - 0.25).abs() < 1e-12, "{some:?}");
        assert!(some.low == 0.0 && (some.high - 1.0).abs() < 1e-12, "{some:?}");
        assert_eq!(locking(0.3, 1.0), None);
        // With idle CPUs, it does not matter.
        let idle = Surroundings { locking: Locking { seen: 0.2, most: 1.0 }, ..IDLE };
        assert_eq!(gain(Estimate::exact(4.0), idle).unwrap(), Estimate::exact(1.0));
    }

    #[test]
    fn cpus_that_other_threads_fill_leave_the_gain_open() {
        let others = Surroundings { users_on_cpu: 1.0, ..FULL_CPUS };
        assert_eq!(gain(Estimate::exact(2.0), others), None);
        assert_eq!(gain(Estimate::exact(0.0), others), Some(Estimate::exact(0.0)));
    }

    #[test]
    fn few_acquisitions_cannot_cost_much() {
        let locking = Locking { seen: 0.3, most: 1.0 };
        let bounded = |per_s| locking.bounded_by(per_s, 2.0);
        assert_eq!(bounded(None), locking);
        assert_eq!(bounded(Some(1_000.0)), Locking { seen: 0.01, most: 0.01 });
        assert_eq!(bounded(Some(1e6)), locking);
    }

    #[test]
    fn a_program_that_stands_still_gains_nothing_or_a_lot() {
        let still = Surroundings { working: 0.0, on_cpu: 0.0, ..IDLE };
        assert_eq!(value(0.0, still), 0.0);
        assert!((value(3.0, still) - MAX_GAIN).abs() < 1e-9);
    }
}
