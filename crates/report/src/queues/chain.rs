//! The view of queues in a row.

use threadtoll_record::{Ns, Record, file::Results};

use super::columns::Column;
use super::view::View;
use super::{Comparison, base, open_loop};
use crate::table::{Cell, Emphasis};
use crate::units::{maybe_time, time, time_range};

pub(super) const VIEW: View = View {
    scenario: "chain",
    sentence: "messages go through queues in a row, each time to another thread. End to end: from when a message was due until the last thread has it. Sum of hops: of the quantiles of its own hops, each from thread to thread.",
    axis: "end to end, p50 (lower is better)",
    caption: "Median times end to end",
    columns,
    lines,
    summary: |_, _| Vec::new(),
    ..open_loop::VIEW
};

fn columns<'c, 'a>(_: &Results, comparison: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let whole = |heading: &'static str, rank: u8, figure: fn(&Record) -> Option<Ns>| {
        Column::new("end to end", heading, rank, "from when it was due", move |row| {
            Cell::figure(figure(&row.record), time)
        })
    };
    let sum = |heading: &'static str, rank: u8, figure: fn(&Record) -> Option<Ns>| {
        let title = "sum of the quantiles of its hops";
        Column::new("sum of hops", heading, rank, title, move |row| {
            Cell::figure(figure(&row.record), time)
        })
    };
    let mut columns = vec![
        whole("p50", 0, |record| record.quantiles.p50).emphasis(Emphasis::Main),
        Column::new("end to end", "95%", 10, "95% interval of the median", |row| {
            let interval = row.record.interval95.p50;
            interval.map_or_else(Cell::unknown, |interval| {
                Cell::text(time_range(interval.map(Ns::get)))
            })
        }),
        whole("p99", 1, |record| record.quantiles.p99),
        whole("p99.9", 7, |record| record.quantiles.p999),
        whole("max", 6, |record| record.max),
        sum("p50", 2, |record| record.chain.as_ref()?.p50_sum_ns),
        sum("p99", 3, |record| record.chain.as_ref()?.p99_sum_ns),
    ];
    if comparison.criteria.load.base().is_some() {
        let title = "ratio of the medians in paired blocks, end to end to one hop alone";
        // Three hops are no better or worse than one.
        columns.push(Column::new("to one", "hop", 1, title, |row| Cell {
            verdict: None,
            ..base::cell(&row.record)
        }));
    }
    columns.push(Column::new(
        "per message",
        "CPU",
        4,
        "CPU time of all threads but the sender, and of its send calls",
        |row| {
            let open_loop = row.record.open_loop.as_ref();
            Cell::figure(open_loop.and_then(|own| own.cpu_ns_per_message), time)
        },
    ));
    columns
}

fn lines(record: &Record) -> Vec<String> {
    let quantiles = &record.quantiles;
    let mut lines = vec![format!(
        "end to end p50 {}, p99 {}",
        maybe_time(quantiles.p50),
        maybe_time(quantiles.p99)
    )];
    if let Some(chain) = &record.chain {
        lines.push(format!(
            "sum of hops p50 {}, p99 {}",
            maybe_time(chain.p50_sum_ns),
            maybe_time(chain.p99_sum_ns)
        ));
        let each: Vec<String> = chain.hops.iter().map(|hop| maybe_time(hop.p50)).collect();
        lines.push(format!("hops p50 {}", each.join(", ")));
    }
    lines.extend(base::line(record, "to one hop"));
    lines
}
