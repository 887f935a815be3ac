//! Figures of several regimes next to each other: `63.0 | 275 ns (75 | 21%)`; and figures of a
//! single regime.

use std::borrow::Cow;
use std::collections::BTreeMap;

use threadtoll_record::{
    Against, Contention, Figures, OneWay, PerSecond, Record, Regime, Work, compare::ALIKE,
    file::Results,
};
use threadtoll_stats::median;

use crate::table::Cell;
use crate::units::{UNKNOWN, share};

#[derive(Clone, Copy)]
pub(crate) struct InRegime<'a> {
    pub(crate) one_way: Option<&'a OneWay>,
    pub(crate) rate_per_s: Option<PerSecond>,
    pub(crate) rate_interval95: Option<[PerSecond; 2]>,
    pub(crate) contention: Option<&'a Contention>,
    pub(crate) against: &'a [Against],
}

impl<'a> InRegime<'a> {
    fn whole(record: &'a Record) -> Self {
        InRegime {
            one_way: record.one_way.as_ref(),
            rate_per_s: record.rate_per_s,
            rate_interval95: record.interval95.rate_per_s,
            contention: record.figures.contention(),
            against: &record.against,
        }
    }

    fn of(regime: &'a Regime) -> Self {
        InRegime {
            one_way: regime.one_way.as_ref(),
            rate_per_s: regime.rate_per_s,
            rate_interval95: regime.interval95.rate_per_s,
            contention: regime.figures.contention(),
            against: &regime.against,
        }
    }

    pub(crate) fn one_way_p50(&self) -> Option<f64> {
        self.one_way?.p50.map(f64::from)
    }

    pub(crate) fn one_way_p50_interval95(&self) -> Option<[f64; 2]> {
        Some(self.one_way?.p50_interval95?.map(f64::from))
    }
}

/// A regime of a whole run: groups in which the reference has similar medians.
#[derive(Debug)]
pub(crate) struct State {
    /// Median of the one-way medians that the reference had in the groups.
    pub(crate) reference_ns: f64,
    /// Share of the run's blocks. Shares sum to less than 1 if the regime changed within some
    /// blocks.
    pub(crate) share: f64,
    /// Number of records that have figures for this regime.
    records: usize,
    /// The lowest and the highest one-way median that the reference had in a group.
    range: [f64; 2],
}

/// A speed of the machine within one group, given by the reference's median.
struct Level {
    reference_ns: f64,
    blocks: u64,
}

/// The regimes of a run. A table or a sentence has figures of a single regime.
#[derive(Debug)]
pub(crate) struct Regimes {
    /// The regimes, the fastest first; empty if there is only one.
    pub(crate) states: Vec<State>,
    /// Speed of each group whose regime did not change; `None` if the group's blocks differed too
    /// much.
    steady: BTreeMap<usize, Option<f64>>,
}

impl Regimes {
    /// The regimes in `records`, and in the group that was measured again.
    pub(crate) fn of(results: &Results, records: &[Record]) -> Self {
        let again = results.repetition().map_or(&[][..], |[_, again]| again);
        let all = || records.iter().chain(again);
        let mut groups: BTreeMap<usize, Vec<&Record>> = BTreeMap::new();
        all().for_each(|record| groups.entry(record.group).or_default().push(record));
        let mut levels = Vec::new();
        let mut of_steady = BTreeMap::new();
        for (group, records) in &groups {
            let of_group = split(records);
            if of_group.is_empty() {
                let level = steady(results, *group, records);
                let blocks = blocks(records.iter().copied());
                levels.extend(level.map(|reference_ns| Level { reference_ns, blocks }));
                of_steady.insert(*group, level);
            }
            levels.extend(of_group);
        }
        let blocks = blocks(all());
        levels.sort_by(|a, b| a.reference_ns.total_cmp(&b.reference_ns));
        let apart = |a: &Level, b: &Level| b.reference_ns <= ALIKE * a.reference_ns;
        let states: Vec<State> = levels
            .chunk_by(apart)
            .map(|alike| State {
                reference_ns: median(alike.iter().map(|level| level.reference_ns))
                    .unwrap_or_default(),
                share: alike.iter().map(|level| level.blocks).sum::<u64>() as f64
                    / blocks.max(1) as f64,
                records: 0,
                range: [alike[0].reference_ns, alike[alike.len() - 1].reference_ns],
            })
            .collect();
        let several = states.len() > 1;
        let mut regimes =
            Regimes { states: if several { states } else { Vec::new() }, steady: of_steady };
        let seen: Vec<usize> = regimes
            .states
            .iter()
            .map(|state| records.iter().filter(|it| regimes.within(state, it).is_some()).count())
            .collect();
        regimes.states.iter_mut().zip(seen).for_each(|(state, seen)| state.records = seen);
        regimes
    }

    /// The regime for which the most records have figures and, of several, the one with the most
    /// blocks; `None` if there is only one. A regime with less than half as many blocks as another
    /// does not count: its figures would be of few blocks.
    pub(crate) fn main(&self) -> Option<&State> {
        let most_blocks = self.states.iter().map(|state| state.share).fold(0.0, f64::max);
        let most = |a: &&State, b: &&State| {
            a.records.cmp(&b.records).then_with(|| a.share.total_cmp(&b.share))
        };
        self.states.iter().rev().filter(|state| 2.0 * state.share >= most_blocks).max_by(most)
    }

