//! Chart over time, made from samples: the holders of the costliest lock and, below them, the
//! states of all threads.

use std::collections::HashSet;
use std::ops::Range;

use maud::{Markup, html};
use threadtoll_record::profile::{LockHolders, Profile, ThreadState, Trace, TracedThread};

use crate::clean::clean;
use crate::html::chart::{Axis, Band, Bands, Group, Part, Side, colour};
use crate::label::plural;
use crate::profile::locks::shortened;
use crate::units::{percent, range, round_time, time};

/// Maximum number of threads outside the folded chart, and of named holders.
const MAX_OPEN: usize = 16;
const MAX_HOLDERS: usize = 4;
/// Maximum sizes in bytes of the open and of the folded chart. Columns of a larger chart are
/// merged, but at least `FEWEST` remain.
const MAX_BYTES: [usize; 2] = [56_000, 30_000];
const FEWEST: u32 = 20;
/// Desired mean number of samples per thread and column.
const SAMPLES: f64 = 4.0;
/// Maximum number of titles of all rows; minimum and maximum number of titles of one row.
const MAX_TITLES: usize = 160;
const TITLES: [usize; 2] = [2, 24];
const HOLDER_TITLES: usize = 12;
/// Maximum number of states in a title. A state with a smaller share of the time is not named.
const MAX_NAMED: usize = 3;
const LEAST_SHARE: f64 = 0.01;
const MAX_NAME: usize = 30;

pub(super) fn states(profile: &Profile) -> Markup {
    let Some(trace) = profile.trace.as_deref() else { return html! {} };
    let most = trace.threads.iter().map(|thread| total(&thread.samples)).max().unwrap_or(0);
    if most == 0 || trace.columns == 0 {
        return html! {};
    }
    let mut trace = trace.clone();
    let gap_ns = f64::from(trace.columns) * trace.column_ns.get() / most as f64;
    while trace.columns / 2 >= FEWEST && trace.column_ns.get() < SAMPLES * gap_ns {
        trace.halve();
    }
    let rows = trace.threads.len() + usize::from(total(&trace.others) > 0);
    let open = if rows > MAX_OPEN + 1 { MAX_OPEN } else { rows };
    let [above, below] = MAX_BYTES;
    let folded =
        (open < rows).then(|| fitted(trace.clone(), below, &|trace| chart(trace, open..rows)));
    let (trace, chart) = fitted(trace, above, &|trace| chart(trace, 0..open));
    let column = |trace: &Trace| round_time(trace.column_ns.get());
    html! {
        h2 { "The threads over time" } "\n"
        p {
            "Above its line a thread works, and below it waits; heights are shares of each "
            (column(&trace)) ". At the right: its waits for locks."
        } "\n"
        (chart)
        @if let Some((trace, chart)) = folded {
            details {
                summary { (plural((rows - open) as u64, "more row")) ", in columns of " (column(&trace)) }
                (chart)
            } "\n"
        }
        p class="note" {
            "From " (plural(profile.samples.get(), "sample")) ": a thread was seen every " (time(gap_ns))
            " at best, so states shorter than that may not show. Gaps: no sample saw the thread."
        } "\n"
    }
}

fn fitted(mut trace: Trace, most_bytes: usize, draw: &dyn Fn(&Trace) -> Markup) -> (Trace, Markup) {
    let mut drawn = draw(&trace);
    while trace.columns / 2 >= FEWEST && drawn.0.len() > most_bytes {
        trace.halve();
        drawn = draw(&trace);
    }
    (trace, drawn)
}

/// The last row of a trace sums up all threads that have no row. If `rows` contains the first row,
/// the holders of the costliest lock are drawn above it.
fn chart(trace: &Trace, rows: Range<usize>) -> Markup {
    let length_s = f64::from(trace.columns) * trace.column_ns.get() / 1e9;
    let Some(axis) = Axis::from_zero([length_s], 1.0, text_of) else {
        return html! {};
    };
    let parts = Parts::of(trace);
    let names = names(&trace.threads);
    let titles = (MAX_TITLES / rows.len().max(1)).clamp(TITLES[0], TITLES[1]);
    let held = trace.holders.iter().filter(|_| rows.start == 0);
    let mut groups: Vec<Group> = held.map(|held| parts.holders(held)).collect();
    let band = |row: usize| match (trace.threads.get(row), names.get(row)) {
        (Some(thread), Some(name)) => parts.band(name.clone(), &thread.samples, titles),
        _ => parts.band("all other threads".into(), &trace.others, titles),
    };
    let heading = if groups.is_empty() { String::new() } else { "All threads".into() };
    groups.push(Group { heading, bands: rows.map(band).collect() });
    Bands {
        label: "States of threads over time",
        axis: &axis,
        columns: trace.columns as usize,
        parts: &parts.used(&groups),
        groups: &groups,
    }
    .draw()
}

