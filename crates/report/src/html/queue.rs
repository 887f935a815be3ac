//! The tables of the queue scenarios in the page.

use std::fmt::Write;

use threadtoll_record::{Record, file::Results};

use super::escape::escape;
use crate::queues::{Section, columns, notes, sections};

/// Rows of all tables of a run together.
const MOST_ROWS: usize = 300;

/// All that was measured of queues; nothing where nothing was.
pub(super) fn section(results: &Results, records: &[Record]) -> String {
    let sections = sections(records);
    if sections.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<h2>Queues</h2>\n<p>Like beside like: what spins with what spins, batches with batches. Bounded queues hold 1024 messages, and a message has 8 bytes.</p>\n",
    );
    let mut left = MOST_ROWS;
    for section in &sections {
        html.push_str(&table(results, section, &mut left));
    }
    let all: usize = sections.iter().map(|section| section.rows.len()).sum();
    if all > MOST_ROWS {
        let _ = writeln!(html, "<p class=\"note\">{} more rows are in the file.</p>", all - MOST_ROWS);
    }
    for note in notes(&sections) {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", escape(&note));
    }
    html
}

fn table(results: &Results, section: &Section<'_>, left: &mut usize) -> String {
    let rows = &section.rows[..section.rows.len().min(*left)];
    *left -= rows.len();
    if rows.is_empty() {
        return String::new();
    }
    let heading = escape(&section.heading());
    let columns = columns(results, section);
    let mut html = format!(
        "<h3>{heading}</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{heading}\"><table class=\"sortable\">\n<thead><tr><th scope=\"col\"><button type=\"button\">queue</button></th>"
    );
    for column in &columns {
        let head = match column.group {
            "" => column.head.clone(),
            group => format!("{group} {}", column.head),
        };
        let _ = write!(
            html,
            "<th scope=\"col\"><button type=\"button\" title=\"{}\">{}</button></th>",
            escape(column.title),
            escape(&head)
        );
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&row.label()));
        for column in &columns {
            let (value, shown) = (column.value)(section, row);
            let main = if column.rank == 0 { " class=\"main\"" } else { "" };
            // Words are sorted as they stand, figures by what they are.
            let sorted = match value.filter(|value| value.is_finite()) {
                Some(value) => format!(" data-v=\"{value:e}\""),
                None if shown.chars().any(char::is_alphabetic) => String::new(),
                None => " data-v=\"\"".into(),
            };
            let _ = write!(html, "<td{main}{sorted}>{}</td>", escape(&shown));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}
