//! Throughput that a program would gain without the queue of one lock.
//!
//! The longest queue is not the worst one: threads that no longer wait for this lock run into the
//! next limit, which is another lock or the CPUs (F. Zhou, Y. Gan, S. Ma and Y. Wang, *wPerf:
//! generic off-CPU analysis to identify bottleneck waiting events*, OSDI 2018). Threads that wait
//! for work, idle, are no part of the account.

use super::interval::Estimate;

/// The rest of the program, as seen over the whole run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surroundings {
    /// Mean number of threads that work: on a CPU, ready to run, in I/O, or asleep for a time. Not
    /// those that wait for a lock or, idle, for work.
    pub working: f64,
    /// Mean number of threads on a CPU.
    pub on_cpu: f64,
    /// CPUs that the program may use.
    pub cpus: f64,
    /// Largest share of time for which another lock is held or handed over.
    pub busiest_other: f64,
}

/// Largest gain: with next to no thread at work, the ratio to those that wait means nothing.
const MAX_GAIN: f64 = 100.0;

/// Throughput that the program would gain if nobody waited for a lock with this mean queue,
/// relative to the present: 0.2 is a fifth more.
///
/// Threads that work and those that wait would all work, as far as the other limits allow.
pub fn gain(queue: Estimate, program: Surroundings) -> Estimate {
    let limits = [
        program.cpus / program.on_cpu.max(f64::MIN_POSITIVE),
        1.0 / program.busiest_other.clamp(f64::MIN_POSITIVE, 1.0),
    ];
    let limit = limits.into_iter().fold(MAX_GAIN + 1.0, f64::min).max(1.0);
    queue.map(|queue| {
        let queue = queue.max(0.0);
        let working = program.working.max(queue / MAX_GAIN).max(f64::MIN_POSITIVE);
        ((working + queue) / working).min(limit) - 1.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Surroundings =
        Surroundings { working: 4.0, on_cpu: 0.1, cpus: 8.0, busiest_other: 0.1 };

    #[test]
    fn waiting_threads_would_work() {
        let gained = gain(Estimate { value: 1.0, low: 0.0, high: 4.0 }, IDLE);
        assert_eq!((gained.low, gained.value, gained.high), (0.0, 0.25, 1.0));
    }

    #[test]
    fn another_limit_takes_over() {
        let queue = Estimate::exact(4.0);
        let other_lock = gain(queue, Surroundings { busiest_other: 0.8, ..IDLE });
        assert!((other_lock.value - 0.25).abs() < 1e-12);
        let full_cpus = gain(queue, Surroundings { on_cpu: 8.0, ..IDLE });
        assert_eq!(full_cpus.value, 0.0);
    }

    #[test]
    fn a_program_that_stands_still_gains_nothing_or_a_lot() {
        let still = Surroundings { working: 0.0, on_cpu: 0.0, cpus: 1.0, busiest_other: 0.0 };
        assert_eq!(gain(Estimate::exact(0.0), still).value, 0.0);
        assert!((gain(Estimate::exact(3.0), still).value - MAX_GAIN).abs() < 1e-9);
    }
}
