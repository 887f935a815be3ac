use threadtoll_record::{Calls, Ns, Record, ResidentBytes, file::Results};

use super::Comparison;
use super::columns::{Column, time_of, times_of};
use super::screen;
use super::view::View;
use crate::table::Cell;
use crate::units::{digits, maybe_time};

pub(super) const VIEW: View = View {
    scenario: "depth",
    question: "What a call costs on a queue that holds many messages",
    sentence: "time of a call on a queue that holds a number of messages, its depth, and up to 128 more in between; sender and receiver take turns. At depth 1, the time includes a whole reading of the clock; from depth 128 on, a 128th of one. Memory: growth of the process since before the queue was created.",
    rates: false,
    ratios_decide: true,
    costs: false,
    axis: "a receive call (lower is better)",
    caption: "Times of receive calls",
    ns: |record| calls(record)?.receive_ns.map(Ns::get),
    interval: |record| Some(calls(record)?.receive_interval95?.map(Ns::get)),
    text: |record| maybe_time(calls(record).and_then(|calls| calls.receive_ns)),
    columns,
    summary: |_, _| Vec::new(),
    screen: screen::by_case,
};

fn calls(record: &Record) -> Option<Calls> {
    Some(record.figures.depth()?.calls)
}

/// Memory of the process in MiB, in excess of that before the queue was created.
fn more(record: &Record, of: fn(ResidentBytes) -> u64) -> Cell {
    let mebibytes =
        |bytes: ResidentBytes| (of(bytes) as f64 - bytes.before.as_f64()) / f64::from(1 << 20);
    let bytes = record.figures.depth().and_then(|own| own.resident_bytes);
    Cell::figure(bytes.map(mebibytes), |size| match size.abs() {
        size if size < 0.05 => "0".into(),
        _ => format!("{} MiB", digits(size)),
    })
}

fn columns<'c, 'a>(_: &Results, _: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    vec![
        time_of("a call", "send", 1, |record| calls(record)?.send_ns.map(Ns::get)),
        times_of("a call", "95%", 6, |record| Some(calls(record)?.send_interval95?.map(Ns::get))),
        time_of("a call", "receive", 0, VIEW.ns).main(),
        times_of("a call", "95%", 5, VIEW.interval),
        Column::new("memory", "full", 3, |row| more(&row.record, |bytes| bytes.full.get())),
        Column::new("memory", "drained", 4, |row| more(&row.record, |bytes| bytes.drained.get())),
    ]
}
