//! The view of important messages among chatty senders.

use threadtoll_record::{Fraction, Funnel, Ns, Record, Stalls, file::Results};

use super::columns::Column;
use super::view::View;
use super::{Comparison, open_loop};
use crate::table::{Cell, Emphasis};
use crate::units::{count, maybe_time, range_of_shares, share, time, time_range};

pub(super) const VIEW: View = View {
    scenario: "funnel",
    sentence: "rare important messages among those of chatty senders, each sent when it is due. Deliveries last from then until the receiver has the message; fairness is that of the chatty senders’ mean deliveries: 1 if all are equal. A stall, if there are any, stops one chatty sender while it sends back to back, and holds up the receiver or other senders if a send call that was under way in its first half ends, or its message arrives, only after it.",
    axis: "delivery of important messages, p50 (lower is better)",
    caption: "Median deliveries of important messages",
    columns,
    lines,
    summary: |_, _| Vec::new(),
    ..open_loop::VIEW
};

fn columns<'c, 'a>(_: &Results, comparison: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let important = |heading: &'static str, rank: u8, figure: fn(&Record) -> Option<Ns>| {
        Column::new("important", heading, rank, "delivery, from when it was due", move |row| {
            Cell::figure(figure(&row.record), time)
        })
    };
    let chatty = |heading: &'static str, rank: u8, figure: fn(&Funnel) -> Option<Ns>| {
        Column::new("chatty", heading, rank, "delivery, from when it was due", move |row| {
            Cell::figure(row.record.funnel.as_ref().and_then(figure), time)
        })
    };
    let mut columns = vec![
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
            let open_loop = row.record.open_loop.as_ref();
            Cell::figure(open_loop.and_then(|own| own.lateness.quantiles.p50), time)
        }),
        chatty("p50", 3, |funnel| funnel.chatty.p50),
        chatty("p99", 2, |funnel| funnel.chatty.p99),
        Column::new("chatty", "fairness", 4, "Jain’s index of their mean deliveries", |row| {
            let fairness = row.record.funnel.as_ref().and_then(|funnel| funnel.fairness);
            Cell::figure(fairness, |fairness| format!("{fairness:.3}"))
        }),
    ];
    if comparison.rows.iter().any(|row| stalls(&row.record).is_some()) {
        columns.extend(of_stalls());
    } else {
        let title = "CPU time of the receiver and of send calls";
        columns.push(Column::new("per message", "CPU", 5, title, |row| {
            let open_loop = row.record.open_loop.as_ref();
            Cell::figure(open_loop.and_then(|own| own.cpu_ns_per_message), time)
        }));
    }
    columns
}

fn stalls(record: &Record) -> Option<&Stalls> {
    record.funnel.as_ref()?.stalls.as_ref()
}

fn of_stalls<'c, 'a>() -> Vec<Column<'c, 'a>> {
    type Share = (Option<Fraction>, Option<[Fraction; 2]>);
    let held = |heading: &'static str, rank: u8, title: &'static str, of: fn(&Stalls) -> Share| {
        Column::new("stalls hold up", heading, rank, title, move |row| {
            let (found, interval) = stalls(&row.record).map_or((None, None), of);
            let title = interval.map(|[low, high]| range_of_shares(low.get(), high.get()));
            Cell { title: title.unwrap_or_default(), ..Cell::figure(found, share) }
        })
    };
    let longest =
        |heading: &'static str, rank: u8, title: &'static str, of: fn(&Stalls) -> Option<Ns>| {
            Column::new("longest of others", heading, rank, title, move |row| {
                Cell::figure(stalls(&row.record).and_then(of), time)
            })
        };
    vec![
        Column::new("", "stalls", 9, "stalls in whose first half another sender sent", |row| {
            Cell::figure(stalls(&row.record).map(|own| own.count.as_f64()), |own| count(own as u64))
        }),
        held(
            "receiver",
            0,
            "share of the stalls after which the receiver got messages sent in their first half",
            |own| (own.held_receiver, own.held_receiver_interval95),
        ),
        held(
            "senders",
            0,
            "share of the stalls after which send calls of others returned that began in their first half",
            |own| (own.held_senders, own.held_senders_interval95),
        ),
        longest("delivery", 4, "from the begin of a send call until the receiver had it", |own| {
            own.longest_delivery_ns
        }),
        longest("send call", 5, "longest send call of another sender", |own| own.longest_send_ns),
    ]
}

fn lines(record: &Record) -> Vec<String> {
    let quantiles = &record.quantiles;
    let mut lines = vec![format!(
        "important p50 {}, p99 {}",
        maybe_time(quantiles.p50),
        maybe_time(quantiles.p99)
    )];
    if let Some(funnel) = &record.funnel {
        let chatty = &funnel.chatty;
        lines.push(format!(
            "chatty p50 {}, p99 {}",
            maybe_time(chatty.p50),
            maybe_time(chatty.p99)
        ));
        lines.extend(funnel.fairness.map(|index| format!("fairness {:.3}", index.get())));
        lines.extend(funnel.stalls.as_ref().and_then(held));
    }
    lines
}

/// Whom stalls held up.
fn held(stalls: &Stalls) -> Option<String> {
    let (receiver, [low, high]) = stalls.held_receiver.zip(stalls.held_receiver_interval95)?;
    let (senders, [least, most]) = stalls.held_senders.zip(stalls.held_senders_interval95)?;
    Some(format!(
        "{} stalls held up the receiver in {} ({}), senders in {} ({})",
        count(stalls.count.get()),
        share(receiver.get()),
        range_of_shares(low.get(), high.get()),
        share(senders.get()),
        range_of_shares(least.get(), most.get())
    ))
}
