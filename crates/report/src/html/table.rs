//! Tables on the page; most can be sorted by any column.

use maud::{Markup, html};

use crate::sentences;
use crate::table::{Cell, Emphasis, Heading, Label, Note, Row, Section};

/// The first rows of a section as a sortable table.
///
/// Headings take two lines if the section has separate headings for the page.
pub(super) fn sortable(section: &Section, name: &str, max_rows: usize) -> Markup {
    let two_lines = section.columns.iter().any(|heading| heading.in_page.is_some());
    let extra = extra(section);
    html! {
        @if extra.contains(&true) {
            label class="all" {
                input type="checkbox"; " all " (section.columns.len()) " columns"
            } "\n"
        }
        div class="scroll" tabindex="0" role="region" aria-label=(name) {
            table class="sortable" { "\n"
                thead {
                    @if two_lines { "\n" (groups(section)) "\n" }
                    tr {
                        th scope="col" {
                            button type="button" title=[two_lines.then_some("")] { (section.row_heading) }
                        }
                        @for (heading, extra) in section.columns.iter().zip(&extra) {
                            th scope="col" class=[extra.then_some("extra")] { button type="button" title=(heading.title) { (text(heading)) } }
                        }
                    }
                    @if two_lines { "\n" }
                } "\n"
                tbody { "\n"
                    @for row in section.rows.iter().take(max_rows) {
                        tr {
                            th scope="row" { (row_label(&row.label, two_lines)) }
                            (cells(section, row, &extra))
                        } "\n"
                    }
                }
            }
        } "\n"
    }
}

/// Maximum number of columns that fit into a page 1400 pixels wide.
const MAX_COLUMNS: usize = 12;

/// Marks the columns that are shown only on request: the least important ones, if the table is too
/// wide.
fn extra(section: &Section) -> Vec<bool> {
    let mut extra = vec![false; section.columns.len()];
    if section.columns.iter().all(|heading| heading.in_page.is_none()) {
        let mut ranked: Vec<usize> = (0..section.columns.len()).collect();
        ranked.sort_by_key(|index| section.columns[*index].rank.unwrap_or(u8::MAX));
        ranked.iter().skip(MAX_COLUMNS).for_each(|index| extra[*index] = true);
    }
    extra
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

/// The label of a row; `explained` says that a note below the table explains its marks.
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

fn cells(section: &Section, row: &Row, extra: &[bool]) -> Markup {
    html! {
        @for ((heading, cell), extra) in section.columns.iter().zip(&row.cells).zip(extra) {
            td class=[class(heading, cell, *extra)] data-v=[sort_key(cell)] title=[title(cell)] {
                @if heading.published { (unbroken(&cell.text)) } @else { (cell.text) }
                @if let Some(verdict) = cell.verdict {
                    " " span class={ "said " (verdict.to_string()) } { (sentences::verdict(verdict)) }
                }
            }
        }
    }
}

fn class(heading: &Heading, cell: &Cell, extra: bool) -> Option<String> {
    let own = if heading.published {
        "published"
    } else {
        match cell.emphasis {
            Emphasis::Main => "main",
            Emphasis::Best => "good",
            Emphasis::Middling => "middling",
            Emphasis::Bad => "bad",
            Emphasis::Plain | Emphasis::Accent | Emphasis::Faint => "",
        }
    };
    let classes = [own, if extra { "extra" } else { "" }].join(" ");
    Some(classes.trim().to_string()).filter(|classes| !classes.is_empty())
}

/// The figure by which the script sorts. A word has none, and is sorted alphabetically.
fn sort_key(cell: &Cell) -> Option<String> {
    match cell.value {
        Some(value) if value.is_finite() => Some(number(value)),
        _ if cell.text.chars().any(char::is_alphabetic) => None,
        _ => Some(String::new()),
    }
}

/// Formats a number for the script, to six digits; empty if not finite.
pub(super) fn number(value: f64) -> String {
    let rounded = format!("{value:.5e}").parse().unwrap_or(value);
    if value.is_finite() { format!("{rounded:e}") } else { String::new() }
}

fn title(cell: &Cell) -> Option<&str> {
    (!cell.title.is_empty()).then_some(&cell.title)
}

/// A figure that may be broken before its year, but not before its unit.
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
