//! The ladder's rows: the records of one variant of a mechanism, its placements side by side.

use std::borrow::Cow;
use std::collections::BTreeMap;

use threadtoll_record::{
    Against, Cell, Cost, DisturbanceSummary, Experiment, Histogram, Layout, Neighbour, OneWay,
    Over, Pause, Placement, Quantiles, Record, Relation, Verdict, Worst, fold, resample,
};

use crate::clean::clean;

/// A row of the ladder.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// What the row is, fit to be shown.
    pub(crate) label: String,
    /// Its records in the order of [`Placement::ALL`].
    sides: [Option<Cow<'a, Record>>; 3],
}

impl Row<'_> {
    /// The record of one placement.
    pub(crate) fn side(&self, placement: Placement) -> Option<&Record> {
        self.sides[index(placement)].as_deref()
    }

    /// The record that stands for the row: of the first placement, pinned before the others, that
    /// has a median.
    pub(crate) fn main(&self) -> Option<&Record> {
        let known = self.sides.iter().flatten().find(|record| record.one_way_p50().is_some());
        known.or_else(|| self.sides.iter().flatten().next()).map(|record| &**record)
    }

    /// The one-way median of that record.
    pub(crate) fn p50(&self) -> Option<f64> {
        self.main()?.one_way_p50()
    }
}

fn index(placement: Placement) -> usize {
    match placement {
        Placement::Pinned => 0,
        Placement::SameCpu => 1,
        Placement::Free => 2,
    }
}

/// Everything of a cell but its placement.
type Variant<'a> = (&'a str, u64, Option<Layout>, Option<Pause>, bool, Option<Neighbour>);

/// Whether a record belongs in the ladder.
pub(crate) fn in_ladder(record: &Record) -> bool {
    record.experiment == Experiment::Latency
}

/// The rows of the ladder, cheapest first; those without a median come last.
///
/// A cell that was measured in several groups, as the reference is, is one record here: see
/// [`merged`]. Pairs of CPUs beyond the first of a variant become rows of their own.
pub(crate) fn rows(records: &[Record]) -> Vec<Row<'_>> {
    let mut cells: BTreeMap<&Cell, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| in_ladder(record)) {
        cells.entry(&record.cell).or_default().push(record);
    }
    let mut variants: BTreeMap<Variant<'_>, [Vec<Cow<'_, Record>>; 3]> = BTreeMap::new();
    for (cell, found) in cells {
        let variant = (
            cell.name(),
            cell.payload_bytes,
            cell.line,
            cell.pause,
            cell.keep_awake,
            cell.neighbour,
        );
        variants.entry(variant).or_default()[index(cell.placement)].push(merged(&found));
    }
    let mut rows = Vec::new();
    for mut sides in variants.into_values() {
        let several = sides.iter().any(|side| side.len() > 1);
        sides.iter_mut().for_each(|side| side.reverse());
        loop {
            let sides = sides.each_mut().map(Vec::pop);
            let Some(first) = sides.iter().flatten().next() else { break };
            let mut label = clean(&first.cell.label());
            if several {
                label.push_str(&format!(", {}", cpus(&first.cell.cpus)));
            }
            rows.push(Row { label, sides });
        }
    }
    rows.sort_by(|a, b| {
        let key = |row: &Row<'_>| row.p50().unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b)).then_with(|| a.label.cmp(&b.label))
    });
    rows
}

/// The cheapest one-way median between two threads, which the ladder takes its multiples of: among
/// the pinned ones where there are any.
pub(crate) fn cheapest<'r>(rows: &'r [Row<'_>]) -> Option<&'r Row<'r>> {
    let two =
        |row: &&Row<'_>| row.main().is_some_and(|main| main.cell.relation != Relation::SameThread);
    let positive = |row: &&Row<'_>| row.p50().is_some_and(|p50| p50 > 0.0);
    let pinned =
        |row: &&Row<'_>| row.main().is_some_and(|main| main.cell.placement == Placement::Pinned);
    let find = |wanted: &dyn Fn(&&Row<'_>) -> bool| {
        rows.iter().filter(two).filter(positive).find(|row| wanted(row))
    };
    find(&pinned).or_else(|| find(&|_| true))
}

/// How many times `base` a record is: the quotient of the medians that stand in the table.
///
/// The paired ratios to the reference would not do here. Carried from group to group they would
/// assume that the machine's moods change everything alike, and they do not: a cache line can
/// become six times as dear while a wake-up stays what it was.
pub(crate) fn times(record: &Record, base: &Record) -> Option<f64> {
    let quotient = record.one_way_p50()? / base.one_way_p50()?;
    Some(quotient).filter(|times| times.is_finite() && *times > 0.0)
}