    /// The records with their figures in the main regime. Records that did not see this regime are
    /// omitted.
    pub(crate) fn records<'r>(&self, records: &'r [Record]) -> Cow<'r, [Record]> {
        match self.main() {
            None => Cow::Borrowed(records),
            Some(main) => records.iter().filter_map(|record| self.within(main, record)).collect(),
        }
    }

    /// Like [`Regimes::records`], but includes the records that did not see the main regime or
    /// whose group had no steady speed. Their figures are those of all blocks.
    pub(crate) fn all_records<'r>(&self, records: &'r [Record]) -> Cow<'r, [Record]> {
        let Some(main) = self.main() else { return Cow::Borrowed(records) };
        let all = |record: &Record| self.within(main, record).unwrap_or_else(|| record.clone());
        records.iter().map(all).collect()
    }

    fn within(&self, main: &State, record: &Record) -> Option<Record> {
        let [least, most] = main.range;
        let is_main = |reference_ns: f64| (least..=most).contains(&reference_ns);
        // The speed of a cache line does not affect threads that sleep while they hold a lock.
        if record.cell.lock().is_some_and(|lock| lock.work == Work::Sleep) {
            return Some(record.clone());
        }
        if record.regimes.is_empty() {
            let level = self.steady.get(&record.group).copied().flatten();
            return level.is_some_and(is_main).then(|| record.clone());
        }
        let own = record.regimes.iter().filter(|regime| is_main(regime.reference_ns.into()));
        let longest = own.max_by(|a, b| a.share.get().total_cmp(&b.share.get()))?;
        Some(of_one(record, longest))
    }
}

fn blocks<'r>(records: impl Iterator<Item = &'r Record>) -> u64 {
    records.map(|record| u64::from(record.disturbance.blocks)).sum()
}

fn split(records: &[&Record]) -> Vec<Level> {
    let most = records.iter().rev().max_by_key(|record| record.regimes.len());
    let level = |(nth, regime): (usize, &Regime)| Level {
        reference_ns: regime.reference_ns.into(),
        blocks: records
            .iter()
            .filter_map(|record| Some(u64::from(record.regimes.get(nth)?.blocks)))
            .sum(),
    };
    most.into_iter().flat_map(|record| record.regimes.iter().enumerate().map(level)).collect()
}

/// Speed of a group whose regime did not change. `None` if the speed is unknown, or if the group's
/// blocks differed too much.
fn steady(results: &Results, group: usize, records: &[&Record]) -> Option<f64> {
    let planned = results.plan.groups.get(group)?.first()?;
    let reference = records.iter().find(|record| record.cell == planned.cell)?;
    let reference_ns = reference.one_way_p50().filter(|ns| ns.is_finite() && *ns > 0.0)?;
    let is_wide = |[low, high]: [f64; 2]| high > ALIKE * low;
    (!reference.one_way_p50_interval95().is_some_and(is_wide)).then_some(reference_ns)
}

fn of_one(record: &Record, regime: &Regime) -> Record {
    Record {
        one_way: regime.one_way.clone(),
        mean: regime.mean,
        min: regime.min,
        max: regime.max,
        quantiles: regime.quantiles,
        interval95: regime.interval95,
        rate_per_s: regime.rate_per_s,
        cost: regime.cost,
        // Queues have figures only for the regime with the largest share.
        figures: match &regime.figures {
            figures @ Figures::Contention { .. } => figures.clone(),
            _ => record.figures.clone(),
        },
        against: regime.against.clone(),
        regimes: Vec::new(),
        ..record.clone()
    }
}

/// A cell with a figure and a share of the time for each regime, sorted by the main regime's
/// figure.
pub(crate) fn figure(
    record: &Record,
    figure: impl Fn(&InRegime<'_>) -> Option<f64>,
    format: impl Fn(f64) -> String,
) -> Cell {
    let text = |figures: &InRegime<'_>| figure(figures).map(&format);
    let mut cell = each(record, text);
    cell.value = figure(&InRegime::whole(record));
    if !record.regimes.is_empty() {
        let shares: Vec<String> =
            record.regimes.iter().map(|regime| share(regime.share.get())).collect();
        cell.text = format!("{} ({})", cell.text, joined(&shares, "%"));
    }
    cell
}

pub(crate) fn each(record: &Record, text: impl Fn(&InRegime<'_>) -> Option<String>) -> Cell {
    let figures: Vec<InRegime<'_>> = match record.regimes.as_slice() {
        [] => vec![InRegime::whole(record)],
        regimes => regimes.iter().map(InRegime::of).collect(),
    };
    let texts: Vec<String> =
        figures.iter().map(|figures| text(figures).unwrap_or_else(|| UNKNOWN.into())).collect();
    let unit = texts.first().and_then(|first| Some(&first[first.rfind(' ')?..])).unwrap_or("");
    Cell::text(joined(&texts, unit))
}

/// Joins texts with a vertical bar. If all have the same unit, it appears only at the end.
fn joined(texts: &[String], unit: &str) -> String {
    let [first @ .., last] = texts else { return String::new() };
    let alike = !unit.is_empty() && texts.iter().all(|text| text.ends_with(unit));
    let bare = |text: &'_ String| match text.strip_suffix(unit) {
        Some(bare) if alike => bare.to_string(),
        _ => text.clone(),
    };
    first.iter().map(bare).chain([last.clone()]).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_all_stands_at_the_end() {
        let texts =
            |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect::<Vec<String>>();
        assert_eq!(joined(&texts(&["63.0 ns", "275 ns"]), " ns"), "63.0 | 275 ns");
        assert_eq!(joined(&texts(&["990 ns", "1.20 µs"]), " ns"), "990 ns | 1.20 µs");
        assert_eq!(joined(&texts(&["63.0 ns"]), " ns"), "63.0 ns");
        assert_eq!(joined(&texts(&["75%", "21%"]), "%"), "75 | 21%");
        assert_eq!(joined(&texts(&["1.20×", "–"]), ""), "1.20× | –");
    }
}
