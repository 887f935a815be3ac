use std::collections::BTreeMap;

use threadtoll_record::Record;
use threadtoll_stats::median;

use super::{Row, Sweep};
use crate::label::plural;
use crate::sentences::{self as say, Sentence};
use crate::units::{ratio, share, time_within};

/// A total time counts as equally good up to this multiple of the shortest.
const GOOD_ENOUGH: f64 = 1.05;

/// Throughput of threads that share nothing, by number of CPUs.
pub(crate) fn limits(records: &[Record]) -> Vec<Sentence> {
    let mut by_cpus: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for record in records {
        let limit = record.figures.contention().and_then(|contention| contention.without_lock);
        if let Some(limit) = limit {
            by_cpus.entry(record.cell.cpus.len()).or_default().push(limit.get());
        }
    }
    let sentence = |(cpus, mut limits): (usize, Vec<f64>)| {
        limits.sort_by(f64::total_cmp);
        let groups = match limits[..] {
            [least, .., most] => format!(
                " (median of {}; {} to {})",
                plural(limits.len() as u64, "measurement"),
                ratio(least),
                ratio(most)
            ),
            _ => String::new(),
        };
        let middle = median(limits.iter().copied())?;
        Some(say::without_lock(cpus, ratio(middle), groups))
    };
    by_cpus.into_iter().filter_map(sentence).collect()
}

/// Number of threads in a pool beyond which more threads gain almost nothing.
pub(super) struct Enough {
    pub(super) threads: u32,
    /// Time for all tasks and its interval, as text.
    pub(super) time: String,
    /// Largest number of threads that was measured.
    pub(super) most: u32,
}

/// Number of threads, time for all tasks with its interval, and interval of the speed-up.
type Total = (u32, f64, [f64; 2], Option<[f64; 2]>);

/// The smallest number of threads such that no larger number can be faster by more than a factor of
/// [`GOOD_ENOUGH`].
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

/// Index of the first total that no later total can beat by more than a factor of [`GOOD_ENOUGH`],
/// according to the intervals of both time and speed-up. Both count, because the speed-up also
/// depends on the speed of the single thread in the same period.
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

/// Widens intervals to at least the median width: with few blocks, an interval may be narrow by
/// chance although the machine's speed changes all the time.
fn widen_narrow_ones(totals: &mut [Total]) {
    let widths = totals.iter().map(|(_, _, [low, high], _)| high / low);
    let Some(width) = median(widths).filter(|width| width.is_finite()) else { return };
    for (_, total, [low, high], _) in totals {
        *low = low.min(*total / width.sqrt());
        *high = high.max(*total * width.sqrt());
    }
}

fn interval(row: &Row<'_>) -> Option<[f64; 2]> {
    Some(row.contention.speedup_interval95?.map(f64::from))
}

/// Mean and largest error of the predictions for several threads. Disturbed cells count only if
/// there are no others.
pub(super) fn predicted(sweeps: &[Sweep<'_>]) -> Option<Sentence> {
    let several = || {
        let rows = sweeps.iter().flat_map(|sweep| &sweep.rows);
        rows.filter(|row| row.subject.threads > 1)
    };
    let error = |row: &Row<'_>| row.error().map(f64::abs);
    let quiet = several().filter(|row| !row.marks().disturbed);
    let mut errors: Vec<f64> = quiet.filter_map(error).collect();
    let mut one = "undisturbed figure";
    if errors.is_empty() {
        errors = several().filter_map(error).collect();
        one = "figure";
    }
    let worst = errors.iter().copied().reduce(f64::max)?;
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    Some(say::predicted(share(mean), share(worst), plural(errors.len() as u64, one)))
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
}
