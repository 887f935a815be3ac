use maud::{Markup, html};

use crate::sentences;
use crate::table::{Cell, Emphasis, Heading, Note, Section};

/// Maximum number of columns on a page that is 1400 pixels wide; `page.css` hides further columns.
const MAX_COLUMNS: usize = 12;

pub(super) fn sortable(section: &Section, name: &str, max_rows: usize) -> Markup {
    let wide = section.columns.len() > MAX_COLUMNS;
    html! {
        @if wide {
            label class="all" {
                input type="checkbox"; " all " (section.columns.len()) " columns"
            } "\n"
        }
        div class=(if wide { "scroll wide" } else { "scroll" }) tabindex="0" role="region" aria-label=(name) {
            (drawn(section, true, max_rows))
        } "\n"
    }
}

pub(super) fn plain(section: &Section) -> Markup {
    html! { div class="scroll fit" { (drawn(section, false, usize::MAX)) } "\n" }
}

fn drawn(section: &Section, sorts: bool, max_rows: usize) -> Markup {
    let order = order(section);
    let headings: Vec<&Heading> = order.iter().map(|index| &section.columns[*index]).collect();
    let groups = headings.iter().any(|heading| !heading.group.is_empty());
    let heading = |text: &str| {
        html! { th scope="col" { @if sorts { button type="button" { (text) } } @else { (text) } } }
    };
    html! {
        table class=[sorts.then_some("sortable")] { "\n"
            thead {
                @if groups { "\n" (group_line(&headings)) "\n" }
                tr { (heading(section.row_heading)) @for own in &headings { (heading(&own.text)) } }
            } "\n"
            tbody { "\n"
                @for row in section.rows.iter().take(max_rows) {
                    tr {
                        th scope="row" { (row.label.to_string()) }
                        @for index in &order { (cell(&row.cells[*index])) }
                    } "\n"
                }
            }
        }
    }
}

fn order(section: &Section) -> Vec<usize> {
    let all = 0..section.columns.len();
    let mut ranked: Vec<usize> = all.clone().collect();
    ranked.sort_by_key(|index| section.columns[*index].rank.unwrap_or(u8::MAX));
    let shown = &ranked[..ranked.len().min(MAX_COLUMNS)];
    let (shown, hidden): (Vec<usize>, Vec<usize>) = all.partition(|index| shown.contains(index));
    shown.into_iter().chain(hidden).collect()
}

fn group_line(headings: &[&Heading]) -> Markup {
    let (shown, hidden) = headings.split_at(headings.len().min(MAX_COLUMNS));
    let groups = |part: &[&Heading]| {
        let groups = part.chunk_by(|a, b| a.group == b.group && !a.group.is_empty());
        groups.map(|group| (group[0].group, group.len())).collect::<Vec<_>>()
    };
    let both = [(groups(shown), None), (groups(hidden), Some("extra"))];
    html! {
        tr class="groups" {
            td {}
            @for (groups, class) in &both {
                @for (name, columns) in groups {
                    @if name.is_empty() {
                        td class=[*class] {}
                    } @else {
                        th class=[*class] colspan=(columns) scope="colgroup" { (name) }
                    }
                }
            }
        }
    }
}

fn cell(cell: &Cell) -> Markup {
    let class = match cell.emphasis {
        Emphasis::Main => Some("main"),
        Emphasis::Best => Some("good"),
        Emphasis::Middling => Some("middling"),
        Emphasis::Bad => Some("bad"),
        Emphasis::Plain | Emphasis::Accent | Emphasis::Faint => None,
    };
    let title = Some(&cell.title).filter(|title| !title.is_empty());
    html! {
        td class=[class] title=[title] {
            (cell.text)
            @if let Some(verdict) = cell.verdict {
                " " span class={ "said " (verdict.to_string()) } { (sentences::verdict(verdict)) }
            }
        }
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
