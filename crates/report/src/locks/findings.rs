//! Findings about locks.

use std::collections::BTreeMap;

use threadtoll_record::Record;
use threadtoll_stats::{median, upper_median};

use super::card::Card;
use super::{Axis, Row, Sweep, sweeps, within};
use crate::claims;
use crate::label::plural;
use crate::sentences::{self as say, Sentence};
use crate::units::{UNKNOWN, digits_range, ratio, share, time, time_within};

/// Largest total time, relative to the shortest, that still counts as equally good.
const GOOD_ENOUGH: f64 = 1.05;

/// Findings about the records of one regime, and about the predictions for all records.
pub(crate) fn findings(of_one_records: &[Record], all: &[Record]) -> Vec<Sentence> {
    let all = sweeps(all);
    let of_one = within(&all, of_one_records);
    let mut findings: Vec<Sentence> = of_one.iter().filter_map(enough).collect();
    findings.extend(worse_than_one_thread(&of_one));
    findings.extend(uncontended(&of_one));
    let measured: Vec<&Record> =
        of_one.iter().flat_map(|sweep| &sweep.rows).map(|row| row.record).collect();
    findings.extend(claims::sentences(&claims::LOCKS, &measured));
    findings.extend(limits(of_one_records));
    findings.extend(agreement(&all));
    findings
}

/// Throughput of threads that share nothing, by the number of their CPUs.
fn limits(records: &[Record]) -> Vec<Sentence> {
    let mut by_cpus: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for record in records {
        let limit = record.figures.contention().and_then(|contention| contention.without_lock);
        if let Some(limit) = limit {
            by_cpus.entry(record.cell.cpus.len()).or_default().push(limit.get());
        }
    }
    let sentence = |(cpus, mut limits): (usize, Vec<f64>)| {
        limits.sort_by(f64::total_cmp);
        let [least, .., most] = limits[..] else {
            return say::without_lock(cpus, ratio(limits[0]));
        };
        let middle = limits[limits.len() / 2];
        let groups = plural(limits.len() as u64, "group");
        say::without_lock_in_groups(cpus, ratio(middle), groups, ratio(least), ratio(most))
    };
    by_cpus.into_iter().map(sentence).collect()
}

fn enough(sweep: &Sweep<'_>) -> Option<Sentence> {
    enough_threads(sweep).map(|enough| {
        let threads = plural(enough.threads.into(), "thread");
        say::enough_threads(sweep.lock(), threads, enough.time, enough.most)
    })
}

fn threads(sweep: &Sweep<'_>, row: &Row<'_>) -> String {
    let threads = row.subject.threads;
    match sweep.axis {
        Axis::HoldShare => {
            let share = share(row.subject.hold_share());
            format!("{threads} threads that each hold it for {share} of their time")
        }
        Axis::Interval => {
            let interval = time(row.subject.cycle_ns() as f64);
            format!("{threads} threads that each take it every {interval}")
        }
        Axis::None => format!("{threads} threads"),
    }
}

fn with_several_threads<'s>(sweep: &'s Sweep<'_>) -> impl Iterator<Item = &'s Row<'s>> {
    sweep.rows.iter().filter(|row| row.subject.threads > 1)
}

/// A number of threads in a pool beyond which more threads gain almost nothing.
pub(super) struct Enough {
    pub(super) threads: u32,
    /// Time for all tasks, with its interval, as text.
    pub(super) time: String,
    /// Largest number of threads measured.
    pub(super) most: u32,
}

/// Number of threads, their time for all tasks with its interval, and the interval of their
/// speed-up.
type Total = (u32, f64, [f64; 2], Option<[f64; 2]>);

