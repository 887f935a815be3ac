//! One sample of a lock.

/// One sample of a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The lock is held; `None` if its word was not read.
    pub held: Option<bool>,
    /// Threads waiting, those being woken included, the holder not: those seen, times the threads
    /// over the threads looked at. `None` if no thread was looked at.
    pub queue: Option<f64>,
    /// Threads woken for the lock that do not run yet, while nobody holds it, weighted as the
    /// queue; `None` where runnable threads are not told from running ones.
    pub waking: Option<f64>,
    /// Weight of one waiter: threads over threads looked at.
    pub waiter: f64,
    /// Time that the sample stands for: the instants that it answers for over their rate.
    pub time: f64,
    /// The sampler waited for a CPU until a thread of the program let go of it.
    pub late: bool,
}
