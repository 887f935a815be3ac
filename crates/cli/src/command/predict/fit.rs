//! Fits a curve to measured throughputs, for `--fit`.

use std::path::Path;

use threadtoll_model::{MAX_THREADS, usl};
use threadtoll_record::{Fit, FittedRow};

use super::durations;
use super::input::{self, excerpt};
use crate::failure::Failure;

const MAX_BYTES: u64 = 1_000_000;
const MAX_POINTS: usize = 10_000;
/// Range of throughputs for which the fit is numerically sound.
const THROUGHPUTS: std::ops::RangeInclusive<f64> = 1e-30..=1e30;
/// Range of numbers of threads that follow from a throughput and a latency. Fewer requests in
/// progress would occupy no thread for more than a thousandth of the time.
const IN_FLIGHT: std::ops::RangeInclusive<f64> = 1e-3..=MAX_THREADS as f64;
/// The fit has three coefficients, so it needs at least as many different numbers of threads.
const MIN_DIFFERENT: usize = 3;

/// Stands for a number of threads that is not known.
const UNKNOWN: &str = "-";

const HINT: &str = "write a number of threads (- if unknown), its throughput and perhaps a latency \
                    per line, such as 8 520.5 or - 520.5 15ms; # starts a comment";

/// A measured throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    /// `None` if not given. There is a latency then.
    threads: Option<u32>,
    throughput: f64,
    latency_ns: Option<f64>,
}

impl Point {
    /// Mean number of requests in progress, by Little's law.
    fn in_flight(&self) -> Option<f64> {
        self.latency_ns.map(|ns| self.throughput * ns / 1e9)
    }

    fn row(&self, curve: &usl::Fit) -> FittedRow {
        let row = FittedRow {
            threads: self.threads,
            measured: Some(self.throughput),
            fitted: 0.0,
            latency_ns: self.latency_ns,
            in_flight: self.in_flight(),
        };
        FittedRow { fitted: curve.throughput(row.number()), ..row }
    }

    fn number(&self) -> f64 {
        self.threads.map(f64::from).or(self.in_flight()).unwrap_or(f64::NAN)
    }
}

/// Fits the universal scalability law to the points in a file (`-` is standard input). The result
/// has rows for the points and for the additional numbers `threads`.
pub(super) fn fit(path: &Path, threads: &[u32]) -> Result<Fit, Failure> {
    let (name, bytes) = if path == Path::new("-") {
        let name = "standard input".to_string();
        let bytes = input::read_all(std::io::stdin().lock(), &name, MAX_BYTES, HINT)?;
        (name, bytes)
    } else {
        (path.display().to_string(), input::read(path, MAX_BYTES, HINT)?)
    };
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{name} is not text")).hint(HINT))?;
    let points = points(&name, &text)?;
    let curve = usl::fit(
        &points.iter().map(|point| (point.number(), point.throughput)).collect::<Vec<_>>(),
    )?;
    if let Some(beyond) = threads.iter().find(|threads| **threads > curve.trusted_up_to) {
        return Err(Failure::usage(format!(
            "--threads {beyond}: the curve ends at twice the largest number of threads \
             measured, here {}",
            curve.trusted_up_to
        ))
        .hint("measure with more threads, or use fewer in --threads"));
    }
    let unmeasured =
        threads.iter().filter(|threads| points.iter().all(|it| it.threads != Some(**threads)));
    let mut rows: Vec<FittedRow> = points
        .iter()
        .map(|point| point.row(&curve))
        .chain(unmeasured.map(|&threads| FittedRow {
            threads: Some(threads),
            measured: None,
            fitted: curve.throughput(threads),
            latency_ns: None,
            in_flight: None,
        }))
        .collect();
    rows.sort_by(|one, other| one.number().total_cmp(&other.number()));
    let most = points.iter().map(Point::number).fold(1.0, f64::max);
    Ok(Fit {
        gamma: curve.gamma,
        alpha: curve.alpha,
        beta: curve.beta,
        relative_rms: curve.relative_rms,
        peak_threads: curve.peak_threads,
        curve_peak_threads: curve.highest(),
        measured_up_to: most.round() as u32,
        trusted_up_to: curve.trusted_up_to,
        rows,
    })
}

