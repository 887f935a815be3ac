//! Queues: the cost of a message, with each queue compared with similar ones.

mod ask_reply;
mod base;
mod broadcast;
mod burst;
mod chart;
mod columns;
mod depth;
mod flood;
mod for_me;
mod funnel;
mod idle;
mod night_watch;
mod open_loop;
mod pairs;
mod payload;
mod screen;
mod stream;
mod view;
mod workers;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use threadtoll_record::{
    Against, Build, Cell, Experiment, Load, Lose, Neighbour, Origin, Placement, QueueSubject,
    Record, RecordKind, Verdict, WaitFamily, compare, file::Results,
};

pub(crate) use chart::ChartRow;
pub(crate) use screen::screen;

use crate::clean::clean;
use crate::label::{cpus, on_machine, plural, relation, title};
use crate::merge::merged;
use crate::place::{Place, Standing, places};
use crate::sentences::Sentence;
use crate::table::{Label, Marks, Note, Section, Table, Topic};
use crate::units::{count, digits, ratio, round_time, size};
use crate::{claims, regimes, sentences};

use view::View;

/// In the order in which tables list the scenarios.
static VIEWS: &[View] = &[
    ask_reply::VIEW,
    stream::VIEW,
    open_loop::VIEW,
    burst::VIEW,
    depth::VIEW,
    workers::VIEW,
    broadcast::VIEW,
    flood::VIEW,
    funnel::VIEW,
    night_watch::VIEW,
    payload::VIEW,
    for_me::VIEW,
];

#[derive(Debug)]
pub(crate) struct Row<'a> {
    record: Cow<'a, Record>,
    /// Place in the ranking; `None` if the main figure has no interval.
    place: Option<Place>,
}

/// Our own pipe behind the adapter interface of peers, to measure the cost of that interface.
const OWN_ADAPTERS: [&str; 2] = ["pipe-adapter", "pipe-adapter-park"];

fn is_peer(cell: &Cell) -> bool {
    cell.queue().is_some_and(|queue| {
        !matches!(queue.origin, Origin::Ours | Origin::Raw)
            && !OWN_ADAPTERS.contains(&&*queue.queue)
    })
}

impl Row<'_> {
    fn queue(&self) -> Option<&QueueSubject> {
        self.record.cell.queue()
    }

    fn wait(&self) -> &'static str {
        self.queue().map_or("", |queue| queue.wait.name())
    }

    fn origin(&self) -> Option<Origin> {
        self.queue().map(|queue| queue.origin)
    }

    fn is_peer(&self) -> bool {
        is_peer(&self.record.cell)
    }

    fn name(&self) -> String {
        let mut name = clean(self.record.cell.name());
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

    fn ns(&self) -> Option<f64> {
        let ns = (Scenario::of(&self.record)?.view().ns)(&self.record);
        ns.filter(|ns| ns.is_finite() && *ns > 0.0)
    }

    fn against(&self, other: &Cell) -> Option<&Against> {
        self.record.against.iter().find(|against| against.cell == *other)
    }
}

/// A scenario, as the index of its view in [`VIEWS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scenario(usize);

impl Scenario {
    fn of(record: &Record) -> Option<Self> {
        let Experiment::Queue(name) = &record.experiment else { return None };
        VIEWS.iter().position(|view| view.scenario == name).map(Scenario)
    }

    fn view(self) -> &'static View {
        &VIEWS[self.0]
    }
}

