//! The view of bursts.

use std::collections::BTreeSet;

use threadtoll_record::{Burst, Ns, Record, file::Results};

use super::Comparison;
use super::columns::Column;
use super::pairs;
use super::screen::{by_case, rank};
use super::view::{Shown, View};
use crate::screen::Rows;
use crate::sentences as say;
use crate::table::{self, Cell, Emphasis, Label, Section};
use crate::units::{count, maybe_time, round_time, share, time, time_range};

pub(super) const VIEW: View = View {
    scenario: "burst",
    question: "Which bursts each queue takes",
    sentence: "messages that are due at once, again and again. First and last: from then until the receiver has them; drain: from the end of the last send call until the receiver has the last.",
    rates: false,
    ratios_decide: true,
    costs: false,
    axis: "until the last message of a burst (lower is better)",
    caption: "Times of bursts",
    ns: |record| burst(record)?.last_ns.map(Ns::get),
    interval: |record| Some(burst(record)?.last_interval95?.map(Ns::get)),
    text: |record| maybe_time(burst(record).and_then(|burst| burst.last_ns)),
    columns,
    lines: |record| {
        burst(record).map_or_else(Vec::new, |burst| {
            vec![
                format!("first {}", maybe_time(burst.first_ns)),
                format!("last {}", maybe_time(burst.last_ns)),
                format!("drain {}", maybe_time(burst.drain_ns)),
                format!(
                    "next burst found it empty: {}",
                    burst.next_found_empty.map_or_else(String::new, |part| share(part.get()))
                ),
            ]
        })
    },
    summary,
    screen,
};

fn burst(record: &Record) -> Option<Burst> {
    record.figures.open_loop()?.burst
}

fn columns<'c, 'a>(_: &Results, _: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let figure = |heading: &'static str, rank: u8, title, of: fn(Burst) -> Option<Ns>| {
        Column::new("", heading, rank, title, move |row| {
            Cell::figure(burst(&row.record).and_then(of), time)
        })
    };
    vec![
        figure("first", 3, "until the first message is received", |burst| burst.first_ns),
        figure("last", 0, "until the last message is received", |burst| burst.last_ns)
            .emphasis(Emphasis::Main),
        Column::new("", "95%", 5, "95% interval of the time of the last message", |row| {
            let interval = burst(&row.record).and_then(|burst| burst.last_interval95);
            interval.map_or_else(Cell::unknown, |interval| {
                Cell::text(time_range(interval.map(Ns::get)))
            })
        }),
        figure("drain", 2, "from the last send call to the last message", |burst| burst.drain_ns),
        Column::new(
            "next",
            "found empty",
            1,
            "share of bursts that found the queue empty",
            |row| Cell::figure(burst(&row.record).and_then(|burst| burst.next_found_empty), share),
        ),
    ]
}

/// A queue, over all burst sizes with the same gap.
struct Jam {
    name: String,
    wait: &'static str,
    gap_ns: u64,
    /// Burst sizes, each with the share of bursts that found the queue empty.
    found: Vec<(u64, f64)>,
}

impl Jam {
    /// The smallest size from which most bursts find messages of the previous burst in the queue.
    fn jammed_from(&self) -> Option<u64> {
        self.found.iter().rev().take_while(|(_, empty)| *empty < 0.5).map(|(size, _)| *size).last()
    }
}

