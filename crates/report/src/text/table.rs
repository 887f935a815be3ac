//! Tables for terminals. A narrow terminal drops the least important columns; if the others still
//! do not fit, each row becomes a paragraph.

use unicode_width::UnicodeWidthStr;

use super::{ACCENT, BAD, BOLD, DIM, GOOD, MIDDLING, PLAIN, Style};
use crate::sentences;
use crate::table::{Cell, Emphasis, Heading, Label, Section};
use crate::units::UNKNOWN;

const GAP: usize = 2;
/// Maximum width of the labels if the terminal sets no limit.
const MAX_LABEL_WIDTH: usize = 60;

/// Returns the drawing, and the headings of the dropped columns.
pub(super) fn draw(section: &Section, style: &Style) -> (String, Vec<String>) {
    let mut labels: Vec<String> =
        section.rows.iter().map(|row| text_of_label(&row.label)).collect();
    let mut heading = section.row_heading.to_string();
    let is_number = |label: &String| label.chars().all(|c| c.is_ascii_digit() || c == '\u{202F}');
    if labels.iter().all(is_number) {
        let widest = labels.iter().chain([&heading]).map(|label| label.width()).max();
        let pad = |label: &mut String| *label = pad_left(label, widest.unwrap_or(0));
        labels.iter_mut().chain([&mut heading]).for_each(pad);
    }
    Drawing::new(section, heading, labels, style).draw()
}

fn text_of_label(label: &Label) -> String {
    let placement = label.placement.map(|placement| format!(" ({placement})")).unwrap_or_default();
    format!("{}{placement}{}", label.text, label.marks)
}

fn text_of_cell(cell: &Cell) -> String {
    match cell.verdict {
        Some(verdict) => format!("{} {}", cell.text, sentences::verdict(verdict)),
        None => cell.text.clone(),
    }
}

fn style_of(cell: &Cell) -> anstyle::Style {
    match cell.emphasis {
        _ if cell.text == UNKNOWN => DIM,
        Emphasis::Plain => PLAIN,
        Emphasis::Main => BOLD,
        Emphasis::Best => GOOD,
        Emphasis::Middling => MIDDLING,
        Emphasis::Bad => BAD,
        Emphasis::Accent => ACCENT,
        Emphasis::Faint => DIM,
    }
}

struct Column<'s> {
    heading: &'s Heading,
    cells: Vec<(String, anstyle::Style)>,
    width: usize,
}

impl<'s> Column<'s> {
    fn new(section: &'s Section, index: usize) -> Self {
        let heading = &section.columns[index];
        let cells: Vec<(String, anstyle::Style)> = section
            .rows
            .iter()
            .map(|row| (text_of_cell(&row.cells[index]), style_of(&row.cells[index])))
            .collect();
        let width = cells.iter().map(|(text, _)| text.width()).max().unwrap_or(0);
        Column { heading, cells, width: width.max(heading.text.width()) }
    }
}

struct Drawing<'s> {
    row_heading: String,
    labels: Vec<String>,
    label_width: usize,
    columns: Vec<Column<'s>>,
    style: &'s Style,
}

impl<'s> Drawing<'s> {
    fn new(
        section: &'s Section,
        row_heading: String,
        labels: Vec<String>,
        style: &'s Style,
    ) -> Self {
        let natural = labels.iter().map(|label| label.width()).max().unwrap_or(0);
        let most = style.width.map_or(MAX_LABEL_WIDTH, |width| (width * 3 / 8).max(12));
        let label_width = natural.max(row_heading.width()).min(most);
        let columns = (0..section.columns.len())
            .filter(|index| section.columns[*index].rank.is_some())
            .map(|index| Column::new(section, index))
            .collect();
        Drawing { row_heading, labels, label_width, columns, style }
    }

