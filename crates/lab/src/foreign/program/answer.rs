//! A program's answers to `block`, checked against themselves and against the time that it took.

mod deliveries;
mod lines;

use std::time::Duration;

use threadtoll_record::StrikeReason;

use super::talk::{Fault, Limits, Listening};
use lines::Lines;

pub(crate) use deliveries::{Besides, Bursts, Chatty, Deliveries};
pub(crate) use lines::Tally;
pub(super) use lines::{error, said};

/// A program stamps with the clock that it is timed by; its figures are rounded.
const ROUNDING: f64 = 1.01;
/// Least share of a block that its round trips take together.
const LEAST_COVERED: f64 = 0.5;

/// Limits of the answer to `block`.
pub(super) fn limits(time: Duration) -> Limits {
    Limits { line: 4096, answer: 64 << 20, time }
}

/// The kind of answer that a block has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Question {
    /// Round trips.
    RoundTrips,
    /// Messages as fast as possible.
    Stream,
    /// As many messages as possible, shared by this many receivers.
    Shared { receivers: u64 },
    /// Messages that are due at this rate.
    Deliveries { per_s: f64, besides: Besides },
    /// Send and receive calls on a queue that holds this many messages.
    Calls { depth: u64 },
    /// Send calls into a flooded queue.
    SendCalls,
    /// This many tasks of this many threads.
    Pool { tasks: u64, threads: u32 },
}

/// A block, as a program measured it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// Round trips.
    RoundTrips {
        /// Those with a stamp each.
        stamped: Tally,
        /// Number of those without.
        others: u64,
        /// Their mean.
        mean_ns: f64,
    },
    /// Messages as fast as possible.
    Stream {
        /// Their number.
        messages: u64,
        /// Messages per second.
        rate_per_s: f64,
    },
    /// As many messages as possible, shared by receivers.
    Shared {
        /// Time from the first send call until the last receiver was done.
        elapsed_ns: u64,
        /// Their number, by receiver.
        received: Vec<u64>,
        /// True if each receiver has a queue of its own.
        bundle: bool,
    },
    /// Messages that were sent when they were due.
    Deliveries(Deliveries),
    /// Calls on a queue that holds many messages.
    Calls {
        /// Number of send calls that were timed, and of receive calls.
        count: u64,
        /// Median of the send calls, and of the receive calls.
        send_ns: f64,
        receive_ns: f64,
        /// Time from the first message until the queue was drained.
        elapsed_ns: u64,
        /// All messages of the block.
        messages: u64,
    },
    /// Send calls into a flooded queue.
    SendCalls {
        /// Their times.
        calls: Tally,
        /// Time from the begin of the first one to the end of the last one.
        elapsed_ns: u64,
        /// Messages of all senders.
        messages: u64,
    },
    /// Tasks of a pool.
    Pool {
        /// Their number.
        tasks: u64,
        /// Time for all of them.
        elapsed_ns: u64,
        /// Mean number of threads still waiting when one has just acquired the lock.
        queue_on_entry_mean: f64,
    },
}

impl Answer {
    /// Messages, round trips or tasks of the block.
    pub(crate) fn operations(&self) -> u64 {
        match self {
            Answer::RoundTrips { stamped, others, .. } => stamped.count() + others,
            Answer::Stream { messages, .. } => *messages,
            Answer::Shared { received, .. } => received.iter().sum(),
            Answer::Deliveries(deliveries) => deliveries.sent,
            Answer::Calls { messages, .. } | Answer::SendCalls { messages, .. } => *messages,
            Answer::Pool { tasks, .. } => *tasks,
        }
    }

    /// Longest time that the program says has passed in a block of this length, in nanoseconds.
    fn claimed_ns(&self, length_ns: u64) -> f64 {
        match self {
            Answer::RoundTrips { stamped, others, mean_ns } => {
                stamped.sum_ns() as f64 + *others as f64 * mean_ns
            }
            Answer::Stream { .. } => length_ns as f64,
            Answer::Deliveries(deliveries) => deliveries.longest_ns(),
            Answer::Shared { elapsed_ns, .. }
            | Answer::Calls { elapsed_ns, .. }
            | Answer::SendCalls { elapsed_ns, .. }
            | Answer::Pool { elapsed_ns, .. } => *elapsed_ns as f64,
        }
    }

    /// Checks that the answer to a request for a block of `length_ns` fits into the time that it
    /// took, and a rate to its messages.
    pub(super) fn check_time(&self, length_ns: u64, took: Duration) -> Result<(), Fault> {
        if let Answer::Stream { messages, rate_per_s } = self {
            // The other messages began and ended the stream.
            let timed = rate_per_s * length_ns as f64 / 1e9;
            if timed > *messages as f64 * ROUNDING {
                let clause = format!("at its rate, {timed:.0} messages came, but it counted");
                return Err(wrong(format!("{clause} {messages}")));
            }
        }
        let (claimed_ns, took_ns) = (self.claimed_ns(length_ns), took.as_nanos() as f64);
        // Round trips follow one another for the whole block: a clock that stops while a thread
        // sleeps would leave most of it out.
        if matches!(self, Answer::RoundTrips { .. })
            && claimed_ns < LEAST_COVERED * length_ns as f64
        {
            let [claimed_ms, length_ms] = [claimed_ns / 1e6, length_ns as f64 / 1e6];
            return Err(wrong(format!(
                "its round trips take {claimed_ms:.1} ms of a block of {length_ms:.0} ms"
            )));
        }
        if claimed_ns <= took_ns * ROUNDING {
            return Ok(());
        }
        let (claimed_ms, took_ms) = (claimed_ns / 1e6, took_ns / 1e6);
        Err(wrong(format!("its block of {claimed_ms:.0} ms was over after {took_ms:.0} ms")))
    }
}

