//! Merges records of one cell from several groups.

use std::borrow::Cow;
use std::collections::BTreeMap;

use threadtoll_record::{
    Against, Cell, Cost, Histogram, Ns, OneWay, Over, Quantiles, Record, Verdict, Worst, fold,
    median, resample,
};

use crate::disturbance::sum;

/// Merges the records of one cell from several groups.
///
/// One-way median and mean are the medians of theirs, with the narrowest interval that contains all
/// their intervals (which shows how much the machine changed between the groups). The distribution
/// is that of all round trips. Costs and shares are weighted by the number of round trips.
pub(crate) fn merged<'a>(records: &[&'a Record]) -> Cow<'a, Record> {
    let [first, ..] = records else { unreachable!("a cell is only known through its records") };
    if records.len() == 1 {
        return Cow::Borrowed(first);
    }
    let mut joined: Record = (*first).clone();
    joined.count = records.iter().map(|record| record.count).sum();
    let one_way: Vec<&OneWay> =
        records.iter().filter_map(|record| record.one_way.as_ref()).collect();
    joined.one_way = one_way.first().map(|first| OneWay {
        mean: median(one_way.iter().filter_map(|one_way| one_way.mean)),
        p50: median(one_way.iter().filter_map(|one_way| one_way.p50)),
        mean_interval95: hull(one_way.iter().filter_map(|one_way| one_way.mean_interval95)),
        p50_interval95: hull(one_way.iter().filter_map(|one_way| one_way.p50_interval95)),
        ..(*first).clone()
    });
    joined.rate_per_s = median(records.iter().filter_map(|record| record.rate_per_s));
    joined.interval95.rate_per_s =
        hull(records.iter().filter_map(|record| record.interval95.rate_per_s));
    joined.mean = weighted(records, |record| record.mean);
    joined.min = by_ns(records, |record| record.min).min_by(f64::total_cmp).map(Into::into);
    joined.max = by_ns(records, |record| record.max).max_by(f64::total_cmp).map(Into::into);
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
            p50: median(records.iter().filter_map(|record| record.quantiles.p50)),
            p90: median(records.iter().filter_map(|record| record.quantiles.p90)),
            p99: median(records.iter().filter_map(|record| record.quantiles.p99)),
            p999: median(records.iter().filter_map(|record| record.quantiles.p999)),
            p9999: median(records.iter().filter_map(|record| record.quantiles.p9999)),
        },
    };
    joined.clean_quantiles = Quantiles::default();
    joined.interval95.p50 = hull(records.iter().filter_map(|record| record.interval95.p50));
    joined.interval95.p90 = hull(records.iter().filter_map(|record| record.interval95.p90));
    joined.interval95.p99 = hull(records.iter().filter_map(|record| record.interval95.p99));
    joined.interval95.p999 = hull(records.iter().filter_map(|record| record.interval95.p999));
    joined.interval95.p9999 = hull(records.iter().filter_map(|record| record.interval95.p9999));
    joined.disturbance = sum(records.iter().map(|record| &record.disturbance));
    joined.worst =
        records.iter().flat_map(|record| record.worst.iter().copied()).collect::<Vec<Worst>>();
    joined.worst.sort_by(|a, b| b.ns.get().total_cmp(&a.ns.get()));
    joined.worst.truncate(fold::WORST);
    joined.against = ratios(records);
    joined.warnings = records.iter().flat_map(|record| record.warnings.iter().cloned()).collect();
    joined.warnings.sort_by(|a, b| (&a.code, &a.text).cmp(&(&b.code, &b.text)));
    joined.warnings.dedup();
    Cow::Owned(joined)
}

fn by_ns<'a>(
    records: &[&'a Record],
    figure: impl Fn(&'a Record) -> Option<Ns>,
) -> impl Iterator<Item = f64> {
    records.iter().filter_map(move |record| figure(record)).map(Ns::get)
}

fn hull<T: Into<f64> + From<f64>>(intervals: impl Iterator<Item = [T; 2]>) -> Option<[T; 2]> {
    let intervals = intervals.map(|interval| interval.map(Into::into));
    let hull = intervals.reduce(|a: [f64; 2], b| [a[0].min(b[0]), a[1].max(b[1])]);
    hull.map(|bounds| bounds.map(Into::into))
}

fn weighted<T: Into<f64> + From<f64>>(
    records: &[&Record],
    figure: impl Fn(&Record) -> Option<T>,
) -> Option<T> {
    let known = records
        .iter()
        .filter_map(|record| Some((figure(record)?.into(), record.count.as_f64().max(1.0))));
    let (sum, weight) = known.fold((0.0, 0.0), |(sum, all), (value, weight): (f64, f64)| {
        (sum + value * weight, all + weight)
    });
    (weight > 0.0).then(|| (sum / weight).into())
}

fn all_values(records: &[&Record]) -> Option<Histogram> {
    let mut all = Histogram::new();
    for record in records {
        all.add(record.histogram.as_ref()?);
    }
    Some(all)
}

fn quantiles(histogram: &Histogram) -> Quantiles {
    let known = |quantile: f64| {
        resample::enough(histogram.count(), quantile)
            .then(|| histogram.quantile_ns(quantile))
            .flatten()
    };
    Quantiles {
        p50: known(0.5).map(Into::into),
        p90: known(0.9).map(Into::into),
        p99: known(0.99).map(Into::into),
        p999: known(0.999).map(Into::into),
        p9999: known(0.9999).map(Into::into),
    }
}

/// The ratios to each other cell: the median, the interval that contains all, and a verdict only if
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
            ratio: median(found.iter().map(|against| against.ratio))?,
            interval95: hull(found.iter().map(|against| against.interval95))?,
            blocks: found.iter().fold(0, |sum, against| sum.saturating_add(against.blocks)),
            verdict: if agreed { first.verdict } else { Verdict::Open },
            ..first.clone()
        })
    });
    joined.collect()
}
