//! Queues: the cost of a message, each queue compared with similar ones.

mod chart;
mod columns;
mod findings;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use threadtoll_record::{
    Against, Cell, Experiment, Origin, Placement, QueueSubject, Record, RecordKind, WaitFamily,
    file::Results,
};

pub(crate) use chart::ChartRow;
pub(crate) use findings::findings;

use crate::clean::clean;
use crate::label::{cpus, list, on_machine, relation, title};
use crate::merge::merged;
use crate::table::{Label, Marks, Section, Table, Topic};
use crate::units::{digits, maybe_time};

/// One cell, merged over all groups in which it was measured.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    record: Cow<'a, Record>,
}

fn is_peer(cell: &Cell) -> bool {
    cell.queue()
        .is_some_and(|queue| !matches!(queue.origin, Origin::Ours | Origin::Twin | Origin::Raw))
}

impl Row<'_> {
    fn queue(&self) -> Option<&QueueSubject> {
        self.record.cell.queue()
    }

    fn origin(&self) -> Option<Origin> {
        self.queue().map(|queue| queue.origin)
    }

    fn is_peer(&self) -> bool {
        is_peer(&self.record.cell)
    }

    fn name(&self) -> String {
        let mut name = clean(self.record.cell.name());
        if self.origin() == Some(Origin::Twin) {
            name.push_str(" (twin)");
        }
        match self.queue() {
            Some(queue) if queue.origin == Origin::Raw => {
                name.push_str(&format!(", {} KiB", digits(queue.batch as f64 / 128.0)));
            }
            Some(queue) if queue.batch > 1 => name.push_str(&format!(", ≤{}", queue.batch)),
            _ => {}
        }
        name
    }

    fn ring(&self) -> Option<String> {
        self.queue()?.ring_bytes.map(kib)
    }

    /// The one-way median, or the time per message of a stream.
    fn ns(&self) -> Option<f64> {
        let ns = match self.record.rate_per_s {
            Some(rate) => Some(1e9 / rate.get()),
            None => self.record.one_way_p50(),
        };
        ns.filter(|ns| ns.is_finite() && *ns > 0.0)
    }

    /// The paired ratio to another cell.
    fn against(&self, other: &Cell) -> Option<&Against> {
        self.record.against.iter().find(|against| against.cell == *other)
    }
}

/// A scenario and its kind of loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scenario<'a> {
    /// True for streams, which have a rate; false for exchanges, which have a latency.
    streams: bool,
    name: &'a str,
}

impl<'a> Scenario<'a> {
    fn of(record: &'a Record) -> Option<Self> {
        let Experiment::Queue(name) = &record.experiment else { return None };
        let streams = match record.kind {
            RecordKind::RoundTrip => false,
            RecordKind::Stream => true,
            RecordKind::Wait => return None,
        };
        Some(Scenario { streams, name })
    }
}

/// Properties that comparable rows share, in the order of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Criteria<'a> {
    scenario: Scenario<'a>,
    placement: Placement,
    senders: u32,
    batched: bool,
    family: WaitFamily,
}

/// Comparable rows, best first.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    criteria: Criteria<'a>,
    rows: Vec<Row<'a>>,
}

