use threadtoll_record::{CellPrediction, Fraction, OverloadFigures, PredictedOverload};

use super::Row;
use crate::table::{self, Cell, Emphasis};
use crate::units::{count, digits, range_of_shares, share, time, time_range};

type Column<'a> = table::Column<'static, Row<'a>>;

pub(super) fn columns<'a>() -> Vec<Column<'a>> {
    vec![
        measured("in time", "measured", 0, |found| Some(found.in_time_share.get()), share).main(),
        Column::new("in time", "95%", 8, |row: &Row<'_>| shares(row.found.in_time_interval95)),
        predicted("in time", "predicted", 1, |told| Some(told.in_time_share.get()), share)
            .emphasis(Emphasis::Accent),
        Column::new("in time", "predicted 95%", 9, |row: &Row<'_>| {
            shares(row.predicted().map(|told| told.in_time_interval95))
        })
        .faint(),
        measured("refused", "measured", 2, |found| Some(found.refused_share.get()), share),
        predicted("refused", "predicted", 10, |told| Some(told.refused_share.get()), share),
        measured("give up", "measured", 2, |found| Some(found.gave_up_share.get()), share),
        predicted("give up", "predicted", 10, |told| Some(told.gave_up_share.get()), share),
        measured("", "wasted", 1, |found| found.wasted_share.map(f64::from), share),
        measured("queue", "mean", 3, |found| Some(found.queue_mean.get()), digits),
        Column::new("queue", "predicted", 5, |row: &Row<'_>| {
            let queue = |told: &CellPrediction| told.queue_mean.map(f64::from);
            Cell::figure(row.prediction.and_then(queue), digits)
        })
        .emphasis(Emphasis::Accent),
        measured(
            "queue",
            "max",
            11,
            |found| Some(found.queue_max.into()),
            |most| count(most as u64),
        ),
        measured("recovery", "measured", 1, |found| found.recovery_ns.map(f64::from), time),
        Column::new("recovery", "95%", 12, |row: &Row<'_>| {
            times(row.found.recovery_interval95.map(|ends| ends.map(f64::from)))
        }),
        predicted("recovery", "predicted", 4, |told| told.recovery_ns.map(f64::from), time)
            .emphasis(Emphasis::Accent),
        Column::new("wait", "p50", 7, |row: &Row<'_>| Cell::figure(row.record.quantiles.p50, time)),
        Column::new("wait", "p99", 6, |row: &Row<'_>| Cell::figure(row.record.quantiles.p99, time)),
        measured("", "in front", 13, |found| Some(found.in_front_share.get()), share),
        measured("noticed late", "p50", 14, |it| it.lateness.quantiles.p50.map(f64::from), time),
        measured("noticed late", "p99", 15, |it| it.lateness.quantiles.p99.map(f64::from), time),
    ]
}

fn measured<'a>(
    group: &'static str,
    heading: &'static str,
    rank: u8,
    figure: fn(&OverloadFigures) -> Option<f64>,
    text: fn(f64) -> String,
) -> Column<'a> {
    Column::new(group, heading, rank, move |row: &Row<'_>| Cell::figure(figure(row.found), text))
}

fn predicted<'a>(
    group: &'static str,
    heading: &'static str,
    rank: u8,
    figure: fn(&PredictedOverload) -> Option<f64>,
    text: fn(f64) -> String,
) -> Column<'a> {
    Column::new(group, heading, rank, move |row: &Row<'_>| {
        Cell::figure(row.predicted().and_then(figure), text)
    })
}

fn shares(ends: Option<[Fraction; 2]>) -> Cell {
    Cell::range(ends, |[low, high]| range_of_shares(low, high))
}

fn times(ends: Option<[f64; 2]>) -> Cell {
    Cell::range(ends, time_range)
}