fn text_of(s: f64) -> String {
    if s == 0.0 { "0".into() } else { round_time(s * 1e9) }
}

fn total(samples: &[Vec<u32>]) -> u64 {
    samples.iter().flatten().map(|&samples| u64::from(samples)).sum()
}

/// Names of threads. If there are several processes, the name contains the PID.
fn names(threads: &[TracedThread]) -> Vec<String> {
    let pids: HashSet<u32> = threads.iter().map(|thread| thread.pid).collect();
    let name = |thread: &TracedThread| match pids.len() {
        0 | 1 => named(&thread.name, thread.tid),
        // The first thread's TID is its process's PID.
        _ if thread.pid == thread.tid => {
            format!("{} (PID {})", clean(&thread.name), thread.pid).trim_start().into()
        }
        _ => {
            let (name, tid, pid) = (clean(&thread.name), thread.tid, thread.pid);
            format!("{name} (TID {tid} of {pid})").trim_start().into()
        }
    };
    threads.iter().map(name).collect()
}

fn named(name: &str, tid: u32) -> String {
    let name = clean(name);
    if name.trim().is_empty() { format!("TID {tid}") } else { format!("{name} (TID {tid})") }
}

struct Parts<'a> {
    trace: &'a Trace,
    /// Name, side and class of each state.
    states: Vec<(String, Side, String)>,
}

