//! Files of durations, one per line.

use std::path::Path;

use threadtoll_model::Shape;

use super::input;
use crate::failure::Failure;
use crate::parse::{DURATIONS, duration};

/// Minimum time above zero, in nanoseconds. A shorter time is probably a typing error.
const MIN_NS: f64 = 1e-3;

pub(super) fn read(path: &Path, text: &str) -> Result<Shape, Failure> {
    let name = path.display();
    let mut values = Vec::new();
    for (number, line) in input::lines(text) {
        let value = zero_or_longer(line).map_err(|why| {
            Failure::usage(format!("{name}, line {number}: “{}”: {why}", input::excerpt(line)))
                .hint(DURATIONS)
        })?;
        values.push(value);
    }
    if values.is_empty() {
        return Err(Failure::usage(format!("{name} holds no durations"))
            .hint("give a file with one duration per line, such as 5ms"));
    }
    values.sort_unstable_by(f64::total_cmp);
    let counted: Vec<(f64, u64)> =
        values.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len() as u64)).collect();
    // Counting equal values speeds up the closed form, which takes time for each distinct value,
    // but slows down the random draws of the simulator.
    let shape = if counted.len() < values.len() / 4 {
        Shape::counted(&counted)
    } else {
        Shape::sampled(&values)
    };
    shape.map_err(|error| Failure::usage(format!("{name}: {error}")).hint(DURATIONS))
}

/// Parses a duration into nanoseconds. The error is only a reason and does not contain `text`.
pub(super) fn zero_or_longer(text: &str) -> Result<f64, &'static str> {
    match duration(text)? {
        ns if ns > 0.0 && ns < MIN_NS => Err("it is shorter than a picosecond"),
        ns => Ok(ns),
    }
}
