//! Distributions of round trips, as strips and by percentile.

use maud::{Markup, html};
use threadtoll_record::{Histogram, Placement, Record};

use super::chart::{Axis, Key, Line, Lines, Point, Row as ChartRow, Shape, Strip, Strips, colour};
use super::charts::class_of;
use crate::label::plural;
use crate::ladder::Row;
use crate::units::{round_time, share, time};

const BINS_PER_DECADE: f64 = 40.0;
const POINTS_PER_DECADE: u32 = 5;
/// Maximum number of distributions on a page; each takes about 1 kB.
const MAX_DISTRIBUTIONS: usize = 48;
/// Maximum number of percentile curves in a chart: more would hide each other.
const FIRST_SHOWN: usize = 5;
/// A bin with a smaller share of the distribution may be beyond the end of the axis.
const INVISIBLE: f64 = 2e-4;

struct Distribution<'a> {
    label: &'a str,
    record: &'a Record,
    histogram: &'a Histogram,
}

fn distributions<'a>(
    rows: &'a [Row<'_>],
    runs: usize,
) -> (Vec<(Placement, Vec<Distribution<'a>>)>, usize) {
    let mut left = MAX_DISTRIBUTIONS / runs.max(1);
    let (mut placements, mut left_out) = (Vec::new(), 0);
    for placement in Placement::ALL {
        let known = rows.iter().filter_map(|row| {
            let record = row.record(placement)?;
            let histogram = record.histogram.as_ref().filter(|it| it.count() > 0)?;
            Some(Distribution { label: &row.label, record, histogram })
        });
        let mut known: Vec<Distribution<'_>> = known.collect();
        left_out += known.len().saturating_sub(left);
        known.truncate(left);
        left -= known.len();
        if !known.is_empty() {
            placements.push((placement, known));
        }
    }
    (placements, left_out)
}

pub(super) fn section(rows: &[Row<'_>], index: usize, runs: usize, step_ns: f64) -> Markup {
    let (placements, left_out) = distributions(rows, runs);
    html! {
        @if !placements.is_empty() {
            h2 id={ "distributions-" (index) } { "Distributions of round trips" } "\n"
            p { "Each strip is the distribution of a row's round trips, timed one by one, scaled to its most frequent time. Marks: the maximum, and p50, p90, p99 and so on, up to the last one with at least 20 samples beyond it." } "\n"
            div class="distributions" { "\n"
                @if placements.len() > 1 {
                    div class="controls" role="radiogroup" aria-label="placement" {
                        @for (nth, (placement, _)) in placements.iter().enumerate() {
                            label class="choice" {
                                input type="radio" name={ "placement-" (index) } class={ "pick-" (placement.name()) } checked[nth == 0];
                                " " (placement.name())
                            } "\n"
                        }
                    } "\n"
                }
                @for (placement, all) in &placements {
                    div class={ "of of-" (placement.name()) } { "\n"
                        @if placements.len() > 1 { h3 { (placement.name()) } "\n" }
                        (strips(*placement, all, step_ns))
                        p { "Some of these distributions by percentile: the slowest 10%, 1% and 0.1%." } "\n"
                        (percentiles(all))
                    } "\n"
                }
            } "\n"
            @if left_out > 0 {
                p class="note" { (left_out) " more distributions are in the file." } "\n"
            }
        }
    }
}

fn strips(placement: Placement, all: &[Distribution<'_>], step_ns: f64) -> Markup {
    let rows: Vec<ChartRow> = all
        .iter()
        .map(|it| ChartRow {
            label: it.label.to_string(),
            figure: it.histogram.quantile_ns(0.5).map(time).unwrap_or_default(),
        })
        .collect();
    let strips: Vec<Strip> = all.iter().map(|it| strip(placement, it, step_ns)).collect();
    let visible = strips.iter().flat_map(|strip| {
        let bins = strip.bins.iter().filter(|bin| bin[2] >= INVISIBLE);
        bins.flat_map(|[begin, end, _]| [*begin, *end]).chain(strip.marks.iter().copied())
    });
    let Some(axis) = Axis::log(visible, 1.25, round_time) else { return html! {} };
    let label = "Distributions of round trips on a logarithmic axis";
    let class = class_of(placement);
    Strips { label, axis, class, rows: &rows, strips: &strips }.draw()
}

/// The bins, the maximum, and the percentiles that have enough samples beyond them.
fn strip(placement: Placement, it: &Distribution<'_>, step_ns: f64) -> Strip {
    let bins = bins(it.histogram, step_ns);
    let peak = bins.iter().copied().max_by(|a, b| a[2].total_cmp(&b[2]));
    let max = it.record.max.map(f64::from).filter(|max| max.is_finite() && *max > 0.0);
    let mut lines = vec![
        format!("{}, {}", it.label, placement.name()),
        plural(it.histogram.count(), "round trip"),
    ];
    let percentiles = named_percentiles(it.histogram);
    lines.extend(percentiles.map(|(beyond, ns)| format!("{} {}", percentile(beyond), time(ns))));
    lines.extend(max.map(|max| format!("maximum {}", time(max))));
    lines.extend(peak.map(|[begin, end, part]| {
        format!("peak: {} between {} and {}", share(part), time(begin), time(end))
    }));
    let mut marks: Vec<f64> = named_percentiles(it.histogram).map(|(_, ns)| ns).collect();
    marks.extend(max);
    marks.sort_by(f64::total_cmp);
    Strip { bins, marks, title: lines.join("\n") }
}

/// The median, and the values that 1 in 10, 1 in 100, 1 in 1000 … samples exceed. Each is a pair:
/// the inverse of that share, and the value in nanoseconds.
fn named_percentiles(histogram: &Histogram) -> impl Iterator<Item = (f64, f64)> {
    let powers = (1..=9).map(|power| 10_f64.powi(power));
    let shown = |beyond: &f64| histogram.shows(1.0 - 1.0 / beyond);
    [2.0].into_iter().chain(powers).take_while(shown).filter_map(|beyond| {
        let ns = histogram.quantile_ns(1.0 - 1.0 / beyond)?;
        (ns > 0.0).then_some((beyond, ns))
    })
}

/// Name of a percentile: `p50` for 2, `p99.9` for 1000. `beyond` is the inverse of the share of
/// samples beyond the percentile.
fn percentile(beyond: f64) -> String {
    let nines = beyond.log10().round().max(2.0) as usize - 2;
    if beyond < 3.0 { "p50".into() } else { format!("p{:.nines$}", 100.0 - 100.0 / beyond) }
}

fn percentiles(all: &[Distribution<'_>]) -> Markup {
    let shown: Vec<&Distribution<'_>> = first_shown(all).iter().map(|nth| &all[*nth]).collect();
    let line = |(nth, it): (usize, &&Distribution<'_>)| Line {
        class: colour(nth),
        title: it.label.to_string(),
        points: curve(it),
        band: false,
    };
    let key = |(nth, it): (usize, &&Distribution<'_>)| Key::new(it.label, Shape::Line, colour(nth));
    let lines: Vec<Line> = shown.iter().enumerate().map(line).collect();
    let keys: Vec<Key> = shown.iter().enumerate().map(key).collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let rarest = points().map(|point| point.x).fold(100.0, f64::max);
    let ticks = [1.0, 2.0].into_iter().chain((1..=9).map(|power| 10_f64.powi(power)));
    let ticks = ticks
        .filter(|beyond| *beyond <= rarest * 1.1)
        .map(|beyond| (beyond, if beyond == 1.0 { "p0".into() } else { percentile(beyond) }));
    let x = Axis::marked(1.0, rarest * 1.15, ticks.collect());
    let Some(y) = Axis::log(points().map(|point| point.y), 1.4, round_time) else {
        return html! {};
    };
    Lines {
        label: "Round trips by percentile on logarithmic axes",
        x: x.titled("percentile"),
        y: y.titled("round trip"),
        height: 340.0,
        keys: &keys,
        lines: &lines,
        now: None,
    }
    .draw()
}

/// Indices of at most [`FIRST_SHOWN`] rows, evenly spread. Rows between two CPUs that do not keep
/// CPUs awake are preferred; without such rows, any rows are chosen.
fn first_shown(all: &[Distribution<'_>]) -> Vec<usize> {
    let plain = |it: &Distribution<'_>| !it.record.cell.keep_awake && it.record.cell.cpus.len() > 1;
    let mut rows: Vec<usize> = (0..all.len()).filter(|nth| plain(&all[*nth])).collect();
    if rows.is_empty() {
        rows = (0..all.len()).collect();
    }
    let most = rows.len().min(FIRST_SHOWN);
    (0..most).map(|nth| rows[nth * (rows.len() - 1) / (most - 1).max(1)]).collect()
}

/// The percentile curve: x is the inverse of the share of samples beyond the time y. The curve ends
/// where fewer than 20 samples are beyond. Only named percentiles have titles.
fn curve(it: &Distribution<'_>) -> Vec<Point> {
    let mut curve = Vec::new();
    for point in 0..=POINTS_PER_DECADE * 9 {
        let beyond = 10f64.powf(f64::from(point) / f64::from(POINTS_PER_DECADE));
        if !it.histogram.shows(1.0 - 1.0 / beyond) {
            break;
        }
        if let Some(ns) = it.histogram.quantile_ns(1.0 - 1.0 / beyond).filter(|ns| *ns > 0.0) {
            curve.push(Point { x: beyond, y: ns, interval: None, title: String::new() });
        }
    }
    for (beyond, ns) in named_percentiles(it.histogram) {
        let title = format!("{}, {}: {}", it.label, percentile(beyond), time(ns));
        curve.retain(|point| (point.x / beyond - 1.0).abs() > 1e-9);
        curve.push(Point { x: beyond, y: ns, interval: None, title });
    }
    curve.sort_by(|a, b| a.x.total_cmp(&b.x));
    curve
}

/// A histogram as beginning, end and share of bins that have equal widths on a logarithmic axis.
///
/// Each value is spread evenly over one step of the clock. Otherwise the steps of the clock, and
/// not the mechanism, would shape the picture.
fn bins(histogram: &Histogram, step_ns: f64) -> Vec<[f64; 3]> {
    // From 0.1 ns to the longest time that a histogram holds.
    const FIRST: i32 = -(BINS_PER_DECADE as i32);
    const LAST: i32 = 11 * BINS_PER_DECADE as i32;
    let bin_of =
        |ns: f64| ((ns.max(1e-3).log10() * BINS_PER_DECADE).floor() as i32).clamp(FIRST, LAST);
    let begins = |bin: i32| 10f64.powf(f64::from(bin) / BINS_PER_DECADE);
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
    (first..=last)
        .map(|nth| [begins(FIRST + nth as i32), begins(FIRST + nth as i32 + 1), bins[nth]])
        .collect()
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
            let sum: f64 = bins(&histogram, step).iter().map(|bin| bin[2]).sum();
            assert!((sum - 1.0).abs() < 0.02, "{step}: {sum}");
        }
        assert_eq!(bins(&Histogram::new(), 10.0)[0][2], 0.0);
    }

    #[test]
    fn a_clock_in_steps_leaves_no_gaps_in_the_picture() {
        let mut histogram = Histogram::new();
        for step in 8..40 {
            histogram.record_ps(step * 10_000);
        }
        let bins = bins(&histogram, 10.0);
        assert!(bins.iter().all(|bin| bin[2] > 0.0), "{bins:?}");
    }

    #[test]
    fn percentiles_end_where_too_few_samples_lie_beyond() {
        let mut histogram = Histogram::new();
        (1..=2000).for_each(|ns| histogram.record_ps(ns * 1000));
        let named: Vec<f64> = named_percentiles(&histogram).map(|(beyond, _)| beyond).collect();
        assert_eq!(named, [2.0, 10.0, 100.0]);
        assert_eq!(named_percentiles(&Histogram::new()).count(), 0);
    }

    #[test]
    fn percentiles_are_named_by_their_nines() {
        let names = [2.0, 10.0, 100.0, 1000.0, 1e4, 1e6].map(percentile);
        assert_eq!(names, ["p50", "p90", "p99", "p99.9", "p99.99", "p99.9999"]);
    }
}
