//! What the charts are drawn from, as compact JSON.

use serde::Serialize;
use threadtoll_record::{Histogram, Placement, Record, resample};

use super::escape::json_in_page;
use super::queue::MOST_ROWS;
use super::sections::Run;
use crate::clean::clean;
use crate::cost::{cpu_ns, switches};
use crate::locks::Map;
use crate::matrix::Pairs;
use crate::published::published;
use crate::queues::{Mark, sections};
use crate::rows::Row;
use crate::units::{maybe_time, per_op, plus_minus, round_time, share, time};

/// Bins of a histogram per power of ten.
const PER_DECADE: f64 = 40.0;
/// Points of a percentile curve per power of ten.
const POINTS_PER_DECADE: u32 = 12;
/// All distributions in a page together; each takes some 3 kB.
const MOST_DISTRIBUTIONS: usize = 300;
/// All figures of matrices in a page together; each takes some 5 bytes.
const MOST_PAIRS: usize = 300_000;

#[derive(Serialize)]
struct Data {
    per_decade: f64,
    runs: Vec<RunData>,
}

#[derive(Serialize)]
struct RunData {
    over_ns: u64,
    rows: Vec<RowData>,
    matrices: Vec<MatrixData>,
    surfaces: Vec<SurfaceData>,
    queues: Vec<QueuesData>,
}

/// Queues that can be compared with each other, best first.
#[derive(Serialize)]
struct QueuesData {
    streams: bool,
    marks: Vec<MarkData>,
}

#[derive(Serialize)]
struct MarkData {
    label: String,
    kind: &'static str,
    figure: f64,
    interval: Option<[f64; 2]>,
    lines: Vec<String>,
}

/// Speed-ups of a lock by threads and hold share or interval.
#[derive(Serialize)]
struct SurfaceData {
    label: String,
    across: &'static str,
    threads: Vec<u32>,
    columns: Vec<String>,
    measured: Vec<Vec<Option<f64>>>,
    predicted: Vec<Vec<Option<f64>>>,
}

#[derive(Serialize)]
struct RowData {
    label: String,
    /// Whether its distribution is drawn at first.
    shown: bool,
    /// By placement.
    sides: Vec<SideData>,
    /// Published one-way times, each with its source.
    published: Vec<(f64, String)>,
}

#[derive(Serialize)]
struct SideData {
    placement: &'static str,
    p50: Option<f64>,
    interval: Option<[f64; 2]>,
    /// Everything that is known, a line each.
    lines: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distribution: Option<Distribution>,
}

#[derive(Serialize)]
struct Distribution {
    /// Number of the first bin: it begins at 10^(from / per_decade) ns.
    from: i32,
    /// Share of all round trips in each bin from there on.
    shares: Vec<f64>,
    /// 1 / (1 - p) and the round trip at p, in nanoseconds.
    curve: Vec<[f64; 2]>,
}

#[derive(Serialize)]
pub(super) struct MatrixData {
    label: String,
    cpus: Vec<u32>,
    /// Node, last-level cache and core of each; null where the machine does not say.
    seats: Vec<Option<(u32, Option<u32>, u32)>>,
    /// Whether `values` is the whole square or what lies above its diagonal, row by row.
    square: bool,
    values: Vec<Option<f64>>,
}

