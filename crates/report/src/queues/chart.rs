//! Charts of queues.

use threadtoll_record::{Origin, PerSecond};

use super::{Comparison, Row};
use crate::cost::{cpu_ns, switches};
use crate::table::Marks;
use crate::units::{digits, digits_range, maybe_time, per_op, time, time_within};

#[derive(Debug)]
pub(crate) struct ChartRow {
    pub(crate) label: String,
    /// Kind of queue, for the legend.
    pub(crate) kind: &'static str,
    /// Million messages per second, or the one-way median in nanoseconds.
    pub(crate) figure: f64,
    pub(crate) interval: Option<[f64; 2]>,
    /// Details, one per line.
    pub(crate) lines: Vec<String>,
}

impl Comparison<'_> {
    /// The first rows that have a figure, without twins.
    pub(crate) fn chart_rows(&self, max_rows: usize) -> Vec<ChartRow> {
        let rows = self.rows.iter().take(max_rows).filter(|row| !row.record.cell.is_twin());
        rows.filter_map(|row| self.chart_row(row)).collect()
    }

    fn chart_row(&self, row: &Row<'_>) -> Option<ChartRow> {
        let record = &row.record;
        let ns = row.ns()?;
        let (figure, interval) = if self.streams() {
            let millions = |rate: PerSecond| rate.get() / 1e6;
            (1e3 / ns, record.interval95.rate_per_s.map(|interval| interval.map(millions)))
        } else {
            (ns, record.one_way_p50_interval95())
        };
        let kind = match row.origin() {
            Some(Origin::Ours | Origin::Twin) => "threadtoll",
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
        Some(ChartRow {
            label,
            kind,
            figure,
            interval,
            lines: self.lines(row, ns, figure, interval),
        })
    }

    fn lines(
        &self,
        row: &Row<'_>,
        ns: f64,
        figure: f64,
        interval: Option<[f64; 2]>,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(row.queue().map(|queue| format!("receiver: {}", queue.wait.name())));
        if self.streams() {
            let interval = interval
                .map_or_else(String::new, |interval| format!(" ({})", digits_range(interval)));
            lines.push(format!("{} million messages per s{interval}", digits(figure)));
            lines.push(format!("a message: {}", time(ns)));
        } else {
            lines.push(format!("one way p50 {}", time_within(ns, interval)));
            let quantiles = &row.record.quantiles;
            lines.push(format!(
                "round trip p50 {}, p99 {}",
                maybe_time(quantiles.p50),
                maybe_time(quantiles.p99)
            ));
        }
        let cost = &row.record.cost;
        if let (Some(cpu_ns), Some(switches)) = (cpu_ns(cost), switches(cost)) {
            lines.push(format!("per message: CPU {}, {} switches", time(cpu_ns), per_op(switches)));
        }
        lines
    }

    /// Returns `true` if the row's queue was also measured with another capacity.
    fn repeats(&self, row: &Row<'_>) -> bool {
        let variant =
            |row: &Row<'_>| row.queue().map(|queue| (queue.queue.clone(), queue.wait, queue.batch));
        self.rows.iter().filter(|other| variant(other) == variant(row)).count() > 1
    }
}
