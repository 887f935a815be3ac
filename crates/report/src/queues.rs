//! The rows of queues, like next to like: one section for each way of waiting, of batching and of
//! placing.
//!
//! What a table shows in the terminal and in the page is decided here, once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use threadtoll_record::{
    Against, Cell, Origin, Placement, QueueSubject, Record, Subject, Verdict, Wait, WaitFamily,
    file::Results, fold,
};

use crate::clean::clean;
use crate::cost::{cpu_ns, switches};
use crate::disturbance::too_disturbed;
use crate::experiment::{QueueScenario, queue_scenario};
use crate::label::verdict;
use crate::merge::merged;
use crate::rows::times;
use crate::units::{
    UNKNOWN, digits, maybe_time, per_op, plus_minus, ratio, round_time, share, time,
};

/// A row: one cell, over all groups in which it was measured.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) record: Cow<'a, Record>,
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

    fn peer(&self) -> bool {
        is_peer(&self.record.cell)
    }

    /// Its name, fit to be shown; marked where over a quarter of its blocks was disturbed.
    pub(crate) fn label(&self) -> String {
        self.named("")
    }

    /// The same with this behind the name.
    fn named(&self, behind: &str) -> String {
        let cell = &self.record.cell;
        let mut label = clean(cell.name());
        if self.origin() == Some(Origin::Twin) {
            label.push_str(" (twin)");
        }
        match self.queue() {
            Some(queue) if queue.origin == Origin::Raw => {
                label.push_str(&format!(", {} KiB", digits(queue.batch as f64 / 128.0)));
            }
            Some(queue) if queue.batch > 1 => label.push_str(&format!(", ≤{}", queue.batch)),
            _ => {}
        }
        label.push_str(behind);
        if too_disturbed(&self.record.disturbance) {
            label.push_str(" !");
        }
        if cell.oversubscribed() {
            label.push_str(" *");
        }
        label
    }

    /// Memory of the messages that it holds, if it is bounded.
    fn ring(&self) -> Option<String> {
        self.queue()?.ring_bytes.map(kib)
    }

    /// What rows are ordered by: the one-way median, or the time per message.
    fn figure_ns(&self) -> Option<f64> {
        let figure = match self.record.rate_per_s {
            Some(rate) => Some(1e9 / rate),
            None => self.record.one_way_p50(),
        };
        figure.filter(|ns| ns.is_finite() && *ns > 0.0)
    }

    /// Its paired ratio to another cell.
    fn against(&self, other: &Cell) -> Option<&Against> {
        self.record.against.iter().find(|against| against.cell == *other)
    }
}

/// Rows that can be compared with each other.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    /// Whether they are streams, with a rate, and not ask-reply, with a latency.
    pub(crate) streams: bool,
    placement: Placement,
    senders: u32,
    batched: bool,
    family: WaitFamily,
    /// Best first.
    pub(crate) rows: Vec<Row<'a>>,
}

impl Section<'_> {
    /// What its rows have in common.
    pub(crate) fn heading(&self) -> String {
        let mut parts = vec![match self.family {
            WaitFamily::Spinning => "receivers that spin".to_string(),
            WaitFamily::Blocking => "receivers that sleep when they must".to_string(),
        }];
        if self.streams {
            parts.insert(
                0,
                if self.batched { "in batches" } else { "one message at a time" }.into(),
            );
        }
        if self.senders != 1 {
            parts.push(format!("{} senders", self.senders));
        }
        if self.placement != Placement::Pinned {
            parts.push(self.placement.to_string());
        }
        let scenario = if self.streams { "Stream" } else { "Ask-reply" };
        format!("{scenario}: {}", parts.join(", "))
    }

    fn best(&self, wanted: impl Fn(&Row<'_>) -> bool) -> Option<&Row<'_>> {
        self.rows.iter().find(|row| wanted(row) && row.figure_ns().is_some())
    }

    /// The best peer.
    fn best_peer(&self) -> Option<&Row<'_>> {
        self.best(|row| row.peer())
    }

    /// The best of ours.
    fn best_of_ours(&self) -> Option<&Row<'_>> {
        self.best(|row| row.origin() == Some(Origin::Ours))
    }

    /// The best of the peers that a row was paired with, and its ratio to that peer. Best by the
    /// pairs: the peer against which the row does least well.
    fn rival<'s>(&'s self, row: &'s Row<'_>) -> Option<(&'s Row<'s>, &'s Against)> {
        let peers = self.rows.iter().filter(|other| other.peer() && other.figure_ns().is_some());
        let rivals = peers.filter_map(|peer| Some((peer, row.against(&peer.record.cell)?)));
        let by_ratio =
            |one: &(_, &Against), other: &(_, &Against)| one.1.ratio.total_cmp(&other.1.ratio);
        if self.streams { rivals.min_by(by_ratio) } else { rivals.max_by(by_ratio) }
    }

    /// Returns `true` if a row's queue was also measured with another capacity.
    fn repeats(&self, row: &Row<'_>) -> bool {
        let name =
            |row: &Row<'_>| row.queue().map(|queue| (queue.queue.clone(), queue.wait, queue.batch));
        self.rows.iter().filter(|other| name(other) == name(row)).count() > 1
    }

    /// The fastest bare copy.
    fn raw(&self) -> Option<&Row<'_>> {
        self.best(|row| row.origin() == Some(Origin::Raw))
    }

    /// Whether a row took more threads than there were CPUs.
    pub(crate) fn oversubscribed(&self) -> bool {
        self.rows.iter().any(|row| row.record.cell.oversubscribed())
    }
}

