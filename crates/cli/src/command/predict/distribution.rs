//! Distributions of hold and think times: named, or read from a file of durations or records.

use std::path::Path;

use threadtoll_model::{ModelError, Shape};
use threadtoll_record::Spread;

use super::{durations, input, records};
use crate::failure::Failure;
use crate::nearest::unknown;
use crate::parse::{DURATIONS, count};

const NAMES: [&str; 2] = ["fixed", "exponential"];
const MAX_BYTES: u64 = 100_000_000;

#[derive(Clone, Debug)]
pub(super) enum Distribution {
    Fixed,
    Exponential,
    /// Read from the file with this name.
    Measured(String, Shape),
}

impl From<Spread> for Distribution {
    fn from(spread: Spread) -> Self {
        match spread {
            Spread::Fixed => Self::Fixed,
            Spread::Exponential => Self::Exponential,
        }
    }
}

impl Distribution {
    /// Parses an option's value: the name of a distribution, FILE, or FILE#N (record N of FILE).
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
                    format!("{option} {text} is neither a distribution nor a file"),
                    text,
                    NAMES,
                    "use fixed, exponential, or a file of durations",
                ));
            }
        };
        Ok(Self::Measured(text.to_string(), shape))
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Fixed => "fixed",
            Self::Exponential => "exponential",
            Self::Measured(name, _) => name,
        }
    }

    /// Scales the distribution to `mean_ns`. Without `mean_ns`, measured times keep their own mean.
    pub(super) fn shape(&self, option: &str, mean_ns: Option<f64>) -> Result<Shape, Failure> {
        let bad = |error: ModelError| Failure::usage(format!("{option}: {error}")).hint(DURATIONS);
        match (self, mean_ns) {
            (Self::Fixed, Some(ns)) => Shape::fixed(ns).map_err(bad),
            (Self::Exponential, Some(ns)) => Shape::exponential(ns).map_err(bad),
            (Self::Measured(_, shape), None) => Ok(shape.clone()),
            (Self::Measured(name, shape), Some(ns)) if shape.mean_ns() == 0.0 && ns > 0.0 => {
                Err(Failure::usage(format!(
                    "the times in {name} are all zero and cannot be scaled to a mean"
                ))
                .hint(format!("omit {option}, or choose another file")))
            }
            (Self::Measured(name, shape), Some(ns)) => shape.with_mean(ns).map_err(|error| {
                Failure::usage(format!(
                    "the times in {name} cannot be scaled to the mean of {option}: {error}"
                ))
                .hint(format!("omit {option}, or give another mean"))
            }),
            (Self::Fixed | Self::Exponential, None) => {
                let of = option.trim_start_matches('-');
                Err(Failure::usage(format!("predict needs {option}, the mean {of} time")).hint(
                    format!(
                        "such as {option} 5ms; or give a file of measured times with {option}-shape"
                    ),
                ))
            }
        }
    }
}

fn read_file(path: &Path, number: Option<u64>) -> Result<Shape, Failure> {
    let name = path.display();
    let hint = "give a file with one duration per line, or the results of a measuring command";
    let bad = |what: String| Failure::usage(what).hint(hint);
    let bytes = input::read(path, MAX_BYTES, hint)?;
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        return records::read(path, number);
    }
    if number.is_some() {
        return Err(bad(format!("{name} holds no records, so #N cannot choose one")));
    }
    let text = String::from_utf8(bytes).map_err(|_| bad(format!("{name} is not a text file")))?;
    durations::read(path, &text)
}

/// Parses a mean time: zero, or from a picosecond to a day.
pub(super) fn mean_ns(option: &str, text: &str) -> Result<f64, Failure> {
    durations::zero_or_longer(text)
        .map_err(|why| Failure::usage(format!("{option} {text}: {why}")).hint(DURATIONS))
}
