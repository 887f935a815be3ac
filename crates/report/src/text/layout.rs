//! Distributes the lines of a screen among its parts.

use unicode_width::UnicodeWidthStr;

use super::{PLAIN, Style};
use crate::label::plural;

/// Number of lines of a screen: a small terminal's 24, less one for the prompt.
pub(super) const LINES: usize = 23;
/// Width of a screen if the terminal does not report its own.
pub(super) const WIDTH: usize = 80;

/// A sentence, a row or a blank line. If room is short, only its first line is shown.
pub(super) struct Part {
    pub(super) lines: Vec<String>,
    pub(super) with: anstyle::Style,
    /// Once each part has its first line, parts with a lower rank are the first to get more lines.
    pub(super) rank: u8,
}

impl Part {
    pub(super) const BLANK: Part = Part { lines: Vec::new(), with: PLAIN, rank: 1 };

    pub(super) fn text(
        style: &Style,
        with: anstyle::Style,
        text: &str,
        indent: usize,
        rank: u8,
    ) -> Self {
        Part { lines: style.wrap(text, indent), with, rank }
    }

    pub(super) fn lines(drawing: &str) -> Vec<Part> {
        let line = |line: &str| Part { lines: vec![line.to_string()], with: PLAIN, rank: 0 };
        drawing.lines().map(line).collect()
    }
}

/// Style of a screen: as wide as the terminal, but no wider than easily readable text.
pub(super) fn style(style: &Style) -> Style {
    let width = style.width.unwrap_or(WIDTH).clamp(40, super::MAX_TEXT_WIDTH);
    Style { width: Some(width), ..*style }
}

/// Such as `16 more rows, 1 more column: --details`; empty if all are shown.
pub(super) fn not_shown(more: &[(usize, &str)]) -> String {
    let more = more.iter().filter(|(number, _)| *number > 0);
    let more = more.map(|(number, one)| plural(*number as u64, &format!("more {one}")));
    let more: Vec<String> = more.collect();
    if more.is_empty() { String::new() } else { format!("{}: --details", more.join(", ")) }
}

pub(super) fn all(parts: Vec<Part>, style: &Style) -> String {
    let lines = |part: Part| match part.lines.is_empty() {
        true => "\n".to_string(),
        false => part.lines.iter().map(|line| style.paint(part.with, line) + "\n").collect(),
    };
    parts.into_iter().map(lines).collect()
}

pub(super) fn fit(mut parts: Vec<Part>, style: &Style) -> String {
    parts.dedup_by(|a, b| a.lines.is_empty() && b.lines.is_empty());
    let mut granted: Vec<usize> = parts.iter().map(|part| part.lines.len().min(1)).collect();
    let mut room = LINES.saturating_sub(granted.iter().sum());
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|index| parts[*index].rank);
    while room > 0 {
        let needs = |index: &&usize| granted[**index] < parts[**index].lines.len().max(1);
        let Some(index) = order.iter().find(needs) else { break };
        granted[*index] += 1;
        room -= 1;
    }
    let width = style.width.unwrap_or(WIDTH);
    let mut text = String::new();
    for (part, granted) in parts.into_iter().zip(granted) {
        let lines = match part.lines.is_empty() {
            true => vec![String::new(); granted],
            false => truncate(part.lines, granted, width),
        };
        for line in lines {
            text.push_str(style.paint(part.with, &line).trim_end());
            text.push('\n');
        }
    }
    text
}

/// Keeps the first `most` lines. If there are more, the last line that is kept ends with an
/// ellipsis.
fn truncate(mut lines: Vec<String>, most: usize, width: usize) -> Vec<String> {
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            if last.width() + 2 > width {
                while last.width() + 2 > width {
                    last.pop();
                }
                // A number that is cut in half would read as a different number.
                last.truncate(last.rfind(' ').unwrap_or(last.len()));
            }
            last.truncate(last.trim_end().len());
            last.push_str(" …");
        }
    }
    lines
}