/// A row as a chart shows it.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) label: String,
    /// Whose it is.
    pub(crate) kind: &'static str,
    /// Messages per second in millions, or the one-way median in nanoseconds.
    pub(crate) figure: f64,
    pub(crate) interval: Option<[f64; 2]>,
    /// What else is known, a line each.
    pub(crate) lines: Vec<String>,
}

impl Section<'_> {
    /// Its first rows as a chart shows them, those without a figure left out.
    pub(crate) fn marks(&self, most: usize) -> Vec<Mark> {
        self.rows.iter().take(most).filter_map(|row| self.mark(row)).collect()
    }

    fn mark(&self, row: &Row<'_>) -> Option<Mark> {
        let record = &row.record;
        let ns = row.figure_ns()?;
        let per_second = |rate: f64| rate / 1e6;
        let (figure, interval) = if self.streams {
            (1e3 / ns, record.interval95.rate_per_s.map(|interval| interval.map(per_second)))
        } else {
            (ns, record.one_way_p50_interval95())
        };
        let wait = row.queue().map(|queue| queue.wait.name());
        let mut lines = Vec::new();
        lines.extend(wait.map(|wait| format!("receiver: {wait}")));
        let reach = interval
            .map(|interval| format!(" ({})", plus_minus(figure, interval)))
            .unwrap_or_default();
        if self.streams {
            lines.push(format!("{} million messages per s{reach}", digits(figure)));
            lines.push(format!("a message: {}", time(ns)));
        } else {
            lines.push(format!("one way p50 {}{reach}", time(ns)));
            let quantiles = &record.quantiles;
            lines.push(format!(
                "round trip p50 {}, p99 {}",
                maybe_time(quantiles.p50),
                maybe_time(quantiles.p99)
            ));
        }
        if let (Some(cpu_ns), Some(switches)) = (cpu_ns(&record.cost), switches(&record.cost)) {
            lines.push(format!("per message: CPU {}, {} switches", time(cpu_ns), per_op(switches)));
        }
        let kind = match row.origin() {
            Some(Origin::Ours) => "threadtoll",
            Some(Origin::Twin) => "twin",
            Some(Origin::Raw) => "bare copy",
            Some(_) => "peer",
            None => "mechanism",
        };
        let mut behind = wait.map(|wait| format!(" ({wait})")).unwrap_or_default();
        if let Some(capacity) =
            row.queue().and_then(|queue| queue.capacity).filter(|_| self.repeats(row))
        {
            behind.push_str(&format!(", {capacity}"));
        }
        let label = row.named(&behind);
        Some(Mark { label, kind, figure, interval, lines })
    }
}

/// Everything by which sections differ, in the order in which they are shown.
type Kind = (bool, Placement, u32, bool, WaitFamily);

/// The group in which a cell is measured with the peer against which it does least well. Its
/// figures are shown as they were there: groups are minutes apart, and only figures of one group
/// can be ranked.
fn toughest(streams: bool, found: &[&Record]) -> Option<usize> {
    let pairs = found.iter().flat_map(|record| {
        let peers = record.against.iter().filter(|against| is_peer(&against.cell));
        peers.map(|against| (if streams { against.ratio } else { -against.ratio }, record.group))
    });
    pairs.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, group)| group)
}

