//! The view of sends into a flooded queue.

use threadtoll_record::{Count, Lost, Ns, Record, file::Results};

use super::Comparison;
use super::columns::Column;
use super::screen;
use super::view::View;
use crate::table::{Cell, Emphasis};
use crate::units::{count, maybe_time, round_time, share, time, time_range};

pub(super) const VIEW: View = View {
    scenario: "flood",
    question: "What a send costs when the receiver is slower",
    sentence: "one thread dumps 8 MiB into the queue, and another one sends a line now and then: the time of its send call. A bounded queue is full meanwhile, an unbounded one grows.",
    rates: false,
    ratios_decide: true,
    costs: false,
    axis: "send call of a line, p50 (lower is better)",
    caption: "Median send calls of lines",
    ns: |record| record.quantiles.p50.map(Ns::get),
    interval: |record| record.interval95.p50.map(|interval| interval.map(Ns::get)),
    text: |record| maybe_time(record.quantiles.p50),
    columns,
    lines,
    summary: |_, _| Vec::new(),
    screen: screen::by_case,
};

/// Share of the lines that were lost.
fn lost(record: &Record, of: fn(&Lost) -> Count) -> Option<f64> {
    Some(of(record.figures.sends()?).as_f64() / record.count.as_f64().max(1.0))
}

fn columns<'c, 'a>(results: &Results, _: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let call = |heading: &'static str, rank: u8, figure: fn(&Record) -> Option<Ns>| {
        Column::new("send call", heading, rank, "send call of a line", move |row| {
            Cell::figure(figure(&row.record), time)
        })
    };
    let over = format!(">{}", round_time(results.plan.over_ns as f64));
    vec![
        call("p50", 0, |record| record.quantiles.p50).emphasis(Emphasis::Main),
        Column::new("send call", "95%", 10, "95% interval of the median", |row| {
            let interval = row.record.interval95.p50;
            interval.map_or_else(Cell::unknown, |interval| {
                Cell::text(time_range(interval.map(Ns::get)))
            })
        }),
        call("p99", 1, |record| record.quantiles.p99),
        call("p99.9", 2, |record| record.quantiles.p999),
        call("max", 3, |record| record.max),
        Column::new("send call", over, 9, "share of send calls over the limit", |row| {
            Cell::figure(row.record.over.share, share)
        }),
        Column::new("lines", "refused", 4, "share of the lines that the queue refused", |row| {
            Cell::figure(lost(&row.record, |lost| lost.refused), share)
        }),
        Column::new("lines", "dropped", 5, "share of the lines that the queue dropped", |row| {
            Cell::figure(lost(&row.record, |lost| lost.dropped), share)
        }),
    ]
}

fn lines(record: &Record) -> Vec<String> {
    let quantiles = &record.quantiles;
    let mut lines = vec![format!(
        "send call p50 {}, p99 {}, p99.9 {}, max {}",
        maybe_time(quantiles.p50),
        maybe_time(quantiles.p99),
        maybe_time(quantiles.p999),
        maybe_time(record.max)
    )];
    if let Some(Lost { refused, dropped }) = record.figures.sends() {
        lines.push(format!(
            "of {} lines: refused {}, dropped {}",
            count(record.count.get()),
            count(refused.get()),
            count(dropped.get())
        ));
    }
    lines
}