    fn draw(mut self) -> (String, Vec<String>) {
        let style = self.style;
        let left_out = self.fit();
        if self.is_too_wide() {
            return (self.stacked(), left_out);
        }
        let widths = self.widths();
        let mut text = self.group_line(&widths);
        let mut head = pad_right(&self.row_heading, self.label_width);
        for (column, width) in self.columns.iter().zip(&widths) {
            head.push_str(&" ".repeat(GAP));
            head.push_str(&pad_left(&column.heading.text, *width));
        }
        text.push_str(&style.paint(BOLD, &head));
        text.push('\n');
        for (row, label) in self.labels.iter().enumerate() {
            let options = textwrap::Options::new(self.label_width).subsequent_indent("  ");
            let mut lines = textwrap::wrap(label, options).into_iter();
            let mut line = pad_right(&lines.next().unwrap_or_default(), self.label_width);
            for (column, width) in self.columns.iter().zip(&widths) {
                let (cell, with) = &column.cells[row];
                line.push_str(&" ".repeat(GAP + width.saturating_sub(cell.width())));
                line.push_str(&style.paint(*with, cell));
            }
            text.push_str(line.trim_end());
            text.push('\n');
            for rest in lines {
                text.push_str(&rest);
                text.push('\n');
            }
        }
        (text, left_out)
    }

    fn fit(&mut self) -> Vec<String> {
        let mut dropped = Vec::new();
        while self.is_too_wide() {
            let last =
                self.columns.iter().enumerate().max_by_key(|(_, column)| column.heading.rank);
            let Some((index, column)) = last else { break };
            if column.heading.rank == Some(0) {
                break;
            }
            dropped.push(column.heading.text.to_string());
            self.columns.remove(index);
        }
        dropped.reverse();
        dropped
    }

    fn is_too_wide(&self) -> bool {
        let width = self.label_width + self.widths().iter().map(|width| width + GAP).sum::<usize>();
        self.style.width.is_some_and(|most| width > most)
    }

    /// A paragraph for each row: its label, followed by a line for each column.
    fn stacked(&self) -> String {
        let style = self.style;
        let mut text = style.paragraph(BOLD, self.row_heading.trim());
        for (row, label) in self.labels.iter().enumerate() {
            text.push_str(&style.paragraph(PLAIN, label.trim()));
            for Column { heading, cells, .. } in &self.columns {
                let (cell, with) = &cells[row];
                if cell.is_empty() {
                    continue;
                }
                let heading = format!("{} {}", heading.group, heading.text);
                let lines = style.wrap(&format!("  {}: {cell}", heading.trim()), 4);
                for line in lines {
                    // A cell on a single line is painted as in a table.
                    match line.strip_suffix(cell.as_str()) {
                        Some(before) => {
                            text.push_str(&format!("{before}{}", style.paint(*with, cell)))
                        }
                        None => text.push_str(&line),
                    }
                    text.push('\n');
                }
            }
        }
        text
    }

    /// If the heading of a group is wider than its columns, the first of these columns is widened.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.width).collect();
        for (from, to) in self.groups() {
            let all = widths[from..to].iter().sum::<usize>() + GAP * (to - from - 1);
            widths[from] += self.columns[from].heading.group.width().saturating_sub(all);
        }
        widths
    }

    /// For each group, the index of its first column and the index after its last column.
    fn groups(&self) -> Vec<(usize, usize)> {
        let group = |index: usize| self.columns[index].heading.group;
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for index in 0..self.columns.len() {
            match groups.last_mut() {
                Some((from, to)) if group(*from) == group(index) && !group(index).is_empty() => {
                    *to = index + 1;
                }
                _ => groups.push((index, index + 1)),
            }
        }
        groups
    }

    fn group_line(&self, widths: &[usize]) -> String {
        if self.columns.iter().all(|column| column.heading.group.is_empty()) {
            return String::new();
        }
        let mut line = " ".repeat(self.label_width);
        for (from, to) in self.groups() {
            let name = self.columns[from].heading.group;
            let all = widths[from..to].iter().sum::<usize>() + GAP * (to - from - 1);
            let spare = all.saturating_sub(name.width());
            line.push_str(&" ".repeat(GAP));
            if name.is_empty() {
                line.push_str(&" ".repeat(all));
            } else if spare >= 4 {
                let left = (spare - 2) / 2;
                line.push_str(&format!(
                    "{} {name} {}",
                    "─".repeat(left),
                    "─".repeat(spare - 2 - left)
                ));
            } else {
                line.push_str(&pad_left(name, all));
            }
        }
        self.style.paint(DIM, line.trim_end()) + "\n"
    }
}

pub(super) fn pad_left(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

pub(super) fn pad_right(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}
