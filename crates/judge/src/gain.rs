//! Throughput that a program would gain if the queue of one lock vanished.
//!
//! The lock with the longest queue is not necessarily the bottleneck: threads that no longer wait
//! for it run into the next limit, which is another lock on their way or the CPUs (F. Zhou, Y. Gan,
//! S. Ma and Y. Wang, *wPerf: generic off-CPU analysis to identify bottleneck waiting events*, OSDI
//! 2018). Idle threads, which wait for work, do not count.
//!
//! If the CPUs are fully used, a lock also costs the CPU time that locking takes: system calls,
//! moving cache lines, failed attempts. This time cannot be measured exactly, so the gain is then a
//! range, or is not reported.

use threadtoll_stats::interval::Estimate;

/// The rest of the program, as seen over the whole run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surroundings<'a> {
    /// Mean number of threads that work: on a CPU, ready to run, in I/O, or asleep for a set time.
    /// Threads that wait for a lock, or idle, are not included.
    pub working: f64,
    /// 95% error of `working`, without the error of the queue: if samples see only some of the
    /// threads, the two errors are independent.
    pub working_within: f64,
    /// Like `working`, but only for threads that wait for the judged lock at times. Threads that
    /// never wait for it may serve those that do, and be held up with them.
    pub waiters_working: f64,
    /// Mean number of threads on a CPU, or waiting for one.
    pub on_cpu: Estimate,
    /// Mean number of threads known to be on a CPU; at most `on_cpu`.
    pub running: f64,
    /// Number of CPUs that the program may use.
    pub cpus: f64,
    /// Mean number of idle CPUs among `cpus`, if known.
    pub idle_cpus: Option<f64>,
    /// Mean number of the judged lock's users that are on a CPU or wait for one.
    pub users_on_cpu: f64,
    /// Share of time for which the judged lock's users wait for work, or for other threads by means
    /// other than a lock.
    pub users_at_rest: f64,
    /// True if users that hold the lock wait for something else that would not become faster.
    pub held_up_by_others: bool,
    /// Busiest of the other locks that this lock's waiters use.
    pub others: &'a [OtherLock],
    /// CPU time spent on locking.
    pub locking: Locking,
}

impl Surroundings<'_> {
    /// Returns `true` if something other than a lock may set the users' pace.
    pub(super) fn others_may_set_pace(&self) -> bool {
        self.held_up_by_others || self.users_at_rest >= AT_REST
    }
}

/// A lock, other than the judged one, that the judged lock's waiters use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherLock {
    /// Lower and upper bound of the share of the judged lock's waiters that also use this lock.
    pub share: [f64; 2],
    /// Share of time for which this lock is held or handed over, without the time for which its
    /// holder waits for the judged lock.
    pub busy: Estimate,
}

/// CPU time spent on taking and releasing locks, as a share of the program's CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Locking {
    /// Share according to the samples.
    pub seen: f64,
    /// Upper bound of the share.
    pub most: f64,
}

/// Maximum gain that is reported. If hardly any thread works, the ratio of waiting to working
/// threads means nothing.
const MAX_GAIN: f64 = 100.0;

/// Smallest assumed number of working threads, as a share of the mean, however long the queue may
/// be.
const LEAST_WORKING: f64 = 0.5;

/// Maximum ratio of the throughput at the upper end of a reported range to that at the lower end.
const MAX_RANGE: f64 = 4.0;

/// Maximum share of the CPU time that may count as locking.
const MAX_LOCKING: f64 = 0.99;

/// The lock's users are assumed to fill the CPUs if they are at least this share of the threads
/// that are on a CPU or wait for one.
const MAIN_USERS: f64 = 0.5;

/// If a lock's users wait for work or for other threads for at least this share of the time,
/// something else may set their pace, such as a timer, or clients that do not send requests any
/// faster. Without the lock's queue, the users might only wait longer there, and nothing would be
/// gained.
const AT_REST: f64 = 0.1;

/// Threads compete for CPUs if the number of threads on a CPU or waiting for one is at least this
/// fraction of the number of CPUs.
const FULL: f64 = 0.9;

/// Waiting is negligible if at most this many threads wait per working thread.
const LEAST_QUEUE: f64 = 0.01;

/// Maximum CPU time of an acquisition in seconds, on a virtual machine, including sleep and
/// wake-up.
const ACQUISITION_S: f64 = 20e-6;

/// Selects the value or an end of a limit's interval.
type End = fn(Estimate) -> f64;

impl Locking {
    /// Limits both shares by the number of acquisitions per second, which is known only for locks
    /// whose holds were timed.
    pub fn bounded_by(self, acquisitions_per_s: Option<f64>, on_cpu: f64) -> Locking {
        let bound = acquisitions_per_s.map_or(1.0, |per_s| per_s * ACQUISITION_S / on_cpu);
        Locking { seen: self.seen.min(bound), most: self.most.min(bound) }
    }
}

