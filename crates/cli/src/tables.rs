//! Results on the terminal: a table per experiment, then the sentences that its figures allow.

use threadtoll_record::file::Results;
use threadtoll_record::{Experiment, Record};
use threadtoll_report::text;

use crate::console::Stream;

/// Prints a table for each experiment that has records.
pub(crate) fn print_tables(results: &Results, records: &[Record], to: Stream) {
    let style = to.style();
    if records.iter().any(|record| record.experiment == Experiment::Latency) {
        to.print(&text::ladder(results, records, &style));
    }
    if records.iter().any(|record| record.experiment == Experiment::Matrix) {
        to.print("");
        to.print(&text::matrix(results, records, &style));
    }
    if records.iter().any(|record| matches!(record.experiment, Experiment::Queue(_))) {
        to.print(&text::queues(results, records, &style));
    }
    if records.iter().any(|record| matches!(record.experiment, Experiment::Contention(_))) {
        to.print(&text::contention(results, records, &style));
    }
}

/// Prints the sentences that the figures allow.
pub(crate) fn print_verdict(results: &Results, records: &[Record], to: Stream) {
    let sentences = text::verdict(results, records);
    if sentences.is_empty() {
        return;
    }
    to.print("");
    for sentence in sentences {
        to.print(&format!("• {sentence}"));
    }
}
