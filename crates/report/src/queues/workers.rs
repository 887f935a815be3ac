//! The view of receivers that share messages.

use threadtoll_record::{Against, Load, Record, file::Results};

use super::columns::Column;
use super::view::View;
use super::{Comparison, decided, stream};
use crate::table::{Cell, Emphasis};
use crate::units::{digits_range, ratio, share};

pub(super) const VIEW: View = View {
    shows: |record| record.workers.is_some(),
    sentence: "messages of 8 bytes of one sender, as many as its receivers take. They take them from one queue, or from a bundle of queues, one each, among which the sender deals out messages in turn. Evenness: 1 if all receive equally many.",
    columns,
    lines,
    ..stream::VIEW
};

fn form(record: &Record) -> &'static str {
    match &record.workers {
        Some(workers) if workers.bundle => "bundle",
        Some(_) => "one queue",
        None => "",
    }
}

/// The ratio to the row with which it is compared: one receiver, or one hop.
pub(super) fn to_base(record: &Record) -> Option<&Against> {
    let base = record.cell.queue()?.load.base()?;
    record.against.iter().find(|against| {
        let load = |load: &Load| *load == base;
        against.cell.queue().is_some_and(|other| load(&other.load)) && !against.cell.is_twin()
    })
}

fn columns<'c, 'a>(results: &Results, comparison: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let mut columns = (stream::VIEW.columns)(results, comparison);
    columns.push(
        Column::new("", "receivers have", 2, "one queue, or a bundle of queues", |row| {
            Cell::text(form(&row.record))
        })
        .emphasis(Emphasis::Faint),
    );
    columns.push(Column::new(
        "",
        "evenness",
        8,
        "Jain’s index of the receivers’ messages",
        |row| {
            Cell::figure(
                row.record.workers.as_ref().and_then(|workers| workers.fairness),
                |fairness| format!("{fairness:.3}"),
            )
        },
    ));
    if comparison.criteria.load.base().is_some() {
        let title = "ratio of the rates in paired blocks, with the verdict of its 95% interval";
        columns.push(Column::new("of one", "receiver", 1, title, |row| {
            let Some(against) = to_base(&row.record) else { return Cell::unknown() };
            Cell {
                verdict: decided(against),
                title: digits_range(against.interval95.map(f64::from)),
                ..Cell::figure(Some(against.ratio), ratio)
            }
        }));
    }
    columns
}

fn lines(record: &Record) -> Vec<String> {
    let mut lines = (stream::VIEW.lines)(record);
    lines.push(format!("receivers have: {}", form(record)));
    if let Some(fairness) = record.workers.as_ref().and_then(|workers| workers.fairness) {
        lines.push(format!("evenness: {}", share(fairness.get())));
    }
    if let Some(against) = to_base(record) {
        let interval = digits_range(against.interval95.map(f64::from));
        lines.push(format!("of one receiver: {} ({interval})", ratio(against.ratio.get())));
    }
    lines
}
