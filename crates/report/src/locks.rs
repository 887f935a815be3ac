//! What was measured of locks: one section for each lock in each experiment, its cells by hold
//! share and threads.
//!
//! What a table or a map shows in the terminal and in the page is decided here, once.

use std::collections::{BTreeMap, BTreeSet};

use threadtoll_record::{
    Contention, Foretold, LockSubject, Placement, Record, Share, Spread, Work,
};

use crate::claims::claims;
use crate::clean::clean;
use crate::cost::{cpu_ns, switches};
use crate::disturbance::too_disturbed;
use crate::experiment::{FREQUENCY_SWEEP, contention_scenario};
use crate::units::{UNKNOWN, digits, maybe_time, per_op, plus_minus, ratio, share, time};

/// A run of tasks that takes no longer than this, against the shortest, is as good.
const ENOUGH: f64 = 1.05;

/// A measured cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) record: &'a Record,
    pub(crate) subject: &'a LockSubject,
    pub(crate) contention: &'a Contention,
}

impl Row<'_> {
    /// What sets it apart within its section; marked where over a quarter of its blocks was
    /// disturbed.
    fn label(&self, section: &Section<'_>) -> String {
        let threads = match self.subject.threads {
            1 => "1 thread".to_string(),
            threads => format!("{threads} threads"),
        };
        let mut label = match section.axis() {
            Axis::Shares => format!("{}, {threads}", share(self.subject.hold_share())),
            Axis::Intervals => format!("{}, {threads}", time(self.subject.cycle_ns() as f64)),
            Axis::None => threads,
        };
        if self.disturbed() {
            label.push_str(" !");
        }
        if self.record.cell.oversubscribed() {
            label.push_str(" *");
        }
        label
    }

    /// Whether over a quarter of its blocks was disturbed.
    pub(crate) fn disturbed(&self) -> bool {
        too_disturbed(&self.record.disturbance)
    }

    /// Whether each thread has a CPU for itself, as far as it needs one.
    pub(crate) fn fits(&self) -> bool {
        !self.record.cell.oversubscribed()
    }

    pub(crate) fn predicted(&self) -> Option<&Foretold> {
        self.contention.predicted.as_ref()
    }

    /// By how much the prediction is off, as a share of what was measured: of the speed-up, or of
    /// the time for all tasks.
    pub(crate) fn off(&self) -> Option<f64> {
        let told = self.predicted()?;
        let tasks = told.total_s.zip(self.contention.total_s);
        let (told, measured) = match tasks {
            Some(totals) => totals,
            None => (told.speedup, self.contention.speedup?),
        };
        Some(told / measured - 1.0).filter(|off| off.is_finite())
    }
}

/// Everything by which sections differ, in the order in which they are shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    scenario: String,
    placement: Placement,
    work: Work,
    lock: String,
    read_share: Option<Share>,
    spread: Spread,
    /// Where cells differ by their share and not by how often the lock is taken, that frequency
    /// belongs here.
    cycle_ns: Option<u64>,
}

/// What the columns of a section's map are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Shares,
    Intervals,
    None,
}

/// Cells of one lock that differ in threads, and in one thing more.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    kind: Kind,
    pub(crate) rows: Vec<Row<'a>>,
}

impl<'a> Section<'a> {
    pub(crate) fn axis(&self) -> Axis {
        let several = |of: fn(&LockSubject) -> u64| {
            self.rows.iter().map(|row| of(row.subject)).collect::<BTreeSet<u64>>().len() > 1
        };
        match self.kind.cycle_ns {
            Some(_) if several(|subject| subject.hold_ns) => Axis::Shares,
            None if several(LockSubject::cycle_ns) => Axis::Intervals,
            _ => Axis::None,
        }
    }

    pub(crate) fn name(&self) -> String {
        clean(&self.kind.lock)
    }

    pub(crate) fn scenario(&self) -> &str {
        &self.kind.scenario
    }

    /// Whether it is one lock that lets one thread in at a time: no counter, no stripes, no
    /// readers.
    pub(crate) fn excludes(&self) -> bool {
        let name = &self.kind.lock;
        self.kind.read_share.is_none()
            && !name.starts_with("counter-")
            && !name.starts_with("striped")
    }

