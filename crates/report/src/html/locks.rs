//! What was measured of locks, in the page: a map for each, the prediction beside it, and the table
//! of its cells.

use std::fmt::Write;

use threadtoll_record::Record;

use super::escape::escape;
use super::sortable::{Head, below, sortable};
use crate::locks::{Section, columns, notes, sections};

/// Rows of all tables of a run together.
const MOST_ROWS: usize = 500;

/// All that was measured of locks; nothing where nothing was.
pub(super) fn section(records: &[Record]) -> String {
    let sections = sections(records);
    if sections.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<h2>Locks</h2>\n<p>Work per second of all threads against one thread alone without the lock. What is predicted was written down before the cell was measured.</p>\n",
    );
    let mut left = MOST_ROWS;
    for section in &sections {
        let heading = escape(&section.heading());
        let _ = writeln!(html, "<h3>{heading}</h3>");
        if section.map().is_some() {
            let _ = writeln!(
                html,
                "<div class=\"chart\" data-chart=\"surface\" data-label=\"{heading}\" role=\"img\" aria-label=\"Speed-up by threads as a heat map, measured and predicted; the table below has the figures\"></div>"
            );
        }
        html.push_str(&table(section, &heading, &mut left));
    }
    let all: usize = sections.iter().map(|section| section.rows.len()).sum();
    html.push_str(&below(all.saturating_sub(MOST_ROWS), &notes(&sections)));
    html
}

fn table(section: &Section<'_>, heading: &str, left: &mut usize) -> String {
    let shown = section.rows.len().min(*left);
    *left -= shown;
    if shown == 0 {
        return String::new();
    }
    let columns = columns(section);
    let heads: Vec<Head<'_>> = columns
        .iter()
        .map(|column| Head {
            group: column.group,
            head: column.head,
            title: column.title,
            main: column.rank == 0,
        })
        .collect();
    let rows = section.rows[..shown]
        .iter()
        .zip(section.labels())
        .map(|(row, label)| (label, columns.iter().map(|column| (column.value)(row)).collect()));
    sortable("cell", heading, &heads, rows)
}
