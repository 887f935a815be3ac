//! Plain text, for the terminal.

mod comparison;
mod fit;
mod layout;
mod machine;
mod map;
mod models;
mod plot;
mod pool;
mod prediction;
mod profile;
mod screen;
mod square;
mod table;

use anstyle::{AnsiColor, Effects};
use threadtoll_record::{Record, file::Results};

pub use comparison::{comparison, comparison_screen};
pub use fit::{fit, fit_screen};
pub use machine::{machine, machine_screen};
pub use pool::{pool, pool_screen};
pub use prediction::{prediction, prediction_screen};
pub use profile::{first_screen, profile};
pub use screen::screen;

use crate::answer::Answer;
use crate::figure::Figure;
use crate::format::Format;
use crate::report::{Report, table};
use crate::sentences::Sentence;
use crate::table::{Table, Topic};

const NO_BREAK: char = '\u{A0}';

/// Joins figures to their units, so that no line is broken between them.
fn unbroken(text: &str) -> String {
    const UNITS: [&str; 11] = ["ns", "µs", "ms", "s", "min", "h", "B", "KiB", "ppm", "M/s", "M"];
    let mut tied = String::with_capacity(text.len());
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 {
            let unit = word.trim_end_matches([',', '.', ';', ':', ')']);
            let after_figure = tied.ends_with(|c: char| c.is_ascii_digit());
            tied.push(if after_figure && UNITS.contains(&unit) { NO_BREAK } else { ' ' });
        }
        tied.push_str(word);
    }
    tied
}

/// Tables and findings as text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text {
    /// Colours and width.
    pub style: Style,
}

impl Format for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn render(&self, reports: &[Report<'_>]) -> String {
        let reports: Vec<String> = reports.iter().map(|report| self.report(report)).collect();
        reports.join("\n")
    }
}

impl Text {
    fn report(&self, report: &Report<'_>) -> String {
        let mut parts: Vec<String> =
            report.tables.iter().map(|table| draw(table, &self.style)).collect();
        parts.push(said(&report.answer, &self.style));
        self.style.simulated(report.results.machine.simulated) + &parts.join("\n")
    }
}

/// Colours and width of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// True if colours may be used.
    pub color: bool,
    /// Number of columns of the terminal. If it is `None`, because the output is not a terminal,
    /// nothing is wrapped or dropped.
    pub width: Option<usize>,
}

const PLAIN: anstyle::Style = anstyle::Style::new();
const BOLD: anstyle::Style = anstyle::Style::new().effects(Effects::BOLD);
const DIM: anstyle::Style = anstyle::Style::new().effects(Effects::DIMMED);
const GOOD: anstyle::Style = AnsiColor::Green.on_default().effects(Effects::BOLD);
const MIDDLING: anstyle::Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);
const BAD: anstyle::Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
const ACCENT: anstyle::Style = AnsiColor::Cyan.on_default();

const SIMULATED: &str = "SIMULATED: these figures say nothing about a real machine.";

/// Maximum length of a line of running text on wide terminals: longer lines are hard to read.
const MAX_TEXT_WIDTH: usize = 100;

/// Minimum length of a line without its indentation; narrower terminals break lines themselves.
const MIN_TEXT_WIDTH: usize = 12;

impl Style {
    fn paint(&self, with: anstyle::Style, text: &str) -> String {
        if self.color && with != PLAIN && !text.is_empty() {
            format!("{}{text}{}", with.render(), with.render_reset())
        } else {
            text.to_string()
        }
    }

    /// All lines but the first are indented by `indent` spaces.
    fn wrap(&self, text: &str, indent: usize) -> Vec<String> {
        let blank = " ".repeat(indent);
        let least = indent + MIN_TEXT_WIDTH;
        let width = self.width.unwrap_or(MAX_TEXT_WIDTH).clamp(least, MAX_TEXT_WIDTH.max(least));
        let options = textwrap::Options::new(width).subsequent_indent(&blank);
        let text = unbroken(text);
        let lines = textwrap::wrap(&text, options).into_iter();
        lines.map(|line| line.replace(NO_BREAK, " ")).collect()
    }

