//! How times are spread: by name, or as a file says that was written by hand or by a measuring
//! command.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use threadtoll_model::{ModelError, Shape};
use threadtoll_record::{Cell, Experiment, Histogram, RecordKind, file};

use crate::console;
use crate::failure::Failure;
use crate::nearest::nearest;
use crate::request::{DURATIONS, duration};

const NAMES: [&str; 2] = ["fixed", "exponential"];
/// Larger files are no lists of durations that anybody wants to predict from.
const MOST_BYTES: u64 = 100_000_000;
/// Of a line that is no duration, so much is shown.
const SHOWN: usize = 40;
/// Shorter times than this are slips of the pen.
const SHORTEST_NS: f64 = 1e-3;

/// How times are spread around their mean.
#[derive(Clone, Debug)]
pub(crate) enum Spread {
    Fixed,
    Exponential,
    /// As measured, and the name under which it was asked for.
    Measured(String, Shape),
}

impl Spread {
    /// Reads what an option asks for: a name, FILE, or FILE#N.
    pub(crate) fn read(option: &str, text: &str) -> Result<Self, Failure> {
        match text {
            "fixed" => return Ok(Self::Fixed),
            "exponential" => return Ok(Self::Exponential),
            _ => {}
        }
        let shape = match text.rsplit_once('#') {
            _ if Path::new(text).exists() => measured(Path::new(text), None)?,
            Some((path, number)) if Path::new(path).exists() => {
                let number =
                    crate::request::count(&format!("{option} {path}#"), number, 1, u64::MAX)?;
                measured(Path::new(path), Some(number))?
            }
            _ => {
                let near = nearest(text, NAMES);
                let failure = Failure::usage(format!(
                    "{option} {text}: there is no such shape and no such file"
                ));
                return Err(if near.is_empty() {
                    failure.hint("it takes fixed, exponential, or the name of a file of durations")
                } else {
                    failure.hint(format!("nearest: {}", near.join(", ")))
                });
            }
        };
        Ok(Self::Measured(text.to_string(), shape))
    }

    /// Its name in records.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Fixed => "fixed",
            Self::Exponential => "exponential",
            Self::Measured(name, _) => name,
        }
    }

    /// The distribution with this mean; without one, with that of the measured times.
    pub(crate) fn shape(&self, option: &str, mean_ns: Option<f64>) -> Result<Shape, Failure> {
        let bad = |error: ModelError| Failure::usage(format!("{option}: {error}")).hint(DURATIONS);
        match (self, mean_ns) {
            (Self::Fixed, Some(ns)) => Shape::fixed(ns).map_err(bad),
            (Self::Exponential, Some(ns)) => Shape::exponential(ns).map_err(bad),
            (Self::Measured(_, shape), None) => Ok(shape.clone()),
            (Self::Measured(name, shape), Some(ns)) if shape.mean_ns() == 0.0 && ns > 0.0 => {
                Err(Failure::usage(format!(
                    "the times in {name} are all zero and cannot be stretched to a mean"
                ))
                .hint(format!("leave {option} out, or name another file")))
            }
            (Self::Measured(name, shape), Some(ns)) => shape.with_mean(ns).map_err(|error| {
                Failure::usage(format!(
                    "the times in {name} cannot be stretched to that mean: {error}"
                ))
                .hint(format!("leave {option} out, or give another mean"))
            }),
            (Self::Fixed | Self::Exponential, None) => {
                let of = option.trim_start_matches('-');
                Err(Failure::usage(format!("predict needs {option}, the mean {of} time")).hint(
                    format!(
                        "such as {option} 5ms; or name a file of measured times with {option}-shape"
                    ),
                ))
            }
        }
    }
}

/// The distribution in a file.
fn measured(path: &Path, number: Option<u64>) -> Result<Shape, Failure> {
    let shown = path.display();
    let hint = "give a file with one duration a line, or one that a measuring command has written";
    let bad = |what: String| Failure::usage(what).hint(hint);
    let unreadable = |error: std::io::Error| bad(format!("cannot read {shown}: {error}"));
    // Looked at before it is opened: a named pipe would keep us waiting for a writer.
    let found = std::fs::metadata(path).map_err(unreadable)?;
    if !found.is_file() {
        return Err(bad(format!("cannot read {shown}: it is not a regular file")));
    }
    let too_large = || bad(format!("{shown} is larger than {} MB", MOST_BYTES / 1_000_000));
    if found.len() > MOST_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_large());
    }
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        return recorded(path, number);
    }
    if number.is_some() {
        return Err(bad(format!("{shown} holds no records, so none of them can be named")));
    }
    let text = String::from_utf8(bytes).map_err(|_| bad(format!("{shown} is no text")))?;
    listed(path, &text)
}

