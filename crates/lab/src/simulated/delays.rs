//! Delays of known length in simulated open loops.

/// Delays of queues in open loops. If a service time is given, nothing else makes these queues
/// slower.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delays {
    /// Time that the receiver takes for each message.
    pub service: Option<Service>,
    /// Time that the sender loses in the middle of each block, in nanoseconds.
    pub sender_stalls_ns: u64,
    /// Time that the receiver loses in the middle of each block, in nanoseconds.
    pub receiver_sleeps_ns: u64,
}

/// Time that a receiver takes for each message, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// Constant.
    Fixed(f64),
    /// Exponentially distributed, with this mean.
    Exponential(f64),
}
