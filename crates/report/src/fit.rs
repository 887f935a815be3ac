//! The table and the finding of a curve through measured throughput.

use threadtoll_record::{Fit, FittedRow};

use crate::label::plural;
use crate::table::{self, Cell, Emphasis, Label, Section};
use crate::units::{coefficient, count, deviation, digits, share};

/// Mean error from which on the curve does not describe the points.
const POOR: f64 = 0.1;

/// Measured and fitted throughput by number of threads.
pub(crate) fn threads(fit: &Fit, rows: &[FittedRow]) -> Section {
    type Column<'f> = table::Column<'f, FittedRow>;
    let columns = vec![
        Column::new("", "measured", 0, "", |row| Cell::figure(row.measured, throughput)),
        Column::new("", "fitted", 0, "", |row| {
            let peak = fit.peak_threads == Some(row.threads);
            let emphasis = if peak { Emphasis::Best } else { Emphasis::Main };
            Cell::figure(Some(row.fitted), throughput).emphasis(emphasis)
        }),
        Column::new("", "off by", 1, "", |row| match row.measured {
            Some(measured) => Cell::figure(Some(row.fitted / measured - 1.0), deviation),
            None => Cell::empty(),
        })
        .emphasis(Emphasis::Accent),
    ];
    Section::new("", "threads", columns, rows, |row| Label::new(count(row.threads.into())))
}

/// A throughput, in whatever unit it was measured.
pub(crate) fn throughput(value: f64) -> String {
    match value {
        small if small < 1.0 => coefficient(small),
        large if large >= 1e6 => format!("{large:.3e}"),
        _ => digits(value),
    }
}

/// The meaning of the curve, in a plain sentence.
pub(crate) fn finding(fit: &Fit) -> String {
    match fit.peak_threads {
        _ if fit.relative_rms >= POOR => format!(
            "The curve misses the measured throughput by {} on average: it does not describe these threads.",
            share(fit.relative_rms)
        ),
        Some(1) => "Throughput is highest with one thread; more threads make it slower.".into(),
        Some(peak) if peak <= fit.measured_up_to => {
            format!("Throughput peaks at about {peak} threads; more threads make it slower.")
        }
        Some(peak) => format!(
            "The curve peaks at about {peak} threads, but no more than {} were measured: measure there before you rely on it.",
            fit.measured_up_to
        ),
        None => format!(
            "The curve does not clearly fall up to {}, twice the most that were measured; it says nothing beyond.",
            plural(fit.trusted_up_to.into(), "thread")
        ),
    }
}
