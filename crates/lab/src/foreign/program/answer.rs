//! A program's answers to `block`, checked against themselves and against the time that it took.

use std::time::Duration;

use threadtoll_record::StrikeReason;

use super::talk::{Fault, Limits, Listening, spoken};

/// Most distinct values of a distribution.
const MAX_VALUES: u64 = 2_000_000;
/// A program stamps with the clock that it is timed by; its figures are rounded.
const ROUNDING: f64 = 1.01;
/// Least share of a block that its round trips take together.
const LEAST_COVERED: f64 = 0.5;
/// Messages from which on their rate says anything, and how far off it may be.
const RATED: u64 = 200;
const RATE_OFF: f64 = 1.5;

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
    /// Messages that are due at this rate.
    Deliveries { per_s: f64, in_bursts: bool },
    /// This many tasks of this many threads.
    Pool { tasks: u64, threads: u32 },
}

/// Times in nanoseconds that occurred, with the number of times that they did, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally(pub(crate) Vec<(u64, u64)>);

impl Tally {
    /// Number of times.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|(_, times)| times).sum()
    }

    /// Their sum, in nanoseconds.
    pub(crate) fn sum_ns(&self) -> u128 {
        self.0.iter().map(|(ns, times)| u128::from(*ns) * u128::from(*times)).sum()
    }

    /// The longest one, in nanoseconds.
    pub(crate) fn max_ns(&self) -> u64 {
        self.0.last().map_or(0, |(ns, _)| *ns)
    }
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
    /// Messages that were sent when they were due.
    Deliveries(Deliveries),
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

/// Messages that were sent when they were due.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deliveries {
    /// Times until they were received.
    pub(crate) delivered: Tally,
    /// Times until their send calls began.
    pub(crate) late: Tally,
    /// CPU time of the receiver and of the send calls, if known.
    pub(crate) busy_ns: Option<u64>,
    /// All messages of the block, counted or not.
    pub(crate) sent: u64,
    pub(crate) elapsed_ns: u64,
    /// Time from the first counted message to the moment at which the last one was due.
    pub(crate) window_ns: u64,
    /// Messages due, and received, in this time.
    pub(crate) due: u64,
    pub(crate) received: u64,
    pub(crate) bursts: Option<Bursts>,
}

/// Medians over the bursts of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bursts {
    pub(crate) first_ns: f64,
    pub(crate) last_ns: f64,
    pub(crate) drain_ns: f64,
    pub(crate) bursts: u64,
    pub(crate) found_empty: u64,
}

