//! Converts a program's answers to `block` requests into samples.

use std::time::Duration;

use threadtoll_record::{BlockKind, ContentionBlock};

use super::talk::Talk;
use crate::foreign::description::clean;
use crate::samples::{Acquisitions, RoundTrips, Samples, Stretches};

/// Maximum number of stamped round trips in a block.
const MAX_STAMPED: u64 = 2_000_000;
/// Maximum accepted figure, so that no sum overflows.
const MAX: f64 = 1e15;

/// Expected kind of answer to a `block` request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Question {
    RoundTrips,
    Stream,
    /// `cycle_ns` is the sum of a task's hold and think times.
    Pool {
        tasks: u64,
        cycle_ns: u64,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeasuredBlock {
    pub(crate) samples: Samples,
    /// Number of messages, round trips or tasks in the block.
    pub(crate) operations: u64,
    /// CPU time used before the first message.
    pub(crate) settling_ns: u64,
    /// Minimum time that the block must have taken, according to the program's own figures.
    pub(super) claimed: Duration,
}

pub(super) fn read(
    talk: &mut Talk,
    question: Question,
    kind: BlockKind,
) -> Result<MeasuredBlock, String> {
    let mut lines = Lines(talk);
    let (samples, operations, claimed_ns) = match question {
        Question::RoundTrips => round_trips(&mut lines, kind)?,
        Question::Stream => stream(&mut lines)?,
        Question::Pool { tasks, cycle_ns } => pool(&mut lines, tasks, cycle_ns)?,
    };
    let last = lines.next()?;
    let settling_ns = match last.strip_prefix("end settling_ns=") {
        Some(digits) => number("settling_ns", digits)?,
        None if last == "end" => 0,
        None => return Err(format!("it said “{}” instead of “end”", clean(&last))),
    };
    let claimed = Duration::from_nanos(claimed_ns);
    Ok(MeasuredBlock { samples, operations, settling_ns, claimed })
}

fn stretch(operations: u64, elapsed_ns: f64) -> Stretches {
    let lengths_ps = vec![(elapsed_ns * 1000.0).round() as u64];
    Stretches { lengths_ps, operations_each: operations }
}

type Read = (Samples, u64, u64);

/// In every block, some round trips are stamped one by one, and only the mean time of the others is
/// known. `kind` says which of the two are used.
fn round_trips(lines: &mut Lines<'_>, kind: BlockKind) -> Result<Read, String> {
    let values = lines.number("count")?;
    let (mut lengths_ps, mut stamped_ns) = (Vec::new(), 0_u64);
    for _ in 0..values {
        let (value, times) = lines.pair()?;
        let (ns, times) = (number(&value, &value)?, number(&value, &times)?);
        let all = times.saturating_add(lengths_ps.len() as u64);
        if all > MAX_STAMPED {
            return Err(format!("it reports {all} stamped round trips, more than {MAX_STAMPED}"));
        }
        stamped_ns = ns.saturating_mul(times).saturating_add(stamped_ns);
        lengths_ps.extend(std::iter::repeat_n(ns * 1000, times as usize));
    }
    let mean_ns = lines.decimal("mean_ns")?;
    let checked = lines.number("checked")?;
    let others = checked.checked_sub(lengths_ps.len() as u64).filter(|others| *others > 0);
    let (Some(others), false) = (others, lengths_ps.is_empty()) else {
        let stamped = lengths_ps.len();
        return Err(format!(
            "it reports {checked} verified round trips, {stamped} of them with a stamp; some must \
             have one, others not"
        ));
    };
    let others_ns = others as f64 * mean_ns;
    let stretches = match kind {
        BlockKind::Stamped => Stretches { lengths_ps, operations_each: 1 },
        BlockKind::Stretch => stretch(others, others_ns),
    };
    let samples = Samples::Exchange(RoundTrips { stretches, ..RoundTrips::default() });
    Ok((samples, checked, stamped_ns.saturating_add(others_ns as u64)))
}

fn stream(lines: &mut Lines<'_>) -> Result<Read, String> {
    let messages = lines.number("count")?;
    let rate_per_s = lines.decimal("rate_per_s")?;
    lines.all_checked(messages)?;
    let elapsed_ns = messages as f64 / rate_per_s * 1e9;
    if elapsed_ns > MAX {
        return Err(format!("it reports {messages} messages at only {rate_per_s}/s"));
    }
    Ok((Samples::Stream(stretch(messages, elapsed_ns)), messages, 0))
}

fn pool(lines: &mut Lines<'_>, asked: u64, cycle_ns: u64) -> Result<Read, String> {
    let tasks = lines.number("count")?;
    let elapsed_ns = lines.decimal("elapsed_ns")? as u64;
    let queue_on_entry_mean = lines.zero_or_more("queue_on_entry_mean")?;
    lines.all_checked(tasks)?;
    if tasks != asked {
        return Err(format!("it did {tasks} tasks instead of {asked}"));
    }
    let block = ContentionBlock {
        work: (tasks as f64 * cycle_ns as f64).into(),
        queue_on_entry_mean: Some(queue_on_entry_mean.into()),
        ..ContentionBlock::default()
    };
    let acquisitions = Acquisitions { block, elapsed_ns, waits: Vec::new(), excerpt: None };
    let samples = Samples::Contention(acquisitions);
    Ok((samples, tasks, elapsed_ns))
}

/// Lines of an answer. A line is either an error or a name with a figure.
struct Lines<'a>(&'a mut Talk);

