//! Speed-ups by threads and another property, as two squares of coloured figures.

use anstyle::AnsiColor;
use unicode_width::UnicodeWidthStr;

use super::table::{pad_left, pad_right};
use super::{BOLD, DIM, Style};
use crate::figure::Map;
use crate::units::{UNKNOWN, digits};

const GAP: usize = 4;

/// Draws a map with threads downwards, measured and predicted, side by side if there is room, and
/// an empty line below.
pub(super) fn draw(map: &Map, style: &Style) -> String {
    let measured = square(map, "measured", &map.measured, style);
    let widest = measured.iter().map(|(_, width)| *width).max().unwrap_or(0);
    let lines: Vec<String> = if map.predicted.iter().flatten().all(Option::is_none) {
        measured.into_iter().map(|(line, _)| line).collect()
    } else {
        let predicted = square(map, "predicted", &map.predicted, style);
        if style.width.is_none_or(|width| 2 * widest + GAP <= width) {
            let pairs = measured.into_iter().zip(predicted);
            pairs
                .map(|((left, width), (right, _))| {
                    format!("{left}{}{right}", " ".repeat(widest - width + GAP))
                })
                .collect()
        } else {
            measured.into_iter().chain(predicted).map(|(line, _)| line).collect()
        }
    };
    lines.join("\n") + "\n\n"
}

/// The lines of one square, each with its width.
fn square(
    map: &Map,
    title: &str,
    values: &[Vec<Option<f64>>],
    style: &Style,
) -> Vec<(String, usize)> {
    let text = |value: &Option<f64>| value.map_or_else(|| UNKNOWN.to_string(), digits);
    let headings = map.columns.iter().map(|heading| heading.width());
    let figures = values.iter().flatten().map(|value| text(value).width());
    let cell = headings.chain(figures).max().unwrap_or(1) + 1;
    let side =
        map.threads.iter().map(|threads| threads.to_string().len()).max().unwrap_or(1).max(7);
    let heading = format!("{title}, threads × {}", map.across);
    let mut head = pad_right("threads", side);
    map.columns.iter().for_each(|column| head.push_str(&pad_left(column, cell)));
    let width = head.width();
    let mut lines =
        vec![(style.paint(DIM, &heading), heading.width()), (style.paint(BOLD, &head), width)];
    for (threads, row) in map.threads.iter().zip(values) {
        let mut line = style.paint(BOLD, &pad_left(&threads.to_string(), side));
        for value in row {
            let figure = pad_left(&text(value), cell);
            line.push_str(&style.paint(shade(*value, *threads), &figure));
        }
        lines.push((line, width));
    }
    lines
}

/// Green where threads are worthwhile, red where one alone is better.
fn shade(speedup: Option<f64>, threads: u32) -> anstyle::Style {
    let Some(speedup) = speedup else { return DIM };
    let colour = if speedup >= 0.85 * f64::from(threads) {
        AnsiColor::Green
    } else if speedup >= 1.0 + 0.25 * (f64::from(threads) - 1.0) {
        AnsiColor::Cyan
    } else if speedup >= 1.0 {
        AnsiColor::Yellow
    } else {
        AnsiColor::Red
    };
    colour.on_default()
}
