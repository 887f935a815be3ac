use threadtoll_record::{Record, file::Results};

use super::Comparison;
use super::columns::{Column, over, time_of};
use super::screen;
use super::view::View;
use crate::regimes;
use crate::units::{maybe_time, time, time_range};

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
    summary: |_, _| Vec::new(),
    screen: screen::by_case,
};

fn columns<'c, 'a>(results: &Results, _: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    vec![
        Column::new("one way", "p50", 0, |row| {
            regimes::figure(&row.record, |figures| figures.one_way_p50(), time)
        })
        .main(),
        Column::new("one way", "95%", 10, |row| {
            regimes::each(&row.record, |figures| figures.one_way_p50_interval95().map(time_range))
        }),
        time_of("round trip", "p99", 4, |record| record.quantiles.p99.map(f64::from)),
        time_of("round trip", "p99.9", 11, |record| record.quantiles.p999.map(f64::from)),
        time_of("round trip", "max", 7, |record| record.max.map(f64::from)),
        over("round trip", 5, results),
    ]
}