/// `CPU 3`, `CPUs 0, 1`, `CPUs 0-7, 9`: runs of numbers are drawn together, and at most eight runs
/// are said.
pub fn cpus(cpus: &[u32]) -> String {
    const MOST: usize = 8;
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*cpu) => *last = *cpu,
            _ => runs.push((*cpu, *cpu)),
        }
    }
    let mut said: Vec<String> = runs
        .iter()
        .take(MOST)
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    if runs.len() > MOST {
        said.push("…".into());
    }
    format!("{} {}", if cpus.len() == 1 { "CPU" } else { "CPUs" }, said.join(", "))
}

/// Joins the records of one cell from several groups.
///
/// Its one-way median and mean are the medians of theirs, with the narrowest interval that holds
/// all their intervals (so it shows how far the machine moved between the groups). The distribution
/// is that of all their round trips. Costs and shares are weighted by the number of round trips.
pub(crate) fn merged<'a>(records: &[&'a Record]) -> Cow<'a, Record> {
    let [first, ..] = records else { unreachable!("a cell is only known through its records") };
    if records.len() == 1 {
        return Cow::Borrowed(first);
    }
    let mut joined: Record = (*first).clone();
    joined.count = records.iter().fold(0u64, |sum, record| sum.saturating_add(record.count));
    let one_way: Vec<&OneWay> =
        records.iter().filter_map(|record| record.one_way.as_ref()).collect();
    joined.one_way = one_way.first().map(|first| OneWay {
        mean: middle(one_way.iter().filter_map(|one_way| one_way.mean)),
        p50: middle(one_way.iter().filter_map(|one_way| one_way.p50)),
        mean_interval95: hull(one_way.iter().filter_map(|one_way| one_way.mean_interval95)),
        p50_interval95: hull(one_way.iter().filter_map(|one_way| one_way.p50_interval95)),
        ..(*first).clone()
    });
    joined.rate_per_s = middle(records.iter().filter_map(|record| record.rate_per_s));
    joined.interval95.rate_per_s =
        hull(records.iter().filter_map(|record| record.interval95.rate_per_s));
    joined.mean = weighted(records, |record| record.mean);
    joined.min = records.iter().filter_map(|record| record.min).min_by(f64::total_cmp);
    joined.max = records.iter().filter_map(|record| record.max).max_by(f64::total_cmp);
    joined.over = Over {
        limit_ns: first.over.limit_ns,
        share: weighted(records, |record| record.over.share),
    };
    joined.cost = Cost {
        user_ns_per_op: weighted(records, |record| record.cost.user_ns_per_op),
        system_ns_per_op: weighted(records, |record| record.cost.system_ns_per_op),
        voluntary_switches_per_op: weighted(records, |record| {
            record.cost.voluntary_switches_per_op
        }),
        involuntary_switches_per_op: weighted(records, |record| {
            record.cost.involuntary_switches_per_op
        }),
    };
    joined.same_cpu_share = weighted(records, |record| record.same_cpu_share);
    joined.histogram = all_values(records);
    joined.quantiles = match &joined.histogram {
        Some(histogram) => quantiles(histogram),
        None => Quantiles {
            p50: middle(records.iter().filter_map(|record| record.quantiles.p50)),
            p90: middle(records.iter().filter_map(|record| record.quantiles.p90)),
            p99: middle(records.iter().filter_map(|record| record.quantiles.p99)),
            p999: middle(records.iter().filter_map(|record| record.quantiles.p999)),
            p9999: middle(records.iter().filter_map(|record| record.quantiles.p9999)),
        },
    };
    joined.clean_quantiles = Quantiles::default();
    joined.interval95.p50 = hull(records.iter().filter_map(|record| record.interval95.p50));
    joined.interval95.p90 = hull(records.iter().filter_map(|record| record.interval95.p90));
    joined.interval95.p99 = hull(records.iter().filter_map(|record| record.interval95.p99));
    joined.interval95.p999 = hull(records.iter().filter_map(|record| record.interval95.p999));
    joined.interval95.p9999 = hull(records.iter().filter_map(|record| record.interval95.p9999));
    joined.disturbance = summed(records.iter().map(|record| &record.disturbance));
    joined.worst =
        records.iter().flat_map(|record| record.worst.iter().copied()).collect::<Vec<Worst>>();
    joined.worst.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    joined.worst.truncate(fold::WORST);
    joined.against = ratios(records);
    joined.warnings = records.iter().flat_map(|record| record.warnings.iter().cloned()).collect();
    joined.warnings.sort_by(|a, b| (&a.code, &a.text).cmp(&(&b.code, &b.text)));
    joined.warnings.dedup();
    Cow::Owned(joined)
}

