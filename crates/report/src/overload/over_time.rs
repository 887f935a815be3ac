//! The queue of an overloaded lock over time.

use threadtoll_record::{Ratio, Record};

use super::{Rates, Row, rates};
use crate::figure::{QueueCurve, QueueOverTime};
use crate::units::round_time;

/// Drawings for each rate at which the lock was overloaded: for each lock and work, the highest
/// rate first.
pub(crate) fn queues(records: &[Record]) -> Vec<QueueOverTime> {
    let all = rates(records);
    let of = |rates: &Rates<'_>| -> Vec<QueueOverTime> {
        let mut by_rate = rates.by_rate();
        by_rate.reverse();
        let overloaded = by_rate.iter().filter(|rows| rows[0].load.arrivals.value() > 1.0);
        overloaded.map(|rows| over_time(rates, rows)).collect()
    };
    all.iter().flat_map(of).collect()
}

fn over_time(rates: &Rates<'_>, rows: &[Row<'_>]) -> QueueOverTime {
    let first = &rows[0];
    let [from_ns, until_ns] = first.found.overload_ns.map(|ns| ns.as_f64());
    QueueOverTime {
        heading: format!("{}, {} the callers it can serve", rates.name(), first.rate()),
        sentence: format!(
            "Number of callers who wait, mean over the measurements. The overload lasts from {} to {}; before and after it, arrivals are at most half of what the lock can serve.",
            round_time(from_ns),
            round_time(until_ns)
        ),
        overload_ns: [from_ns, until_ns],
        curves: rows.iter().map(curve).collect(),
    }
}

fn curve(row: &Row<'_>) -> QueueCurve {
    let length_ns = row.found.length_ns.as_f64();
    let points = |queue: &[Ratio]| -> Vec<(f64, f64)> {
        let slice_ns = length_ns / queue.len().max(1) as f64;
        let middle = |nth: usize| (nth as f64 + 0.5) * slice_ns;
        queue.iter().enumerate().map(|(nth, mean)| (middle(nth), mean.get())).collect()
    };
    QueueCurve {
        name: row.rule(),
        measured: points(&row.found.queue),
        predicted: row.predicted().map_or_else(Vec::new, |told| points(&told.queue)),
    }
}