/// The cell itself; of a twin, that of the row whose twin it is.
fn original(cell: &Cell) -> Cell {
    match &cell.subject {
        Subject::Queue(queue) if queue.origin == Origin::Twin => {
            let subject = Subject::Queue(QueueSubject { origin: Origin::Ours, ..queue.clone() });
            Cell { subject, ..cell.clone() }
        }
        _ => cell.clone(),
    }
}

/// The sections of all records that belong to queue scenarios.
pub(crate) fn sections(records: &[Record]) -> Vec<Section<'_>> {
    let mut cells: BTreeMap<(bool, &Cell), Vec<&Record>> = BTreeMap::new();
    for record in records {
        let Some(scenario) = queue_scenario(record) else { continue };
        let streams = scenario == QueueScenario::Stream;
        cells.entry((streams, &record.cell)).or_default().push(record);
    }
    let at: BTreeMap<(bool, Cell), usize> = cells
        .iter()
        .filter_map(|((streams, cell), found)| {
            Some(((*streams, (*cell).clone()), toughest(*streams, found)?))
        })
        .collect();
    let mut sections: BTreeMap<Kind, Vec<Row<'_>>> = BTreeMap::new();
    for ((streams, cell), found) in cells {
        let kind = match cell.queue() {
            Some(queue) => {
                (streams, cell.placement, queue.senders, queue.batch > 1, cell.subject.family())
            }
            // A mechanism hands over and does not stream.
            None if streams => continue,
            None => (streams, cell.placement, 1, false, cell.subject.family()),
        };
        let group = at.get(&(streams, original(cell)));
        let beside = group.and_then(|group| found.iter().find(|record| record.group == *group));
        let mut record = merged(&found);
        if let Some(beside) = beside.filter(|_| found.len() > 1) {
            let against = record.against.clone();
            record = Cow::Owned(Record { against, ..(**beside).clone() });
        }
        sections.entry(kind).or_default().push(Row { record });
    }
    let mut all = Vec::new();
    for ((streams, placement, senders, batched, family), mut rows) in sections {
        if rows.iter().all(|row| row.queue().is_none()) {
            continue;
        }
        rows.sort_by(|a, b| {
            let key = |row: &Row<'_>| row.figure_ns().unwrap_or(f64::INFINITY);
            key(a).total_cmp(&key(b)).then_with(|| a.record.cell.cmp(&b.record.cell))
        });
        all.push(Section { streams, placement, senders, batched, family, rows });
    }
    all
}

/// A column of a section's table.
pub(crate) struct Column {
    /// What it shares with its neighbours.
    pub(crate) group: &'static str,
    /// What it is, short.
    pub(crate) head: String,
    /// What it is, in words.
    pub(crate) title: &'static str,
    /// The higher, the sooner a narrow terminal drops it; 0 never is.
    pub(crate) rank: u8,
    /// Its figure to sort by, and as it is shown, for a row.
    pub(crate) value: Value,
}

type Value = Box<dyn Fn(&Section<'_>, &Row<'_>) -> (Option<f64>, String)>;

fn maybe(value: Option<f64>, show: impl Fn(f64) -> String) -> (Option<f64>, String) {
    (value, value.map_or_else(|| UNKNOWN.into(), show))
}

fn text(value: impl Into<String>) -> (Option<f64>, String) {
    (None, value.into())
}

