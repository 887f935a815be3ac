use std::borrow::Cow;
use std::collections::BTreeSet;

use threadtoll_record::{Against, Record, file::Results};

use super::{Comparison, Row, decided};
use crate::claims::{published, summary};
use crate::clean::clean;
use crate::cost::{cpu_ns, switches};
use crate::own_program;
use crate::place::Place;
use crate::processes;
use crate::regimes::{self, InRegime};
use crate::table::{self, Cell, Emphasis};
use crate::units::{digits_range, per_op, ratio, round_time, time, time_range};

pub(super) const PLACE: &str = "place";
pub(super) const PUBLISHED: &str = "published";

pub(super) type Column<'c, 'a> = table::Column<'c, Row<'a>>;

pub(super) fn columns<'c, 'a>(
    results: &Results,
    comparison: &'c Comparison<'a>,
) -> Vec<Column<'c, 'a>> {
    let mut columns = vec![
        Column::new("", PLACE, 2, |row| Place::cell(row.place)).faint(),
        Column::new("", "wait", 1, |row| Cell::text(row.wait())).faint(),
        Column::new("", "version", 9, |row| {
            Cell::text(row.queue().map_or_else(String::new, |queue| clean(&queue.version)))
        })
        .faint(),
    ];
    let rings: BTreeSet<String> = comparison.rows.iter().filter_map(Row::ring).collect();
    if rings.len() > 1 {
        columns.push(Column::new("", "ring", 3, |row| Cell::text(row.ring().unwrap_or_default())));
    }
    columns.extend((comparison.view().columns)(results, comparison));
    columns.extend(ratio_column(comparison));
    columns.extend(from_elsewhere(comparison));
    if comparison.view().costs {
        columns.extend([
            time_of("per message", "CPU", 6, |record| cpu_ns(&record.cost)),
            Column::new("per message", "switches", 8, |row| {
                Cell::figure(switches(&row.record.cost), per_op)
            }),
        ]);
    }
    columns.extend(own_program::column(8, &comparison.rows, |row| Some(&row.record)));
    columns.extend(processes::column(9, &comparison.rows, |row| Some(&row.record)));
    columns
}

pub(super) fn time_of<'c, 'a>(
    group: &'static str,
    heading: &'static str,
    rank: u8,
    ns: fn(&Record) -> Option<f64>,
) -> Column<'c, 'a> {
    Column::new(group, heading, rank, move |row| Cell::figure(ns(&row.record), time))
}

pub(super) fn times_of<'c, 'a>(
    group: &'static str,
    heading: &'static str,
    rank: u8,
    ends: fn(&Record) -> Option<[f64; 2]>,
) -> Column<'c, 'a> {
    Column::new(group, heading, rank, move |row| Cell::range(ends(&row.record), time_range))
}

pub(super) fn share_of<'c, 'a>(
    group: &'static str,
    heading: impl Into<Cow<'static, str>>,
    rank: u8,
    share: fn(&Record) -> Option<f64>,
) -> Column<'c, 'a> {
    Column::new(group, heading, rank, move |row| {
        Cell::figure(share(&row.record), crate::units::share)
    })
}

/// Share of the times that exceed the plan's `over_ns`.
pub(super) fn over<'c, 'a>(group: &'static str, rank: u8, results: &Results) -> Column<'c, 'a> {
    let heading = format!(">{}", round_time(results.plan.over_ns as f64));
    share_of(group, heading, rank, |record| record.over.share.map(f64::from))
}

/// Ratios to one of our rows, with verdicts. In exchanges without such a row, ratios to the
/// reference cell.
fn ratio_column<'c, 'a>(comparison: &'c Comparison<'a>) -> Option<Column<'c, 'a>> {
    const RATIO_TO: &str = "ratio to";
    if let Some(base) = comparison.base() {
        let name = format!("{}, {}", base.name(), base.wait());
        let column = Column::new(RATIO_TO, name, 2, |row| match comparison.to_base(row) {
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
    Some(Column::new(RATIO_TO, clean(reference.cell.name()), 3, move |row| {
        let figure = |figures: &InRegime<'_>| Some(ratio(figures.against.first()?.ratio.get()));
        first(row).map_or_else(Cell::empty, |against| Cell {
            text: regimes::each(&row.record, figure).text,
            ..to(&against)
        })
    }))
}

fn from_elsewhere<'c, 'a>(comparison: &'c Comparison<'a>) -> Option<Column<'c, 'a>> {
    let any = comparison.rows.iter().any(|row| !published(&row.record).is_empty());
    let column = || {
        Column::new("", PUBLISHED, 7, |row: &Row<'_>| {
            Cell::text(summary(&published(&row.record)).unwrap_or_default())
        })
    };
    any.then(|| column().faint())
}

fn to(against: &Against) -> Cell {
    let title = digits_range(against.interval95.map(f64::from));
    Cell { title, ..Cell::figure(Some(against.ratio), ratio) }
}
