use threadtoll_record::Record;
use threadtoll_record::file::Results;
use threadtoll_report::text;

use crate::console::StdStream;

pub(crate) fn print_tables(results: &Results, records: &[Record], to: StdStream) {
    let text = text::tables(results, records, &to.style());
    if !text.is_empty() {
        to.print(&text);
    }
}

pub(crate) fn print_screen(results: &Results, records: &[Record], to: StdStream) {
    let text = text::screen(results, records, &to.style());
    if !text.is_empty() {
        to.print("");
        to.print(&text);
    }
}

pub(crate) fn print_findings(results: &Results, records: &[Record], to: StdStream) {
    let text = text::findings(results, records, &to.style());
    if !text.is_empty() {
        to.print("");
        to.print(&text);
    }
}
