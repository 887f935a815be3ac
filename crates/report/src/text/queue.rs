//! The tables of the queue scenarios.

use threadtoll_record::{Record, file::Results};

use super::table::{Column, Table, below};
use super::{ACCENT, BOLD, DIM, PLAIN, Style};
use crate::clean::clean;
use crate::label::{cpus, plural, relation};
use crate::queues::{Section, columns, held, notes, sections};
use crate::units::UNKNOWN;

/// Draws what was measured of queues: a table for each way of waiting, of batching and of placing,
/// best first.
///
/// A cell measured in several groups stands here once. Records of other experiments are left to
/// their own tables. Where `style` has a width, columns are dropped until the others fit, and named
/// below.
pub fn queues(results: &Results, records: &[Record], style: &Style) -> String {
    let sections = sections(records);
    let mut text = style.simulated(results.machine.simulated);
    if sections.is_empty() {
        text.push_str("No queue has been measured yet.\n");
        return text;
    }
    let machine = &results.machine;
    let on = format!(
        "Queues on {}, {}, grade {}",
        clean(&machine.cpu).trim(),
        plural(machine.cpus.into(), "CPU"),
        machine.grade
    );
    for line in style.wrap(&on, 0) {
        text.push_str(&(style.paint(BOLD, &line) + "\n"));
    }
    text.push_str(&style.paragraph(DIM, &explanation(&sections)));
    let mut left_out: Vec<String> = Vec::new();
    for section in &sections {
        text.push('\n');
        text.push_str(&style.paragraph(BOLD, &section.heading()));
        let (table, dropped) = table(results, section).draw(style);
        text.push_str(&table);
        left_out.extend(dropped);
    }
    text.push_str(&below(&left_out, notes(&sections), style));
    text
}

fn explanation(sections: &[Section<'_>]) -> String {
    let mut said = Vec::new();
    if sections.iter().any(|section| !section.streams) {
        said.push(
            "Ask-reply: one message under way at any time; one way is half a round trip, round trips are never halved."
                .to_string(),
        );
    }
    if sections.iter().any(|section| section.streams) {
        said.push(
            "Stream: as many messages of 8 bytes as the queue takes, every one verified."
                .to_string(),
        );
    }
    said.extend(held(sections));
    let first = sections.first().and_then(|section| section.rows.first());
    if let Some(cell) = first.map(|row| &row.record.cell) {
        said.push(format!("On {} ({}).", cpus(&cell.cpus), relation(cell.relation)));
    }
    said.join(" ")
}

fn table(results: &Results, section: &Section<'_>) -> Table {
    let columns = columns(results, section)
        .into_iter()
        .map(|column| Column {
            group: column.group.into(),
            head: column.head.clone(),
            rank: column.rank,
            cells: section
                .rows
                .iter()
                .map(|row| {
                    let (_, shown) = (column.value)(section, row);
                    let with = match column.head.as_str() {
                        _ if shown == UNKNOWN => DIM,
                        "version" | "wait" => DIM,
                        "p50" | "per s" => BOLD,
                        "best peer" => ACCENT,
                        _ => PLAIN,
                    };
                    (shown, with)
                })
                .collect(),
        })
        .collect();
    Table {
        head: "queue".into(),
        labels: section.rows.iter().map(|row| row.label()).collect(),
        columns,
    }
}