/// The fault of figures that do not fit together.
fn wrong(clause: impl Into<String>) -> Fault {
    Fault::new(StrikeReason::WrongMessage, clause)
}

/// Reads the answer to a block, and the CPU time that went by before its first message, in
/// nanoseconds.
pub(super) fn read(lines: Listening<'_>, question: Question) -> Result<(Answer, u64), Fault> {
    let mut lines = Lines::of(lines);
    let answer = match question {
        Question::RoundTrips => round_trips(&mut lines)?,
        Question::Stream => stream(&mut lines)?,
        Question::Shared { receivers } => shared(&mut lines, receivers)?,
        Question::Deliveries { per_s, besides } => {
            Answer::Deliveries(deliveries::read(&mut lines, per_s, besides)?)
        }
        Question::Calls { depth } => calls(&mut lines, depth)?,
        Question::SendCalls => send_calls(&mut lines)?,
        Question::Pool { tasks, threads } => pool(&mut lines, tasks, threads)?,
    };
    let last = lines.next()?;
    let settling_ns = match last.strip_prefix("end settling_ns=") {
        Some(digits) => lines::number("settling_ns", digits)?,
        None if last == "end" => 0,
        None => {
            return Err(Fault::rubbish(format!("it said “{}” instead of “end”", said(&last))));
        }
    };
    Ok((answer, settling_ns))
}

fn round_trips(lines: &mut Lines<'_>) -> Result<Answer, Fault> {
    let stamped = lines.tally("count", 1)?;
    let mean_ns = lines.positive("mean_ns")?;
    let checked = lines.number("checked")?;
    let count = stamped.count();
    match checked.checked_sub(count) {
        Some(others) if others > 0 && count > 0 => {
            Ok(Answer::RoundTrips { stamped, others, mean_ns })
        }
        _ => Err(wrong(format!(
            "it checked {checked} round trips, of which {count} had a stamp: some of each were \
             expected"
        ))),
    }
}

fn stream(lines: &mut Lines<'_>) -> Result<Answer, Fault> {
    let messages = lines.positive_number("count")?;
    let rate_per_s = lines.positive("rate_per_s")?;
    lines.all_checked(messages)?;
    Ok(Answer::Stream { messages, rate_per_s })
}

fn shared(lines: &mut Lines<'_>, receivers: u64) -> Result<Answer, Fault> {
    let messages = lines.positive_number("count")?;
    let elapsed_ns = lines.positive_number("elapsed_ns")?;
    let shared = lines.number("shared")?;
    let received: Vec<u64> =
        (0..receivers).map(|_| lines.number("received")).collect::<Result<_, _>>()?;
    lines.all_checked(messages)?;
    let sum = received.iter().try_fold(0u64, |sum, own| sum.checked_add(*own));
    if sum != Some(messages) {
        return Err(wrong(format!(
            "it sent {messages} messages, but its receivers got another number of them"
        )));
    }
    if shared > 1 {
        return Err(Fault::rubbish(format!("its “shared” is {shared}, neither 0 nor 1")));
    }
    Ok(Answer::Shared { elapsed_ns, received, bundle: shared == 0 })
}

fn calls(lines: &mut Lines<'_>, depth: u64) -> Result<Answer, Fault> {
    let count = lines.positive_number("count")?;
    let send_ns = lines.positive("send_ns")?;
    let receive_ns = lines.positive("receive_ns")?;
    let elapsed_ns = lines.positive_number("elapsed_ns")?;
    let messages = depth.saturating_add(count);
    lines.all_checked(messages)?;
    // At least half of the calls take as long as their median.
    if (send_ns + receive_ns) * count as f64 / 2.0 > elapsed_ns as f64 * ROUNDING {
        return Err(wrong("its calls take longer than its block"));
    }
    Ok(Answer::Calls { count, send_ns, receive_ns, elapsed_ns, messages })
}

fn send_calls(lines: &mut Lines<'_>) -> Result<Answer, Fault> {
    let calls = lines.tally("count", 0)?;
    let elapsed_ns = lines.positive_number("elapsed_ns")?;
    let messages = lines.positive_number("sent")?;
    lines.all_checked(messages)?;
    let count = calls.count();
    if count == 0 || count > messages {
        return Err(wrong(format!("it sent {messages} messages, and timed {count} of the calls")));
    }
    if calls.sum_ns() as f64 > elapsed_ns as f64 * ROUNDING + count as f64 {
        return Err(wrong("its send calls take longer than its block"));
    }
    Ok(Answer::SendCalls { calls, elapsed_ns, messages })
}

fn pool(lines: &mut Lines<'_>, asked: u64, threads: u32) -> Result<Answer, Fault> {
    let tasks = lines.positive_number("count")?;
    let elapsed_ns = lines.positive_number("elapsed_ns")?;
    let queue_on_entry_mean = lines.decimal("queue_on_entry_mean")?;
    lines.all_checked(tasks)?;
    if tasks != asked {
        return Err(wrong(format!("it did {tasks} tasks instead of {asked}")));
    }
    if queue_on_entry_mean > f64::from(threads) {
        return Err(wrong("more of its threads waited for the lock than it has"));
    }
    Ok(Answer::Pool { tasks, elapsed_ns, queue_on_entry_mean })
}