/// Adds up what happened to the blocks of many records.
pub(crate) fn summed<'d>(
    summaries: impl Iterator<Item = &'d DisturbanceSummary>,
) -> DisturbanceSummary {
    let mut sum = DisturbanceSummary::default();
    for one in summaries {
        sum.blocks = sum.blocks.saturating_add(one.blocks);
        sum.disturbed = sum.disturbed.saturating_add(one.disturbed);
        for (cause, blocks) in &one.causes {
            let all = sum.causes.entry(*cause).or_insert(0);
            *all = all.saturating_add(*blocks);
        }
    }
    sum
}

/// The median; of an even number, the mean of the two in the middle.
pub(crate) fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    resample::median_of(&mut values.collect::<Vec<_>>())
}

fn hull(intervals: impl Iterator<Item = [f64; 2]>) -> Option<[f64; 2]> {
    intervals.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
}

fn weighted(records: &[&Record], figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
    let known =
        records.iter().filter_map(|record| Some((figure(record)?, record.count.max(1) as f64)));
    let (sum, weight) =
        known.fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + value * weight, all + weight));
    (weight > 0.0).then(|| sum / weight)
}

fn all_values(records: &[&Record]) -> Option<Histogram> {
    let mut all = Histogram::new();
    for record in records {
        all.add(record.histogram.as_ref()?);
    }
    Some(all)
}

fn quantiles(histogram: &Histogram) -> Quantiles {
    let given = |quantile: f64| {
        resample::enough(histogram.count(), quantile)
            .then(|| histogram.quantile_ns(quantile))
            .flatten()
    };
    Quantiles {
        p50: given(0.5),
        p90: given(0.9),
        p99: given(0.99),
        p999: given(0.999),
        p9999: given(0.9999),
    }
}

/// The ratios to each other cell: the median, the interval that holds all, and a verdict only where
/// all agree.
fn ratios(records: &[&Record]) -> Vec<Against> {
    let mut by_cell: BTreeMap<(&Cell, &str), Vec<&Against>> = BTreeMap::new();
    for against in records.iter().flat_map(|record| &record.against) {
        by_cell.entry((&against.cell, &against.of)).or_default().push(against);
    }
    let joined = by_cell.into_values().filter_map(|found| {
        let first = *found.first()?;
        let agreed = found.iter().all(|against| against.verdict == first.verdict);
        Some(Against {
            ratio: middle(found.iter().map(|against| against.ratio))?,
            interval95: hull(found.iter().map(|against| against.interval95))?,
            blocks: found.iter().fold(0, |sum, against| sum.saturating_add(against.blocks)),
            verdict: if agreed { first.verdict } else { Verdict::Open },
            ..first.clone()
        })
    });
    joined.collect()
}

/// Whether the 95% intervals of two one-way medians lie apart; nothing where one of them is not
/// known.
pub(crate) fn apart(a: &Record, b: &Record) -> Option<bool> {
    let ([a_low, a_high], [b_low, b_high]) =
        (a.one_way_p50_interval95()?, b.one_way_p50_interval95()?);
    Some(a_high < b_low || b_high < a_low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_cpus_are_drawn_together() {
        assert_eq!(cpus(&[3]), "CPU 3");
        assert_eq!(cpus(&[0, 1]), "CPUs 0, 1");
        assert_eq!(cpus(&[0, 1, 2, 7]), "CPUs 0-2, 7");
        assert_eq!(cpus(&[]), "CPUs ");
        assert_eq!(cpus(&[u32::MAX, 0]), format!("CPUs {}, 0", u32::MAX));
        let scattered: Vec<u32> = (0..500).map(|cpu| cpu * 2).collect();
        assert_eq!(cpus(&scattered), "CPUs 0, 2, 4, 6, 8, 10, 12, 14, …");
    }

    #[test]
    fn a_median_of_an_even_number_lies_between() {
        assert_eq!(middle([4.0, 1.0, 3.0, 2.0].into_iter()), Some(2.5));
        assert_eq!(middle([3.0].into_iter()), Some(3.0));
        assert_eq!(middle(std::iter::empty()), None);
    }
}