/// The smallest number of threads that no larger number certainly beats by more than the margin.
pub(super) fn enough_threads(sweep: &Sweep<'_>) -> Option<Enough> {
    let mut totals: Vec<Total> = sweep
        .rows
        .iter()
        .filter_map(|row| {
            let interval = row.contention.total_s_interval95?.map(f64::from);
            Some((
                row.subject.threads,
                row.contention.total_s?.get(),
                interval,
                self::interval(row),
            ))
        })
        .collect();
    totals.sort_by_key(|(threads, ..)| *threads);
    widen_narrow_ones(&mut totals);
    let (threads, total, interval, _) = totals[fewest(&totals)?];
    let time = time_within(total * 1e9, Some(interval.map(|bound| bound * 1e9)));
    let most = totals.last().map_or(threads, |(threads, ..)| *threads);
    Some(Enough { threads, time, most })
}

/// Index of the first total that no later one can beat by more than the margin, either in time or
/// in speed-up. (The latter also depends on how fast the single thread was in the same period.)
fn fewest(totals: &[Total]) -> Option<usize> {
    let good = |nth: usize| {
        let (_, _, [_, high], own) = totals[nth];
        totals[nth + 1..].iter().all(|(_, _, [low, _], more)| {
            let beats = |(own, more): ([f64; 2], [f64; 2])| more[1] > GOOD_ENOUGH * own[0];
            high <= GOOD_ENOUGH * low && !own.zip(*more).is_some_and(beats)
        })
    };
    (0..totals.len().saturating_sub(1)).find(|nth| good(*nth))
}

/// Widens intervals narrower than the median one to its width: with only a few blocks, an interval
/// can be narrow by chance if the machine's speed changes all the time.
fn widen_narrow_ones(totals: &mut [Total]) {
    let widths = totals.iter().map(|(_, _, [low, high], _)| high / low);
    let Some(width) = median(widths).filter(|width| width.is_finite()) else { return };
    for (_, total, [low, high], _) in totals {
        *low = low.min(*total / width.sqrt());
        *high = high.max(*total * width.sqrt());
    }
}

/// The speed-up’s 95% interval.
fn interval(row: &Row<'_>) -> Option<[f64; 2]> {
    Some(row.contention.speedup_interval95?.map(f64::from))
}

/// `0.623×, 0.620–0.626`.
fn speedup(row: &Row<'_>) -> Option<String> {
    let figure = row.contention.speedup.map_or_else(|| UNKNOWN.into(), |s| ratio(s.get()));
    Some(format!("{figure}, {}", digits_range(interval(row)?)))
}

/// Cells of a sweep in which several threads certainly do less than one.
struct Slower {
    lock: String,
    /// Number of these cells, and of all cells with several threads.
    slower: usize,
    cells: usize,
    /// The first such cell: its number of threads, and its speed-up.
    threads: String,
    speedup: String,
    /// Speed-up of a single thread that also takes the lock; `None` if it was not measured.
    one: Option<String>,
}

impl Slower {
    /// One entry for cells compared with a single thread that takes the lock, and one for cells
    /// compared with a thread that does not.
    fn of(sweep: &Sweep<'_>) -> Vec<Self> {
        let one = |row: &Row<'_>| {
            let times = |of: &Row<'_>| (of.subject.hold_ns, of.subject.think_ns);
            sweep.rows.iter().find(|one| one.subject.threads == 1 && times(one) == times(row))
        };
        let cells =
            |with: bool| with_several_threads(sweep).filter(move |row| one(row).is_some() == with);
        let is_slower = |row: &&Row<'_>| {
            let least = one(row).map_or(Some(1.0), |one| Some(interval(one)?[0]));
            interval(row).zip(least).is_some_and(|([_, high], least)| high < least)
        };
        let of = |with: bool| {
            let mut slower = cells(with).filter(is_slower);
            let first = slower.next()?;
            Some(Slower {
                lock: sweep.lock(),
                slower: 1 + slower.count(),
                cells: cells(with).count(),
                threads: threads(sweep, first),
                speedup: speedup(first)?,
                one: one(first).and_then(|one| speedup(one)),
            })
        };
        [true, false].into_iter().filter_map(of).collect()
    }

    fn sentence(self) -> Sentence {
        let Slower { lock, slower, cells, threads, speedup, one } = self;
        match (slower, one) {
            (1, Some(one)) => say::one_is_faster(lock, threads, speedup, one),
            (_, Some(one)) => say::one_is_often_faster(lock, slower, cells, threads, speedup, one),
            (1, None) => say::one_without_is_faster(lock, threads, speedup),
            (_, None) => say::one_without_is_often_faster(lock, slower, cells, threads, speedup),
        }
    }
}

