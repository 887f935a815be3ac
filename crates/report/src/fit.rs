//! The table and the finding of a curve through measured throughput.

use threadtoll_record::{Fit, FittedRow};

use crate::label::plural;
use crate::sentences::{self as say, Sentence};
use crate::table::{self, Cell, Emphasis, Label, Section};
use crate::units::{coefficient, count, deviation, digits, share};

/// Mean error above which the curve does not describe the points.
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
        Some(peak) if peak <= fit.measured_up_to => say::peak(peak),
        Some(peak) => say::peak_beyond(peak, fit.measured_up_to),
        None => say::no_peak(plural(fit.trusted_up_to.into(), "thread")),
    }
}
