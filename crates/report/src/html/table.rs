//! Tables of the page; most are sortable by any column.

use maud::{Markup, html};

use crate::sentences;
use crate::table::{Cell, Emphasis, Heading, Label, Note, Row, Section};

/// The first rows of a section as a sortable table.
///
/// Headings take two lines if the section has headings for a page.
pub(super) fn sortable(section: &Section, name: &str, max_rows: usize) -> Markup {
    let two_lines = section.columns.iter().any(|heading| heading.in_page.is_some());
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(name) {
            table class="sortable" { "\n"
                thead {
                    @if two_lines { "\n" (groups(section)) "\n" }
                    tr {
                        th scope="col" {
                            button type="button" title=[two_lines.then_some("")] { (section.row_heading) }
                        }
                        @for heading in &section.columns {
                            th scope="col" { button type="button" title=(heading.title) { (text(heading)) } }
                        }
                    }
                    @if two_lines { "\n" }
                } "\n"
                tbody { "\n"
                    @for row in section.rows.iter().take(max_rows) {
                        tr {
                            th scope="row" { (row_label(&row.label, two_lines)) }
                            (cells(section, row))
                        } "\n"
                    }
                }
            }
        } "\n"
    }
}

fn groups(section: &Section) -> Markup {
    let group = |heading: &Heading| heading.in_page.as_ref().map_or("", |(group, _)| group);
    let groups = section.columns.chunk_by(|a, b| group(a) == group(b) && !group(a).is_empty());
    html! {
        tr class="groups" {
            td {}
            @for columns in groups {
                @if group(&columns[0]).is_empty() {
                    td {}
                } @else {
                    th colspan=(columns.len()) scope="colgroup" { (group(&columns[0])) }
                }
            }
        }
    }
}

fn text(heading: &Heading) -> String {
    match &heading.in_page {
        Some((_, text)) => text.to_string(),
        None if heading.group.is_empty() => heading.text.to_string(),
        None => format!("{} {}", heading.group, heading.text),
    }
}

/// The label of a row; `explained` if a note below the table explains its marks.
fn row_label(label: &Label, explained: bool) -> Markup {
    html! {
        @if explained {
            (label.text)
            @if label.marks.disturbed {
                " " abbr title="more than a quarter of its blocks were disturbed" { "!" }
            }
        } @else {
            (label.to_string())
        }
    }
}

fn cells(section: &Section, row: &Row) -> Markup {
    html! {
        @for (heading, cell) in section.columns.iter().zip(&row.cells) {
            td class=[class(heading, cell)] data-v=[sort_key(cell)] title=[title(cell)] {
                @if heading.published { (unbroken(&cell.text)) } @else { (cell.text) }
                @if let Some(verdict) = cell.verdict {
                    " " span class={ "said " (verdict.to_string()) } { (sentences::verdict(verdict)) }
                }
            }
        }
    }
}

fn class(heading: &Heading, cell: &Cell) -> Option<&'static str> {
    if heading.published {
        Some("published")
    } else {
        match cell.emphasis {
            Emphasis::Main => Some("main"),
            Emphasis::Best => Some("good"),
            Emphasis::Middling => Some("middling"),
            Emphasis::Bad => Some("bad"),
            Emphasis::Plain | Emphasis::Accent | Emphasis::Faint => None,
        }
    }
}

/// The figure by which the script sorts. Words have none, and are sorted alphabetically.
fn sort_key(cell: &Cell) -> Option<String> {
    match cell.value {
        Some(value) if value.is_finite() => Some(number(value)),
        _ if cell.text.chars().any(char::is_alphabetic) => None,
        _ => Some(String::new()),
    }
}

/// Formats a number for the script; empty if not finite.
pub(super) fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:e}") } else { String::new() }
}

fn title(cell: &Cell) -> Option<&str> {
    (!cell.title.is_empty()).then_some(&cell.title)
}

/// A figure that may break before its year, but not before its unit.
fn unbroken(text: &str) -> String {
    text.replacen(" µs", "\u{a0}µs", 1).replacen(" ns", "\u{a0}ns", 1)
}

pub(super) fn sort_button(heading: &str) -> Markup {
    html! { th scope="col" { button type="button" { (heading) } } }
}

pub(super) fn plain(section: &Section) -> Markup {
    html! {
        div class="scroll fit" {
            table {
                thead {
                    tr {
                        th scope="col" { (section.row_heading) }
                        @for heading in &section.columns { th scope="col" { (text(heading)) } }
                    }
                }
                tbody { "\n"
                    @for row in &section.rows {
                        tr {
                            th scope="row" { (row.label.text) }
                            @for cell in &row.cells { td { (cell.text) } }
                        } "\n"
                    }
                }
            }
        } "\n"
    }
}

pub(super) fn more_rows(left_out: usize) -> Markup {
    html! {
        @if left_out > 0 { p class="note" { (left_out) " more rows are in the file." } "\n" }
    }
}

pub(super) fn notes(notes: &[Note]) -> Markup {
    html! {
        @for note in notes { p class="note" { (note.text) } "\n" }
    }
}