impl Answer {
    /// Messages, round trips or tasks of the block.
    pub(crate) fn operations(&self) -> u64 {
        match self {
            Answer::RoundTrips { stamped, others, .. } => stamped.count() + others,
            Answer::Stream { messages, .. } => *messages,
            Answer::Deliveries(deliveries) => deliveries.sent,
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
            Answer::Deliveries(Deliveries { elapsed_ns, delivered, bursts, .. }) => {
                let last_ns = bursts.map_or(0.0, |bursts| bursts.last_ns);
                last_ns.max((*elapsed_ns).max(delivered.max_ns()) as f64)
            }
            Answer::Pool { elapsed_ns, .. } => *elapsed_ns as f64,
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

/// Reads the answer to a block.
pub(super) fn read(lines: Listening<'_>, question: Question) -> Result<Answer, Fault> {
    let mut lines = Lines { lines, first: true };
    let answer = match question {
        Question::RoundTrips => round_trips(&mut lines)?,
        Question::Stream => stream(&mut lines)?,
        Question::Deliveries { per_s, in_bursts } => deliveries(&mut lines, per_s, in_bursts)?,
        Question::Pool { tasks, threads } => pool(&mut lines, tasks, threads)?,
    };
    let last = lines.next()?;
    if last != "end" {
        return Err(Fault::rubbish(format!("it said “{}” instead of “end”", said(&last))));
    }
    Ok(answer)
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

fn deliveries(lines: &mut Lines<'_>, per_s: f64, in_bursts: bool) -> Result<Answer, Fault> {
    let delivered = lines.tally("count", 0)?;
    let late = lines.tally("lateness", 0)?;
    let (name, value) = lines.pair()?;
    let busy_ns = if name == "busy_ns" { Some(number(&name, &value)?) } else { None };
    let sent = match busy_ns {
        Some(_) => lines.positive_number("sent")?,
        None if name == "sent" => number(&name, &value)?,
        None => return Err(instead(&name, "sent")),
    };
    let elapsed_ns = lines.positive_number("elapsed_ns")?;
    let window_ns = lines.positive_number("window_ns")?;
    let due = lines.positive_number("due")?;
    let received = lines.number("received")?;
    let bursts = if in_bursts { Some(bursts(lines)?) } else { None };
    lines.all_checked(sent)?;
    let (count, late_count) = (delivered.count(), late.count());
    if count != late_count {
        return Err(wrong(format!(
            "it has {count} delivery times, but {late_count} of how late messages were sent"
        )));
    }
    if count == 0 || count > sent || due > count || received > sent {
        return Err(wrong(format!(
            "it sent {sent} messages, and counts {count} of them, {due} that were due and \
             {received} that were received"
        )));
    }
    if window_ns > elapsed_ns {
        return Err(wrong("its messages were due for longer than its block lasted"));
    }
    let rate_per_s = due as f64 / window_ns as f64 * 1e9;
    let off = (rate_per_s / per_s).max(per_s / rate_per_s);
    if due >= RATED && off > RATE_OFF {
        return Err(wrong(format!(
            "its messages were due at {rate_per_s:.0}/s instead of {per_s:.0}/s"
        )));
    }
    Ok(Answer::Deliveries(Deliveries {
        delivered,
        late,
        busy_ns,
        sent,
        elapsed_ns,
        window_ns,
        due,
        received,
        bursts,
    }))
}

fn bursts(lines: &mut Lines<'_>) -> Result<Bursts, Fault> {
    let found = Bursts {
        first_ns: lines.decimal("first_ns")?,
        last_ns: lines.decimal("last_ns")?,
        drain_ns: lines.decimal("drain_ns")?,
        bursts: lines.positive_number("bursts")?,
        found_empty: lines.number("found_empty")?,
    };
    if found.first_ns > found.last_ns {
        return Err(wrong("the first message of its bursts comes after the last one"));
    }
    if found.found_empty > found.bursts {
        return Err(wrong("more of its bursts found the queue empty than there were"));
    }
    Ok(found)
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

/// Lines of an answer, of which the first may be an error instead.
struct Lines<'a> {
    lines: Listening<'a>,
    first: bool,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<String, Fault> {
        let line = self.lines.line()?;
        let first = std::mem::replace(&mut self.first, false);
        match error(&line) {
            Some(sentence) if first => Err(wrong(format!("it reports: {sentence}"))),
            _ => Ok(line),
        }
    }

    fn pair(&mut self) -> Result<(String, String), Fault> {
        let line = self.next()?;
        match line.split_once(' ') {
            Some((name, value)) => Ok((name.into(), value.into())),
            None => Err(Fault::rubbish(format!("it said “{}”, which has no figure", said(&line)))),
        }
    }

    fn value(&mut self, name: &str) -> Result<String, Fault> {
        let (found, value) = self.pair()?;
        if found == name { Ok(value) } else { Err(instead(&found, name)) }
    }

    fn number(&mut self, name: &str) -> Result<u64, Fault> {
        number(name, &self.value(name)?)
    }

    fn positive_number(&mut self, name: &str) -> Result<u64, Fault> {
        match self.number(name)? {
            0 => Err(wrong(format!("its “{name}” is 0"))),
            number => Ok(number),
        }
    }

    fn decimal(&mut self, name: &str) -> Result<f64, Fault> {
        let value = self.value(name)?;
        let digits = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let parsed = value.parse::<f64>().ok().filter(|_| digits);
        let parsed = parsed.filter(|number| number.is_finite() && *number < 1e18);
        parsed.ok_or_else(|| no_number(name, &value))
    }

    fn positive(&mut self, name: &str) -> Result<f64, Fault> {
        match self.decimal(name)? {
            0.0 => Err(wrong(format!("its “{name}” is 0"))),
            number => Ok(number),
        }
    }

    fn all_checked(&mut self, count: u64) -> Result<(), Fault> {
        let checked = self.number("checked")?;
        if checked == count {
            return Ok(());
        }
        Err(wrong(format!("it counted {count} messages, but checked {checked}")))
    }

    /// Lines of a value and the times that it occurs.
    fn tally(&mut self, name: &str, least: u64) -> Result<Tally, Fault> {
        let count = self.number(name)?;
        if count > MAX_VALUES {
            return Err(Fault::rubbish(format!("its answer has over {MAX_VALUES} lines")));
        }
        let mut values: Vec<(u64, u64)> = Vec::new();
        let mut all = 0_u64;
        for _ in 0..count {
            let (value, times) = self.pair()?;
            let (value, times) = (number(name, &value)?, number(name, &times)?);
            if values.last().is_some_and(|(before, _)| *before >= value) {
                return Err(Fault::rubbish(format!("its values after “{name}” do not ascend")));
            }
            // Neither a sum nor a product of them overflows.
            let sum = all.checked_add(times).filter(|sum| times > 0 && *sum < 1 << 40);
            all = sum.ok_or_else(|| {
                Fault::rubbish(format!("a value after “{name}” occurs {times} times"))
            })?;
            if value < least || value > 1 << 60 {
                return Err(wrong(format!("a time after “{name}” is {value} ns")));
            }
            values.push((value, times));
        }
        Ok(Tally(values))
    }
}

/// The sentence of a line that reports an error.
pub(super) fn error(line: &str) -> Option<String> {
    let sentence = line.strip_prefix("error")?;
    let whole = sentence.is_empty() || sentence.starts_with(' ');
    let sentence = if sentence.trim().is_empty() { "an error" } else { sentence.trim() };
    whole.then(|| said(sentence))
}

fn number(name: &str, digits: &str) -> Result<u64, Fault> {
    let decimal = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| decimal).ok_or_else(|| no_number(name, digits))
}

fn no_number(name: &str, value: &str) -> Fault {
    Fault::rubbish(format!("it said “{}” where the figure of “{name}” was expected", said(value)))
}

fn instead(found: &str, expected: &str) -> Fault {
    Fault::rubbish(format!("it said “{}” instead of “{expected}”", said(found)))
}

pub(super) fn said(text: &str) -> String {
    spoken(text.as_bytes())
}
