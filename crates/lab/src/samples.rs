//! Raw samples of a block, by kind of cell, before they are summarised.

use threadtoll_model::queue_trace::Excerpt;
use threadtoll_record::{BlockCost, ContentionBlock, Disturbance, IdleBlock, Lost, ResidentBytes};

/// Samples of a block, with its counters.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockSamples {
    /// Counters, common to all kinds.
    pub counters: Counters,
    /// Samples, specific to the kind.
    pub samples: Samples,
}

/// Resource use of a block's threads, and disturbances of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// CPU time and context switches of all threads.
    pub cost: BlockCost,
    /// Number of round trips, messages or acquisitions that the cost covers: those of the block,
    /// and a few before and after it.
    pub operations: u64,
    /// Disturbances, whose effect on the block has not been judged yet.
    pub disturbance: Disturbance,
    /// True if the ends spin, so that a gap in their stamps is lost time.
    pub spins: bool,
    /// True if the measured code allocates memory as it runs and so causes page faults itself.
    pub grows: bool,
}

/// Samples by kind of cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Samples {
    /// Round trips.
    Exchange(RoundTrips),
    /// Messages in one direction.
    Stream(Stretches),
    /// Messages in one direction, shared by receivers.
    Shared(SharedMessages),
    /// Messages that an open loop sends, each at its due time.
    OpenLoop(Deliveries),
    /// Calls on a queue that holds many messages.
    Depth(DepthCalls),
    /// Sends into a flooded queue.
    SendCalls(SendCalls),
    /// Acquisitions of a lock.
    Contention(Acquisitions),
}

impl Samples {
    pub(crate) fn take_excerpt(&mut self) -> Option<Excerpt> {
        match self {
            Samples::Contention(acquisitions) => acquisitions.excerpt.take(),
            _ => None,
        }
    }
}

/// Times between consecutive stamps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretches {
    /// Lengths in picoseconds, in order.
    pub lengths_ps: Vec<u64>,
    /// Number of round trips or messages per stretch.
    pub operations_each: u64,
}

/// Round trips between two ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundTrips {
    /// Stretches of round trips; in a stamped block, one round trip each.
    pub stretches: Stretches,
    /// Start of the first stretch, in seconds since the backend was created.
    pub began_s: f64,
    /// CPU of the leading end at each stamp, or a single entry for all stamps. Empty if a program
    /// in another language measured the stretches, whose order is then unknown.
    pub lead_cpus: Vec<u32>,
    /// CPU of the following end at the arrival of each message; empty if not requested.
    pub follow_cpus: Vec<u32>,
    /// One-way times in picoseconds, both directions, possibly negative; empty if not stamped.
    pub one_way_ps: Vec<i64>,
    /// Bound on the disagreement between the two CPUs' clocks, if one-way times were stamped.
    pub clock_bound_ns: f64,
}

/// Messages of an open loop, in order. Times are in picoseconds since the backend was created.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deliveries {
    /// Due time of each message.
    pub due_ps: Vec<u64>,
    /// Time at which each send call could have begun if the generator itself had lost no time.
    pub ready_ps: Vec<u64>,
    /// Time at which each send call began.
    pub sent_ps: Vec<u64>,
    /// Time at which each send call returned.
    pub after_ps: Vec<u64>,
    /// Time at which each message was received.
    pub received_ps: Vec<u64>,
    /// Number of warm-up messages at the beginning, which do not count.
    pub lead: usize,
    /// Delivery times of the chatty senders' messages, by sender, if there are such senders. The
    /// lists above then contain only the important messages.
    pub chatty: Option<Vec<Vec<u64>>>,
    /// Number of messages per burst, if messages come in bursts.
    pub burst: Option<usize>,
    /// CPU time of the receiver plus time in send calls, over all messages, in nanoseconds.
    pub busy_ns: u64,
    /// Number of messages that `busy_ns` covers, if it differs from the length of `due_ps`.
    pub busy_messages: Option<u64>,
    /// Counts of lost messages, which are missing from the lists above; `None` if no message may be
    /// lost.
    pub lost: Option<Lost>,
    /// Idle states of the receiver's CPU, if messages are rare.
    pub idle: Option<IdleBlock>,
    /// CPU of the receiver.
    pub cpu: u32,
    /// Bound on the disagreement between the CPUs' clocks, if known.
    pub clock_bound_ns: Option<f64>,
}

/// Messages that several receivers share among themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedMessages {
    /// Time from the first send call until the last receiver was done.
    pub elapsed_ps: u64,
    /// Number of messages by receiver.
    pub received: Vec<u64>,
    /// True if each receiver has a queue of its own.
    pub bundle: bool,
}

/// Calls on a queue that holds many messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DepthCalls {
    /// Lengths of stretches of send calls, in picoseconds.
    pub send_ps: Vec<u64>,
    /// Lengths of stretches of receive calls, in picoseconds.
    pub receive_ps: Vec<u64>,
    /// Number of calls in each stretch.
    pub calls_each: u64,
    /// Time from the first message until the queue was drained.
    pub elapsed_ps: u64,
    /// Memory of the process, if the kernel reports it.
    pub resident_bytes: Option<ResidentBytes>,
}

/// Sends into a flooded queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SendCalls {
    /// The calls.
    pub calls: Vec<Waited>,
    /// Time from the beginning of the first call to the end of the last.
    pub elapsed_ps: u64,
    /// Messages that were lost.
    pub lost: Lost,
}

/// Acquisitions of a lock by all threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Acquisitions {
    /// Figures that are written to files.
    pub block: ContentionBlock,
    /// Length of the observed interval.
    pub elapsed_ns: u64,
    /// All waits; empty if waits were not stamped.
    pub waits: Vec<Waited>,
    /// Times of the first acquisitions, in nanoseconds, if they were stamped and there are several
    /// threads.
    pub excerpt: Option<Excerpt>,
}

impl Acquisitions {
    /// Work per nanosecond.
    pub(crate) fn rate(&self) -> f64 {
        self.block.work.get() / self.elapsed_ns as f64
    }
}

/// A wait for a lock, or a send call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waited {
    /// Length in picoseconds.
    pub ps: u64,
    /// Time at which the wait or call ended, in seconds since the backend was created.
    pub at_s: f64,
    /// Intended CPU of the thread.
    pub cpu: u32,
}