impl Comparison<'_> {
    pub(crate) fn streams(&self) -> bool {
        self.criteria.scenario.streams
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    fn heading(&self) -> String {
        let Criteria { placement, senders, batched, family, .. } = self.criteria;
        let mut parts = Vec::new();
        if self.streams() {
            parts.push(if batched { "in batches" } else { "one message at a time" }.to_string());
        }
        parts.push(match family {
            WaitFamily::Spinning => "receivers that spin".into(),
            WaitFamily::Blocking => "receivers that may sleep".into(),
        });
        if senders != 1 {
            parts.push(format!("{senders} senders"));
        }
        if placement != Placement::Pinned {
            parts.push(placement.to_string());
        }
        format!("{}: {}", title(self.criteria.scenario.name), parts.join(", "))
    }

    fn best(&self, eligible: impl Fn(&Row<'_>) -> bool) -> Option<&Row<'_>> {
        self.rows.iter().find(|row| eligible(row) && row.ns().is_some())
    }

    fn best_peer(&self) -> Option<&Row<'_>> {
        self.best(|row| row.is_peer())
    }

    /// The fastest bare copy.
    fn bare_copy(&self) -> Option<&Row<'_>> {
        self.best(|row| row.origin() == Some(Origin::Raw))
    }

    /// The peer against which the row does worst of those it was paired with, and the ratio.
    fn rival<'s>(&'s self, row: &'s Row<'_>) -> Option<(&'s Row<'s>, &'s Against)> {
        let peers = self.rows.iter().filter(|other| other.is_peer() && other.ns().is_some());
        let rivals = peers.filter_map(|peer| Some((peer, row.against(&peer.record.cell)?)));
        let by_ratio = |one: &(_, &Against), other: &(_, &Against)| {
            one.1.ratio.get().total_cmp(&other.1.ratio.get())
        };
        if self.streams() { rivals.min_by(by_ratio) } else { rivals.max_by(by_ratio) }
    }
}

/// The group that measured a cell with the peer against which it does worst. Its figures are those
/// of that group: groups are minutes apart, and only figures of one group can be ranked.
fn toughest_group(scenario: Scenario<'_>, records: &[&Record]) -> Option<usize> {
    let pairs = records.iter().flat_map(|record| {
        let peers = record.against.iter().filter(|against| is_peer(&against.cell));
        // A higher rate, or a shorter time, is better.
        peers.map(|against| {
            let ratio = against.ratio.get();
            (if scenario.streams { ratio } else { -ratio }, record.group)
        })
    });
    pairs.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, group)| group)
}

/// The comparisons that the records of queue scenarios allow.
pub(crate) fn comparisons(records: &[Record]) -> Vec<Comparison<'_>> {
    let mut cells: BTreeMap<(Scenario<'_>, &Cell), Vec<&Record>> = BTreeMap::new();
    // A mechanism measured along with streams, or with another scenario's exchanges, is not a row
    // of theirs.
    let exchanges: BTreeSet<&Experiment> = records
        .iter()
        .filter(|record| record.cell.queue().is_some() && record.kind == RecordKind::RoundTrip)
        .map(|record| &record.experiment)
        .collect();
    for record in records {
        let is_row = record.cell.queue().is_some() || exchanges.contains(&record.experiment);
        if let Some(scenario) = Scenario::of(record).filter(|_| is_row) {
            cells.entry((scenario, &record.cell)).or_default().push(record);
        }
    }
    let toughest: BTreeMap<(Scenario<'_>, Cell), usize> = cells
        .iter()
        .filter_map(|((scenario, cell), records)| {
            Some(((*scenario, (*cell).clone()), toughest_group(*scenario, records)?))
        })
        .collect();
    let mut comparisons: BTreeMap<Criteria, Vec<Row<'_>>> = BTreeMap::new();
    for ((scenario, cell), records) in cells {
        let (senders, batched) = match cell.queue() {
            Some(queue) => (queue.senders, queue.batch > 1),
            None => (1, false),
        };
        let family = cell.subject.family();
        let criteria = Criteria { scenario, placement: cell.placement, senders, batched, family };
        let group = toughest.get(&(scenario, cell.original()));
        let in_group = group.and_then(|group| records.iter().find(|record| record.group == *group));
        let mut record = merged(&records);
        if let Some(in_group) = in_group.filter(|_| records.len() > 1) {
            let against = record.against.clone();
            record = Cow::Owned(Record { against, ..(**in_group).clone() });
        }
        comparisons.entry(criteria).or_default().push(Row { record });
    }
    let mut all = Vec::new();
    for (criteria, mut rows) in comparisons {
        if rows.iter().all(|row| row.queue().is_none()) {
            continue;
        }
        rows.sort_by(|a, b| {
            let key = |row: &Row<'_>| row.ns().unwrap_or(f64::INFINITY);
            key(a).total_cmp(&key(b)).then_with(|| a.record.cell.cmp(&b.record.cell))
        });
        all.push(Comparison { criteria, rows });
    }
    all
}

pub(crate) fn table(results: &Results, records: &[Record]) -> Option<Table> {
    let comparisons = comparisons(records);
    if comparisons.is_empty() {
        return None;
    }
    let section = |comparison: &Comparison<'_>| {
        let columns = columns::columns(results, comparison);
        Section::new(comparison.heading(), "queue", columns, &comparison.rows, |row| {
            Label::of(row.name(), &row.record)
        })
    };
    let sections: Vec<Section> = comparisons.iter().map(section).collect();
    Some(Table {
        topic: Topic::Queues,
        heading: on_machine("Queues", &results.machine),
        introduction: introduction(&comparisons),
        notes: Marks::notes(&sections),
        sections,
    })
}