impl Lines<'_> {
    fn next(&mut self) -> Result<String, String> {
        let line = self.0.line()?;
        match error(&line) {
            Some(sentence) => Err(format!("it reports: {sentence}")),
            None => Ok(line),
        }
    }

    fn pair(&mut self) -> Result<(String, String), String> {
        let line = self.next()?;
        match line.split_once(' ') {
            Some((name, value)) => Ok((name.into(), value.into())),
            None => Err(format!("it said “{}”, without a figure", clean(&line))),
        }
    }

    fn value(&mut self, name: &str) -> Result<String, String> {
        let (found, value) = self.pair()?;
        if found == name {
            return Ok(value);
        }
        Err(format!("it said “{}” instead of “{name}”", clean(&found)))
    }

    fn number(&mut self, name: &str) -> Result<u64, String> {
        number(name, &self.value(name)?)
    }

    fn zero_or_more(&mut self, name: &str) -> Result<f64, String> {
        let value = self.value(name)?;
        let parsed = value.parse().ok().filter(|number| (0.0..MAX).contains(number));
        parsed.ok_or_else(|| no_figure(name, &value))
    }

    /// Reads a figure other than 0.
    fn decimal(&mut self, name: &str) -> Result<f64, String> {
        match self.zero_or_more(name)? {
            0.0 => Err(format!("its “{name}” is 0")),
            number => Ok(number),
        }
    }

    fn all_checked(&mut self, count: u64) -> Result<(), String> {
        let checked = self.number("checked")?;
        if checked == count && count > 0 {
            return Ok(());
        }
        Err(format!("it counted {count} operations, but verified {checked}"))
    }
}

pub(super) fn error(line: &str) -> Option<String> {
    let sentence = line.strip_prefix("error")?;
    let whole = sentence.is_empty() || sentence.starts_with(' ');
    let sentence = if sentence.trim().is_empty() { "an error" } else { sentence.trim() };
    whole.then(|| clean(sentence))
}

fn number(name: &str, digits: &str) -> Result<u64, String> {
    let parsed = digits.parse().ok().filter(|number| *number <= MAX as u64);
    parsed.ok_or_else(|| no_figure(name, digits))
}

fn no_figure(name: &str, value: &str) -> String {
    format!("it said “{}” where a number for “{}” was expected", clean(value), clean(name))
}