fn points(name: &str, text: &str) -> Result<Vec<Point>, Failure> {
    let mut points = Vec::new();
    for (number, line) in input::lines(text) {
        points.push(point(line).map_err(|why| {
            Failure::usage(format!("{name}, line {number}: “{}”: {why}", excerpt(line))).hint(HINT)
        })?);
        if points.len() > MAX_POINTS {
            return Err(Failure::usage(format!("{name} holds more than {MAX_POINTS} points"))
                .hint("give one line per number of threads, with the median throughput"));
        }
    }
    let mut different: Vec<f64> = points.iter().map(Point::number).collect();
    different.sort_unstable_by(f64::total_cmp);
    different.dedup();
    if different.len() < MIN_DIFFERENT {
        let found = match different.len() {
            0 => format!("{name} holds no points"),
            1 => format!("{name} has lines for only one number of threads"),
            count => format!("{name} has lines for only {count} numbers of threads"),
        };
        return Err(Failure::usage(format!("{found}; a curve needs at least {MIN_DIFFERENT}"))
            .hint("measure with several numbers of threads, such as 1, 2, 4 and 8"));
    }
    Ok(points)
}

fn point(line: &str) -> Result<Point, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (threads, throughput, latency) = match words[..] {
        [threads, throughput] => (threads, throughput, None),
        [threads, throughput, latency] => (threads, throughput, Some(latency)),
        _ => return Err("a line must hold two numbers, and perhaps a latency".into()),
    };
    let threads = match threads {
        UNKNOWN => None,
        _ => Some(
            threads.parse().ok().filter(|threads| (1..=MAX_THREADS).contains(threads)).ok_or_else(
                || format!("the number of threads must be from 1 to {MAX_THREADS}, or {UNKNOWN}"),
            )?,
        ),
    };
    let throughput = throughput.parse().ok().filter(|value| THROUGHPUTS.contains(value));
    let throughput = throughput.ok_or("the throughput must be a positive number")?;
    let latency_ns = match latency.map(durations::zero_or_longer).transpose() {
        Ok(Some(0.0)) => return Err("the latency must be longer than zero".into()),
        Ok(latency_ns) => latency_ns,
        Err(why) => return Err(format!("the latency is wrong: {why}")),
    };
    let point = Point { threads, throughput, latency_ns };
    match (threads, point.in_flight()) {
        (None, None) => Err("without a latency, the number of threads must be known".into()),
        (None, Some(number)) if !IN_FLIGHT.contains(&number) => Err(format!(
            "throughput per second × latency is {number:e}, which cannot be a number of threads"
        )),
        _ => Ok(point),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_lines_of_two_numbers_and_a_latency() {
        let text = "# threads  per s\n1 100\r\n\n  2\t1.9e2 # noisy\n4 340.5 12ms\n- 400 10ms\n";
        let point = |threads, throughput, latency_ns| Point { threads, throughput, latency_ns };
        let points = points("it", text).unwrap();
        assert_eq!(
            points,
            [
                point(Some(1), 100.0, None),
                point(Some(2), 190.0, None),
                point(Some(4), 340.5, Some(12e6)),
                point(None, 400.0, Some(10e6)),
            ]
        );
        let numbers: Vec<f64> = points.iter().map(Point::number).collect();
        assert_eq!(numbers, [1.0, 2.0, 4.0, 4.0]);
        assert_eq!(points[2].in_flight(), Some(4.086));
    }

    #[test]
    fn lines_that_are_no_points_are_refused() {
        for line in [
            "1",
            "1 2 3",
            "1 2 3ms 4",
            "1 2 0ms",
            "1 2 -3ms",
            "- 2",
            "- 1e20 1s",
            "- 1 1us",
            "? 2 3ms",
            "0 1",
            "-1 5",
            "1.5 2",
            "one 2",
            "1 two",
            "1 -2",
            "1 0",
            "1 nan",
            "1 inf",
            "1 1e31",
            "1 1e-31",
            "10000001 1",
            "99999999999 1",
            "1,2",
        ] {
            assert!(point(line).is_err(), "{line}");
        }
    }

    #[test]
    fn extreme_points_have_a_finite_curve() {
        for values in [[1e-30, 1e-30, 1e30], [1e30, 1e30, 1e-30], [1e-30, 1e30, 1e-30], [1e30; 3]] {
            for threads in
                [[1, 2, 3], [1, 2, MAX_THREADS], [MAX_THREADS - 2, MAX_THREADS - 1, MAX_THREADS]]
            {
                let points: Vec<(u32, f64)> = threads.into_iter().zip(values).collect();
                let curve = usl::fit(&points).unwrap();
                let figures = [curve.gamma, curve.alpha, curve.beta, curve.relative_rms];
                assert!(figures.iter().all(|figure| figure.is_finite()), "{points:?}: {curve:?}");
                assert!(threads.iter().all(|threads| curve.throughput(*threads).is_finite()));
                assert!(curve.highest().is_none_or(|best| best <= curve.trusted_up_to));
            }
        }
    }
}
