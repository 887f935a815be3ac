//! The columns of a table of locks.

use super::{Row, Sweep};
use crate::claims::published_pool;
use crate::cost::{cpu_ns, switches};
use crate::own_program;
use crate::processes;
use crate::regimes::{self, InRegime};
use crate::table::{self, Cell, Emphasis};
use crate::units::{deviation, digits, digits_range, per_op, ratio, share, time};

type Column<'a> = table::Column<'static, Row<'a>>;

pub(super) fn columns<'a>(sweep: &Sweep<'a>) -> Vec<Column<'a>> {
    let mut columns = Vec::new();
    if sweep.rows.iter().any(|row| row.contention.total_s.is_some()) {
        columns.extend(all_tasks());
    }
    columns.extend(published_time(sweep));
    columns.extend(speedup());
    columns.extend(queue());
    columns.extend(published_queue(sweep));
    columns.extend(wait());
    columns.extend(lock());
    columns.extend(own_program::column(11, &sweep.rows, |row| Some(row.record)));
    columns.extend(processes::column(12, &sweep.rows, |row| Some(row.record)));
    columns
}

fn all_tasks<'a>() -> [Column<'a>; 2] {
    let seconds = |value: Option<f64>| Cell::figure(value, |seconds| time(seconds * 1e9));
    [
        Column::new(
            "all tasks",
            "measured",
            0,
            "time for all tasks, median over runs",
            move |row| seconds(row.contention.total_s.map(f64::from)),
        )
        .emphasis(Emphasis::Main),
        Column::new(
            "all tasks",
            "predicted",
            4,
            "time for all tasks, predicted before the cell was measured",
            move |row| {
                seconds(row.predicted().and_then(|prediction| prediction.total_s.map(f64::from)))
            },
        ),
    ]
}

fn published_figures(sweep: &Sweep<'_>) -> bool {
    sweep.rows.iter().any(|row| published_pool(row.subject).is_some())
}

fn published_time<'a>(sweep: &Sweep<'a>) -> Option<Column<'a>> {
    let title = "time for all tasks, published by A. Sukhovitsky for a fair lock of Java";
    let column = published_figures(sweep).then(|| {
        Column::new("all tasks", "published", 9, title, |row| {
            Cell::figure(published_pool(row.subject).map(|pool| pool.total_ms * 1e6), time)
        })
    });
    column.map(|column| column.emphasis(Emphasis::Faint))
}

fn published_queue<'a>(sweep: &Sweep<'a>) -> Option<Column<'a>> {
    let title = "queue on entry, published by A. Sukhovitsky for a fair lock of Java";
    let column = published_figures(sweep).then(|| {
        Column::new("queue", "published on entry", 11, title, |row| {
            Cell::figure(published_pool(row.subject).map(|pool| pool.queue_on_entry), digits)
        })
    });
    column.map(|column| column.emphasis(Emphasis::Faint))
}

fn speedup<'a>() -> [Column<'a>; 5] {
    [
        Column::new(
            "speed-up",
            "measured",
            0,
            "work per second of all threads, divided by that of one thread without the lock; median over pairs of blocks",
            |row| {
                let speedup = |figures: &InRegime<'_>| figures.contention?.speedup.map(f64::from);
                regimes::figure(row.record, speedup, ratio)
            },
        )
        .emphasis(Emphasis::Main),
        Column::new(
            "speed-up",
            "95%",
            5,
            "95% interval of the speed-up, from resampling pairs of blocks",
            |row| {
                regimes::each(row.record, |figures| {
                    Some(digits_range(figures.contention?.speedup_interval95?.map(f64::from)))
                })
            },
        ),
        Column::new(
            "speed-up",
            "predicted",
            1,
            "speed-up, predicted before the cell was measured",
            |row| Cell::figure(row.predicted().and_then(|told| told.speedup), ratio),
        )
        .emphasis(Emphasis::Accent),
        Column::new(
            "speed-up",
            "predicted 95%",
            8,
            "95% interval for the measured speed-up, predicted before the cell was measured",
            |row| match row.predicted().and_then(|told| told.speedup_interval95) {
                Some(interval) => Cell::text(digits_range(interval.map(f64::from))),
                None => Cell::empty(),
            },
        )
        .emphasis(Emphasis::Faint),
        Column::new(
            "speed-up",
            "off by",
            2,
            "error of the predicted speed-up, or of the predicted time for all tasks",
            |row| Cell::figure(row.error(), deviation),
        )
        .emphasis(Emphasis::Accent),
    ]
}

fn queue<'a>() -> [Column<'a>; 5] {
    [
        Column::new("queue", "mean", 3, "number of waiting threads, averaged over time", |row| {
            Cell::figure(row.contention.queue_mean, digits)
        }),
        Column::new(
            "queue",
            "predicted",
            11,
            "mean queue, predicted before the cell was measured",
            |row| Cell::figure(row.predicted().and_then(|told| told.queue_mean), digits),
        ),
        Column::new(
            "queue",
            "on entry",
            7,
            "number of threads still waiting when one has just acquired the lock",
            |row| Cell::figure(row.contention.queue_on_entry, digits),
        ),
        Column::new(
            "queue",
            "predicted on entry",
            11,
            "queue on entry, predicted before the cell was measured",
            |row| Cell::figure(row.predicted().and_then(|told| told.queue_on_entry), digits),
        ),
        Column::new("queue", "max", 12, "largest number of threads waiting at once", |row| {
            Cell::figure(row.contention.queue_max, digits)
        }),
    ]
}

fn wait<'a>() -> [Column<'a>; 4] {
    [
        Column::new("wait", "share", 6, "share of the threads’ time spent waiting", |row| {
            Cell::figure(row.contention.wait_share, share)
        }),
        Column::new("wait", "p50", 13, "median wait for the lock", |row| {
            Cell::figure(row.record.quantiles.p50, time)
        }),
        Column::new("wait", "p99", 9, "99% quantile of the wait for the lock", |row| {
            Cell::figure(row.record.quantiles.p99, time)
        }),
        Column::new("wait", "longest", 10, "longest wait of a thread", |row| {
            Cell::figure(row.contention.starved_ns, time)
        }),
    ]
}

fn lock<'a>() -> [Column<'a>; 4] {
    [
        Column::new(
            "",
            "hand-off",
            8,
            "time from a release until a waiting thread has the lock",
            |row| Cell::figure(row.contention.handoff_ns, time),
        ),
        Column::new(
            "",
            "fairness",
            14,
            "Jain’s index of the threads’ acquisitions: 1 if all are equal",
            |row| Cell::figure(row.contention.fairness, |value| format!("{value:.3}")),
        ),
        Column::new(
            "each acquisition",
            "CPU",
            15,
            "CPU time of all threads per acquisition, including their work",
            |row| Cell::figure(cpu_ns(&row.record.cost), time),
        ),
        Column::new(
            "each acquisition",
            "switches",
            16,
            "context switches per acquisition",
            |row| Cell::figure(switches(&row.record.cost), per_op),
        ),
    ]
}
