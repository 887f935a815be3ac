//! The tables of the queue scenarios in the page.

use threadtoll_record::{Record, file::Results};

use super::escape::escape;
use super::sortable::{Head, below, sortable};
use crate::queues::{Section, columns, held, notes, sections};

/// Rows of all tables of a run together, and of all charts.
pub(super) const MOST_ROWS: usize = 300;

/// All that was measured of queues; nothing where nothing was.
pub(super) fn section(results: &Results, records: &[Record]) -> String {
    let sections = sections(records);
    if sections.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<h2>Queues</h2>\n<p>Like beside like: what spins with what spins, batches with batches. A message has 8 bytes. {}</p>\n",
        held(&sections).unwrap_or_default()
    );
    let mut left = MOST_ROWS;
    for (nth, section) in sections.iter().enumerate() {
        html.push_str(&table(results, section, nth, &mut left));
    }
    let all: usize = sections.iter().map(|section| section.rows.len()).sum();
    html.push_str(&below(all.saturating_sub(MOST_ROWS), &notes(&sections)));
    html
}

fn table(results: &Results, section: &Section<'_>, nth: usize, left: &mut usize) -> String {
    let rows = &section.rows[..section.rows.len().min(*left)];
    *left -= rows.len();
    if rows.is_empty() {
        return String::new();
    }
    let heading = escape(&section.heading());
    let columns = columns(results, section);
    let heads: Vec<Head<'_>> = columns
        .iter()
        .map(|column| Head {
            group: column.group,
            head: &column.head,
            title: column.title,
            main: column.rank == 0,
        })
        .collect();
    let rows = rows.iter().map(|row| {
        (row.label(), columns.iter().map(|column| (column.value)(section, row)).collect())
    });
    let what = if section.streams { "Messages per second" } else { "One-way medians" };
    format!(
        "<h3>{heading}</h3>\n<div class=\"chart\" data-chart=\"queue\" data-nth=\"{nth}\" role=\"img\" aria-label=\"{what} by queue, best first; the table below has the figures\"></div>\n{}",
        sortable("queue", &heading, &heads, rows)
    )
}