/// Properties that comparable rows have in common, in the order in which tables list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Criteria<'a> {
    scenario: Scenario,
    payload_bytes: u64,
    load: &'a Load,
    placement: Placement,
    neighbour: Option<Neighbour>,
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
        self.view().rates
    }

    pub(crate) fn view(&self) -> &'static View {
        self.criteria.scenario.view()
    }

    fn heading(&self) -> String {
        let Criteria { placement, neighbour, senders, batched, family, .. } = self.criteria;
        let mut parts: Vec<String> = payload(&self.criteria).into_iter().collect();
        parts.extend(load(self.criteria.load));
        if self.streams() && self.criteria.load.carry.is_none() {
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
        parts.extend(neighbour.map(|neighbour| format!("beside {}", neighbour.threads())));
        format!("{}: {}", title(self.view().scenario), parts.join(", "))
    }

    fn best(&self, eligible: impl Fn(&Row<'_>) -> bool) -> Option<&Row<'_>> {
        self.rows.iter().find(|row| eligible(row) && row.ns().is_some())
    }

    fn bare_copy(&self) -> Option<&Row<'_>> {
        self.best(|row| row.origin() == Some(Origin::Raw))
    }

    /// Our row to which all ratios refer: the one that is paired with the most rows.
    fn base(&self) -> Option<&Row<'_>> {
        let paired = |row: &&Row<'_>| {
            self.rows.iter().filter(|other| row.against(&other.record.cell).is_some()).count()
        };
        let ours = self.rows.iter().filter(|row| row.origin() == Some(Origin::Ours));
        ours.filter(|row| paired(row) > 0).max_by(|a, b| {
            paired(a).cmp(&paired(b)).then_with(|| b.record.cell.cmp(&a.record.cell))
        })
    }

    fn to_base(&self, row: &Row<'_>) -> Option<Against> {
        let base = self.base()?;
        if base.record.cell == row.record.cell {
            return None;
        }
        match row.against(&base.record.cell) {
            Some(against) => Some(against.clone()),
            None => inverse(base.against(&row.record.cell)?, base),
        }
    }

    fn to_base_by_regime(&self, row: &Row<'_>) -> Option<String> {
        let base = self.base()?;
        let judged = |against: Against| {
            let verdict = decided(&against).map_or("", sentences::verdict);
            format!("{} {verdict}", ratio(against.ratio.get())).trim_end().to_string()
        };
        let text = |record: &Record, of: &dyn Fn(&[Against]) -> Option<Against>| {
            let known = record.regimes.iter().any(|regime| of(&regime.against).is_some());
            known.then(|| regimes::each(record, |figures| of(figures.against).map(judged)).text)
        };
        let find = |all: &[Against], cell: &Cell| {
            all.iter().find(|against| against.cell == *cell).cloned()
        };
        text(&row.record, &|all| find(all, &base.record.cell))
            .or_else(|| text(&base.record, &|all| inverse(&find(all, &row.record.cell)?, base)))
    }

    fn places(&self) -> Vec<Option<Place>> {
        let standing = |row: &Row<'_>| {
            let times = |[low, high]: [f64; 2]| {
                if self.streams() { [1.0 / high, 1.0 / low] } else { [low, high] }
            };
            let figure = (self.view().interval)(&row.record);
            let base = self.view().ratios_decide.then(|| self.to_base(row)).flatten();
            let ratio = base.map(|against| against.interval95.map(f64::from));
            Standing { figure: figure.map(times), ratio: ratio.map(times) }
        };
        places(&self.rows.iter().map(standing).collect::<Vec<_>>())
    }

    /// The paired peer against which the row does worst, with the ratio.
    fn rival<'s>(&'s self, row: &'s Row<'_>) -> Option<(&'s Row<'s>, &'s Against)> {
        let peers = self.rows.iter().filter(|other| other.is_peer() && other.ns().is_some());
        let rivals = peers.filter_map(|peer| Some((peer, row.against(&peer.record.cell)?)));
        let by_ratio = |one: &(_, &Against), other: &(_, &Against)| {
            one.1.ratio.get().total_cmp(&other.1.ratio.get())
        };
        if self.streams() { rivals.min_by(by_ratio) } else { rivals.max_by(by_ratio) }
    }
}

fn inverse(against: &Against, base: &Row<'_>) -> Option<Against> {
    let [low, high] = against.interval95.map(|bound| 1.0 / bound.get());
    let ratio = 1.0 / against.ratio.get();
    if [low, high, ratio].iter().any(|bound| !bound.is_finite()) {
        return None;
    }
    let judge = match against.of.as_str() {
        "rate_per_s" => compare::verdict_of_rates,
        _ => compare::verdict,
    };
    let verdict = match against.verdict {
        Verdict::Open => Verdict::Open,
        _ => judge([high, low], against.blocks as usize),
    };
    Some(Against {
        cell: base.record.cell.clone(),
        ratio: ratio.into(),
        interval95: [high.into(), low.into()],
        verdict,
        ..against.clone()
    })
}