    fn paragraph(&self, with: anstyle::Style, text: &str) -> String {
        self.wrap(text, 0).iter().map(|line| self.paint(with, line) + "\n").collect()
    }

    /// Wraps text between words if the output is a terminal.
    pub fn wrapped(&self, text: &str) -> String {
        match self.width {
            Some(_) => self.wrap(text, 0).join("\n"),
            None => text.to_string(),
        }
    }

    fn bullets(&self, sentences: &[Sentence]) -> String {
        let bullet = |sentence: &Sentence| match self.width {
            Some(_) => self.wrap(&format!("• {sentence}"), 2).join("\n") + "\n",
            None => format!("• {sentence}\n"),
        };
        sentences.iter().map(bullet).collect()
    }

    fn simulated(&self, simulated: bool) -> String {
        if simulated { self.paragraph(BAD, SIMULATED) } else { String::new() }
    }
}

/// Renders a table for each experiment that has records.
///
/// A cell that was measured in several groups, as the reference was, has one row. If `style` has a
/// width, columns are dropped until the others fit, and their names are listed below the table.
pub fn tables(results: &Results, records: &[Record], style: &Style) -> String {
    let measured = |topic: &Topic| records.iter().any(|one| Topic::of(&one.experiment) == *topic);
    let mut text = String::new();
    for topic in Topic::ALL.into_iter().filter(measured) {
        let table = table(topic, results, records);
        if table.as_ref().is_some_and(|table| table.sections.is_empty()) {
            continue;
        }
        // Without a heading, an empty line separates the table from the text before it.
        if table.as_ref().is_some_and(|table| table.heading.is_empty()) {
            text.push('\n');
        }
        text.push_str(&style.simulated(results.machine.simulated));
        text.push_str(&match table {
            Some(table) => draw(&table, style),
            None => format!("No {} has been measured yet.\n", topic.subject()),
        });
    }
    text
}

/// Renders the comparisons of rows, and the findings as bullets. Returns an empty text if there are
/// none.
pub fn findings(results: &Results, records: &[Record], style: &Style) -> String {
    said(&Answer::of(results, records), style)
}

fn said(answer: &Answer, style: &Style) -> String {
    let compared = answer.findings.compared.as_ref().map(|section| {
        format!("{}{}\n", style.paragraph(BOLD, &section.heading), table::draw(section, style).0)
    });
    compared.unwrap_or_default() + &style.bullets(&answer.findings.told)
}

fn draw(table: &Table, style: &Style) -> String {
    let mut text = String::new();
    if !table.heading.is_empty() {
        text.push_str(&style.paragraph(BOLD, &table.heading));
        text.push_str(&style.paragraph(DIM, &table.introduction));
        text.push('\n');
    }
    let mut left_out = Vec::new();
    for (index, section) in table.sections.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        if !section.heading.is_empty() {
            text.push_str(&style.paragraph(BOLD, &section.heading));
        }
        text.push_str(&match &section.figure {
            Some(Figure::SpeedUp(map)) if map.columns.len() > 1 => map::draw(map, style),
            Some(Figure::Pairs(pairs)) if pairs.values.len() > 1 => square::draw(pairs, style),
            Some(_) | None => String::new(),
        });
        let (rows, headings) = table::draw(section, style);
        text.push_str(&rows);
        left_out.extend(headings);
    }
    text + &footer(table, left_out, style)
}

fn footer(table: &Table, mut left_out: Vec<String>, style: &Style) -> String {
    let mut seen = Vec::new();
    left_out.retain(|heading| {
        let new = !seen.contains(heading);
        seen.push(heading.clone());
        new
    });
    let notes = table.notes.iter().filter(|note| {
        note.column.is_none_or(|column| !left_out.iter().any(|heading| heading == column))
    });
    let mut lines = Vec::new();
    if !left_out.is_empty() {
        lines.push(format!(
            "Columns that did not fit: {}. Widen the terminal, or see --json or the HTML page.",
            left_out.join(", ")
        ));
    }
    lines.extend(notes.map(|note| note.text.clone()));
    let lines: String = lines.iter().map(|line| style.paragraph(DIM, line)).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}
