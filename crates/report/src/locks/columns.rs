use threadtoll_record::CellPrediction;

use super::{Row, Sweep};
use crate::claims::{PublishedPool, published_pool};
use crate::cost::{cpu_ns, switches};
use crate::own_program;
use crate::processes;
use crate::regimes::{self, InRegime};
use crate::table::{self, Cell, Emphasis};
use crate::units::{deviation, digits, digits_range, per_op, ratio, share, time};

type Column<'a> = table::Column<'static, Row<'a>>;

pub(super) fn columns<'a>(sweep: &Sweep<'a>) -> Vec<Column<'a>> {
    let of_pool = sweep.rows.iter().any(|row| row.contention.total_s.is_some());
    let mut columns = Vec::new();
    if of_pool {
        columns.extend([
            Column::new("all tasks", "measured", 0, |row| seconds(row.contention.total_s)).main(),
            Column::new("all tasks", "predicted", 4, |row| {
                seconds(row.predicted().and_then(|told| told.total_s))
            }),
        ]);
    }
    columns.extend(published(sweep, "all tasks", "published", |pool| time(pool.total_ms * 1e6)));
    columns.extend([
        Column::new("speed-up", "measured", 0, |row| {
            let speedup = |figures: &InRegime<'_>| figures.contention?.speedup.map(f64::from);
            regimes::figure(row.record, speedup, ratio)
        })
        .main(),
        Column::new("speed-up", "95%", 5, |row| {
            regimes::each(row.record, |figures| {
                Some(digits_range(figures.contention?.speedup_interval95?.map(f64::from)))
            })
        }),
        predicted("speed-up", "predicted", 1, |told| told.speedup.map(f64::from), ratio)
            .emphasis(Emphasis::Accent),
        Column::new("speed-up", "predicted 95%", 8, |row| {
            match row.predicted().and_then(|told| told.speedup_interval95) {
                Some(interval) => Cell::text(digits_range(interval.map(f64::from))),
                None => Cell::empty(),
            }
        })
        .faint(),
        Column::new("speed-up", "off by", 2, |row| Cell::figure(row.error(), deviation))
            .emphasis(Emphasis::Accent),
        measured("queue", "mean", 3, |row| row.contention.queue_mean.map(f64::from), digits),
        predicted("queue", "predicted", 11, |told| told.queue_mean.map(f64::from), digits),
        measured(
            "queue",
            "on entry",
            7,
            |row| row.contention.queue_on_entry.map(f64::from),
            digits,
        ),
        predicted("queue", "predicted on entry", 11, |it| it.queue_on_entry.map(f64::from), digits),
    ]);
    let told = sweep.rows.iter().any(|row| row.contention.queue_told.is_some());
    if told {
        columns.push(measured("queue", "told by the lock", 4, queue_told, digits));
    }
    columns.push(measured(
        "queue",
        "max",
        12,
        |row| row.contention.queue_max.map(f64::from),
        digits,
    ));
    columns.extend(published(sweep, "queue", "published on entry", |it| digits(it.queue_on_entry)));
    if told {
        columns.extend([
            measured("each task", "measured", 4, task_ns, time),
            measured("each task", "from the queue", 4, task_from_queue_ns, time),
        ]);
    }
    columns.extend([
        measured("wait", "share", 6, |row| row.contention.wait_share.map(f64::from), share),
        measured("wait", "p50", 13, |row| row.record.quantiles.p50.map(f64::from), time),
        measured("wait", "p99", 9, |row| row.record.quantiles.p99.map(f64::from), time),
        measured("wait", "longest", 10, |row| row.contention.starved_ns.map(f64::from), time),
        measured("", "hand-off", 8, |row| row.contention.handoff_ns.map(f64::from), time),
        measured("", "fairness", 14, |row| row.contention.fairness.map(f64::from), index),
        measured("each acquisition", "CPU", 15, |row| cpu_ns(&row.record.cost), time),
        measured("each acquisition", "switches", 16, |row| switches(&row.record.cost), per_op),
    ]);
    columns.extend(own_program::column(11, &sweep.rows, |row| Some(row.record)));
    columns.extend(processes::column(12, &sweep.rows, |row| Some(row.record)));
    columns
}

fn queue_told(row: &Row<'_>) -> Option<f64> {
    row.contention.queue_told.map(f64::from)
}

/// Mean time that a task waits, holds the lock and thinks. The wait follows from the mean queue by
/// Little’s law.
fn task_ns(row: &Row<'_>) -> Option<f64> {
    let contention = row.contention;
    let wait_ns = contention.queue_mean?.get() / row.record.rate_per_s?.get() * 1e9;
    Some(wait_ns + contention.hold_ns?.get() + contention.think_ns?.get())
}

/// Time of a task by A. Sukhovitsky’s formula: queue × hold + hold + rest.
fn task_from_queue_ns(row: &Row<'_>) -> Option<f64> {
    let hold_ns = row.contention.hold_ns?.get();
    Some(queue_told(row)? * hold_ns + hold_ns + row.contention.think_ns?.get())
}

fn seconds(value: Option<impl Into<f64>>) -> Cell {
    Cell::figure(value, |seconds| time(seconds * 1e9))
}

/// Jain’s fairness index.
fn index(value: f64) -> String {
    format!("{value:.3}")
}

fn measured<'a>(
    group: &'static str,
    heading: &'static str,
    rank: u8,
    figure: fn(&Row<'_>) -> Option<f64>,
    text: fn(f64) -> String,
) -> Column<'a> {
    Column::new(group, heading, rank, move |row| Cell::figure(figure(row), text))
}

fn predicted<'a>(
    group: &'static str,
    heading: &'static str,
    rank: u8,
    figure: fn(&CellPrediction) -> Option<f64>,
    text: fn(f64) -> String,
) -> Column<'a> {
    Column::new(group, heading, rank, move |row| {
        Cell::figure(row.predicted().and_then(figure), text)
    })
}

fn published<'a>(
    sweep: &Sweep<'a>,
    group: &'static str,
    heading: &'static str,
    text: fn(PublishedPool) -> String,
) -> Option<Column<'a>> {
    let column = || {
        Column::new(group, heading, 9, move |row| {
            published_pool(row.subject).map_or_else(Cell::unknown, |pool| Cell::text(text(pool)))
        })
    };
    let any = sweep.rows.iter().any(|row| published_pool(row.subject).is_some());
    any.then(|| column().faint())
}
