//! Comma-separated values: a line for each row of each section.

use crate::format::Format;
use crate::report::Report;

/// Comma-separated values.
#[derive(Clone, Copy, Debug)]
pub struct Csv;

impl Format for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn render(&self, reports: &[Report<'_>]) -> String {
        let mut text = String::new();
        let sections =
            reports.iter().flat_map(|report| &report.tables).flat_map(|table| &table.sections);
        for section in sections {
            let heads = section.columns.iter().map(|column| column.text.as_ref());
            line(&mut text, [section.row_heading].into_iter().chain(heads));
            for row in &section.rows {
                let label = row.label.to_string();
                let cells = row.cells.iter().map(|cell| cell.text.as_str());
                line(&mut text, [label.as_str()].into_iter().chain(cells));
            }
        }
        text
    }
}

fn line<'a>(text: &mut String, fields: impl Iterator<Item = &'a str>) {
    let quoted: Vec<String> =
        fields.map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
    text.push_str(&quoted.join(","));
    text.push('\n');
}