/// The data of all runs, fit to stand in a page.
pub(super) fn json(runs: &[Run<'_>]) -> String {
    let mut distributions = MOST_DISTRIBUTIONS;
    let mut pairs = MOST_PAIRS;
    let data = Data {
        per_decade: PER_DECADE,
        runs: runs.iter().map(|run| run_data(run, &mut distributions, &mut pairs)).collect(),
    };
    match serde_json::to_string(&data) {
        Ok(json) => json_in_page(&json),
        Err(error) => unreachable!("the data is made of structs and numbers: {error}"),
    }
}

fn run_data(run: &Run<'_>, distributions: &mut usize, pairs: &mut usize) -> RunData {
    let shown = first_shown(run.rows());
    let step_ns = run.results.machine.clock.step_ns;
    let rows = run.rows().iter().enumerate().map(|(index, row)| RowData {
        label: row.label.clone(),
        shown: shown.contains(&index),
        sides: Placement::ALL
            .iter()
            .filter_map(|placement| row.record(*placement))
            .map(|record| side(record, step_ns, distributions))
            .collect(),
        published: Placement::ALL
            .iter()
            .filter_map(|placement| row.record(*placement))
            .flat_map(|record| published(&record.cell))
            .map(|figure| (figure.ns, format!("{}\n{}", figure.machine, figure.source)))
            .fold(Vec::new(), |mut all, figure| {
                if !all.contains(&figure) {
                    all.push(figure);
                }
                all
            }),
    });
    RunData {
        over_ns: run.results.plan.over_ns,
        rows: rows.collect(),
        matrices: run
            .matrices
            .iter()
            .filter_map(|matrix| matrix_data(run, matrix, pairs))
            .collect(),
        surfaces: run.surfaces().into_iter().filter_map(|map| surface_data(map, pairs)).collect(),
        queues: queues_data(run),
    }
}

/// The rows of each table of queues, in their order.
fn queues_data(run: &Run<'_>) -> Vec<QueuesData> {
    let mut left = MOST_ROWS;
    let mut all = Vec::new();
    for section in sections(run.records) {
        if left == 0 {
            break;
        }
        let marks = section.marks(left);
        left -= section.rows.len().min(left);
        let marks =
            marks.into_iter().map(|Mark { label, kind, figure, interval, lines }| MarkData {
                label,
                kind,
                figure: short(figure),
                interval: interval.map(|interval| interval.map(short)),
                lines,
            });
        all.push(QueuesData { streams: section.streams, marks: marks.collect() });
    }
    all
}

/// Five rows spread over the ladder, the cheapest between threads among them: more would hide each
/// other.
fn first_shown(rows: &[Row<'_>]) -> Vec<usize> {
    let plain: Vec<usize> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| {
            row.main().is_some_and(|main| main.histogram.is_some() && !main.cell.keep_awake)
        })
        .filter(|(_, row)| row.main().is_some_and(|main| main.cell.cpus.len() > 1))
        .map(|(index, _)| index)
        .collect();
    let most = plain.len().min(5);
    (0..most).map(|nth| plain[nth * (plain.len() - 1) / (most - 1).max(1)]).collect()
}

fn side(record: &Record, step_ns: f64, distributions: &mut usize) -> SideData {
    let distribution =
        record.histogram.as_ref().filter(|histogram| histogram.count() > 0 && *distributions > 0);
    if distribution.is_some() {
        *distributions -= 1;
    }
    SideData {
        placement: record.cell.placement.name(),
        p50: record.one_way_p50().filter(|p50| *p50 > 0.0).map(short),
        interval: record.one_way_p50_interval95().map(|interval| interval.map(short)),
        lines: lines(record),
        distribution: distribution.map(|histogram| {
            let (from, shares) = bins(histogram, step_ns);
            Distribution { from, shares, curve: curve(histogram) }
        }),
    }
}

fn lines(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(p50) = record.one_way_p50() {
        let reach = record
            .one_way_p50_interval95()
            .map(|interval| format!(" ({})", plus_minus(p50, interval)));
        lines.push(format!("one way p50 {}{}", time(p50), reach.unwrap_or_default()));
    }
    let quantiles = &record.quantiles;
    lines.push(format!(
        "round trip p50 {}, p99 {}, p99.9 {}",
        maybe_time(quantiles.p50),
        maybe_time(quantiles.p99),
        maybe_time(quantiles.p999)
    ));
    lines.push(format!("round trip max {}", maybe_time(record.max)));
    if let Some(over) = record.over.share {
        lines.push(format!("over {}: {}", round_time(record.over.limit_ns as f64), share(over)));
    }
    if let (Some(cpu_ns), Some(switches)) = (cpu_ns(&record.cost), switches(&record.cost)) {
        lines.push(format!("per hand-off: CPU {}, {} switches", time(cpu_ns), per_op(switches)));
    }
    if let Some(same) = record.same_cpu_share {
        lines.push(format!("{} began on one CPU", share(same)));
    }
    lines
}

/// A histogram in bins of equal width on a logarithmic axis: the number of the first, and the share
/// in each.
///
/// A stamp is only as fine as the clock's step, so each value is spread evenly over one step; else
/// the steps, and not the mechanism, would shape the picture.
fn bins(histogram: &Histogram, step_ns: f64) -> (i32, Vec<f64>) {
    // From a tenth of a nanosecond up to the longest time that a histogram holds.
    const FIRST: i32 = -(PER_DECADE as i32);
    const LAST: i32 = 11 * PER_DECADE as i32;
    let bin_of = |ns: f64| ((ns.max(1e-3).log10() * PER_DECADE).floor() as i32).clamp(FIRST, LAST);
    let begins = |bin: i32| 10f64.powf(f64::from(bin) / PER_DECADE);
    let mut bins = vec![0.0; (LAST - FIRST + 1) as usize];
    let all = histogram.count().max(1) as f64;
    let step = if step_ns.is_finite() { step_ns.clamp(1e-3, 1e6) } else { 1e-3 };
    for (ps, count) in histogram.buckets() {
        let middle = ps as f64 / 1000.0;
        let (low, high) = ((middle - step / 2.0).max(middle * 0.5), middle + step / 2.0);
        let (from, to) = (bin_of(low), bin_of(high));
        let share = count as f64 / all;
        for bin in from..=to {
            let begin = if bin == from { low } else { begins(bin) };
            let end = if bin == to { high } else { begins(bin + 1) };
            let part =
                if from == to { 1.0 } else { ((end - begin) / (high - low)).clamp(0.0, 1.0) };
            bins[(bin - FIRST) as usize] += share * part;
        }
    }
    let first = bins.iter().position(|share| *share > 0.0).unwrap_or(0);
    let last = bins.iter().rposition(|share| *share > 0.0).unwrap_or(0);
    (FIRST + first as i32, bins[first..=last].iter().map(|share| three_digits(*share)).collect())
}

/// The percentile curve, as far as 20 samples lie beyond.
fn curve(histogram: &Histogram) -> Vec<[f64; 2]> {
    let mut curve = Vec::new();
    for point in 0..=POINTS_PER_DECADE * 9 {
        let beyond = 10f64.powf(-f64::from(point) / f64::from(POINTS_PER_DECADE));
        if !resample::enough(histogram.count(), 1.0 - beyond) {
            break;
        }
        if let Some(ns) = histogram.quantile_ns(1.0 - beyond) {
            curve.push([short(1.0 / beyond), short(ns)]);
        }
    }
    curve
}

/// A map of a lock, as long as the page has room for its figures.
fn surface_data(map: Map, budget: &mut usize) -> Option<SurfaceData> {
    *budget = budget.checked_sub(2 * map.threads.len() * map.columns.len())?;
    let rounded = |grid: Vec<Vec<Option<f64>>>| {
        grid.into_iter()
            .map(|row| row.into_iter().map(|value| value.map(short)).collect())
            .collect()
    };
    Some(SurfaceData {
        label: map.label,
        across: map.across,
        threads: map.threads,
        columns: map.columns,
        measured: rounded(map.measured),
        predicted: rounded(map.predicted),
    })
}

fn matrix_data(run: &Run<'_>, pairs: &Pairs<'_>, budget: &mut usize) -> Option<MatrixData> {
    let cpus = &pairs.cpus;
    let square = cpus.len() <= 200
        && pairs.values.keys().any(|(a, b)| a != b && pairs.values.contains_key(&(*b, *a)));
    let needed = if square {
        cpus.len() * cpus.len()
    } else {
        cpus.len() * cpus.len().saturating_sub(1) / 2
    };
    *budget = budget.checked_sub(needed)?;
    let value = |a: u32, b: u32| pairs.value(a, b).map(three_digits);
    let values = if square {
        cpus.iter()
            .flat_map(|a| cpus.iter().map(move |b| (*a, *b)))
            .map(|(a, b)| value(a, b))
            .collect()
    } else {
        cpus.iter()
            .enumerate()
            .flat_map(|(row, a)| cpus[row + 1..].iter().map(move |b| (*a, *b)))
            .map(|(a, b)| value(a, b))
            .collect()
    };
    let seat = |cpu: &u32| {
        let place = run.results.machine.topology.iter().find(|place| place.cpu == *cpu)?;
        Some((place.node, place.llc, place.core))
    };
    Some(MatrixData {
        label: clean(&pairs.label),
        seats: cpus.iter().map(seat).collect(),
        cpus: cpus.clone(),
        square,
        values,
    })
}

/// Keeps five significant digits.
fn short(value: f64) -> f64 {
    significant(value, 4)
}

fn three_digits(value: f64) -> f64 {
    significant(value, 2)
}

fn significant(value: f64, after_first: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Through text: dividing and multiplying by powers of ten would leave digits behind.
    format!("{value:.*e}", after_first as usize).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_keep_all_round_trips() {
        let mut histogram = Histogram::new();
        for value in [0, 1, 10_000, 50_000, 50_000, 1_000_000_000, u64::MAX] {
            histogram.record_ps(value);
        }
        for step in [0.0, 10.0, 1e9, f64::INFINITY] {
            let (_, shares) = bins(&histogram, step);
            let sum: f64 = shares.iter().sum();
            assert!((sum - 1.0).abs() < 0.02, "{step}: {sum}");
        }
        assert_eq!(bins(&Histogram::new(), 10.0).1, [0.0]);
    }

    #[test]
    fn a_clock_in_steps_leaves_no_gaps_in_the_picture() {
        let mut histogram = Histogram::new();
        for step in 8..40 {
            histogram.record_ps(step * 10_000);
        }
        let (_, shares) = bins(&histogram, 10.0);
        assert!(shares.iter().all(|share| *share > 0.0), "{shares:?}");
    }

    #[test]
    fn a_curve_ends_where_too_few_samples_lie_beyond() {
        let mut histogram = Histogram::new();
        (1..=2000).for_each(|ns| histogram.record_ps(ns * 1000));
        let curve = curve(&histogram);
        assert!(curve.last().is_some_and(|[beyond, _]| *beyond <= 100.0));
        assert!(curve.windows(2).all(|pair| pair[0][1] <= pair[1][1]));
    }
}
