//! One sample of a lock.

/// One sample of a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LockSample {
    /// True if the lock is held; `None` if its word was not read.
    pub held: Option<bool>,
    /// Number of waiting threads, including those being woken, but not the holder. If only some
    /// threads were read, the number is scaled up to all threads. `None` if no thread was read.
    pub queue: Option<f64>,
    /// Number of threads that were woken for the lock but do not run yet, while no thread holds the
    /// lock; scaled like the queue. `None` if runnable threads cannot be told from running ones.
    pub waking: Option<f64>,
    /// Weight of one waiter: number of all threads divided by the number of threads read.
    pub waiter: f64,
    /// Time in seconds for which the sample stands: number of scheduled instants that it covers,
    /// divided by their rate.
    pub time: f64,
    /// True if the sampler had to wait for a CPU until a thread of the program gave one up.
    pub late: bool,
}
