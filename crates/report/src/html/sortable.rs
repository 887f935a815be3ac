//! Tables of the page that can be sorted by any column.

use std::fmt::Write;

use super::escape::escape;

/// The head of a column.
pub(super) struct Head<'a> {
    /// What it shares with its neighbours.
    pub(super) group: &'a str,
    /// What it is, short.
    pub(super) head: &'a str,
    /// What it is, in words.
    pub(super) title: &'a str,
    /// Whether it is what the table is about.
    pub(super) main: bool,
}

/// A table: what its rows are, its name (fit for HTML), its columns, and for each row its label,
/// and for each column the figure to sort by and what is shown.
pub(super) fn sortable(
    what: &str,
    name: &str,
    heads: &[Head<'_>],
    rows: impl Iterator<Item = (String, Vec<(Option<f64>, String)>)>,
) -> String {
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\"><table class=\"sortable\">\n<thead><tr><th scope=\"col\"><button type=\"button\">{what}</button></th>"
    );
    for Head { group, head, title, .. } in heads {
        let head = if group.is_empty() { (*head).to_string() } else { format!("{group} {head}") };
        let _ = write!(
            html,
            "<th scope=\"col\"><button type=\"button\" title=\"{}\">{}</button></th>",
            escape(title),
            escape(&head)
        );
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (label, cells) in rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&label));
        for (head, (value, shown)) in heads.iter().zip(cells) {
            let main = if head.main { " class=\"main\"" } else { "" };
            // Words are sorted as they stand, figures by what they are.
            let sorted = match value.filter(|value| value.is_finite()) {
                Some(value) => format!(" data-v=\"{value:e}\""),
                None if shown.chars().any(char::is_alphabetic) => String::new(),
                None => " data-v=\"\"".into(),
            };
            let _ = write!(html, "<td{main}{sorted}>{}</td>", escape(&shown));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

/// What stands below the tables of a section: how many rows were left out, and the notes.
pub(super) fn below(left_out: usize, notes: &[String]) -> String {
    let mut html = String::new();
    if left_out > 0 {
        let _ = writeln!(html, "<p class=\"note\">{left_out} more rows are in the file.</p>");
    }
    for note in notes {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", escape(note));
    }
    html
}
