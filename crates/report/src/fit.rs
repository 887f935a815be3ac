use std::collections::BTreeMap;

use threadtoll_record::{Fit, FittedRow};

use crate::label::plural;
use crate::sentences::{self as say, Sentence};
use crate::table::{self, Cell, Emphasis, Label, Section};
use crate::units::{coefficient, count, deviation, digits, share, time};

/// A curve with at least this relative error (root mean square) does not describe the points.
const POOR: f64 = 0.1;

/// More threads count as a gain if they raise throughput by more than this share.
const GAIN: f64 = 0.01;

pub(crate) fn threads(fit: &Fit, rows: &[FittedRow]) -> Section {
    type Column<'f> = table::Column<'f, FittedRow>;
    let mut columns = vec![
        Column::new("", "measured", 0, |row| Cell::figure(row.measured, throughput)),
        Column::new("", "fitted", 0, |row| {
            let peak = fit.peak_threads.is_some() && fit.peak_threads == row.threads;
            let emphasis = if peak { Emphasis::Best } else { Emphasis::Main };
            Cell::figure(Some(row.fitted), throughput).emphasis(emphasis)
        }),
        Column::new("", "off by", 1, |row| match row.measured {
            Some(measured) => Cell::figure(Some(row.fitted / measured - 1.0), deviation),
            None => Cell::empty(),
        })
        .emphasis(Emphasis::Accent),
    ];
    if rows.iter().any(|row| row.latency_ns.is_some()) {
        columns.extend([
            Column::new("", "latency", 2, |row| match row.latency_ns {
                Some(ns) => Cell::figure(Some(ns), time),
                None => Cell::empty(),
            }),
            Column::new("", "in flight", 3, |row| match row.in_flight {
                Some(number) => Cell::figure(Some(number), digits),
                None => Cell::empty(),
            }),
        ]);
    }
    Section::new("", "threads", columns, rows, |row| Label::new(number(row)))
}

/// Number of threads; `~` marks one that follows from throughput and latency.
fn number(row: &FittedRow) -> String {
    match row.threads {
        Some(threads) => count(threads.into()),
        None => format!("~{}", digits(row.number())),
    }
}

pub(crate) fn throughput(value: f64) -> String {
    match value {
        small if small < 1.0 => coefficient(small),
        large if large >= 1e6 => format!("{large:.3e}"),
        _ => digits(value),
    }
}

pub(crate) fn finding(fit: &Fit) -> Sentence {
    match fit.peak_threads {
        _ if fit.relative_rms >= POOR => say::poor_fit(share(fit.relative_rms)),
        Some(1) => say::peak_at_one(),
        Some(peak) => say::peak(peak),
        None => without_peak(fit),
    }
}

/// Explains how numbers of threads that were not given were obtained.
pub(crate) fn of_numbers(fit: &Fit) -> Option<Sentence> {
    fit.rows.iter().any(|row| row.threads.is_none()).then(say::threads_by_littles_law)
}

/// The number of threads beyond which no gain was measured, or the curve's promise if throughput
/// still rises at the end.
fn without_peak(fit: &Fit) -> Sentence {
    let points = points(fit);
    let most = points.iter().map(|(_, throughput)| *throughput).fold(0.0, f64::max);
    let enough = points.iter().position(|(_, throughput)| *throughput * (1.0 + GAIN) >= most);
    let [next, after] = next(&points).map(|threads| count(threads.into()));
    let at = |place: usize| points.get(place).map_or(1, |(threads, _)| *threads);
    match (enough, fit.curve_peak_threads) {
        (Some(enough), _) if enough + 1 < points.len() => {
            say::no_gain_beyond(plural(at(enough).into(), "thread"), next, after)
        }
        (_, Some(peak)) if peak > fit.measured_up_to => say::peak_beyond(peak, fit.measured_up_to),
        (_, Some(_)) => say::still_rises(plural(fit.measured_up_to.into(), "thread"), next, after),
        (_, None) => say::no_peak(plural(fit.trusted_up_to.into(), "thread")),
    }
}

/// Mean measured throughput by number of threads, rounded to a whole number, in ascending order.
fn points(fit: &Fit) -> Vec<(u32, f64)> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for row in &fit.rows {
        let Some(measured) = row.measured else { continue };
        let sum = sums.entry((row.number().round() as u32).max(1)).or_default();
        *sum = (sum.0 + measured, sum.1 + 1.0);
    }
    sums.into_iter().map(|(threads, (sum, rows))| (threads, sum / rows)).collect()
}

/// The next two numbers of threads to measure, with the step between the last two, but at least a
/// quarter and at most half of the last one.
fn next(points: &[(u32, f64)]) -> [u32; 2] {
    let last = points.last().map_or(1, |(threads, _)| *threads);
    let before = points.iter().rev().nth(1).map_or(0, |(threads, _)| *threads);
    let step = (last - before).min(last / 2).max(last.div_ceil(4));
    [1, 2].map(|steps| last.saturating_add(steps * step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(points: &[(u32, f64)], peaks: [Option<u32>; 2]) -> Fit {
        let rows = points.iter().map(|&(threads, measured)| FittedRow {
            threads: Some(threads),
            measured: Some(measured),
            fitted: measured,
            latency_ns: None,
            in_flight: None,
        });
        let measured_up_to = points.last().unwrap().0;
        Fit {
            gamma: 1000.0,
            alpha: 0.05,
            beta: 0.002,
            relative_rms: 0.01,
            peak_threads: peaks[0],
            curve_peak_threads: peaks[1],
            measured_up_to,
            trusted_up_to: 2 * measured_up_to,
            rows: rows.collect(),
        }
    }

    fn told(points: &[(u32, f64)], peaks: [Option<u32>; 2]) -> String {
        finding(&fit(points, peaks)).to_string()
    }

    #[test]
    fn without_a_peak_the_next_numbers_to_measure_are_named() {
        let level = [(1, 100.0), (2, 190.0), (4, 350.0), (6, 360.0), (8, 355.0)];
        let said = told(&level, [None, Some(7)]);
        assert!(said.starts_with("No gain was seen beyond 6 threads: measure 10 and 12"), "{said}");
        // A gain of less than 1% is none.
        let said = told(&[(1, 100.0), (8, 500.0), (16, 504.0)], [None, Some(30)]);
        assert!(said.starts_with("No gain was seen beyond 8 threads: measure 24 and 32"), "{said}");
        let said = told(&[(1, 100.0), (2, 100.0), (3, 99.0)], [None, Some(1)]);
        assert!(said.starts_with("No gain was seen beyond 1 thread: measure 4 and 5"), "{said}");
    }

    #[test]
    fn throughput_that_rises_to_the_end_leaves_the_peak_to_the_curve() {
        let rising = [(1, 100.0), (2, 190.0), (8, 500.0)];
        assert!(told(&rising, [None, Some(12)]).starts_with("The curve peaks at about 12 threads"));
        assert!(told(&rising, [None, Some(7)]).starts_with("Throughput still rises at 8 threads"));
        assert!(told(&rising, [None, None]).starts_with("The curve does not clearly fall"));
        let falling = [(1, 100.0), (2, 80.0), (8, 50.0)];
        assert!(told(&falling, [Some(1); 2]).starts_with("Throughput is highest with one thread"));
    }
}