/// Gain in throughput, relative to the present, if nobody waited for a lock and the
/// [freed](super::chain::freed) threads went on: 0.2 means a fifth more. `None` if nothing useful
/// can be said: other threads fill the CPUs, or the lock may cost almost any amount of CPU time.
///
/// The freed threads would work in addition to the working threads, as far as the other limits
/// allow.
pub fn gain(freed: Estimate, program: Surroundings<'_>) -> Option<Estimate> {
    let Surroundings { working, on_cpu, cpus, others, users_on_cpu, .. } = program;
    let are_full = on_cpu.value >= FULL * cpus;
    // Factor by which throughput could grow on the idle CPUs. Some CPUs may be idle while threads
    // wait for another CPU.
    let idle_cpus = program.idle_cpus.unwrap_or(0.0);
    let unused = 1.0 + idle_cpus / program.running.max(f64::MIN_POSITIVE);
    // Other programs may not give way on CPUs that they use.
    let least_room = if program.idle_cpus.is_some() { unused } else { f64::INFINITY };
    let is_waited_for = freed.high > LEAST_QUEUE * working;
    // Freed threads would only take CPU time from the other threads, which fill the CPUs.
    let by_others = users_on_cpu < MAIN_USERS * on_cpu.value;
    if are_full && is_waited_for && by_others && idle_cpus < (1.0 - FULL) * cpus {
        return None;
    }
    // A lock that hardly anybody waits for takes hardly any CPU time from other threads.
    let locking = if are_full && is_waited_for { program.locking } else { Locking::default() };
    let average = freed.value;
    let throughput = |working: f64, freed: f64, locking: f64, least_in_common: bool, end: End| {
        let within = program.working_within;
        let more = end(Estimate { value: 0.0, low: -within, high: within });
        // The sum of working and waiting threads is fixed: a thread that does not wait works.
        let working = (working + average - freed + more).max(LEAST_WORKING * working);
        let freed = freed.max(0.0);
        let working = working.max(freed / MAX_GAIN).max(f64::MIN_POSITIVE);
        let all = match are_full {
            true if freed > 0.0 => {
                ((working + freed) / working).min(unused) / (1.0 - locking.min(MAX_LOCKING))
            }
            true => 1.0,
            false => {
                // The less the CPUs are used now, the more room there is.
                let limit = cpus / end(on_cpu).max(f64::MIN_POSITIVE);
                ((working + freed) / working).min(limit.max(unused))
            }
        };
        let behind = |lock: &OtherLock| {
            let share = lock.share[usize::from(!least_in_common)].clamp(0.0, 1.0);
            let limit = 1.0 / end(lock.busy).clamp(f64::MIN_POSITIVE, 1.0);
            share * all.min(limit) + (1.0 - share) * all
        };
        others.iter().map(behind).fold(all, f64::min).clamp(1.0, MAX_GAIN + 1.0)
    };
    let value = throughput(working, freed.value, locking.seen, false, |limit| limit.value);
    let low = match program.others_may_set_pace() {
        true => 1.0,
        false => {
            let low = throughput(working, freed.low, 0.0, false, |limit| limit.high);
            low.min(least_room).min(value)
        }
    };
    let high = |working| throughput(working, freed.high, locking.most, true, |limit| limit.low);
    let users = match program.others_may_set_pace() {
        true => working,
        false => program.waiters_working.min(working),
    };
    let high = high(working).max(high(users)).max(value);
    let untold = locking.most > 1.0 - 1.0 / MAX_RANGE && high > MAX_RANGE * low;
    (!untold).then_some(Estimate { value: value - 1.0, low: low - 1.0, high: high - 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Surroundings<'_> = Surroundings {
        working: 4.0,
        working_within: 0.0,
        waiters_working: 4.0,
        on_cpu: Estimate { value: 0.1, low: 0.1, high: 0.1 },
        running: 0.1,
        cpus: 8.0,
        idle_cpus: None,
        users_on_cpu: 0.1,
        users_at_rest: 0.0,
        held_up_by_others: false,
        others: &[],
        locking: Locking { seen: 0.0, most: 0.0 },
    };

    const FULL_CPUS: Surroundings<'_> = Surroundings {
        working: 14.0,
        on_cpu: exact(13.0),
        running: 8.0,
        users_on_cpu: 13.0,
        ..IDLE
    };

    const fn exact(value: f64) -> Estimate {
        Estimate { value, low: value, high: value }
    }

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
        let others = |share, busy| [OtherLock { share: [share, share], busy: exact(busy) }];
        let other_lock = value(4.0, Surroundings { others: &others(1.0, 0.8), ..IDLE });
        assert!((other_lock - 0.25).abs() < 1e-12);
        let full_cpus = value(4.0, FULL_CPUS);
        assert_eq!(full_cpus, 0.0);
        // A lock does not limit threads that do not use it.
        assert_eq!(value(4.0, Surroundings { others: &others(0.0, 1.0), ..IDLE }), 1.0);
        assert_eq!(value(4.0, Surroundings { others: &others(0.5, 1.0), ..IDLE }), 0.5);
    }

    #[test]
    fn a_limit_passes_its_own_error_on() {
        let on_cpu = Estimate { value: 6.0, low: 5.0, high: 6.4 };
        let by_cpus = gain(exact(8.0), Surroundings { on_cpu, ..IDLE }).unwrap();
        let rounded = [by_cpus.low, by_cpus.value, by_cpus.high].map(|end| (end * 100.0).round());
        assert_eq!(rounded, [25.0, 33.0, 60.0]);
        let few_seen = gain(exact(2.0), Surroundings { working_within: 1.0, ..IDLE }).unwrap();
        let rounded = [few_seen.low, few_seen.value, few_seen.high];
        assert_eq!(rounded.map(|end| (end * 100.0).round()), [40.0, 50.0, 67.0]);
        let busy = Estimate { value: 0.8, low: 0.5, high: 1.0 };
        let others = [OtherLock { share: [1.0; 2], busy }];
        let by_lock = gain(exact(8.0), Surroundings { others: &others, ..IDLE }).unwrap();
        assert_eq!((by_lock.low, by_lock.value, by_lock.high), (0.0, 0.25, 1.0));
    }

    #[test]
    fn threads_that_were_not_all_seen_leave_the_limit_open() {
        let others = [OtherLock { share: [0.0, 1.0], busy: exact(1.0) }];
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
        // With idle CPUs, the cost of locking does not matter.
        let idle = Surroundings { locking: Locking { seen: 0.2, most: 1.0 }, ..IDLE };
        assert_eq!(gain(Estimate::exact(4.0), idle).unwrap(), Estimate::exact(1.0));
    }

    #[test]
    fn threads_that_wait_for_a_cpu_while_others_idle_leave_room() {
        let idle = |idle_cpus| {
            let running = 8.0 - idle_cpus;
            Surroundings { running, idle_cpus: Some(idle_cpus), ..FULL_CPUS }
        };
        assert_eq!(value(7.0, idle(0.0)), 0.0);
        assert!((value(7.0, idle(2.0)) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(value(7.0, idle(4.0)), 0.5);
        // Idle CPUs run the freed threads, even if other threads use all remaining CPUs.
        let of_others = Surroundings { users_on_cpu: 1.0, ..idle(4.0) };
        assert_eq!(value(7.0, of_others), 0.5);
    }

    #[test]
    fn cpus_that_other_threads_fill_leave_the_gain_open() {
        let others = Surroundings { users_on_cpu: 1.0, ..FULL_CPUS };
        assert_eq!(gain(Estimate::exact(2.0), others), None);
        assert_eq!(gain(Estimate::exact(0.0), others), Some(Estimate::exact(0.0)));
    }

    #[test]
    fn threads_that_do_not_use_the_lock_may_be_held_up_with_its_users() {
        // For example, half of the working threads wait for requests of the other half.
        let gained = gain(exact(4.0), Surroundings { waiters_working: 2.0, ..IDLE }).unwrap();
        assert_eq!((gained.low, gained.value, gained.high), (1.0, 1.0, 2.0));
    }

    #[test]
    fn users_whose_pace_others_set_may_gain_nothing() {
        let gain = |users_at_rest| {
            let queue = Estimate { value: 2.0, low: 1.0, high: 4.0 };
            gain(queue, Surroundings { users_at_rest, ..IDLE }).unwrap()
        };
        assert_eq!(gain(0.65), Estimate { low: 0.0, ..gain(0.0) });
        assert_eq!(gain(0.05), gain(0.0));
    }

    #[test]
    fn cpus_that_other_programs_use_may_leave_no_room() {
        let by_others = Surroundings { running: 2.0, on_cpu: exact(2.0), ..IDLE };
        let gained = |idle_cpus| gain(exact(4.0), Surroundings { idle_cpus, ..by_others }).unwrap();
        assert_eq!((gained(None).low, gained(None).value), (1.0, 1.0));
        assert_eq!((gained(Some(0.0)).low, gained(Some(0.0)).value), (0.0, 1.0));
        assert_eq!(gained(Some(6.0)), gained(None));
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
        let still = Surroundings { working: 0.0, on_cpu: exact(0.0), ..IDLE };
        assert_eq!(value(0.0, still), 0.0);
        assert!((value(3.0, still) - MAX_GAIN).abs() < 1e-9);
    }
}
