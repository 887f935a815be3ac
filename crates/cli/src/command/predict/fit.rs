//! Fits a curve to measured throughputs, for `--fit`.

use std::path::Path;

use threadtoll_model::{MAX_THREADS, usl};
use threadtoll_record::{Fit, FittedRow};

use super::input::{self, excerpt};
use crate::failure::Failure;

const MAX_BYTES: u64 = 1_000_000;
const MAX_POINTS: usize = 10_000;
/// Range of throughputs for which the fit is numerically sound.
const THROUGHPUTS: std::ops::RangeInclusive<f64> = 1e-30..=1e30;
/// The fit has three coefficients, so it needs at least as many different numbers of threads.
const MIN_DIFFERENT: usize = 3;

const HINT: &str =
    "write a number of threads and its throughput per line, such as 8 520.5; # starts a comment";

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
    let curve = usl::fit(&points)?;
    if let Some(beyond) = threads.iter().find(|threads| **threads > curve.trusted_up_to) {
        return Err(Failure::usage(format!(
            "--threads {beyond}: the curve ends at twice the largest number of threads \
             measured, here {}",
            curve.trusted_up_to
        ))
        .hint("measure with more threads, or use fewer in --threads"));
    }
    let mut rows: Vec<FittedRow> = points
        .iter()
        .map(|&(threads, throughput)| row(&curve, threads, Some(throughput)))
        .chain(
            threads
                .iter()
                .filter(|threads| points.iter().all(|(measured, _)| measured != *threads))
                .map(|&threads| row(&curve, threads, None)),
        )
        .collect();
    rows.sort_by_key(|row| row.threads);
    Ok(Fit {
        gamma: curve.gamma,
        alpha: curve.alpha,
        beta: curve.beta,
        relative_rms: curve.relative_rms,
        peak_threads: curve.best_threads(),
        measured_up_to: points.iter().map(|(threads, _)| *threads).max().unwrap_or(1),
        trusted_up_to: curve.trusted_up_to,
        rows,
    })
}

fn row(curve: &usl::Fit, threads: u32, measured: Option<f64>) -> FittedRow {
    FittedRow { threads, measured, fitted: curve.throughput(threads) }
}

fn points(name: &str, text: &str) -> Result<Vec<(u32, f64)>, Failure> {
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
    let mut different: Vec<u32> = points.iter().map(|(threads, _)| *threads).collect();
    different.sort_unstable();
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

fn point(line: &str) -> Result<(u32, f64), String> {
    let mut words = line.split_whitespace();
    let (Some(threads), Some(throughput), None) = (words.next(), words.next(), words.next()) else {
        return Err("a line must hold two numbers".into());
    };
    let threads = threads.parse().ok().filter(|threads| (1..=MAX_THREADS).contains(threads));
    let threads =
        threads.ok_or_else(|| format!("the number of threads must be from 1 to {MAX_THREADS}"))?;
    let throughput = throughput.parse().ok().filter(|value| THROUGHPUTS.contains(value));
    let throughput = throughput.ok_or("the throughput must be a positive number")?;
    Ok((threads, throughput))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_lines_of_two_numbers() {
        let text = "# threads  per s\n1 100\r\n\n  2\t1.9e2 # noisy\n4 340.5\n4 339\n";
        let points = points("it", text).unwrap();
        assert_eq!(points, [(1, 100.0), (2, 190.0), (4, 340.5), (4, 339.0)]);
    }

    #[test]
    fn lines_that_are_no_points_are_refused() {
        for line in [
            "1",
            "1 2 3",
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
                assert!(curve.best_threads().is_none_or(|best| best <= curve.trusted_up_to));
            }
        }
    }
}
