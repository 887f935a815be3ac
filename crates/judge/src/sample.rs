//! One sample of a lock.

/// One sample of a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LockSample {
    /// True if the lock is held; `None` if its word was not read.
    pub held: Option<bool>,
    /// Number of waiting threads, including those being woken but not the holder: the number seen,
    /// multiplied by the ratio of all threads to the threads read. `None` if no thread was read.
    pub queue: Option<f64>,
    /// Number of threads that were woken for the lock and do not run yet, while no thread holds it;
    /// scaled like the queue. `None` if runnable threads cannot be distinguished from running ones.
    pub waking: Option<f64>,
    /// Weight of one waiter: the ratio of all threads to the threads read.
    pub waiter: f64,
    /// Time that the sample stands for, in seconds: the number of due instants that it covers,
    /// divided by their rate.
    pub time: f64,
    /// True if the sampler waited for a CPU until a thread of the program gave it up.
    pub late: bool,
}
