//! The columns of a table of queues.

use std::collections::BTreeSet;

use threadtoll_record::{Against, Record, file::Results};

use super::{Comparison, Row, decided};
use crate::clean::clean;
use crate::cost::{cpu_ns, switches};
use crate::place::Place;
use crate::processes;
use crate::regimes::{self, Figures};
use crate::table::{self, Cell, Emphasis};
use crate::units::{digits, digits_range, per_op, ratio, round_time, share, time, time_range};

pub(super) const PLACE: &str = "place";

type Column<'c, 'a> = table::Column<'c, Row<'a>>;

pub(super) fn columns<'c, 'a>(
    results: &Results,
    comparison: &'c Comparison<'a>,
) -> Vec<Column<'c, 'a>> {
    let mut columns = vec![
        Column::new("", PLACE, 2, "first and last place that the intervals allow", |row| {
            Place::cell(row.place)
        })
        .emphasis(Emphasis::Faint),
        Column::new("", "wait", 1, "wait strategy of the receiver", |row| {
            Cell::text(row.queue().map_or("", |queue| queue.wait.name()))
        })
        .emphasis(Emphasis::Faint),
        Column::new("", "version", 9, "version of the queue", |row| {
            Cell::text(row.queue().map_or_else(String::new, |queue| clean(&queue.version)))
        })
        .emphasis(Emphasis::Faint),
    ];
    let rings: BTreeSet<String> = comparison.rows.iter().filter_map(Row::ring).collect();
    if rings.len() > 1 {
        let title = "memory of a bounded queue’s messages";
        columns.push(Column::new("", "ring", 3, title, |row| {
            let bytes = row.queue().and_then(|queue| queue.ring_bytes);
            Cell::new(bytes.map(|bytes| bytes as f64), row.ring().unwrap_or_default())
        }));
    }
    columns.extend(if comparison.streams() { stream(comparison) } else { ask_reply(results) });
    columns.extend(ratio_column(comparison));
    columns.extend([
        Column::new("per message", "CPU", 6, "CPU time of all ends per message", |row| {
            Cell::figure(cpu_ns(&row.record.cost), time)
        }),
        Column::new("per message", "switches", 8, "context switches per message", |row| {
            Cell::figure(switches(&row.record.cost), per_op)
        }),
    ]);
    columns.extend(processes::column(9, &comparison.rows, |row| Some(&row.record)));
    columns
}

fn ask_reply<'c, 'a>(results: &Results) -> Vec<Column<'c, 'a>> {
    let round_trip = |heading: &'static str, rank: u8, figure: fn(&Record) -> Option<f64>| {
        Column::new("round trip", heading, rank, "round trip", move |row| {
            Cell::figure(figure(&row.record), time)
        })
    };
    let over = format!(">{}", round_time(results.plan.over_ns as f64));
    vec![
        Column::new("one way", "p50", 0, "half of the median round trip", |row| {
            regimes::figure(&row.record, |figures| figures.one_way_p50(), time)
        })
        .emphasis(Emphasis::Main),
        Column::new("one way", "95%", 10, "95% interval of the one-way median", |row| {
            regimes::each(&row.record, |figures| figures.one_way_p50_interval95().map(time_range))
        }),
        round_trip("p99", 4, |record| record.quantiles.p99.map(f64::from)),
        round_trip("p99.9", 11, |record| record.quantiles.p999.map(f64::from)),
        round_trip("max", 7, |record| record.max.map(f64::from)),
        Column::new("round trip", over, 5, "share of round trips over the limit", |row| {
            Cell::figure(row.record.over.share, share)
        }),
    ]
}

fn stream<'c, 'a>(comparison: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let mut columns = vec![
        Column::new(
            "million messages",
            "per s",
            0,
            "messages of 8 bytes per second, median over blocks",
            |row| {
                let rate = |figures: &Figures<'_>| figures.rate_per_s.map(f64::from);
                regimes::figure(&row.record, rate, |rate| digits(rate / 1e6))
            },
        )
        .emphasis(Emphasis::Main),
        Column::new("million messages", "95%", 4, "95% interval of the rate", |row| {
            regimes::each(&row.record, |figures| {
                Some(digits_range(figures.rate_interval95?.map(|rate| rate.get() / 1e6)))
            })
        }),
        Column::new("", "message time", 5, "time per message", |row| Cell::figure(row.ns(), time)),
    ];
    if let Some(limit) = comparison.bare_copy() {
        let title =
            "share of the fastest bare copy’s rate, from paired blocks where both are in one group";
        columns.push(Column::new("of the", "bare copy", 3, title, |row| {
            let paired = row.against(&limit.record.cell).map(|against| against.ratio.get());
            let rates = row.record.rate_per_s.zip(limit.record.rate_per_s);
            Cell::figure(
                paired.or_else(|| rates.map(|(rate, limit)| rate.get() / limit.get())),
                share,
            )
        }));
    }
    columns
}

/// Ratios to one of our rows with verdicts or, in exchanges without one, to the reference cell.
fn ratio_column<'c, 'a>(comparison: &'c Comparison<'a>) -> Option<Column<'c, 'a>> {
    const RATIO_TO: &str = "ratio to";
    if let Some(base) = comparison.base() {
        let title = "ratio of paired blocks, with the verdict of its 95% interval on this row";
        let name =
            format!("{}, {}", base.name(), base.queue().map_or("", |queue| queue.wait.name()));
        let column = Column::new(RATIO_TO, name, 2, title, |row| match comparison.to_base(row) {
            Some(against) => match comparison.to_base_by_regime(row) {
                Some(text) => Cell { text, ..to(&against) },
                None => Cell { verdict: decided(&against), ..to(&against) },
            },
            None => Cell::empty(),
        });
        return Some(column.emphasis(Emphasis::Accent));
    }
    let first = |row: &Row<'_>| row.record.against.first().cloned();
    let reference = comparison.rows.iter().find_map(first).filter(|_| !comparison.streams())?;
    let title = "ratio to the reference cell, from paired blocks";
    Some(Column::new(RATIO_TO, clean(reference.cell.name()), 3, title, move |row| {
        let figure = |figures: &Figures<'_>| Some(ratio(figures.against.first()?.ratio.get()));
        first(row).map_or_else(Cell::empty, |against| Cell {
            text: regimes::each(&row.record, figure).text,
            ..to(&against)
        })
    }))
}

fn to(against: &Against) -> Cell {
    let title = digits_range(against.interval95.map(f64::from));
    Cell { title, ..Cell::figure(Some(against.ratio), ratio) }
}