fn introduction(comparisons: &[Comparison<'_>]) -> String {
    let mut parts = Vec::new();
    for (streams, sentence) in [
        (
            false,
            "one message under way at a time. One way is half a round trip; quantiles are of whole round trips.",
        ),
        (true, "as many messages of 8 bytes as the queue takes, each verified."),
    ] {
        let scenarios: BTreeSet<Scenario<'_>> =
            comparisons.iter().map(|comparison| comparison.criteria.scenario).collect();
        let names: Vec<String> = scenarios
            .iter()
            .filter(|scenario| scenario.streams == streams)
            .map(|scenario| title(scenario.name))
            .collect();
        if !names.is_empty() {
            parts.push(format!("{}: {sentence}", list(&names)));
        }
    }
    parts.extend(capacities(comparisons));
    let first = comparisons.first().and_then(|comparison| comparison.rows.first());
    if let Some(cell) = first.map(|row| &row.record.cell) {
        parts.push(format!("On {} ({}).", cpus(&cell.cpus), relation(cell.relation)));
    }
    parts.join(" ")
}

/// Sentence on the sizes of bounded queues; `None` if no record has one.
pub(crate) fn capacities(comparisons: &[Comparison<'_>]) -> Option<String> {
    let queues =
        || comparisons.iter().flat_map(|comparison| &comparison.rows).filter_map(Row::queue);
    let capacities: BTreeSet<u64> = queues().filter_map(|queue| queue.capacity).collect();
    let rings: BTreeSet<u64> = queues().filter_map(|queue| queue.ring_bytes).collect();
    let (least, most) = (kib(*rings.first()?), kib(*rings.last()?));
    Some(match capacities.first() {
        Some(capacity) if capacities.len() == 1 => {
            format!("Bounded queues hold {capacity} messages.")
        }
        _ if least == most => format!("Bounded queues hold as many messages as fit into {least}."),
        _ => format!("Bounded queues hold as many messages as fit into {least} to {most}."),
    })
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", digits(bytes as f64 / 1024.0))
}

pub(crate) struct Card {
    pub(crate) figure: String,
    pub(crate) heading: String,
    pub(crate) queue: String,
}

pub(crate) fn cards(records: &[Record]) -> Vec<Card> {
    const MAX_CARDS: usize = 4;
    let best = |comparison: &Comparison<'_>| {
        let row = comparison.best(|row| {
            row.queue().is_some_and(|queue| !matches!(queue.origin, Origin::Twin | Origin::Raw))
        })?;
        let figure = match row.record.rate_per_s {
            Some(rate) => format!("{} M/s", digits(rate.get() / 1e6)),
            None => maybe_time(row.record.one_way_p50()),
        };
        let queue = clean(&row.record.cell.label());
        Some(Card { figure, heading: comparison.heading(), queue })
    };
    comparisons(records).iter().filter_map(best).take(MAX_CARDS).collect()
}