/// The group that measured the cell together with the peer against which the cell does worst. The
/// cell's figures come from that group, because groups are minutes apart, and only figures of one
/// group can be ranked.
fn toughest_group(scenario: Scenario, records: &[&Record]) -> Option<usize> {
    let pairs = records.iter().flat_map(|record| {
        let peers = record.against.iter().filter(|against| is_peer(&against.cell));
        // Higher rates and shorter times are better.
        peers.map(|against| {
            let ratio = against.ratio.get();
            (if scenario.view().rates { ratio } else { -ratio }, record.group)
        })
    });
    pairs.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, group)| group)
}

pub(crate) fn comparisons(records: &[Record]) -> Vec<Comparison<'_>> {
    let mut cells: BTreeMap<(Scenario, &Cell), Vec<&Record>> = BTreeMap::new();
    // A mechanism is listed only in scenarios in which queues are measured by round trips. Streams
    // may measure a mechanism, too, but do not list it.
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
    let toughest: BTreeMap<(Scenario, Cell), usize> = cells
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
        let load = cell.queue().map_or(&Load::NONE, |queue| &queue.load);
        let placement = cell.placement;
        let neighbour = cell.neighbour;
        let payload_bytes = cell.payload_bytes;
        let criteria = Criteria {
            scenario,
            payload_bytes,
            load,
            placement,
            neighbour,
            senders,
            batched,
            family,
        };
        let group = toughest.get(&(scenario, cell.clone()));
        let record = merged(&records, group.copied());
        comparisons.entry(criteria).or_default().push(Row { record, place: None });
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
        let mut comparison = Comparison { criteria, rows };
        let places = comparison.places();
        comparison.rows.iter_mut().zip(places).for_each(|(row, place)| row.place = place);
        all.push(comparison);
    }
    all
}

const VERDICTS: &str = "Verdicts rest on the 95% interval of the ratio, with a margin of 5%, and need 21 pairs of blocks. undecided: the interval allows more than one verdict.";

fn decided(against: &Against) -> Option<Verdict> {
    (against.blocks as usize >= compare::PAIRS).then_some(against.verdict)
}

