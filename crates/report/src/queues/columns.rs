//! The columns of a table of queues.

use std::collections::BTreeSet;

use threadtoll_record::{Against, file::Results};

use super::{Comparison, Row, decided};
use crate::claims::{published, summary};
use crate::clean::clean;
use crate::cost::{cpu_ns, switches};
use crate::own_program;
use crate::place::Place;
use crate::processes;
use crate::regimes::{self, InRegime};
use crate::table::{self, Cell, Emphasis};
use crate::units::{digits_range, per_op, ratio, time};

pub(super) const PLACE: &str = "place";
pub(super) const PUBLISHED: &str = "published";

pub(super) type Column<'c, 'a> = table::Column<'c, Row<'a>>;

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
    columns.extend((comparison.view().columns)(results, comparison));
    columns.extend(ratio_column(comparison));
    columns.extend(from_elsewhere(comparison));
    columns.extend(
        comparison
            .view()
            .costs
            .then(|| {
                [
                    Column::new(
                        "per message",
                        "CPU",
                        6,
                        "CPU time of all ends per message",
                        |row| Cell::figure(cpu_ns(&row.record.cost), time),
                    ),
                    Column::new(
                        "per message",
                        "switches",
                        8,
                        "context switches per message",
                        |row| Cell::figure(switches(&row.record.cost), per_op),
                    ),
                ]
            })
            .into_iter()
            .flatten(),
    );
    columns.extend(own_program::column(8, &comparison.rows, |row| Some(&row.record)));
    columns.extend(processes::column(9, &comparison.rows, |row| Some(&row.record)));
    columns
}

/// Ratios to one of our rows, with verdicts; in exchanges without such a row, ratios to the
/// reference cell.
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
        let figure = |figures: &InRegime<'_>| Some(ratio(figures.against.first()?.ratio.get()));
        first(row).map_or_else(Cell::empty, |against| Cell {
            text: regimes::each(&row.record, figure).text,
            ..to(&against)
        })
    }))
}

/// Published figures, if there are any.
fn from_elsewhere<'c, 'a>(comparison: &'c Comparison<'a>) -> Option<Column<'c, 'a>> {
    let any = comparison.rows.iter().any(|row| !published(&row.record).is_empty());
    let column = any.then(|| {
        Column::new("", PUBLISHED, 7, "published figure, with the year", |row| {
            let figures = published(&row.record);
            let ns = figures.first().map(|figure| figure.ns);
            Cell::new(ns, summary(&figures).unwrap_or_default())
        })
    });
    column.map(|column| column.emphasis(Emphasis::Faint).published())
}

fn to(against: &Against) -> Cell {
    let title = digits_range(against.interval95.map(f64::from));
    Cell { title, ..Cell::figure(Some(against.ratio), ratio) }
}
