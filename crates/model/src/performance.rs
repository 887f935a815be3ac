use crate::Load;

/// Long-run figures of threads and locks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Performance {
    /// Number of tasks (each a hold and a think time) that all threads together finish per second.
    pub throughput_per_s: f64,
    /// Throughput relative to one thread alone.
    pub speedup: f64,
    /// Mean number of held locks: with one lock, the share of time for which it is held. Hand-offs
    /// do not count.
    pub utilisation: f64,
    /// Mean number of threads that wait for any of the locks or are being woken, without holders.
    pub queue_mean: f64,
    /// Mean number of threads that wait for a lock, as seen by a thread that has just acquired it.
    pub queue_on_entry: f64,
    /// Mean time from requesting a lock to acquiring it, in nanoseconds.
    pub wait_ns: f64,
    /// Share of the threads' time spent waiting for a lock, 0 to 1.
    pub wait_share: f64,
}

impl Performance {
    /// Derives all figures, by Little's law, from the three that each model computes.
    pub(crate) fn new(
        load: Load,
        threads: u32,
        per_ns: f64,
        queue_mean: f64,
        queue_on_entry: f64,
    ) -> Self {
        let waiting = queue_mean.max(0.0);
        Self {
            throughput_per_s: per_ns * 1e9,
            speedup: per_ns * load.cycle_ns(),
            utilisation: per_ns * load.hold_ns(),
            queue_mean: waiting,
            queue_on_entry: queue_on_entry.max(0.0),
            wait_ns: waiting / per_ns,
            wait_share: waiting / f64::from(threads),
        }
    }
}
