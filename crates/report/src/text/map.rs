//! Speed-ups by number of threads and by another property: one square of coloured figures for the
//! measured speed-ups, and one for the predicted ones.

use std::ops::Range;

use anstyle::AnsiColor;
use unicode_width::UnicodeWidthStr;

use super::layout::not_shown;
use super::table::{pad_left, pad_right};
use super::{BOLD, DIM, Style};
use crate::figure::Map;
use crate::screen::spread;
use crate::units::{UNKNOWN, digits};

const GAP: usize = 4;
/// Minimum width of the labels with numbers of threads.
const SIDE: usize = 7;
const MAX_ROWS: usize = 10;

/// Draws a row for each number of threads. Measured and predicted speed-ups are side by side if
/// there is room; columns that do not fit follow below. An empty line is at the end.
pub(super) fn draw(map: &Map, style: &Style) -> String {
    let side =
        map.threads.iter().map(|threads| threads.to_string().len()).max().unwrap_or(1).max(SIDE);
    let told = map.predicted.iter().flatten().any(Option::is_some);
    let squares = [("measured", &map.measured), ("predicted", &map.predicted)];
    let squares: Vec<Square<'_>> = squares[..if told { 2 } else { 1 }]
        .iter()
        .map(|(title, values)| Square { map, title, values, side })
        .collect();
    let all = 0..map.columns.len();
    let width = squares.iter().map(|square| square.width(all.clone())).max().unwrap_or(0);
    let mut lines = Vec::new();
    if let [measured, predicted] = squares.as_slice()
        && style.width.is_none_or(|most| 2 * width + GAP <= most)
    {
        let pairs = measured.lines(all.clone(), style).into_iter().zip(predicted.lines(all, style));
        lines.extend(pairs.map(|((left, own), (right, _))| {
            format!("{left}{}{right}", " ".repeat(width - own + GAP))
        }));
    } else {
        for square in &squares {
            for columns in square.blocks(style) {
                lines.extend(square.lines(columns, style).into_iter().map(|(line, _)| line));
            }
        }
    }
    lines.join("\n") + "\n\n"
}

/// Draws as many rows and columns of the measured figures as fit on a screen, including the first
/// and the last.
pub(super) fn on_a_screen(map: &Map, style: &Style) -> String {
    let side = SIDE;
    let square = |map| Square { map, title: "speed-up", values: &map.measured, side };
    let room = style.width.map_or(usize::MAX, |width| width.saturating_sub(side));
    let (threads, columns) = (map.threads.len(), map.columns.len());
    let shown = [spread(threads, MAX_ROWS), spread(columns, room / square(map).cell_width())];
    let [rows, across] = &shown;
    let values = |row: &usize| across.iter().map(|at| map.measured[*row][*at]).collect();
    let part = Map {
        threads: rows.iter().map(|row| map.threads[*row]).collect(),
        columns: across.iter().map(|at| map.columns[*at].clone()).collect(),
        measured: rows.iter().map(values).collect(),
        ..map.clone()
    };
    let lines = square(&part).lines(0..across.len(), style);
    let mut lines: Vec<String> = lines.into_iter().map(|(line, _)| line).collect();
    let more = not_shown(&[(threads - rows.len(), "row"), (columns - across.len(), "column")]);
    lines.extend((!more.is_empty()).then(|| style.paint(DIM, &more)));
    lines.join("\n")
}

/// Measured or predicted figures by number of threads and column.
struct Square<'m> {
    map: &'m Map,
    title: &'static str,
    values: &'m [Vec<Option<f64>>],
    /// Width of the labels with numbers of threads.
    side: usize,
}

impl Square<'_> {
    fn text(value: &Option<f64>) -> String {
        value.map_or_else(|| UNKNOWN.to_string(), digits)
    }

    fn cell_width(&self) -> usize {
        let headings = self.map.columns.iter().map(|heading| heading.width());
        let figures = self.values.iter().flatten().map(|value| Self::text(value).width());
        headings.chain(figures).max().unwrap_or(1) + 1
    }

    fn heading(&self) -> String {
        format!("{}, threads × {}", self.title, self.map.across)
    }

    fn width(&self, columns: Range<usize>) -> usize {
        (self.side + columns.len() * self.cell_width()).max(self.heading().width())
    }

    fn blocks(&self, style: &Style) -> Vec<Range<usize>> {
        let all = self.map.columns.len();
        let room = style.width.map_or(usize::MAX, |width| width.saturating_sub(self.side));
        let most = (room / self.cell_width()).max(1);
        (0..all)
            .step_by(most.min(all.max(1)))
            .map(|from| from..all.min(from.saturating_add(most)))
            .collect()
    }

    /// Lines for a range of columns, each with its width.
    fn lines(&self, columns: Range<usize>, style: &Style) -> Vec<(String, usize)> {
        let cell = self.cell_width();
        let mut head = pad_right("threads", self.side);
        for column in &self.map.columns[columns.clone()] {
            head.push_str(&pad_left(column, cell));
        }
        let width = head.width();
        let heading = style.wrap(&self.heading(), 0);
        let mut lines: Vec<(String, usize)> =
            heading.iter().map(|line| (style.paint(DIM, line), line.width())).collect();
        lines.push((style.paint(BOLD, &head), width));
        for (threads, row) in self.map.threads.iter().zip(self.values) {
            let mut line = style.paint(BOLD, &pad_left(&threads.to_string(), self.side));
            for value in &row[columns.clone()] {
                let figure = pad_left(&Self::text(value), cell);
                line.push_str(&style.paint(shade(*value, *threads), &figure));
            }
            lines.push((line, width));
        }
        lines
    }
}

/// Green if several threads are worthwhile, red if one alone is better.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_fits_any_terminal() {
        let shares = (0..12).map(|share| format!("{}%", share * 10)).collect::<Vec<_>>();
        let figures = vec![(0..12).map(|column| Some(f64::from(column))).collect::<Vec<_>>(); 9];
        let map = Map {
            across: "hold share",
            threads: (1..=9).collect(),
            columns: shares.clone(),
            measured: figures.clone(),
            predicted: figures,
            unpredicted: Vec::new(),
        };
        for width in [24, 30, 40, 79, 160] {
            let text = draw(&map, &Style { color: false, width: Some(width) });
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
            for share in &shares {
                let shown = text.split_whitespace().filter(|word| word == share).count();
                assert_eq!(shown, 2, "{share} at {width}:\n{text}");
            }
        }
    }
}
