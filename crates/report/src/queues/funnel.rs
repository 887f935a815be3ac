//! The view of important messages among chatty senders.

use threadtoll_record::{Funnel, Ns, Record, file::Results};

use super::Comparison;
use super::columns::Column;
use super::open_loop::{self, open_loop};
use super::screen;
use super::view::View;
use crate::table::{Cell, Emphasis};
use crate::units::{maybe_time, time, time_range};

pub(super) const VIEW: View = View {
    scenario: "funnel",
    question: "How an important message gets past chatty senders",
    sentence: "rare important messages among those of chatty senders, each sent when it is due. Deliveries last from then until the receiver has the message; fairness is that of the chatty senders’ mean deliveries: 1 if all are equal.",
    axis: "delivery of important messages, p50 (lower is better)",
    caption: "Median deliveries of important messages",
    columns,
    lines,
    summary: |_, _| Vec::new(),
    screen: screen::by_case,
    ..open_loop::VIEW
};

fn funnel(record: &Record) -> Option<&Funnel> {
    record.figures.open_loop()?.funnel.as_ref()
}

fn columns<'c, 'a>(_: &Results, _: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let important = |heading: &'static str, rank: u8, figure: fn(&Record) -> Option<Ns>| {
        Column::new("important", heading, rank, "delivery, from when it was due", move |row| {
            Cell::figure(figure(&row.record), time)
        })
    };
    let chatty = |heading: &'static str, rank: u8, figure: fn(&Funnel) -> Option<Ns>| {
        Column::new("chatty", heading, rank, "delivery, from when it was due", move |row| {
            Cell::figure(funnel(&row.record).and_then(figure), time)
        })
    };
    vec![
        important("p50", 0, |record| record.quantiles.p50).emphasis(Emphasis::Main),
        Column::new("important", "95%", 10, "95% interval of the median", |row| {
            let interval = row.record.interval95.p50;
            interval.map_or_else(Cell::unknown, |interval| {
                Cell::text(time_range(interval.map(Ns::get)))
            })
        }),
        important("p99", 1, |record| record.quantiles.p99),
        important("max", 6, |record| record.max),
        Column::new("sent late", "p50", 8, "lateness of the important senders", |row| {
            let open_loop = open_loop(&row.record);
            Cell::figure(open_loop.and_then(|own| own.lateness.quantiles.p50), time)
        }),
        chatty("p50", 3, |funnel| funnel.chatty.p50),
        chatty("p99", 2, |funnel| funnel.chatty.p99),
        Column::new("chatty", "fairness", 4, "Jain’s index of their mean deliveries", |row| {
            let fairness = funnel(&row.record).and_then(|funnel| funnel.fairness);
            Cell::figure(fairness, |fairness| format!("{fairness:.3}"))
        }),
        Column::new("per message", "CPU", 5, "CPU time of the receiver and of send calls", |row| {
            let open_loop = open_loop(&row.record);
            Cell::figure(open_loop.and_then(|own| own.cpu_ns_per_message), time)
        }),
    ]
}

fn lines(record: &Record) -> Vec<String> {
    let quantiles = &record.quantiles;
    let mut lines = vec![format!(
        "important p50 {}, p99 {}",
        maybe_time(quantiles.p50),
        maybe_time(quantiles.p99)
    )];
    if let Some(funnel) = funnel(record) {
        let chatty = &funnel.chatty;
        lines.push(format!(
            "chatty p50 {}, p99 {}",
            maybe_time(chatty.p50),
            maybe_time(chatty.p99)
        ));
        lines.extend(funnel.fairness.map(|index| format!("fairness {:.3}", index.get())));
    }
    lines
}
