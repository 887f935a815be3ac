//! Files of durations, one a line.

use std::path::Path;

use threadtoll_model::Shape;

use super::distribution::zero_or_longer;
use crate::failure::Failure;
use crate::parse::DURATIONS;

/// Characters shown of a line that is no duration.
const SHOWN: usize = 40;

/// Reads the text of such a file; `path` is for messages.
pub(super) fn read(path: &Path, text: &str) -> Result<Shape, Failure> {
    let shown = path.display();
    let mut values = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let written = line.split('#').next().unwrap_or_default().trim();
        if written.is_empty() {
            continue;
        }
        let value = zero_or_longer(written).map_err(|why| {
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
    // A closed form costs time per distinct value; drawing from counted values costs more per draw.
    let shape = if counted.len() < values.len() / 4 {
        Shape::counted(&counted)
    } else {
        Shape::sampled(&values)
    };
    shape.map_err(|error| Failure::usage(format!("{shown}: {error}")).hint(DURATIONS))
}
