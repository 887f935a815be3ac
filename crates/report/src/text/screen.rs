use threadtoll_record::{Record, file::Results};
use unicode_width::UnicodeWidthStr;

use super::layout::{self, LINES, Part, not_shown};
use super::plot::{Curve, plot};
use super::table::{self, pad_left, pad_right};
use super::{ACCENT, BOLD, DIM, PLAIN, Style, map, square};
use crate::answer::Answer;
use crate::profile::locks::shortened;
use crate::screen::{Bar, CURVES, Curves, Picture, Rows, Screen};
use crate::table::Marks;

/// Maximum and minimum width of the longest bar, in columns.
const BAR: usize = 40;
const LEAST_BAR: usize = 8;
/// Maximum width of a bar's label, in columns.
const MAX_LABEL: usize = 32;
const CURVE_ROWS: usize = 10;
/// Characters of each curve: between its points, and at its points.
const GLYPHS: [(char, char); CURVES] = [('·', '●'), ('-', '○'), ('+', '◆')];
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Draws the answer, its picture and the remarks in at most 23 lines. The text is empty if there
/// are no figures.
pub fn screen(results: &Results, records: &[Record], style: &Style) -> String {
    let simulated = results.machine.simulated;
    let screen = Answer::of(results, records).screen;
    screen.map_or_else(String::new, |screen| lines(&screen, simulated, style))
}

pub(super) fn lines(screen: &Screen, simulated: bool, style: &Style) -> String {
    let style = layout::style(style);
    let mut parts = vec![Part::text(&style, DIM, &title(screen, &style), 2, 7)];
    if simulated {
        parts.push(Part::text(&style, super::BAD, super::SIMULATED, 2, 0));
    }
    let answer = screen.answer.iter().enumerate().map(|(nth, sentence)| {
        let with = if nth == 0 { BOLD } else { PLAIN };
        Part::text(&style, with, &sentence.to_string(), 0, nth as u8)
    });
    parts.extend(answer);
    if let Some(picture) = &screen.picture {
        parts.push(Part::BLANK);
        parts.extend(draw(picture, &style));
        parts.push(Part::BLANK);
    }
    let room = LINES.saturating_sub(parts.len());
    let remarks = screen.remarks.iter().take(room);
    parts.extend(remarks.map(|remark| Part::text(&style, DIM, &remark.to_string(), 0, 8)));
    layout::fit(parts, &style)
}

/// Such as `What a hand-off costs · machine grade B of A–D · 2 CPUs · AMD EPYC · virtual`. Details
/// at the end are omitted if there is no room.
fn title(screen: &Screen, style: &Style) -> String {
    let mut title = screen.title.clone();
    for about in &screen.about {
        let longer = format!("{title} · {about}");
        if longer.width() <= style.width.unwrap_or(layout::WIDTH) {
            title = longer;
        }
    }
    title
}

fn draw(picture: &Picture, style: &Style) -> Vec<Part> {
    match picture {
        Picture::Bars(bars) => draw_bars(bars, style),
        Picture::Rows(Rows { section, more: (more, one) }) => {
            let mut parts = Vec::new();
            if !section.heading.is_empty() {
                parts.push(Part::text(style, PLAIN, &section.heading, 2, 6));
            }
            let (table, left_out) = table::draw(section, style);
            parts.extend(Part::lines(&table));
            let notes = Marks::notes(std::slice::from_ref(section));
            parts.extend(notes.iter().map(|note| Part::text(style, DIM, &note.text, 3, 6)));
            let more = not_shown(&[(*more, one), (left_out.len(), "column")]);
            parts.extend((!more.is_empty()).then(|| Part::text(style, DIM, &more, 0, 7)));
            parts
        }
        Picture::Curves(Curves { x, y, curves, .. }) => {
            let drawn = curves.iter().zip(GLYPHS).map(|(curve, (line, mark))| Curve {
                name: curve.name.clone(),
                line,
                mark: Some(mark),
                with: ACCENT,
                points: curve.points.clone(),
            });
            let marks = "● ○ ◆ measured";
            let y = y.clone().titled(&format!("{}, by {} ({marks})", y.title, x.title));
            let x = x.clone().titled("");
            Part::lines(&plot(&x, &y, &drawn.collect::<Vec<_>>(), CURVE_ROWS, style))
        }
        Picture::SpeedUp(map) => Part::lines(&map::on_a_screen(map, style)),
        Picture::Pairs(pairs) => Part::lines(&square::on_a_screen(pairs, style)),
    }
}

