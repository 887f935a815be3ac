use std::borrow::Cow;

use threadtoll_record::{Placement, Record, file::Results};

use super::{Row, reference};
use crate::claims::{published, summary};
use crate::clean::clean;
use crate::cost::{cpu_ns, switches};
use crate::label::plural;
use crate::own_program;
use crate::place::Place;
use crate::processes;
use crate::regimes;
use crate::table::{self, Cell, Emphasis};
use crate::units::{digits_range, per_op, ratio, round_time, share, time, time_range};

type Column<'r, 'a> = table::Column<'r, Row<'a>>;

pub(super) const PLACE: &str = "place";
pub(super) const PUBLISHED: &str = "published";
const ONE_WAY: &str = "one way, p50";

pub(super) fn columns<'r, 'a>(results: &Results, rows: &'r [Row<'a>]) -> Vec<Column<'r, 'a>> {
    let place = Column::new("", PLACE, 3, |row: &Row<'_>| Place::cell(row.place)).faint();
    let mut columns = vec![place];
    columns.extend(placements(rows));
    columns.push(main(ONE_WAY, "95%", 12, interval));
    if let Some(reference) = reference(rows) {
        let name = clean(reference.name());
        let ratio = main("ratio to", name, 1, ratio_to_reference);
        columns.push(ratio.emphasis(Emphasis::Accent));
    }
    let round_trip = |heading, rank: Option<u8>, figure: fn(&Record) -> Option<f64>| {
        main("round trip", heading, rank, move |record| Cell::figure(figure(record), time))
    };
    let over = format!(">{}", round_time(results.plan.over_ns as f64));
    columns.extend([
        round_trip("p50", None, |record| record.quantiles.p50.map(f64::from)),
        round_trip("p99", Some(5), |record| record.quantiles.p99.map(f64::from)),
        round_trip("p99.9", Some(11), |record| record.quantiles.p999.map(f64::from)),
        round_trip("max", Some(8), |record| record.max.map(f64::from)),
        main("round trip", over, 6, |record| Cell::figure(record.over.share, share)),
        main("per hand-off", "CPU", 7, |record| Cell::figure(cpu_ns(&record.cost), time)),
        main("per hand-off", "switches", 10, |record| Cell::figure(switches(&record.cost), per_op)),
    ]);
    columns.extend(own_program::column(8, rows, Row::main));
    columns.extend(processes::column(9, rows, Row::main));
    columns.push(from_elsewhere(rows));
    columns
}

fn main<'r, 'a>(
    group: &'static str,
    heading: impl Into<Cow<'static, str>>,
    rank: impl Into<Option<u8>>,
    cell: impl Fn(&Record) -> Cell + 'r,
) -> Column<'r, 'a> {
    Column::new(group, heading, rank, move |row| row.main().map_or_else(Cell::empty, &cell))
}

/// A column for each placement. A terminal shows only the placements with measurements, and never
/// drops the first of these columns.
fn placements<'r, 'a>(rows: &[Row<'a>]) -> Vec<Column<'r, 'a>> {
    let mut any = false;
    let headings = [
        (Placement::Pinned, "pinned", 2),
        (Placement::SameCpu, "same CPU", 4),
        (Placement::Free, "free", 3),
    ];
    headings
        .map(|(placement, heading, rank)| {
            let measured = rows.iter().any(|row| row.record(placement).is_some());
            let rank = measured.then_some(if any { rank } else { 0 });
            any |= measured;
            Column::new(ONE_WAY, heading, rank, move |row| one_way(row, placement))
        })
        .into()
}

fn one_way(row: &Row<'_>, placement: Placement) -> Cell {
    let Some(record) = row.record(placement) else { return Cell::empty() };
    let main = row.main().is_some_and(|main| main.cell.placement == placement);
    let emphasis = if main { Emphasis::Main } else { Emphasis::Plain };
    regimes::figure(record, |figures| figures.one_way_p50(), time).emphasis(emphasis)
}

fn interval(record: &Record) -> Cell {
    let (Some(p50), Some([low, high])) = (record.one_way_p50(), record.one_way_p50_interval95())
    else {
        return Cell::unknown();
    };
    Cell {
        value: Some((high - p50).max(p50 - low) / p50),
        ..regimes::each(record, |figures| figures.one_way_p50_interval95().map(time_range))
    }
}

fn ratio_to_reference(record: &Record) -> Cell {
    let Some(against) = record.against.first() else { return Cell::empty() };
    let interval = digits_range(against.interval95.map(f64::from));
    Cell {
        value: Some(against.ratio.get()),
        title: format!("{interval} in {}", plural(against.blocks.into(), "pair")),
        ..regimes::each(record, |figures| Some(ratio(figures.against.first()?.ratio.get())))
    }
}

/// A terminal shows this column only if there are published figures.
fn from_elsewhere<'r, 'a>(rows: &[Row<'a>]) -> Column<'r, 'a> {
    let any = rows.iter().filter_map(Row::main).any(|main| !published(main).is_empty());
    main("", PUBLISHED, any.then_some(9), |record| {
        let figures = published(record);
        Cell::new(figures.first().map(|figure| figure.ns), summary(&figures).unwrap_or_default())
    })
    .faint()
}
