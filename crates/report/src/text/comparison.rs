use threadtoll_record::Comparison;

use super::screen::lines;
use super::table::draw;
use super::{BOLD, DIM, PLAIN, Style};
use crate::comparison::{differences, findings, notes, runs, screen, sections, summary};

/// Draws, on one screen, the changes, the rows that show them, and undecided results.
pub fn comparison_screen(comparison: &Comparison, style: &Style) -> String {
    let simulated = comparison.base.simulated || comparison.new.simulated;
    lines(&screen(comparison), simulated, style)
}

/// Renders the comparison of two runs: differences, tables and findings.
pub fn comparison(comparison: &Comparison, style: &Style) -> String {
    let mut text = style.simulated(comparison.base.simulated || comparison.new.simulated);
    text.push_str(&style.paragraph(BOLD, &summary(comparison).to_string()));
    for run in runs(comparison) {
        text.push_str(&style.paragraph(PLAIN, &run));
    }
    for difference in differences(comparison) {
        text.push_str(&style.paragraph(DIM, &difference.to_string()));
    }
    let mut left_out = Vec::new();
    for section in sections(comparison, false) {
        text.push('\n');
        text.push_str(&style.paragraph(BOLD, &section.heading));
        let (rows, dropped) = draw(&section, style);
        text.push_str(&rows);
        left_out.extend(dropped);
    }
    left_out.dedup();
    text.push('\n');
    for note in notes(comparison) {
        text.push_str(&style.paragraph(DIM, &note.text));
    }
    if !left_out.is_empty() {
        let columns = left_out.join(", ");
        let note =
            format!("Columns that did not fit: {columns}. Widen the terminal, or see --json.");
        text.push_str(&style.paragraph(DIM, &note));
    }
    let findings = findings(comparison);
    if !findings.is_empty() {
        text.push('\n');
        text.push_str(&style.bullets(&findings));
    }
    text
}
