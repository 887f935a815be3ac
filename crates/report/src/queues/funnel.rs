//! Important messages among those of chatty senders.

use threadtoll_record::{Funnel, Ns, Record, file::Results};

use super::Comparison;
use super::columns::{Column, time_of, times_of};
use super::open_loop::{self, late};
use super::screen;
use super::view::View;
use crate::table::Cell;

pub(super) const VIEW: View = View {
    scenario: "funnel",
    question: "How an important message gets past chatty senders",
    sentence: "rare important messages, each sent when it is due, among the messages of chatty senders. A delivery lasts from the due time until the receiver has the message. Fairness: 1 if all chatty senders have the same mean delivery time.",
    axis: "delivery of important messages, p50 (lower is better)",
    caption: "Median deliveries of important messages",
    columns,
    summary: |_, _| Vec::new(),
    screen: screen::by_case,
    ..open_loop::VIEW
};

fn funnel(record: &Record) -> Option<&Funnel> {
    record.figures.open_loop()?.funnel.as_ref()
}

fn columns<'c, 'a>(_: &Results, _: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    vec![
        time_of("important", "p50", 0, VIEW.ns).main(),
        times_of("important", "95%", 10, VIEW.interval),
        time_of("important", "p99", 1, |record| record.quantiles.p99.map(Ns::get)),
        time_of("important", "max", 6, |record| record.max.map(Ns::get)),
        late("p50", 8, |late| late.p50),
        time_of("chatty", "p50", 3, |record| funnel(record)?.chatty.p50.map(Ns::get)),
        time_of("chatty", "p99", 2, |record| funnel(record)?.chatty.p99.map(Ns::get)),
        Column::new("chatty", "fairness", 4, |row| {
            let fairness = funnel(&row.record).and_then(|funnel| funnel.fairness);
            Cell::figure(fairness, |fairness| format!("{fairness:.3}"))
        }),
        open_loop::cpu(5),
    ]
}