/// The distribution of durations that stand one a line.
fn listed(path: &Path, text: &str) -> Result<Shape, Failure> {
    let shown = path.display();
    let mut values = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let written = line.split('#').next().unwrap_or_default().trim();
        if written.is_empty() {
            continue;
        }
        let value = duration(written)
            .and_then(|ns| if ns > 0.0 && ns < SHORTEST_NS { Err(TOO_SHORT) } else { Ok(ns) })
            .map_err(|why| {
                let short: String = written.chars().take(SHOWN).collect();
                let rest = if written.chars().nth(SHOWN).is_some() { "…" } else { "" };
                Failure::usage(format!("{shown}, line {}: “{short}{rest}”: {why}", number + 1))
                    .hint(DURATIONS)
            })?;
        values.push(value);
    }
    if values.is_empty() {
        return Err(Failure::usage(format!("{shown} holds no durations"))
            .hint("give a file with one duration a line, such as 5ms"));
    }
    values.sort_unstable_by(f64::total_cmp);
    let counted: Vec<(f64, u64)> =
        values.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len() as u64)).collect();
    // Closed forms take time for each different value, drawing from counted ones takes longer.
    let shape = if counted.len() < values.len() / 4 {
        Shape::counted(&counted)
    } else {
        Shape::sampled(&values)
    };
    shape.map_err(|error| Failure::usage(format!("{shown}: {error}")).hint(DURATIONS))
}

/// The shortest time above zero.
pub(crate) const TOO_SHORT: &str = "it is shorter than a picosecond";

/// A duration that a prediction can start from: zero, or a picosecond to a day.
pub(crate) fn time(option: &str, text: &str) -> Result<f64, Failure> {
    let ns = duration(text)
        .and_then(|ns| if ns > 0.0 && ns < SHORTEST_NS { Err(TOO_SHORT) } else { Ok(ns) });
    ns.map_err(|why| Failure::usage(format!("{option} {text}: {why}")).hint(DURATIONS))
}

/// What was measured of a cell, all groups together.
struct Measured {
    experiment: Experiment,
    cell: Cell,
    kind: RecordKind,
    histogram: Histogram,
    reference: bool,
}

impl Measured {
    fn name(&self) -> String {
        format!("{} {}, {}", self.experiment, self.cell.label(), self.cell.placement)
    }
}

/// The distribution of a record.
fn recorded(path: &Path, number: Option<u64>) -> Result<Shape, Failure> {
    let shown = path.display();
    let results = file::read(path)?;
    let mut all: Vec<Measured> = Vec::new();
    for record in results.records() {
        let Some(histogram) = record.histogram.filter(|histogram| histogram.count() > 0) else {
            continue;
        };
        let group = results.plan.groups.get(record.group);
        let reference =
            group.and_then(|group| group.first()).is_some_and(|first| first.cell == record.cell);
        match all
            .iter_mut()
            .find(|one| one.experiment == record.experiment && one.cell == record.cell)
        {
            Some(one) => {
                one.histogram.add(&histogram);
                one.reference &= reference;
            }
            None => all.push(Measured {
                experiment: record.experiment,
                cell: record.cell,
                kind: record.kind,
                histogram,
                reference,
            }),
        }
    }
    let asked = match number {
        Some(number) => usize::try_from(number - 1).ok().and_then(|index| all.get(index)),
        None => {
            let mut others = all.iter().filter(|one| all.len() == 1 || !one.reference);
            others.next().filter(|_| others.next().is_none())
        }
    };
    let Some(taken) = asked else {
        if all.is_empty() {
            return Err(Failure::usage(format!("no record in {shown} has a histogram")).hint(
                "measure with a command whose records have one, such as `threadtoll latency`",
            ));
        }
        let names: Vec<String> = all
            .iter()
            .enumerate()
            .map(|(index, one)| format!("#{} {}", index + 1, one.name()))
            .collect();
        let what = match number {
            Some(number) => format!("{shown} has no record #{number}, but {}", all.len()),
            None => format!("{shown} holds {} records, and not which of them is meant", all.len()),
        };
        return Err(
            Failure::usage(what).hint(format!("name one as {shown}#N: {}", names.join("; ")))
        );
    };
    let kind = match taken.kind {
        RecordKind::RoundTrip => "round trips",
        RecordKind::Stream => "messages",
        RecordKind::Wait => "waits for the lock",
    };
    let whose = if results.machine.simulated { " of a simulated machine" } else { "" };
    console::err(&format!(
        "note: {shown}: taken are the {} {kind} of {}{whose}.",
        taken.histogram.count(),
        taken.name()
    ));
    results.notes.iter().for_each(|note| console::err(&format!("note: {note}")));
    let buckets: Vec<(f64, u64)> =
        taken.histogram.buckets().map(|(ps, count)| (ps as f64 / 1000.0, count)).collect();
    Shape::counted(&buckets)
        .map_err(|error| Failure::usage(format!("{shown}: {error}")).hint(DURATIONS))
}