/// The queues, with the shortest gap and that which takes the largest bursts first.
fn jams(comparisons: &[&Comparison<'_>]) -> Vec<Jam> {
    let mut all: Vec<Jam> = Vec::new();
    let rows = comparisons.iter().flat_map(|comparison| &comparison.rows);
    for row in rows {
        let Some((queue, burst)) = row.queue().zip(burst(&row.record)) else { continue };
        let (Some(size), Some(gap), Some(empty)) =
            (queue.load.burst, queue.load.gap_ns, burst.next_found_empty)
        else {
            continue;
        };
        let (name, wait, gap_ns) = (pairs::name(row), queue.wait.name(), gap.get());
        let same = |known: &Jam| (&known.name, known.wait, known.gap_ns) == (&name, wait, gap_ns);
        let place = all.iter().position(same).unwrap_or_else(|| {
            all.push(Jam { name, wait, gap_ns, found: Vec::new() });
            all.len() - 1
        });
        all[place].found.push((size.get(), empty.get()));
    }
    all.iter_mut().for_each(|jam| jam.found.sort_by_key(|(size, _)| *size));
    all.sort_by(|a, b| {
        let key =
            |jam: &Jam| (jam.gap_ns, std::cmp::Reverse(jam.jammed_from().unwrap_or(u64::MAX)));
        key(a).cmp(&key(b)).then_with(|| (&a.name, a.wait).cmp(&(&b.name, b.wait)))
    });
    all
}

/// For each queue and gap, the size from which on the next burst no longer finds the queue empty.
fn summary(_: &Results, comparisons: &[&Comparison<'_>]) -> Vec<Section> {
    let all = jams(comparisons);
    let sizes: BTreeSet<u64> =
        all.iter().flat_map(|jam| jam.found.iter().map(|(size, _)| *size)).collect();
    let columns: Vec<table::Column<'_, Jam>> = vec![
        table::Column::new("", "wait", 2, "wait strategy of the receiver", |jam: &Jam| {
            Cell::text(jam.wait)
        })
        .emphasis(Emphasis::Faint),
        table::Column::new("", "gap", 0, "time from one burst to the next", |jam: &Jam| {
            Cell::new(Some(jam.gap_ns as f64), round_time(jam.gap_ns as f64))
        }),
        table::Column::new("", "jammed from", 0, "messages of a burst", |jam: &Jam| {
            match jam.jammed_from() {
                Some(size) => Cell::new(Some(size as f64), format!("{} messages", count(size))),
                None => Cell::text("no burst measured"),
            }
        })
        .emphasis(Emphasis::Main),
    ];
    let heading = "Size from which on most bursts find messages of the one before";
    let section = || Section::new(heading, "queue", columns, &all, |jam| Label::new(&jam.name));
    (sizes.len() > 1).then(section).into_iter().collect()
}

/// For each queue, the size from which on it jams at each gap; that which takes the largest bursts at
/// the shortest gap first.
fn screen(results: &Results, comparisons: &[&Comparison<'_>]) -> Shown {
    if summary(results, comparisons).is_empty() {
        return by_case(results, comparisons);
    }
    let all = jams(comparisons);
    let named = |jam: &Jam| format!("{}, {}", jam.name, jam.wait);
    let answer = all.first().map(|first| {
        let (gap, queue) = (round_time(first.gap_ns as f64), named(first));
        match first.jammed_from() {
            Some(size) => say::jammed_from(gap, count(size), queue),
            None => say::never_jammed(gap, queue),
        }
    });
    let mut queues: Vec<String> = Vec::new();
    all.iter().map(named).for_each(|name| {
        if !queues.contains(&name) {
            queues.push(name);
        }
    });
    let gaps: BTreeSet<u64> = all.iter().map(|jam| jam.gap_ns).collect();
    let column = |(nth, gap_ns): (usize, &u64)| {
        let (all, gap_ns) = (&all, *gap_ns);
        let heading = round_time(gap_ns as f64);
        table::Column::new("gap", heading, rank(nth, gaps.len()), "", move |queue: &String| {
            match all.iter().find(|jam| jam.gap_ns == gap_ns && named(jam) == *queue) {
                Some(jam) => Cell::text(jam.jammed_from().map_or("none".into(), count)),
                None => Cell::unknown(),
            }
        })
        .emphasis(Emphasis::Main)
    };
    let columns = gaps.iter().enumerate().map(column).collect();
    let heading = "Messages of a burst from which on most find those of the one before";
    let section = Section::new(heading, "queue", columns, &queues, |queue| Label::new(queue));
    (answer.into_iter().collect(), Rows::first(section, "queue"))
}