impl<'a> Parts<'a> {
    fn of(trace: &'a Trace) -> Parts<'a> {
        let locks: Vec<(u32, String)> = trace.states.iter().filter_map(lock).collect();
        let mut nth = 0;
        let state = |state: &ThreadState| {
            let fixed =
                |doing: &str, side: Side, class: &str| (doing.to_string(), side, class.to_string());
            match state {
                ThreadState::Running => fixed("runs", Side::Above, "t-run"),
                ThreadState::OnCpu => {
                    fixed("runs, or waits for a CPU", Side::Above, "t-run t-unclear")
                }
                ThreadState::Runnable => fixed("waits for a CPU", Side::Above, "t-ready hollow"),
                ThreadState::Lock { pid, lock: id, name } => {
                    nth += 1;
                    let name = lock_name(name, *id);
                    let alike = locks.iter().filter(|(_, other)| *other == name).count();
                    let of = if alike > 1 { format!(" (PID {pid})") } else { String::new() };
                    let class = match nth {
                        1 => "t-lock".to_string(),
                        // Colours that no other state uses.
                        nth => colour([1, 3, 5, 8, 0][(nth - 2) % 5]),
                    };
                    (format!("waits for {name}{of}"), Side::Below, class)
                }
                ThreadState::OtherLock => fixed("waits for another lock", Side::Below, "c9"),
                ThreadState::Io => fixed("input or output", Side::Below, "t-io hollow"),
                ThreadState::Threads => {
                    fixed("waits for other threads", Side::Below, "t-threads hollow")
                }
                ThreadState::Idle => fixed("waits for work", Side::Line, "t-idle line"),
                ThreadState::Asleep => fixed("sleeps", Side::Line, "t-asleep line dots"),
                ThreadState::Unknown => {
                    fixed("in another system call", Side::Line, "t-idle line dashes")
                }
            }
        };
        let states = trace.states.iter().map(state).collect();
        Parts { trace, states }
    }

    fn holding(&self) -> usize {
        self.states.len()
    }

    /// All parts; those that occur in these rows are marked, and the legend lists only them.
    fn used(&self, groups: &[Group]) -> Vec<Part> {
        let bands = || groups.iter().flat_map(|group| &group.bands);
        let is_used = |place: usize| {
            bands().any(|band| band.shares.get(place).is_some_and(|shares| !shares.is_empty()))
        };
        let holding = ("holds the lock".to_string(), Side::Around, "t-holds".to_string());
        let all = self.states.iter().cloned().chain([holding]).enumerate();
        all.map(|(place, (name, side, class))| Part { name, side, class, listed: is_used(place) })
            .collect()
    }

    fn band(&self, label: String, samples: &[Vec<u32>], titles: usize) -> Band {
        let columns = self.trace.columns as usize;
        let at = |state: usize, column: usize| {
            samples.get(state).and_then(|row| row.get(column)).map_or(0, |&it| u64::from(it))
        };
        let sums: Vec<u64> = (0..columns)
            .map(|column| (0..samples.len()).map(|row| at(row, column)).sum())
            .collect();
        let shares = |row: &Vec<u32>| -> Vec<f64> {
            row.iter().zip(&sums).map(|(&it, &all)| f64::from(it) / all.max(1) as f64).collect()
        };
        let waits: u64 = self
            .trace
            .states
            .iter()
            .zip(samples)
            .filter(|(state, _)| matches!(state, ThreadState::Lock { .. } | ThreadState::OtherLock))
            .map(|(_, row)| row.iter().map(|&it| u64::from(it)).sum::<u64>())
            .sum();
        let figure = match waits {
            0 => String::new(),
            _ => percent(waits as f64 / total(samples).max(1) as f64),
        };
        let doing = |[from, until]: [usize; 2]| {
            let sum = |row: usize| (from..until).map(|column| at(row, column)).sum::<u64>();
            let sums: Vec<u64> = (0..samples.len()).map(sum).collect();
            self.doing(&sums)
        };
        let titles = self.titles(&label, titles, doing);
        Band { figure, shares: samples.iter().map(shares).collect(), titles, label }
    }

    /// The most frequent states with their shares. `samples` are the numbers of samples by state.
    fn doing(&self, samples: &[u64]) -> Option<String> {
        let all: u64 = samples.iter().sum();
        let share = |samples: u64| samples as f64 / all.max(1) as f64;
        let mut states: Vec<(f64, &str)> = samples
            .iter()
            .zip(&self.states)
            .map(|(&samples, (name, ..))| (share(samples), name.as_str()))
            .filter(|(share, _)| *share >= LEAST_SHARE)
            .collect();
        states.sort_by(|one, other| other.0.total_cmp(&one.0));
        let named = states.iter().take(MAX_NAMED);
        let words: Vec<String> =
            named.map(|(share, name)| format!("{name} {}", percent(*share))).collect();
        (all > 0).then(|| words.join(", "))
    }

    /// Titles for at most `most` equal parts of the profiled time. Neighbours with equal contents
    /// are merged.
    fn titles(
        &self,
        label: &str,
        most: usize,
        doing: impl Fn([usize; 2]) -> Option<String>,
    ) -> Vec<([usize; 2], String)> {
        let columns = self.trace.columns as usize;
        let mut said: Vec<([usize; 2], Option<String>)> = Vec::new();
        for nth in 0..most {
            let within = [nth * columns / most, (nth + 1) * columns / most];
            if within[0] == within[1] {
                continue;
            }
            let doing = doing(within);
            match said.last_mut() {
                Some((before, same)) if *same == doing => before[1] = within[1],
                _ => said.push((within, doing)),
            }
        }
        let titled = |(within, doing): ([usize; 2], Option<String>)| {
            let [from, until] = within.map(|at| at as f64 * self.trace.column_ns.get());
            Some((within, format!("{label}, {}: {}", range(from, until), doing?)))
        };
        said.into_iter().filter_map(titled).collect()
    }

    fn holders(&self, held: &LockHolders) -> Group {
        let mut rows: Vec<(String, Vec<u32>)> = held
            .threads
            .iter()
            .map(|thread| (named(&thread.name, thread.tid), thread.samples.clone()))
            .collect();
        let mut others = held.others.clone();
        for (_, row) in rows.drain(rows.len().min(MAX_HOLDERS)..) {
            others.resize(others.len().max(row.len()), 0);
            others.iter_mut().zip(row).for_each(|(sum, it)| *sum = sum.saturating_add(it));
        }
        rows.push(("other threads".into(), others));
        rows.push(("not seen".into(), held.not_seen.clone()));
        let columns = self.trace.columns as usize;
        let at = |row: &[u32], column: usize| row.get(column).map_or(0, |&it| u64::from(it));
        let sums: Vec<u64> =
            (0..columns).map(|column| rows.iter().map(|(_, row)| at(row, column)).sum()).collect();
        let all = sums.iter().sum::<u64>().max(1);
        let has_samples = |(_, row): &(String, Vec<u32>)| row.iter().any(|&samples| samples > 0);
        let bands = rows.into_iter().filter(has_samples).map(|(label, row)| {
            let share = |(&it, &all): (&u32, &u64)| f64::from(it) / all.max(1) as f64;
            let mut shares = vec![Vec::new(); self.holding() + 1];
            shares[self.holding()] = row.iter().zip(&sums).map(share).collect();
            let own: u64 = row.iter().map(|&it| u64::from(it)).sum();
            let figure = percent(own as f64 / all as f64);
            let titles = self.titles(&label, HOLDER_TITLES, |[from, until]| {
                let own: u64 = (from..until).map(|column| at(&row, column)).sum();
                let all: u64 = sums[from..until].iter().sum();
                let share = own as f64 / all.max(1) as f64;
                (own > 0)
                    .then(|| format!("{} of the samples in which a thread waited", percent(share)))
            });
            Band { label, figure, shares, titles }
        });
        let name = lock_name(&held.name, held.lock);
        let heading = format!("Who held {name} while threads waited for it");
        Group { heading, bands: bands.collect() }
    }
}

fn lock(state: &ThreadState) -> Option<(u32, String)> {
    match state {
        ThreadState::Lock { pid, lock, name } => Some((*pid, lock_name(name, *lock))),
        _ => None,
    }
}

fn lock_name(name: &str, id: u32) -> String {
    let name = clean(name);
    if name.trim().is_empty() { format!("lock {id}") } else { shortened(&name, MAX_NAME) }
}
