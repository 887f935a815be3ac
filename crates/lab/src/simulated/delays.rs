//! Delays of simulated open loops, with known truth.

/// Delays of the queues of open loops. Where a service is given, nothing else slows them down.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delays {
    /// Time in which the receiver takes a message.
    pub service: Option<Service>,
    /// Time that the sender loses in the middle of each block, in nanoseconds.
    pub sender_stalls_ns: u64,
    /// Time that the receiver loses in the middle of each block, in nanoseconds.
    pub receiver_sleeps_ns: u64,
}

/// Time in which a receiver takes a message, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// Always this.
    Fixed(f64),
    /// Exponential, with this mean.
    Exponential(f64),
}
