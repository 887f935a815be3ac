//! Distributions of hold and think times: named, or read from a file of durations or records.

use std::path::Path;

use threadtoll_model::{ModelError, Shape};

use super::{durations, input, records};
use crate::failure::Failure;
use crate::nearest::unknown;
use crate::parse::{DURATIONS, count, duration};

const NAMES: [&str; 2] = ["fixed", "exponential"];
/// Larger files are not lists of durations.
const MAX_BYTES: u64 = 100_000_000;
/// Shorter times are taken for slips of the pen.
const MIN_NS: f64 = 1e-3;

/// A distribution of times, its mean apart.
#[derive(Clone, Debug)]
pub(super) enum Distribution {
    Fixed,
    Exponential,
    /// Read from a file, with the name under which it was asked for.
    Measured(String, Shape),
}

impl Distribution {
    /// Reads the value of an option: a name, FILE, or FILE#N.
    pub(super) fn read(option: &str, text: &str) -> Result<Self, Failure> {
        match text {
            "fixed" => return Ok(Self::Fixed),
            "exponential" => return Ok(Self::Exponential),
            _ => {}
        }
        let shape = match text.rsplit_once('#') {
            _ if Path::new(text).exists() => read_file(Path::new(text), None)?,
            Some((path, number)) if Path::new(path).exists() => {
                let number = count(&format!("{option} {path}#"), number, 1, u64::MAX)?;
                read_file(Path::new(path), Some(number))?
            }
            _ => {
                return Err(unknown(
                    format!("{option} {text}: there is no such shape and no such file"),
                    text,
                    NAMES,
                    "it takes fixed, exponential, or the name of a file of durations",
                ));
            }
        };
        Ok(Self::Measured(text.to_string(), shape))
    }

    /// Its name in records.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Fixed => "fixed",
            Self::Exponential => "exponential",
            Self::Measured(name, _) => name,
        }
    }

    /// The distribution stretched to this mean; without one, measured times keep their own.
    pub(super) fn shape(&self, option: &str, mean_ns: Option<f64>) -> Result<Shape, Failure> {
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

/// Reads a file; `number` chooses one of its records.
fn read_file(path: &Path, number: Option<u64>) -> Result<Shape, Failure> {
    let name = path.display();
    let hint = "give a file with one duration a line, or one that a measuring command has written";
    let bad = |what: String| Failure::usage(what).hint(hint);
    let bytes = input::read(path, MAX_BYTES, hint)?;
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        return records::read(path, number);
    }
    if number.is_some() {
        return Err(bad(format!("{name} holds no records, so none of them can be named")));
    }
    let text = String::from_utf8(bytes).map_err(|_| bad(format!("{name} is no text")))?;
    durations::read(path, &text)
}

/// Reads a mean time: zero, or a picosecond to a day.
pub(super) fn mean_ns(option: &str, text: &str) -> Result<f64, Failure> {
    zero_or_longer(text)
        .map_err(|why| Failure::usage(format!("{option} {text}: {why}")).hint(DURATIONS))
}

/// Reads a duration in nanoseconds that a model can work with, or says why it cannot.
pub(super) fn zero_or_longer(text: &str) -> Result<f64, &'static str> {
    match duration(text)? {
        ns if ns > 0.0 && ns < MIN_NS => Err("it is shorter than a picosecond"),
        ns => Ok(ns),
    }
}