fn worse_than_one_thread(sweeps: &[Sweep<'_>]) -> Vec<Sentence> {
    sweeps.iter().flat_map(Slower::of).map(Slower::sentence).collect()
}

/// Predictions for several threads, compared with the measured figures.
pub(super) struct Errors {
    undisturbed: Compared,
    all: Compared,
}

impl Errors {
    pub(super) fn of(sweeps: &[Sweep<'_>]) -> Self {
        let rows = || sweeps.iter().flat_map(with_several_threads);
        Errors {
            undisturbed: Compared::of(rows().filter(|row| !row.marks().disturbed)),
            all: Compared::of(rows()),
        }
    }

    pub(super) fn sentence(&self) -> Option<Sentence> {
        let of = match self.undisturbed.errors.is_empty() {
            true => &self.all,
            false => &self.undisturbed,
        };
        let (mean, worst) = of.mean_and_worst()?;
        Some(say::predicted(mean, worst, plural(of.cells(), "cell")))
    }

    pub(super) fn card(&self) -> Option<Card> {
        let (all_mean, all_worst) = self.all.mean_and_worst()?;
        let all = plural(self.all.cells(), "cell");
        let heading = "mean error of the predictions".into();
        Some(match self.undisturbed.mean_and_worst() {
            Some((mean, worst)) => Card {
                figure: mean,
                heading,
                detail: format!(
                    "at worst {worst}, in {} with several threads; {all_mean} on average in all {all}",
                    plural(self.undisturbed.cells(), "undisturbed cell"),
                ),
            },
            None => Card {
                figure: all_mean,
                heading,
                detail: format!(
                    "at worst {all_worst}, in {all} with several threads, all disturbed"
                ),
            },
        })
    }
}

#[derive(Default)]
struct Compared {
    /// Absolute values of the relative errors.
    errors: Vec<f64>,
    /// Number of cells with a predicted interval, and of those whose measured speed-up lies in it.
    intervals: usize,
    within: usize,
}

impl Compared {
    fn of<'r, 'a: 'r>(rows: impl Iterator<Item = &'r Row<'a>>) -> Self {
        let mut compared = Compared::default();
        for row in rows {
            compared.errors.extend(row.error().map(f64::abs));
            if let Some(within) = row.within() {
                compared.intervals += 1;
                compared.within += usize::from(within);
            }
        }
        compared
    }

    fn cells(&self) -> u64 {
        self.errors.len() as u64
    }

    fn mean_and_worst(&self) -> Option<(String, String)> {
        let worst = self.errors.iter().copied().reduce(f64::max)?;
        let mean = self.errors.iter().sum::<f64>() / self.errors.len() as f64;
        Some((share(mean), share(worst)))
    }
}

fn agreement(sweeps: &[Sweep<'_>]) -> Option<Sentence> {
    let Errors { undisturbed, all } = Errors::of(sweeps);
    let (all_mean, all_worst) = all.mean_and_worst()?;
    let sentence = match undisturbed.mean_and_worst() {
        Some((mean, worst)) if undisturbed.cells() == all.cells() => {
            say::predictions_undisturbed(mean, worst, plural(all.cells(), "cell"))
        }
        Some((mean, worst)) => {
            let cells = plural(undisturbed.cells(), "undisturbed cell");
            say::predictions(mean, worst, cells, all_mean, all_worst, all.cells())
        }
        None => say::predictions_disturbed(all.cells(), all_mean, all_worst),
    };
    let within = (all.intervals > 0).then(|| match undisturbed {
        Compared { intervals, .. } if intervals == 0 || intervals == all.intervals => {
            say::all_within_predicted(all.within, plural(all.intervals as u64, "cell"))
        }
        Compared { within, intervals, .. } => {
            say::within_predicted(within, intervals, all.within, all.intervals)
        }
    });
    Some(sentence.and(within))
}

/// Sentence on an uncontended lock and unlock, as measured by the calibrations.
fn uncontended(sweeps: &[Sweep<'_>]) -> Option<Sentence> {
    let mut pairs_ns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for sweep in sweeps.iter().filter(|sweep| sweep.criteria.scenario == "frequency-sweep") {
        let calibrated =
            sweep.rows.iter().filter_map(|row| row.contention.predicted.as_ref()?.from);
        let found = calibrated.map(|from| from.pair_ns.get());
        pairs_ns.entry(sweep.lock()).or_default().extend(found.filter(|ns| *ns > 0.0));
    }
    let published = pairs_ns.get("std-mutex").is_some_and(|found| !found.is_empty());
    let (source, time) = claims::UNCONTENDED;
    let published = published.then(|| say::uncontended_published(source, time));
    let (counters, locks): (Vec<_>, Vec<_>) =
        pairs_ns.into_iter().partition(|(lock, _)| is_counter(lock));
    let costs = |of: Vec<(String, Vec<f64>)>| {
        let costs: Vec<String> = of.into_iter().filter_map(cost).collect();
        (!costs.is_empty()).then(|| costs.join("; "))
    };
    let locks = costs(locks).map(|locks| say::uncontended(locks).and(published));
    let counters = costs(counters).map(say::uncontended_counters);
    match locks {
        Some(locks) => Some(locks.and(counters)),
        None => counters,
    }
}

/// `std-mutex 16.3 ns, 15.2 ns to 18.0 ns`.
fn cost((lock, mut found): (String, Vec<f64>)) -> Option<String> {
    let middle = upper_median(&mut found, f64::total_cmp)?;
    let least = found.iter().copied().reduce(f64::min)?;
    let most = found.iter().copied().reduce(f64::max)?;
    Some(format!("{lock} {}, {} to {}", time(middle), time(least), time(most)))
}

fn is_counter(lock: &str) -> bool {
    lock.starts_with("counter-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_is_narrow_by_luck_decides_nothing() {
        let fewest = |intervals: [[f64; 2]; 4], doubt: f64| {
            let total = |(nth, interval): (usize, [f64; 2])| {
                let middle = (interval[0] * interval[1]).sqrt();
                let speedup = [10.0 / middle / doubt, 10.0 / middle * doubt];
                (nth as u32 + 1, middle, interval, Some(speedup))
            };
            let mut totals: Vec<Total> = intervals.into_iter().enumerate().map(total).collect();
            widen_narrow_ones(&mut totals);
            fewest(&totals)
        };
        let steady = [[9.9, 10.1], [4.95, 5.05], [4.9, 5.0], [4.95, 5.05]];
        assert_eq!(fewest(steady, 1.01), Some(1));
        assert_eq!(fewest(steady, 1.5), None, "the thread alone changed its speed");
        let lucky = [[8.0, 13.0], [4.95, 5.05], [4.9, 7.0], [5.0, 8.0]];
        assert_eq!(fewest(lucky, 1.01), None);
    }

    #[test]
    fn calibrations_have_a_range_and_no_interval() {
        let told = cost(("spin".into(), vec![16.0, 15.2, 18.0]));
        assert_eq!(told.as_deref(), Some("spin 16.0 ns, 15.2 ns to 18.0 ns"));
        assert_eq!(cost(("spin".into(), Vec::new())), None);
        assert!(is_counter("counter-atomic") && !is_counter("std-mutex"));
    }
}