fn built(comparisons: &[Comparison<'_>]) -> Vec<String> {
    let mut names: BTreeMap<[&str; 3], BTreeSet<&str>> = BTreeMap::new();
    for row in comparisons.iter().flat_map(|comparison| &comparison.rows) {
        let cell = &row.record.cell;
        if let Some(Build { language, compiler, flags, .. }) = &cell.built {
            let build = [language.as_str(), compiler.as_str(), flags.as_str()];
            names.entry(build).or_default().insert(cell.name());
        }
    }
    let line = |([language, compiler, flags], names): ([&str; 3], BTreeSet<&str>)| {
        let names: Vec<&str> = names.into_iter().collect();
        let with = [compiler, flags].join(" ");
        clean(&format!("{}: {language}, compiled by {}.", names.join(", "), with.trim_end()))
    };
    names.into_iter().map(line).collect()
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
    let mut sections: Vec<Section> = comparisons.iter().map(section).collect();
    let mut notes = vec![Note { text: Place::NOTE.into(), column: Some(columns::PLACE) }];
    for view in VIEWS {
        let own: Vec<&Comparison<'_>> =
            comparisons.iter().filter(|comparison| std::ptr::eq(comparison.view(), view)).collect();
        sections.extend((view.summary)(results, &own));
    }
    sections.extend(pairs::section(&comparisons));
    if comparisons.iter().any(|comparison| comparison.base().is_some()) {
        notes.push(Note::new(VERDICTS));
    }
    let rows = || comparisons.iter().flat_map(|comparison| &comparison.rows);
    let sources = claims::sources(rows().map(|row| &*row.record));
    notes.extend(sources.map(|text| Note { text, column: Some(columns::PUBLISHED) }));
    notes.extend(built(&comparisons).into_iter().map(Note::new));
    if rows().any(|row| OWN_ADAPTERS.contains(&row.record.cell.name())) {
        notes.push(Note::new(
            "pipe-adapter: our pipe, called through the interface of adapters; its difference from pipe is the cost of that interface.",
        ));
    }
    notes.extend(idle::note(&comparisons));
    notes.extend(Marks::notes(&sections));
    Some(Table {
        topic: Topic::Queues,
        heading: on_machine("Queues", &results.machine),
        introduction: introduction(&comparisons),
        notes,
        sections,
    })
}

fn introduction(comparisons: &[Comparison<'_>]) -> String {
    let mut parts = Vec::new();
    let scenarios: BTreeSet<Scenario> =
        comparisons.iter().map(|comparison| comparison.criteria.scenario).collect();
    let views = scenarios.into_iter().map(Scenario::view);
    parts.extend(views.map(|view| format!("{}: {}", title(view.scenario), view.sentence)));
    parts.extend(capacities(comparisons));
    let first = comparisons.first().and_then(|comparison| comparison.rows.first());
    if let Some(cell) = first.map(|row| &row.record.cell) {
        parts.push(format!("On {} ({}).", cpus(&cell.cpus), relation(cell.relation)));
    }
    parts.join(" ")
}

/// `None` for the usual 8 B, unless the load says how messages are carried.
fn payload(criteria: &Criteria<'_>) -> Option<String> {
    let told = criteria.load.carry.is_some() || criteria.payload_bytes != 8;
    told.then(|| size(criteria.payload_bytes))
}

/// `None` if messages are sent as fast as possible.
fn load(load: &Load) -> Option<String> {
    let parts: Vec<String> = load_parts(load).into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Each part of a load in words, at an index that is the same for all loads.
fn load_parts(load: &Load) -> [Option<String>; 8] {
    let times = load.arrivals.map(|arrivals| match (&load.arrivals_file, load.rate_per_s) {
        (Some(file), _) => match load.scale.filter(|scale| scale.value() != 1.0) {
            Some(scale) => format!("arrivals of {} × {}", clean(file), digits(scale.value())),
            None => format!("arrivals of {}", clean(file)),
        },
        (None, Some(rate)) => format!("{arrivals}, {} per s", count(rate.get())),
        (None, None) => arrivals.to_string(),
    });
    let bursts = load.burst.zip(load.gap_ns).map(|(burst, gap_ns)| {
        format!("{} at once every {}", count(burst.get()), round_time(gap_ns.as_f64()))
    });
    let rare = load.gap_ns.filter(|_| load.is_rare());
    let rare = rare.map(|gap_ns| format!("a message every {}", round_time(gap_ns.as_f64())));
    let depth = load.depth.map(|depth| format!("depth {}", count(depth.get())));
    let lose = load.lose.map(|lose| {
        match lose {
            Lose::Never => "waiting if full",
            Lose::Newest => "refused if full",
            Lose::Oldest => "oldest dropped",
        }
        .to_string()
    });
    let carry = load.carry.map(|carry| carry.label().to_string());
    let important = load.important.map(|important| format!("{} important", count(important.get())));
    let receivers = load.receivers.map(|receivers| plural(receivers.get(), "receiver"));
    [times, bursts, rare, depth, lose, important, carry, receivers]
}

/// `None` if all sizes follow from the queues' depths.
pub(crate) fn capacities(comparisons: &[Comparison<'_>]) -> Option<String> {
    let all = || comparisons.iter().flat_map(|comparison| &comparison.rows).filter_map(Row::queue);
    let queues = || all().filter(|queue| queue.load.depth.is_none());
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

/// Sentence about traffic for which no queue can be recommended; `None` if there is no such
/// traffic.
pub fn no_recommendation(results: &Results, records: &[Record]) -> Option<Sentence> {
    let comparisons = comparisons(records);
    let answers = for_me::answers(results, &comparisons);
    answers.iter().find_map(for_me::Answer::none)
}
