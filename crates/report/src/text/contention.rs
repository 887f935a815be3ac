//! The tables and maps of experiments with locks.

use anstyle::AnsiColor;
use threadtoll_record::{Record, file::Results};
use unicode_width::UnicodeWidthStr;

use super::table::{Column, Table, below, pad_left, pad_right};
use super::{ACCENT, BOLD, DIM, PLAIN, Style};
use crate::clean::clean;
use crate::label::plural;
use crate::locks::{Map, Section, columns, notes, sections};
use crate::units::{UNKNOWN, digits};

/// What stands between the two halves of a map.
const BETWEEN: usize = 4;

/// Draws what was measured of locks: a map of the speed-up for each, the prediction beside it, and
/// a table of its cells.
///
/// Records of other experiments are left to their own tables. Where `style` has a width, columns
/// are dropped until the others fit, and named below.
pub fn contention(results: &Results, records: &[Record], style: &Style) -> String {
    let sections = sections(records);
    let mut text = style.simulated(results.machine.simulated);
    if sections.is_empty() {
        text.push_str("No lock has been measured yet.\n");
        return text;
    }
    let machine = &results.machine;
    let on = format!(
        "Locks on {}, {}, grade {}",
        clean(&machine.cpu).trim(),
        plural(machine.cpus.into(), "CPU"),
        machine.grade
    );
    text.push_str(&style.paragraph(BOLD, &on));
    text.push_str(&style.paragraph(
        DIM,
        "Speed-up: work per second of all threads against one thread alone without the lock. What is predicted was written down before the cell was measured.",
    ));
    let mut left_out: Vec<String> = Vec::new();
    for section in &sections {
        text.push('\n');
        text.push_str(&style.paragraph(BOLD, &section.heading()));
        if let Some(map) = section.map() {
            text.push_str(&draw(&map, style));
            text.push('\n');
        }
        let (table, dropped) = table(section).draw(style);
        text.push_str(&table);
        left_out.extend(dropped);
    }
    text.push_str(&below(&left_out, notes(&sections), style));
    text
}

fn table(section: &Section<'_>) -> Table {
    let columns = columns(section)
        .into_iter()
        .map(|column| Column {
            group: column.group.into(),
            head: column.head.into(),
            rank: column.rank,
            cells: section
                .rows
                .iter()
                .map(|row| {
                    let (_, shown) = (column.value)(row);
                    let with = match (column.group, column.head) {
                        _ if shown == UNKNOWN => DIM,
                        (_, "measured") => BOLD,
                        ("speed-up", "predicted" | "off by") => ACCENT,
                        _ => PLAIN,
                    };
                    (shown, with)
                })
                .collect(),
        })
        .collect();
    Table { head: "cell".into(), labels: section.labels(), columns }
}

/// A map: threads downwards, hold share or interval to the right, once as measured and once as
/// predicted. Side by side where there is room.
fn draw(map: &Map, style: &Style) -> String {
    let half = |title: &str, values: &[Vec<Option<f64>>]| square(map, title, values, style);
    let measured = half("measured", &map.measured);
    let mut text = String::new();
    if map.predicted.iter().flatten().all(Option::is_none) {
        measured.iter().for_each(|(line, _)| text.push_str(&format!("{line}\n")));
        return text;
    }
    let predicted = half("predicted", &map.predicted);
    let widest = measured.iter().map(|(_, width)| *width).max().unwrap_or(0);
    let beside = style.width.is_none_or(|width| 2 * widest + BETWEEN <= width);
    if beside {
        for ((left, width), (right, _)) in measured.iter().zip(&predicted) {
            let gap = " ".repeat(widest - width + BETWEEN);
            text.push_str(&format!("{left}{gap}{right}\n"));
        }
    } else {
        measured.iter().chain(&predicted).for_each(|(line, _)| text.push_str(&format!("{line}\n")));
    }
    text
}

/// The lines of one half, each with its width.
fn square(
    map: &Map,
    title: &str,
    values: &[Vec<Option<f64>>],
    style: &Style,
) -> Vec<(String, usize)> {
    let shown = |value: &Option<f64>| value.map_or_else(|| UNKNOWN.to_string(), digits);
    let heads = map.columns.iter().map(|head| head.width());
    let figures = values.iter().flatten().map(|value| shown(value).width());
    let cell = heads.chain(figures).max().unwrap_or(1) + 1;
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
            let figure = pad_left(&shown(value), cell);
            line.push_str(&style.paint(shade(*value, *threads), &figure));
        }
        lines.push((line, width));
    }
    lines
}

/// Green where threads are worth having, red where one alone is better.
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