/// The columns of a section.
pub(crate) fn columns(results: &Results, section: &Section<'_>) -> Vec<Column> {
    let mut columns = Vec::new();
    let mut add = |group, head: &str, title, rank, value: Value| {
        columns.push(Column { group, head: head.into(), title, rank, value });
    };
    add(
        "",
        "wait",
        "how the receiver waits",
        1,
        Box::new(|_, row| text(row.queue().map_or("", |queue| queue.wait.name()))),
    );
    add(
        "",
        "version",
        "version of the queue",
        9,
        Box::new(|_, row| {
            text(row.queue().map_or_else(String::new, |queue| clean(&queue.version)))
        }),
    );
    let rings: BTreeSet<String> = section.rows.iter().filter_map(Row::ring).collect();
    if rings.len() > 1 {
        add(
            "",
            "ring",
            "memory of the messages that a bounded queue holds",
            3,
            Box::new(|_, row| {
                let bytes = row.queue().and_then(|queue| queue.ring_bytes);
                (bytes.map(|bytes| bytes as f64), row.ring().unwrap_or_default())
            }),
        );
    }
    if section.streams {
        streams(section, &mut add)
    } else {
        ask_reply(results, &mut add)
    }
    add(
        "per message",
        "CPU",
        "CPU time of all ends per message",
        6,
        Box::new(|_, row| maybe(cpu_ns(&row.record.cost), time)),
    );
    add(
        "per message",
        "switches",
        "context switches per message",
        8,
        Box::new(|_, row| maybe(switches(&row.record.cost), per_op)),
    );
    if section.best_peer().is_some() {
        add(
            "",
            "best peer",
            "of ours, against the best peer that does what it does (unbounded and many senders for a funnel): the ratio of paired blocks and what its 95% interval says; of peers, against the best of this table: the quotient of the figures here",
            2,
            Box::new(beside_best_peer),
        );
    }
    columns
}

fn ask_reply(results: &Results, add: &mut dyn FnMut(&'static str, &str, &'static str, u8, Value)) {
    add(
        "one way",
        "p50",
        "half of the median round trip",
        0,
        Box::new(|_, row| maybe(row.record.one_way_p50(), time)),
    );
    add(
        "one way",
        "95%",
        "interval of the one-way median",
        10,
        Box::new(|_, row| match (row.record.one_way_p50(), row.record.one_way_p50_interval95()) {
            (Some(p50), Some(interval)) => text(plus_minus(p50, interval)),
            _ => text(UNKNOWN),
        }),
    );
    add(
        "times",
        "reference",
        "against the reference cell: ratio of paired blocks",
        3,
        Box::new(|_, row| match row.record.against.first() {
            Some(against) => maybe(Some(against.ratio), ratio),
            None => text(""),
        }),
    );
    for (head, title, rank, figure) in [
        ("p99", "round trip", 4, (|record| record.quantiles.p99) as fn(&Record) -> Option<f64>),
        ("p99.9", "round trip", 11, |record| record.quantiles.p999),
        ("max", "round trip", 7, |record| record.max),
    ] {
        add(
            "round trip",
            head,
            title,
            rank,
            Box::new(move |_, row| (figure(&row.record), maybe_time(figure(&row.record)))),
        );
    }
    add(
        "round trip",
        &format!(">{}", round_time(results.plan.over_ns as f64)),
        "share of the round trips over the limit",
        5,
        Box::new(|_, row| maybe(row.record.over.share, share)),
    );
}

fn streams(
    section: &Section<'_>,
    add: &mut dyn FnMut(&'static str, &str, &'static str, u8, Value),
) {
    add(
        "million messages",
        "per s",
        "messages of 8 bytes per second, median over blocks",
        0,
        Box::new(|_, row| maybe(row.record.rate_per_s, |rate| digits(rate / 1e6))),
    );
    add(
        "million messages",
        "95%",
        "interval of the rate",
        4,
        Box::new(|_, row| match (row.record.rate_per_s, row.record.interval95.rate_per_s) {
            (Some(rate), Some(interval)) => text(plus_minus(rate, interval)),
            _ => text(UNKNOWN),
        }),
    );
    add("", "a message", "time per message", 5, Box::new(|_, row| maybe(row.figure_ns(), time)));
    if section.raw().is_some() {
        add(
            "of the",
            "bare copy",
            "share of the fastest bare copy’s rate, by paired blocks where both stand in one group",
            3,
            Box::new(|section, row| {
                let Some(raw) = section.raw() else { return text("") };
                let paired = row.against(&raw.record.cell).map(|against| against.ratio);
                let rates = row.record.rate_per_s.zip(raw.record.rate_per_s);
                maybe(paired.or_else(|| rates.map(|(rate, limit)| rate / limit)), share)
            }),
        );
    }
}

fn beside_best_peer(section: &Section<'_>, row: &Row<'_>) -> (Option<f64>, String) {
    if row.origin() == Some(Origin::Ours) {
        // Without a common group there are no pairs, and nothing is claimed.
        return match section.rival(row) {
            Some((_, against)) => (
                Some(against.ratio),
                format!("{} {}", ratio(against.ratio), verdict(against.verdict)),
            ),
            None => text(UNKNOWN),
        };
    }
    let Some(best) = section.best_peer() else { return text("") };
    if !row.peer() {
        return text("");
    }
    let quotient = if section.streams {
        row.record.rate_per_s.zip(best.record.rate_per_s).map(|(rate, best)| rate / best)
    } else {
        times(&row.record, &best.record)
    };
    maybe(quotient, ratio)
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", digits(bytes as f64 / 1024.0))
}

