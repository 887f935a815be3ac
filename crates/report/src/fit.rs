use threadtoll_record::{Fit, FittedRow};

use crate::label::plural;
use crate::sentences::{self as say, Sentence};
use crate::table::{self, Cell, Emphasis, Label, Section};
use crate::units::{coefficient, count, deviation, digits, share};

/// A curve with at least this relative error (root mean square) does not describe the points.
const POOR: f64 = 0.1;

pub(crate) fn threads(fit: &Fit, rows: &[FittedRow]) -> Section {
    type Column<'f> = table::Column<'f, FittedRow>;
    let columns = vec![
        Column::new("", "measured", 0, |row| Cell::figure(row.measured, throughput)),
        Column::new("", "fitted", 0, |row| {
            let peak = fit.peak_threads == Some(row.threads);
            let emphasis = if peak { Emphasis::Best } else { Emphasis::Main };
            Cell::figure(Some(row.fitted), throughput).emphasis(emphasis)
        }),
        Column::new("", "off by", 1, |row| match row.measured {
            Some(measured) => Cell::figure(Some(row.fitted / measured - 1.0), deviation),
            None => Cell::empty(),
        })
        .emphasis(Emphasis::Accent),
    ];
    Section::new("", "threads", columns, rows, |row| Label::new(count(row.threads.into())))
}

pub(crate) fn throughput(value: f64) -> String {
    match value {
        small if small < 1.0 => coefficient(small),
        large if large >= 1e6 => format!("{large:.3e}"),
        _ => digits(value),
    }
}

/// Throughput counts as falling if its last value is below its highest value by more than this
/// share.
const FALL: f64 = 0.01;

fn falls(fit: &Fit) -> bool {
    let measured = || fit.rows.iter().filter_map(|row| row.measured.map(|of| (row.threads, of)));
    let last = measured().max_by_key(|(threads, _)| *threads);
    let most = measured().map(|(_, throughput)| throughput).reduce(f64::max);
    last.zip(most).is_some_and(|((_, last), most)| last < (1.0 - FALL) * most)
}

pub(crate) fn finding(fit: &Fit) -> Sentence {
    match fit.peak_threads {
        _ if fit.relative_rms >= POOR => say::poor_fit(share(fit.relative_rms)),
        Some(peak) if peak <= fit.measured_up_to && !falls(fit) => {
            say::peak_of_the_curve(plural(peak.into(), "thread"))
        }
        Some(1) => say::peak_at_one(),
        Some(peak) if peak <= fit.measured_up_to => say::peak(peak),
        Some(peak) => say::peak_beyond(peak, fit.measured_up_to),
        None => say::no_peak(plural(fit.trusted_up_to.into(), "thread")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(measured: [f64; 3]) -> Fit {
        let rows = [1, 8, 32].into_iter().zip(measured);
        Fit {
            gamma: 1000.0,
            alpha: 0.05,
            beta: 0.002,
            relative_rms: 0.01,
            peak_threads: Some(22),
            measured_up_to: 32,
            trusted_up_to: 64,
            rows: rows
                .map(|(threads, measured)| FittedRow {
                    threads,
                    measured: Some(measured),
                    fitted: measured,
                })
                .collect(),
        }
    }

    #[test]
    fn a_peak_needs_a_point_that_is_lower() {
        let told = |measured| finding(&fit(measured)).to_string();
        assert!(told([1000.0, 5000.0, 4000.0]).starts_with("Throughput peaks at about 22"));
        for level in [[1000.0, 5000.0, 6000.0], [1000.0, 5000.0, 4990.0]] {
            assert!(told(level).starts_with("The fitted curve peaks at about 22 threads, but no"));
        }
    }
}
