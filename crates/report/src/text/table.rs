//! Tables that drop their least important columns where the terminal is too narrow.

use unicode_width::UnicodeWidthStr;

use super::{BOLD, DIM, PLAIN, Style};

/// What stands between two columns.
const GAP: usize = 2;

/// A column of figures, aligned to the right.
#[derive(Debug)]
pub(super) struct Column {
    /// What it shares with its neighbours; drawn once above them. Empty: nothing.
    pub(super) group: String,
    /// What it is.
    pub(super) head: String,
    /// The higher, the sooner it is dropped; 0 never is.
    pub(super) rank: u8,
    /// One cell a row.
    pub(super) cells: Vec<(String, anstyle::Style)>,
}

impl Column {
    fn width(&self) -> usize {
        self.cells.iter().map(|(text, _)| text.width()).max().unwrap_or(0).max(self.head.width())
    }
}

/// A table whose first column is a label for each row.
#[derive(Debug)]
pub(super) struct Table {
    /// What the labels are.
    pub(super) head: String,
    /// One label a row.
    pub(super) labels: Vec<String>,
    /// The other columns.
    pub(super) columns: Vec<Column>,
}

impl Table {
    /// Draws it, and names the columns that were left out.
    pub(super) fn draw(mut self, style: &Style) -> (String, Vec<String>) {
        let natural =
            self.labels.iter().map(|label| label.width()).max().unwrap_or(0).max(self.head.width());
        let most = style.width.map_or(60, |width| (width * 3 / 8).max(12));
        let label_width = natural.min(most);
        let left_out = self.fit(label_width, style.width);
        let widths = self.widths();
        let mut text = self.group_line(label_width, &widths, style);
        let mut head = pad_right(&self.head, label_width);
        for (column, width) in self.columns.iter().zip(&widths) {
            head.push_str(&" ".repeat(GAP));
            head.push_str(&pad_left(&column.head, *width));
        }
        text.push_str(&style.paint(BOLD, &head));
        text.push('\n');
        for (row, label) in self.labels.iter().enumerate() {
            let options = textwrap::Options::new(label_width).subsequent_indent("  ");
            let lines = textwrap::wrap(label, options);
            let (first, rest) =
                lines.split_first().map_or(("", &[][..]), |(first, rest)| (&**first, rest));
            let mut line = pad_right(first, label_width);
            for (column, width) in self.columns.iter().zip(&widths) {
                let (cell, with) = column
                    .cells
                    .get(row)
                    .map_or(("", PLAIN), |(cell, with)| (cell.as_str(), *with));
                line.push_str(&" ".repeat(GAP + width.saturating_sub(cell.width())));
                line.push_str(&style.paint(with, cell));
            }
            text.push_str(line.trim_end());
            text.push('\n');
            for more in rest {
                text.push_str(more);
                text.push('\n');
            }
        }
        (text, left_out)
    }

    /// Drops columns until the others fit.
    fn fit(&mut self, label_width: usize, width: Option<usize>) -> Vec<String> {
        let Some(most) = width else { return Vec::new() };
        let mut dropped = Vec::new();
        while label_width + self.widths().iter().map(|width| width + GAP).sum::<usize>() > most {
            let last = self.columns.iter().enumerate().max_by_key(|(_, column)| column.rank);
            let Some((index, column)) = last else { break };
            if column.rank == 0 {
                break;
            }
            dropped.push((index, column.head.clone()));
            self.columns.remove(index);
        }
        dropped.reverse();
        dropped.into_iter().map(|(_, head)| head).collect()
    }

    /// The columns' widths; the first of a group makes up for what the group's name needs.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(Column::width).collect();
        for (from, to) in self.groups() {
            let name = self.columns[from].group.width();
            let all = widths[from..to].iter().sum::<usize>() + GAP * (to - from - 1);
            widths[from] += (if name == 0 { 0 } else { name }).saturating_sub(all);
        }
        widths
    }

    /// Where each group begins and ends.
    fn groups(&self) -> Vec<(usize, usize)> {
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for (index, column) in self.columns.iter().enumerate() {
            match groups.last_mut() {
                Some((from, to))
                    if self.columns[*from].group == column.group && !column.group.is_empty() =>
                {
                    *to = index + 1;
                }
                _ => groups.push((index, index + 1)),
            }
        }
        groups
    }

    fn group_line(&self, label_width: usize, widths: &[usize], style: &Style) -> String {
        if self.columns.iter().all(|column| column.group.is_empty()) {
            return String::new();
        }
        let mut line = " ".repeat(label_width);
        for (from, to) in self.groups() {
            let name = &self.columns[from].group;
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
        style.paint(DIM, line.trim_end()) + "\n"
    }
}

pub(super) fn pad_left(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

pub(super) fn pad_right(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// What stands below tables: the columns that a narrow terminal left out, each once, and notes.
pub(super) fn below(left_out: &[String], notes: Vec<String>, style: &Style) -> String {
    let mut heads: Vec<&str> = Vec::new();
    for head in left_out {
        if !heads.contains(&head.as_str()) {
            heads.push(head);
        }
    }
    let left_out = (!heads.is_empty()).then(|| {
        format!(
            "Left out for lack of width: {}. A wider terminal, --json and the HTML page have them.",
            heads.join(", ")
        )
    });
    let notes: String =
        left_out.into_iter().chain(notes).map(|note| style.paragraph(DIM, &note)).collect();
    if notes.is_empty() { notes } else { format!("\n{notes}") }
}
