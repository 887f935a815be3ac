//! For the terminal.

mod fit;
mod machine;
mod map;
mod plot;
mod prediction;
mod square;
mod table;

use anstyle::{AnsiColor, Effects};
use threadtoll_record::{Record, file::Results};

pub use crate::findings::findings;
pub use fit::fit;
pub use machine::machine;
pub use prediction::prediction;

use crate::figure::Figure;
use crate::format::Format;
use crate::report::Report;
use crate::table::{Table, Topic};

/// Tables and sentences, each as wide as it is or as a terminal takes it.
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
        let findings = report.findings.iter().map(|finding| format!("• {finding}\n"));
        parts.push(findings.collect());
        self.style.simulated(report.results.machine.simulated) + &parts.join("\n")
    }
}

/// Colours and width of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// `true` if colours may be used.
    pub color: bool,
    /// Columns of the terminal; `None` if it is not one, and everything is drawn as wide as it is.
    pub width: Option<usize>,
}

const PLAIN: anstyle::Style = anstyle::Style::new();
const BOLD: anstyle::Style = anstyle::Style::new().effects(Effects::BOLD);
const DIM: anstyle::Style = anstyle::Style::new().effects(Effects::DIMMED);
const GOOD: anstyle::Style = AnsiColor::Green.on_default().effects(Effects::BOLD);
const MIDDLING: anstyle::Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);
const BAD: anstyle::Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
const ACCENT: anstyle::Style = AnsiColor::Cyan.on_default();

/// Lines of running text are no longer than this, however wide the terminal: longer ones are hard
/// to read.
const MAX_TEXT_WIDTH: usize = 100;

impl Style {
    fn paint(&self, with: anstyle::Style, text: &str) -> String {
        if self.color && with != PLAIN && !text.is_empty() {
            format!("{}{text}{}", with.render(), with.render_reset())
        } else {
            text.to_string()
        }
    }

    /// Breaks running text into lines; those after the first begin with `indent` spaces.
    fn wrap(&self, text: &str, indent: usize) -> Vec<String> {
        let blank = " ".repeat(indent);
        let width = self
            .width
            .unwrap_or(MAX_TEXT_WIDTH)
            .clamp(indent + 20, MAX_TEXT_WIDTH.max(indent + 20));
        let options = textwrap::Options::new(width).subsequent_indent(&blank);
        textwrap::wrap(text, options).into_iter().map(std::borrow::Cow::into_owned).collect()
    }

    /// Breaks running text into lines and paints each.
    fn paragraph(&self, with: anstyle::Style, text: &str) -> String {
        self.wrap(text, 0).iter().map(|line| self.paint(with, line) + "\n").collect()
    }

    /// Says on top of everything that nothing real was measured; empty where it was.
    fn simulated(&self, simulated: bool) -> String {
        if !simulated {
            return String::new();
        }
        let text = "SIMULATED: a simulated machine made these figures. They say nothing about any real one.";
        self.paragraph(BAD, text)
    }
}

/// Draws a table for each experiment that has records.
///
/// A cell measured in several groups, as the reference is, has one row. Where `style` has a width,
/// columns are dropped until the others fit, and named below.
pub fn tables(results: &Results, records: &[Record], style: &Style) -> String {
    let measured = |topic: &Topic| records.iter().any(|one| Topic::of(&one.experiment) == *topic);
    let mut text = String::new();
    for topic in Topic::ALL.into_iter().filter(measured) {
        let table = topic.table(results, records);
        // A heading would set it apart.
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

/// Draws a table with everything above and below it.
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
            Some(Figure::SpeedUp(map)) => map::draw(map, style),
            Some(Figure::Pairs(pairs)) => square::draw(pairs, style),
            None => String::new(),
        });
        let (rows, headings) = table::draw(section, style);
        text.push_str(&rows);
        left_out.extend(headings);
    }
    text + &footer(table, left_out, style)
}

/// The columns that were left out, each once, and the notes.
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
            "Left out for lack of width: {}. A wider terminal, --json and the HTML page have them.",
            left_out.join(", ")
        ));
    }
    lines.extend(notes.map(|note| note.text.clone()));
    let lines: String = lines.iter().map(|line| style.paragraph(DIM, line)).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}