fn draw_bars(bars: &[Bar], style: &Style) -> Vec<Part> {
    let widest = |of: fn(&Bar) -> &str| bars.iter().map(|bar| of(bar).width()).max().unwrap_or(0);
    let kind = widest(|bar| bar.kind);
    let (figure, note) = (widest(|bar| &bar.figure), widest(|bar| &bar.note));
    let used = kind + 2 + 2 + figure + 1 + if note > 0 { note + 2 } else { 0 };
    let left = style.width.unwrap_or(layout::WIDTH).saturating_sub(used);
    let longest = left.saturating_sub(LEAST_BAR).min(MAX_LABEL);
    let names: Vec<String> = bars.iter().map(|bar| shortened(&bar.label, longest)).collect();
    let label = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let room = left.saturating_sub(label).clamp(LEAST_BAR, BAR);
    let least = bars.iter().map(|bar| bar.ns).fold(f64::INFINITY, f64::min) / 1.5;
    let most = bars.iter().map(|bar| bar.ns).fold(0.0, f64::max);
    let mut before = "";
    let row = |(bar, name): (&Bar, &String)| {
        let shown = if bar.kind == before { "" } else { bar.kind };
        before = bar.kind;
        let length = (bar.ns / least).ln() / (most / least).ln() * room as f64;
        let drawn = blocks(length.clamp(0.0, room as f64));
        let with = if bar.faint { DIM } else { ACCENT };
        let text = format!(
            "{}  {}  {} {}",
            pad_right(shown, kind),
            pad_right(name, label),
            style.paint(if bar.faint { DIM } else { BOLD }, &pad_left(&bar.figure, figure)),
            style.paint(with, &drawn)
        );
        let gap = " ".repeat(room.saturating_sub(drawn.width()) + 2);
        let note = style.paint(DIM, &bar.note);
        let line = if note.is_empty() { text } else { format!("{text}{gap}{note}") };
        Part { lines: vec![line], with: PLAIN, rank: 0 }
    };
    bars.iter().zip(&names).map(row).collect()
}

/// Rounds to an eighth of a column.
fn blocks(columns: f64) -> String {
    let eighths = (columns * 8.0).round() as usize;
    let rest = (eighths % 8).checked_sub(1).map(|part| EIGHTHS[part]);
    "█".repeat(eighths / 8).chars().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Cell, Column, Label, Section};

    #[test]
    fn bars_end_at_an_eighth_of_a_column() {
        assert_eq!(blocks(0.0), "");
        assert_eq!(blocks(2.5), "██▌");
        assert_eq!(blocks(0.13), "▏");
        assert_eq!(blocks(3.0), "███");
    }

    #[test]
    fn a_screen_explains_its_marks() {
        let columns = vec![Column::new("", "p99", 0, |(): &()| Cell::text("1 ns"))];
        let marks = Marks { disturbed: true, oversubscribed: true };
        let label = |(): &()| Label { marks, ..Label::new("pipe") };
        let section = Section::new("", "queue", columns, &[()], label);
        let shown = layout::all(
            draw(&Rows::first(section, "queue").unwrap(), &Style::default()),
            &Style::default(),
        );
        assert!(shown.contains("pipe ! *"), "{shown}");
        assert!(shown.contains("!  more than a quarter of the measurements were disturbed.\n"));
        assert!(shown.contains("*  oversubscribed: more threads than CPUs"), "{shown}");
    }
}
