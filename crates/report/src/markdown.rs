use std::fmt::{Display, Write};

use threadtoll_record::Comparison;

use crate::comparison::{differences, findings, notes, runs, sections, summary};
use crate::table::Section;

/// Renders the comparison for a comment on a pull request: changes and findings are visible at
/// once, and all rows are in a section that can be opened.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = format!("### threadtoll: {}\n", escaped(summary(comparison)));
    if comparison.base.simulated || comparison.new.simulated {
        text.push_str("\n**Simulated: these figures say nothing about a real machine.**\n");
    }
    let changed = sections(comparison, true);
    changed.iter().for_each(|section| table(&mut text, section));
    text.push('\n');
    for finding in findings(comparison) {
        let _ = writeln!(text, "- {}", escaped(finding));
    }
    text.push_str("\n<details><summary>All rows, runs and machines</summary>\n\n");
    for line in runs(comparison) {
        let _ = writeln!(text, "- {}", code(&line));
    }
    for difference in differences(comparison) {
        let _ = writeln!(text, "- {}", escaped(difference));
    }
    sections(comparison, false).iter().for_each(|section| table(&mut text, section));
    text.push('\n');
    for note in notes(comparison) {
        let _ = writeln!(text, "{}\n", escaped(note.text));
    }
    text.push_str("</details>\n");
    text
}

fn table(text: &mut String, section: &Section) {
    let headings: Vec<&str> = section.columns.iter().map(|column| &*column.text).collect();
    let _ = writeln!(text, "\n**{}**\n", escaped(&section.heading));
    let _ = writeln!(text, "| {} | {} |", section.row_heading, headings.join(" | "));
    let _ = writeln!(text, "|---|{}", "---:|".repeat(headings.len()));
    for row in &section.rows {
        let cells: Vec<String> = row.cells.iter().map(|cell| escaped(&cell.text)).collect();
        let _ = writeln!(text, "| {} | {} |", code(&row.label.to_string()), cells.join(" | "));
    }
}

fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('|', "\\|"))
}

/// Escapes a text, so that it contains no markup and mentions nobody.
fn escaped(text: impl Display) -> String {
    let mut escaped = String::new();
    for c in text.to_string().chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '@' => escaped.push_str("@<!-- -->"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_be_markup() {
        assert_eq!(escaped("a|b <i> *c* @d &"), "a\\|b &lt;i> \\*c\\* @<!-- -->d &amp;");
        assert_eq!(code("a|b `c`"), "`a\\|b 'c'`");
    }
}