/// Sentence on what bounded queues hold; `None` if no record says.
pub(crate) fn held(sections: &[Section<'_>]) -> Option<String> {
    let queues = || sections.iter().flat_map(|section| &section.rows).filter_map(Row::queue);
    let capacities: BTreeSet<u64> = queues().filter_map(|queue| queue.capacity).collect();
    let rings: BTreeSet<u64> = queues().filter_map(|queue| queue.ring_bytes).collect();
    let (least, most) = (kib(*rings.first()?), kib(*rings.last()?));
    Some(match capacities.first() {
        Some(capacity) if capacities.len() == 1 => {
            format!("Bounded queues hold {capacity} messages.")
        }
        _ if least == most => format!("Bounded queues hold what fits into {least}."),
        _ => format!("Bounded queues hold what fits into {least} to {most}."),
    })
}

/// What the notes under the tables are.
pub(crate) fn notes(sections: &[Section<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    if sections.iter().any(|section| section.rows.iter().any(|row| row.label().contains('!'))) {
        notes.push("!  over a quarter of the blocks was disturbed.".into());
    }
    if sections.iter().any(Section::oversubscribed) {
        notes.push(
            "*  oversubscribed: more threads than CPUs took turns, and the scheduler’s slices are part of the figure."
                .into(),
        );
    }
    notes
}

/// What the sections say, in words.
pub(crate) fn sentences(records: &[Record]) -> Vec<String> {
    let sections = sections(records);
    let peers = sections.iter().flat_map(|section| match beside_peers(section) {
        none if none.is_empty() => best_of_peers(section).into_iter().collect(),
        said => said,
    });
    peers.chain(sections.iter().flat_map(beside_own)).collect()
}

/// What the rows of a section do, as far as it is not the receiver's usual.
fn how(section: &Section<'_>, wait: Option<Wait>) -> String {
    let mut how = vec![
        match (section.family, wait) {
            (WaitFamily::Spinning, _) => "spinning",
            (WaitFamily::Blocking, Some(Wait::Adaptive)) => "adapting its wait",
            (WaitFamily::Blocking, _) => "sleeping when idle",
        }
        .to_string(),
    ];
    if section.batched {
        how.push("in batches".into());
    }
    if section.senders != 1 {
        how.push(format!("with {} senders", section.senders));
    }
    if section.placement != Placement::Pinned {
        how.push(section.placement.to_string());
    }
    how.join(", ")
}

fn name(row: &Row<'_>) -> String {
    let mut name = clean(row.record.cell.name());
    if row.queue().is_some_and(|queue| queue.wait == Wait::PollBackoff) {
        name.push_str(" with poll-backoff");
    }
    name
}

/// How each of our queues, in its best row, does against the best peer that it stands beside.
fn beside_peers(section: &Section<'_>) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut queues = Vec::new();
    for row in section.rows.iter().filter(|row| row.origin() == Some(Origin::Ours)) {
        let Some((peer, against)) = section.rival(row) else { continue };
        if queues.contains(&name(row)) {
            continue;
        }
        queues.push(name(row));
        let how = how(section, row.queue().map(|queue| queue.wait));
        let what = if section.streams {
            format!(
                "streams {} as many messages as the best peer ({})",
                times_of(against),
                name(peer)
            )
        } else {
            format!(
                "takes {} the time of the best peer ({}) for a message",
                times_of(against),
                name(peer)
            )
        };
        said.push(judged(format!("{}, {how}, {what}", name(row)), against));
    }
    said
}

/// The best of several peers, where none of ours was measured beside them.
fn best_of_peers(section: &Section<'_>) -> Option<String> {
    let best = section.best_peer()?;
    if section.rows.iter().filter(|row| row.peer()).count() < 2 {
        // Among so few there is no best.
        return None;
    }
    let how = how(section, section.best_of_ours().and_then(Row::queue).map(|queue| queue.wait));
    Some(match best.record.rate_per_s {
        Some(rate) => format!(
            "Of the peers, {how}, {} streams most: {} million messages per second.",
            name(best),
            digits(rate / 1e6)
        ),
        None => format!(
            "Of the peers, {how}, {} takes the least for a message: {} one way.",
            name(best),
            maybe_time(best.record.one_way_p50())
        ),
    })
}

/// What ours pay beside what they are made of: a bare copy, a futex, a wait without a thought.
fn beside_own(section: &Section<'_>) -> Vec<String> {
    let mut said = Vec::new();
    for row in &section.rows {
        let Some(queue) = row.queue().filter(|queue| queue.origin == Origin::Ours) else {
            continue;
        };
        let against = |wanted: &dyn Fn(&Cell) -> bool| {
            row.record.against.iter().find(|against| wanted(&against.cell))
        };
        let spins = |cell: &Cell| {
            cell.queue().is_some_and(|other| {
                (&other.queue, other.origin, other.wait) == (&queue.queue, queue.origin, Wait::Spin)
            })
        };
        if section.streams {
            let raw = section.raw().filter(|_| queue.wait == Wait::Spin);
            if let Some(against) = raw.and_then(|raw| row.against(&raw.record.cell)) {
                let what = format!(
                    "{}, in batches, moves {} what a bare copy does",
                    name(row),
                    times_of(against)
                );
                said.push(judged(what, against));
            }
            let sleeps = match queue.wait {
                Wait::Adaptive => "adapting its wait",
                Wait::Park => "going to sleep",
                _ => continue,
            };
            if let Some(against) = against(&spins) {
                let batches = if queue.batch > 1 { ", in batches" } else { "" };
                let what = format!(
                    "{}{batches}, {sleeps} where it finds nothing, moves {} what it moves spinning",
                    name(row),
                    times_of(against)
                );
                said.push(judged(what, against));
            }
            continue;
        }
        let bare = |cell: &Cell| cell.queue().is_none() && cell.name() == "futex";
        let (found, what) = match queue.wait {
            Wait::Adaptive => {
                (against(&spins), "adapting its wait, takes {} the time that it takes spinning")
            }
            Wait::Park => (against(&bare), "parked, is woken in {} the time of a bare futex"),
            _ => continue,
        };
        if let Some(against) = found {
            let what = what.replace("{}", &times_of(against));
            said.push(judged(format!("{}, {what}", name(row)), against));
        }
    }
    said
}

/// A paired ratio and its interval.
fn times_of(against: &Against) -> String {
    let [low, high] = against.interval95;
    format!("{} ({}–{})", ratio(against.ratio), digits(low), digits(high))
}

/// A sentence with what the pairs say of it.
fn judged(what: String, against: &Against) -> String {
    match against.verdict {
        Verdict::Open if (against.blocks as usize) < fold::PAIRS => format!(
            "{what}; with {} pairs of blocks that decides nothing, {} are needed.",
            against.blocks,
            fold::PAIRS
        ),
        Verdict::Open if against.interval95[0] > 1.0 || against.interval95[1] < 1.0 => {
            let alone = match against.of.as_str() {
                "rate_per_s" => fold::verdict_of_rates(against.interval95, fold::PAIRS),
                _ => fold::verdict(against.interval95, fold::PAIRS),
            };
            match alone {
                Verdict::Open => format!("{what}: worse, but perhaps by less than 5%."),
                _ => format!("{what}; its groups, taken one by one, do not all decide it."),
            }
        }
        Verdict::Open => format!("{what}: the pairs do not decide which is better."),
        Verdict::NoWorse => format!("{what}: no worse, within 5%."),
        Verdict::Better | Verdict::Worse => format!("{what}."),
    }
}

/// The headline figures of a page: the best of each section, the first few. Figure, label and
/// queue.
pub(crate) fn cards(records: &[Record]) -> Vec<(String, String, String)> {
    const MOST: usize = 4;
    let best = |section: &Section<'_>| {
        let row = section.best(|row| {
            row.queue().is_some_and(|queue| !matches!(queue.origin, Origin::Twin | Origin::Raw))
        })?;
        let figure = match row.record.rate_per_s {
            Some(rate) => format!("{} M/s", digits(rate / 1e6)),
            None => maybe_time(row.record.one_way_p50()),
        };
        Some((figure, section.heading(), clean(&row.record.cell.label())))
    };
    sections(records).iter().filter_map(best).take(MOST).collect()
}
