use threadtoll_record::{Count, Lost, Ns, Record, file::Results};

use super::Comparison;
use super::columns::{Column, over, share_of, time_of, times_of};
use super::screen;
use super::view::View;
use crate::units::maybe_time;

pub(super) const VIEW: View = View {
    scenario: "flood",
    question: "What a send costs when the receiver is slower",
    sentence: "time of the send call of one message (a line), while another thread dumps 8 MiB into the queue. During the dump, a bounded queue is full, and an unbounded one grows.",
    rates: false,
    ratios_decide: true,
    costs: false,
    axis: "send call of a line, p50 (lower is better)",
    caption: "Median send calls of lines",
    ns: |record| record.quantiles.p50.map(Ns::get),
    interval: |record| record.interval95.p50.map(|interval| interval.map(Ns::get)),
    text: |record| maybe_time(record.quantiles.p50),
    columns,
    summary: |_, _| Vec::new(),
    screen: screen::by_case,
};

/// Fraction of the lines that were lost; `of` selects refused or dropped lines.
fn lost(record: &Record, of: fn(&Lost) -> Count) -> Option<f64> {
    Some(of(record.figures.sends()?).as_f64() / record.count.as_f64().max(1.0))
}

fn columns<'c, 'a>(results: &Results, _: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    vec![
        time_of("send call", "p50", 0, VIEW.ns).main(),
        times_of("send call", "95%", 10, VIEW.interval),
        time_of("send call", "p99", 1, |record| record.quantiles.p99.map(Ns::get)),
        time_of("send call", "p99.9", 2, |record| record.quantiles.p999.map(Ns::get)),
        time_of("send call", "max", 3, |record| record.max.map(Ns::get)),
        over("send call", 9, results),
        share_of("lines", "refused", 4, |record| lost(record, |lost| lost.refused)),
        share_of("lines", "dropped", 5, |record| lost(record, |lost| lost.dropped)),
    ]
}
