//! Pairs of rows that differ in one setting: placement, message size, CPUs kept awake or not, or
//! the order in which a mutex is unlocked and its condition variable is signalled.

use threadtoll_record::{Cell, Class, Placement, Record, Subject};

use crate::class::{class, slept};
use crate::comparison::name;
use crate::ladder::{is_plain, p50, pinned, rows};
use crate::quotient::Quotient;
use crate::table::{self, Label, Section};
use crate::units::time_within;

struct Pair<'r> {
    row: &'r Record,
    base: &'r Record,
    times: Quotient,
}

impl<'r> Pair<'r> {
    fn of(row: &'r Record, base: &'r Record) -> Option<Self> {
        Some(Pair { row, base, times: Quotient::of(row, base)? })
    }
}

pub(super) fn section(records: &[Record]) -> Option<Section> {
    let rows = rows(records);
    let placed = rows.iter().filter_map(|row| {
        let base = row.record(Placement::Pinned)?;
        let is_compared = slept(base) && is_plain(&base.cell);
        Pair::of(row.record(Placement::Free).filter(|_| is_compared)?, base)
    });
    let others = pinned(&rows).filter_map(|row| {
        let cell = base_of(&row.cell)?;
        let base = pinned(&rows).find(|base| base.cell == cell)?;
        (!row.cell.keep_awake || slept(base)).then(|| Pair::of(row, base))?
    });
    let pairs: Vec<Pair<'_>> = placed.chain(others).collect();
    type Column<'r> = table::Column<'static, Pair<'r>>;
    let columns: Vec<Column<'_>> = vec![
        Column::new("", "takes", 1, |pair| measured(pair.row)),
        Column::new("", "instead of", 2, |pair| measured(pair.base)),
        Column::new("", "ratio", 0, |pair| table::Cell {
            verdict: Some(pair.times.verdict()),
            ..table::Cell::new(Some(pair.times.ratio), pair.times.to_string())
        }),
    ];
    let label = |pair: &Pair<'_>| {
        Label::new(format!("{} against {}", name(&pair.row.cell), name(&pair.base.cell)))
    };
    (!pairs.is_empty()).then(|| Section::new("Compared", "hand-off", columns, &pairs, label))
}

/// The cell with which `cell` is compared: with messages of 8 B instead of larger ones, without a
/// spinner that keeps the CPUs awake, or with the signal before the unlock instead of after.
fn base_of(cell: &Cell) -> Option<Cell> {
    if cell.payload_bytes > 8 {
        return (class(cell) == Some(Class::Spin))
            .then(|| Cell { payload_bytes: 8, ..cell.clone() });
    }
    if cell.keep_awake {
        return Some(Cell { keep_awake: false, ..cell.clone() });
    }
    let before = cell.name().strip_suffix("-after").filter(|_| is_plain(cell))?;
    Some(Cell { subject: Subject::mechanism(before, Class::Sleep), ..cell.clone() })
}

fn measured(record: &Record) -> table::Cell {
    table::Cell::figure(p50(record), |p50| time_within(p50, record.one_way_p50_interval95()))
}
