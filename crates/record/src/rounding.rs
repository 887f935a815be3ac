use crate::Ns;

/// Rounds to picoseconds, the resolution of histograms.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

pub(crate) fn rounded_ns(ns: f64) -> Ns {
    round(ns).into()
}

/// Rounds to four significant digits, because costs per operation span nine orders of magnitude.
pub(crate) fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}
