use std::collections::BTreeSet;

use threadtoll_record::{Burst, Ns, Record, file::Results};

use super::Comparison;
use super::columns::{Column, share_of, time_of, times_of};
use super::pairs;
use super::screen::{by_case, rank};
use super::view::{Shown, View};
use crate::label::plural;
use crate::screen::Rows;
use crate::sentences as say;
use crate::table::{self, Cell, Label, Section};
use crate::units::{count, maybe_time, round_time};

pub(super) const VIEW: View = View {
    scenario: "burst",
    question: "Which bursts each queue takes",
    sentence: "messages that are all due at once, again and again. First and last: time from then until the receiver has the first and the last message; drain: time from the end of the last send call until it has the last.",
    rates: false,
    ratios_decide: true,
    costs: false,
    axis: "until the last message of a burst is received (lower is better)",
    caption: "Times of bursts",
    ns: |record| burst(record)?.last_ns.map(Ns::get),
    interval: |record| Some(burst(record)?.last_interval95?.map(Ns::get)),
    text: |record| maybe_time(burst(record).and_then(|burst| burst.last_ns)),
    columns,
    summary,
    screen,
};

fn burst(record: &Record) -> Option<Burst> {
    record.figures.open_loop()?.burst
}

fn columns<'c, 'a>(_: &Results, _: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    vec![
        time_of("", "first", 3, |record| burst(record)?.first_ns.map(Ns::get)),
        time_of("", "last", 0, VIEW.ns).main(),
        times_of("", "95%", 5, VIEW.interval),
        time_of("", "drain", 2, |record| burst(record)?.drain_ns.map(Ns::get)),
        share_of("next", "found empty", 1, |record| burst(record)?.next_found_empty.map(f64::from)),
    ]
}

struct Jam {
    name: String,
    wait: &'static str,
    gap_ns: u64,
    /// Burst sizes, each with the share of bursts that found the queue empty.
    found: Vec<(u64, f64)>,
}

impl Jam {
    /// The smallest size from which on most bursts find messages of the previous burst in the
    /// queue.
    fn jammed_from(&self) -> Option<u64> {
        self.found.iter().rev().take_while(|(_, empty)| *empty < 0.5).map(|(size, _)| *size).last()
    }
}

/// Shortest gap first. For each gap, the queue that takes the largest bursts comes first.
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
        let (name, wait, gap_ns) = (pairs::name_without_wait(row), queue.wait.name(), gap.get());
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

/// For each queue and gap, the burst size from which on the next burst finds messages in the queue.
fn summary(_: &Results, comparisons: &[&Comparison<'_>]) -> Vec<Section> {
    let all = jams(comparisons);
    let sizes: BTreeSet<u64> =
        all.iter().flat_map(|jam| jam.found.iter().map(|(size, _)| *size)).collect();
    let columns: Vec<table::Column<'_, Jam>> = vec![
        table::Column::new("", "wait", 2, |jam: &Jam| Cell::text(jam.wait)).faint(),
        table::Column::new("", "gap", 0, |jam: &Jam| Cell::text(round_time(jam.gap_ns as f64))),
        table::Column::new("", "jammed from", 0, |jam: &Jam| match jam.jammed_from() {
            Some(size) => Cell::text(format!("{} messages", count(size))),
            None => Cell::text("no measured size"),
        })
        .main(),
    ];
    let heading =
        "Burst size from which most bursts find messages of the previous burst still queued";
    let section = || Section::new(heading, "queue", columns, &all, |jam| Label::new(&jam.name));
    (sizes.len() > 1).then(section).into_iter().collect()
}

/// For each queue, the burst size from which on it jams, by gap. The queue that takes the largest
/// bursts at the shortest gap comes first.
fn screen(results: &Results, comparisons: &[&Comparison<'_>]) -> Shown {
    if summary(results, comparisons).is_empty() {
        return by_case(results, comparisons);
    }
    let all = jams(comparisons);
    let named = |jam: &Jam| format!("{}, {}", jam.name, jam.wait);
    let answer = all.first().map(|first| {
        let (gap, queue) = (round_time(first.gap_ns as f64), named(first));
        let level =
            |jam: &&Jam| (jam.gap_ns, jam.jammed_from()) == (first.gap_ns, first.jammed_from());
        let level = all.iter().skip(1).filter(level).count() as u64;
        let level = (level > 0).then(|| say::level(plural(level, "other")));
        match first.jammed_from() {
            Some(size) => say::jammed_from(gap, count(size), queue),
            None => say::never_jammed(gap, queue),
        }
        .and(level)
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
        table::Column::new("gap", heading, rank(nth, gaps.len()), move |queue: &String| {
            match all.iter().find(|jam| jam.gap_ns == gap_ns && named(jam) == *queue) {
                Some(jam) => Cell::text(jam.jammed_from().map_or("none".into(), count)),
                None => Cell::unknown(),
            }
        })
        .main()
    };
    let columns = gaps.iter().enumerate().map(column).collect();
    let heading =
        "Burst size from which most bursts find messages of the previous burst still queued";
    let section = Section::new(heading, "queue", columns, &queues, |queue| Label::new(queue));
    (answer.into_iter().collect(), Rows::first(section, "queue"))
}