    /// What its rows have in common.
    pub(crate) fn heading(&self) -> String {
        let mut parts = vec![format!("{}: {}", clean(self.scenario()), self.name())];
        let first = self.rows.first().map(|row| row.subject);
        if let Some(share) = self.kind.read_share {
            parts.push(format!("{}% reads", digits(share.value() * 100.0)));
        }
        match (self.kind.cycle_ns, first) {
            (Some(cycle_ns), Some(subject)) if self.axis() == Axis::Shares => {
                parts.push(format!("taken every {}", time(cycle_ns as f64)));
                if subject.spread == Spread::Fixed {
                    parts.push("fixed times".into());
                }
            }
            (_, Some(subject)) if self.axis() == Axis::Intervals => {
                parts.push(format!("held for {} of the time", share_of(subject)));
            }
            (_, Some(subject)) => {
                parts.push(format!("hold {}", time(subject.hold_ns as f64)));
                parts.push(format!("think {}", time(subject.think_ns as f64)));
            }
            (_, None) => {}
        }
        if let Some(tasks) = first.and_then(|subject| subject.tasks) {
            parts.push(format!("{tasks} tasks"));
        }
        if self.kind.work == Work::Sleep {
            parts.push("asleep".into());
        }
        if self.kind.placement != Placement::Pinned {
            parts.push(self.kind.placement.to_string());
        }
        parts.join(", ")
    }

    pub(crate) fn labels(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.label(self)).collect()
    }

    /// Threads × hold share, or × interval, where there are several of both.
    pub(crate) fn map(&self) -> Option<Map> {
        let axis = self.axis();
        let at = |row: &Row<'_>| match axis {
            Axis::Shares => row.subject.hold_ns,
            Axis::Intervals | Axis::None => row.subject.cycle_ns(),
        };
        let threads: Vec<u32> = self
            .rows
            .iter()
            .map(|row| row.subject.threads)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let columns: Vec<u64> =
            self.rows.iter().map(at).collect::<BTreeSet<_>>().into_iter().collect();
        if threads.len() < 2 || columns.len() < 2 {
            return None;
        }
        let find = |threads: u32, column: u64| {
            self.rows.iter().find(|row| row.subject.threads == threads && at(row) == column)
        };
        let grid = |figure: &dyn Fn(&Row<'_>) -> Option<f64>| -> Vec<Vec<Option<f64>>> {
            threads
                .iter()
                .map(|threads| {
                    columns.iter().map(|column| figure(find(*threads, *column)?)).collect()
                })
                .collect()
        };
        let heads = columns
            .iter()
            .filter_map(|column| self.rows.iter().find(|row| at(row) == *column))
            .map(|row| match axis {
                Axis::Shares => share(row.subject.hold_share()),
                Axis::Intervals | Axis::None => time(row.subject.cycle_ns() as f64),
            })
            .collect();
        Some(Map {
            label: self.heading(),
            across: match axis {
                Axis::Shares => "hold share",
                Axis::Intervals | Axis::None => "interval",
            },
            measured: grid(&|row| row.contention.speedup),
            predicted: grid(&|row| row.predicted().map(|told| told.speedup)),
            threads,
            columns: heads,
        })
    }
}

fn share_of(subject: &LockSubject) -> String {
    share(subject.hold_share())
}

/// Speed-ups by threads (rows) and hold share or interval (columns).
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) label: String,
    pub(crate) across: &'static str,
    pub(crate) threads: Vec<u32>,
    pub(crate) columns: Vec<String>,
    pub(crate) measured: Vec<Vec<Option<f64>>>,
    pub(crate) predicted: Vec<Vec<Option<f64>>>,
}

