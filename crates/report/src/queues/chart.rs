use threadtoll_record::Origin;

use super::{Comparison, Row};
use crate::table::Marks;

#[derive(Debug)]
pub(crate) struct ChartRow {
    pub(crate) label: String,
    pub(crate) kind: &'static str,
    /// Million messages per second, or time in nanoseconds.
    pub(crate) figure: f64,
    pub(crate) text: String,
    pub(crate) interval: Option<[f64; 2]>,
}

impl Comparison<'_> {
    /// `None` for a row without a figure.
    pub(crate) fn chart_rows(&self) -> impl Iterator<Item = Option<ChartRow>> {
        self.rows.iter().map(|row| self.chart_row(row))
    }

    fn chart_row(&self, row: &Row<'_>) -> Option<ChartRow> {
        let record = &row.record;
        let ns = row.ns()?;
        let interval = (self.view().interval)(record);
        let (figure, interval) = if self.streams() {
            (1e3 / ns, interval.map(|interval| interval.map(|rate| rate / 1e6)))
        } else {
            (ns, interval)
        };
        let kind = match row.origin() {
            Some(Origin::Ours) => "threadtoll",
            Some(Origin::Raw) => "bare copy",
            Some(_) => "peer",
            None => "mechanism",
        };
        let wait = row.queue().map(|queue| format!(" ({})", queue.wait.name()));
        let capacity = row.queue().and_then(|queue| queue.capacity);
        let capacity =
            capacity.filter(|_| self.repeats(row)).map(|capacity| format!(", {capacity}"));
        let label = format!(
            "{}{}{}{}",
            row.name(),
            wait.unwrap_or_default(),
            capacity.unwrap_or_default(),
            Marks::of(record)
        );
        let text = (self.view().text)(record);
        Some(ChartRow { label, kind, figure, text, interval })
    }

    /// Returns `true` if the queue was also measured with a different capacity.
    fn repeats(&self, row: &Row<'_>) -> bool {
        let variant =
            |row: &Row<'_>| row.queue().map(|queue| (queue.queue.clone(), queue.wait, queue.batch));
        self.rows.iter().filter(|other| variant(other) == variant(row)).count() > 1
    }
}
