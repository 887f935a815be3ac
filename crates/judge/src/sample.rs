//! One sample of a lock.

/// One sample of a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LockSample {
    /// `true` if the lock is held; `None` if its word was not read.
    pub held: Option<bool>,
    /// Number of waiting threads, including those being woken but not the holder: the number seen,
    /// scaled up by the ratio of all threads to those read. `None` if no thread was read.
    pub queue: Option<f64>,
    /// Number of threads woken for the lock that do not run yet while no thread holds it, scaled
    /// like the queue; `None` if runnable threads cannot be distinguished from running ones.
    pub waking: Option<f64>,
    /// Weight of one waiter: the ratio of all threads to those read.
    pub waiter: f64,
    /// Time that the sample stands for: its number of due instants divided by their rate.
    pub time: f64,
    /// True if the sampler waited for a CPU until a thread of the program gave it up.
    pub late: bool,
}
