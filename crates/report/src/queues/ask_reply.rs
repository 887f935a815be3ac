//! The view of ask-reply.

use threadtoll_record::{Record, file::Results};

use super::Comparison;
use super::columns::Column;
use super::screen;
use super::view::View;
use crate::regimes;
use crate::table::{Cell, Emphasis};
use crate::units::{maybe_time, round_time, share, time, time_range, time_within};

pub(super) const VIEW: View = View {
    scenario: "ask-reply",
    question: "Which queue is fastest, one message at a time",
    sentence: "one message under way at a time. One way is half a round trip; quantiles are of whole round trips.",
    rates: false,
    ratios_decide: true,
    costs: true,
    axis: "one way, p50 (lower is better)",
    caption: "One-way medians",
    ns: Record::one_way_p50,
    interval: Record::one_way_p50_interval95,
    text: |record| maybe_time(record.one_way_p50()),
    columns,
    lines,
    summary: |_, _| Vec::new(),
    screen: screen::by_case,
};

fn lines(record: &Record) -> Vec<String> {
    let quantiles = &record.quantiles;
    let p50 = record.one_way_p50();
    let one_way =
        p50.map(|ns| format!("one way p50 {}", time_within(ns, record.one_way_p50_interval95())));
    let round_trip =
        format!("round trip p50 {}, p99 {}", maybe_time(quantiles.p50), maybe_time(quantiles.p99));
    one_way.into_iter().chain([round_trip]).collect()
}

fn columns<'c, 'a>(results: &Results, _: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let round_trip = |heading: &'static str, rank: u8, figure: fn(&Record) -> Option<f64>| {
        Column::new("round trip", heading, rank, "round trip", move |row| {
            Cell::figure(figure(&row.record), time)
        })
    };
    let over = format!(">{}", round_time(results.plan.over_ns as f64));
    vec![
        Column::new("one way", "p50", 0, "half of the median round trip", |row| {
            regimes::figure(&row.record, |figures| figures.one_way_p50(), time)
        })
        .emphasis(Emphasis::Main),
        Column::new("one way", "95%", 10, "95% interval of the one-way median", |row| {
            regimes::each(&row.record, |figures| figures.one_way_p50_interval95().map(time_range))
        }),
        round_trip("p99", 4, |record| record.quantiles.p99.map(f64::from)),
        round_trip("p99.9", 11, |record| record.quantiles.p999.map(f64::from)),
        round_trip("max", 7, |record| record.max.map(f64::from)),
        Column::new("round trip", over, 5, "share of round trips over the limit", |row| {
            Cell::figure(row.record.over.share, share)
        }),
    ]
}