/// The sections of all records that belong to experiments with locks; the thread alone is in none,
/// because all are against it.
pub(crate) fn sections(records: &[Record]) -> Vec<Section<'_>> {
    let mut sections: BTreeMap<Kind, Vec<Row<'_>>> = BTreeMap::new();
    for record in records {
        let (Some(scenario), Some(subject), Some(contention)) =
            (contention_scenario(record), record.cell.lock(), &record.contention)
        else {
            continue;
        };
        if subject.is_alone() {
            continue;
        }
        let kind = Kind {
            scenario: scenario.to_string(),
            placement: record.cell.placement,
            work: subject.work,
            lock: subject.lock.clone(),
            read_share: subject.read_share,
            spread: subject.spread,
            cycle_ns: (scenario != FREQUENCY_SWEEP).then(|| subject.cycle_ns()),
        };
        sections.entry(kind).or_default().push(Row { record, subject, contention });
    }
    let mut all: Vec<Section<'_>> =
        sections.into_iter().map(|(kind, rows)| Section { kind, rows }).collect();
    for section in &mut all {
        section.rows.sort_by_key(|row| {
            (row.subject.cycle_ns(), row.subject.hold_ns, row.subject.threads, row.record.group)
        });
    }
    all
}

/// A column of a section's table.
pub(crate) struct Column {
    /// What it shares with its neighbours.
    pub(crate) group: &'static str,
    /// What it is, short.
    pub(crate) head: &'static str,
    /// What it is, in words.
    pub(crate) title: &'static str,
    /// The higher, the sooner a narrow terminal drops it; 0 never is.
    pub(crate) rank: u8,
    /// Its figure to sort by, and as it is shown.
    pub(crate) value: fn(&Row<'_>) -> (Option<f64>, String),
}

fn maybe(value: Option<f64>, show: impl Fn(f64) -> String) -> (Option<f64>, String) {
    (value, value.map_or_else(|| UNKNOWN.into(), show))
}

/// A share by which something is off: `+3.1%`.
fn off(value: f64) -> String {
    let percent = value * 100.0;
    if percent.abs() < 999.5 {
        format!("{percent:+.1}%")
    } else {
        format!("{}×", digits(1.0 + value))
    }
}

/// The columns of a section.
pub(crate) fn columns(section: &Section<'_>) -> Vec<Column> {
    let mut columns = vec![
        Column {
            group: "speed-up",
            head: "measured",
            title: "work per second of all threads against one thread alone without the lock, median over pairs of blocks",
            rank: 0,
            value: |row| maybe(row.contention.speedup, ratio),
        },
        Column {
            group: "speed-up",
            head: "95%",
            title: "interval of the speed-up, from resampling pairs of blocks",
            rank: 5,
            value: |row| match (row.contention.speedup, row.contention.speedup_interval95) {
                (Some(speedup), Some(interval)) => (None, plus_minus(speedup, interval)),
                _ => (None, UNKNOWN.into()),
            },
        },
        Column {
            group: "speed-up",
            head: "predicted",
            title: "what a model said before the cell was measured",
            rank: 1,
            value: |row| maybe(row.predicted().map(|told| told.speedup), ratio),
        },
        Column {
            group: "speed-up",
            head: "off by",
            title: "the prediction against the measurement: of the speed-up, or of the time for all tasks",
            rank: 2,
            value: |row| maybe(row.off(), off),
        },
        Column {
            group: "queue",
            head: "mean",
            title: "threads waiting at an average moment",
            rank: 3,
            value: |row| maybe(row.contention.queue_mean, digits),
        },
        Column {
            group: "queue",
            head: "predicted",
            title: "the same as a model said before",
            rank: 11,
            value: |row| maybe(row.predicted().map(|told| told.queue_mean), digits),
        },
        Column {
            group: "queue",
            head: "on entry",
            title: "threads still waiting when one has just got the lock",
            rank: 7,
            value: |row| maybe(row.contention.queue_on_entry, digits),
        },
        Column {
            group: "queue",
            head: "foretold",
            title: "threads still waiting when one has just got the lock, as a model said before",
            rank: 11,
            value: |row| maybe(row.predicted().map(|told| told.queue_on_entry), digits),
        },
        Column {
            group: "queue",
            head: "max",
            title: "the most threads that waited at once",
            rank: 12,
            value: |row| maybe(row.contention.queue_max.map(f64::from), digits),
        },
        Column {
            group: "wait",
            head: "share",
            title: "share of the threads’ time that they waited",
            rank: 6,
            value: |row| maybe(row.contention.wait_share, share),
        },
        Column {
            group: "wait",
            head: "p50",
            title: "median wait for the lock",
            rank: 13,
            value: |row| (row.record.quantiles.p50, maybe_time(row.record.quantiles.p50)),
        },
        Column {
            group: "wait",
            head: "p99",
            title: "wait for the lock",
            rank: 9,
            value: |row| (row.record.quantiles.p99, maybe_time(row.record.quantiles.p99)),
        },
        Column {
            group: "wait",
            head: "longest",
            title: "the longest that a thread waited",
            rank: 10,
            value: |row| (row.contention.starved_ns, maybe_time(row.contention.starved_ns)),
        },
        Column {
            group: "",
            head: "hand-off",
            title: "from letting go of the lock until a thread that waited has it",
            rank: 8,
            value: |row| (row.contention.handoff_ns, maybe_time(row.contention.handoff_ns)),
        },
        Column {
            group: "",
            head: "fairness",
            title: "Jain’s index of the threads’ acquisitions: 1 if all got equally many",
            rank: 14,
            value: |row| maybe(row.contention.fairness, |value| format!("{value:.3}")),
        },
        Column {
            group: "each acquisition",
            head: "CPU",
            title: "CPU time of all threads per acquisition, their work included",
            rank: 15,
            value: |row| maybe(cpu_ns(&row.record.cost), time),
        },
        Column {
            group: "each acquisition",
            head: "switches",
            title: "context switches per acquisition",
            rank: 16,
            value: |row| maybe(switches(&row.record.cost), per_op),
        },
    ];
    if section.rows.iter().any(|row| row.contention.total_s.is_some()) {
        columns.insert(
            0,
            Column {
                group: "all tasks",
                head: "measured",
                title: "time for all tasks, median over runs",
                rank: 0,
                value: |row| maybe(row.contention.total_s, |seconds| time(seconds * 1e9)),
            },
        );
        columns.insert(
            1,
            Column {
                group: "all tasks",
                head: "predicted",
                title: "the same as a model said before",
                rank: 4,
                value: |row| {
                    let told = row.predicted().and_then(|told| told.total_s);
                    maybe(told, |seconds| time(seconds * 1e9))
                },
            },
        );
    }
    columns
}

/// What the notes under the tables are.
pub(crate) fn notes(sections: &[Section<'_>]) -> Vec<String> {
    let rows = || sections.iter().flat_map(|section| &section.rows);
    let mut notes = Vec::new();
    if rows().any(Row::disturbed) {
        notes.push("!  over a quarter of the blocks was disturbed.".into());
    }
    if rows().any(|row| row.record.cell.oversubscribed()) {
        notes.push(
            "*  oversubscribed: more threads than CPUs took turns, and the scheduler’s slices are part of the figure."
                .into(),
        );
    }
    if rows().any(|row| row.predicted().is_none()) {
        notes.push(
            "Where nothing is predicted, what was calibrated lies outside of what the models accept.".into(),
        );
    }
    notes
}

/// What the figures mean, in words.
pub(crate) fn sentences(records: &[Record]) -> Vec<String> {
    let sections = sections(records);
    let mut said: Vec<String> = sections.iter().flat_map(of_section).collect();
    said.extend(pairs(&sections));
    said.extend(claims(&sections));
    said.extend(agreement(&sections));
    said
}

fn of_section(section: &Section<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let name = section.name();
    let of = |row: &Row<'_>| {
        let threads = row.subject.threads;
        match section.axis() {
            Axis::Shares => {
                format!(
                    "{threads} threads that hold it for {} of their time",
                    share_of(row.subject)
                )
            }
            Axis::Intervals => {
                format!(
                    "{threads} threads that take it every {}",
                    time(row.subject.cycle_ns() as f64)
                )
            }
            Axis::None => format!("{threads} threads"),
        }
    };
    let several = || section.rows.iter().filter(|row| row.subject.threads > 1);
    let best = several().filter(|row| row.contention.speedup.is_some()).max_by(|a, b| {
        a.contention.speedup.unwrap_or(0.0).total_cmp(&b.contention.speedup.unwrap_or(0.0))
    });
    if let Some((row, speedup)) = best.and_then(|row| Some((row, row.contention.speedup?))) {
        said.push(format!(
            "{name}: the most is gained by {}, {} of one alone.",
            of(row),
            ratio(speedup)
        ));
    }
    if section.rows.iter().any(|row| row.contention.total_s.is_some())
        && let Some(sentence) = enough(section, &name)
    {
        said.push(sentence);
    }
    // Claimed only where the whole interval lies below one.
    let worse: Vec<&Row<'_>> = several()
        .filter(|row| row.contention.speedup_interval95.is_some_and(|[_, high]| high < 1.0))
        .collect();
    match (worse.first(), worse.len()) {
        (None, _) => {}
        (Some(row), 1) => said.push(format!(
            "{name}: one thread alone is better than {} ({}).",
            of(row),
            row.contention.speedup.map_or_else(|| UNKNOWN.into(), ratio)
        )),
        (Some(row), count) => said.push(format!(
            "{name}: one thread alone is better in {count} of {} cells with several threads, the first of them {} ({}).",
            several().count(),
            of(row),
            row.contention.speedup.map_or_else(|| UNKNOWN.into(), ratio)
        )),
    }
    said
}

/// How many threads of a pool are enough: the fewest that are within a twentieth of the best.
fn enough(section: &Section<'_>, name: &str) -> Option<String> {
    let totals = || {
        section.rows.iter().filter_map(|row| Some((row.subject.threads, row.contention.total_s?)))
    };
    let best = totals().map(|(_, total)| total).min_by(f64::total_cmp)?;
    let (threads, total) = totals()
        .filter(|(_, total)| *total <= ENOUGH * best)
        .min_by_key(|(threads, _)| *threads)?;
    let most = totals().map(|(threads, _)| threads).max()?;
    (threads < most).then(|| {
        format!(
            "{name}: of the numbers of threads that were measured, {threads} are enough for all tasks in {}; more bring less than 5%.",
            time(total * 1e9)
        )
    })
}

/// What a lock costs that nobody else wants, as it was calibrated.
fn pairs(sections: &[Section<'_>]) -> Option<String> {
    let sweeps = sections.iter().filter(|section| section.scenario() == FREQUENCY_SWEEP);
    let mut costs: BTreeMap<String, f64> = BTreeMap::new();
    for section in sweeps {
        let found = section.rows.iter().filter_map(Row::predicted).map(|told| told.from.pair_ns);
        if let Some(pair_ns) = found.filter(|ns| *ns > 0.0).min_by(f64::total_cmp) {
            costs.insert(section.name(), pair_ns);
        }
    }
    if costs.is_empty() {
        return None;
    }
    let mut costs: Vec<(String, f64)> = costs.into_iter().collect();
    costs.sort_by(|a, b| a.1.total_cmp(&b.1));
    let all: Vec<String> = costs.iter().map(|(name, ns)| format!("{name} {}", time(*ns))).collect();
    Some(format!("To take and leave a lock that nobody else wants costs: {}.", all.join(", ")))
}

/// How well the predictions held.
fn agreement(sections: &[Section<'_>]) -> Option<String> {
    let rows: Vec<&Row<'_>> = sections
        .iter()
        .flat_map(|section| &section.rows)
        .filter(|row| row.off().is_some() && !row.record.cell.oversubscribed())
        .collect();
    let clean: Vec<f64> =
        rows.iter().filter(|row| !row.disturbed()).filter_map(|row| row.off()).collect();
    if rows.is_empty() {
        return None;
    }
    if clean.is_empty() {
        return Some(format!(
            "All {} cells that were foretold were disturbed: nothing is said about how well the predictions held.",
            rows.len()
        ));
    }
    let mean = clean.iter().map(|off| off.abs()).sum::<f64>() / clean.len() as f64;
    let worst = clean.iter().map(|off| off.abs()).fold(0.0, f64::max);
    Some(format!(
        "What was foretold is off by {} on average and {} at worst in the {} of {} cells that were not disturbed (cells with more threads than CPUs left out).",
        share(mean),
        share(worst),
        clean.len(),
        rows.len()
    ))
}
