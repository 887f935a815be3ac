//! Ratios of paired figures, and what their intervals say.

use std::collections::BTreeMap;

use crate::{Verdict, resample};

/// Largest ratio that "no worse" allows.
pub const MARGIN: f64 = 1.05;
/// Number of pairs that a verdict needs.
pub const PAIRS: usize = 21;

/// The ratio of two series that were measured side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Median over the pairs.
    pub ratio: f64,
    /// 95% interval of that median, from resampling pairs.
    pub interval95: [f64; 2],
    /// Number of pairs.
    pub pairs: usize,
}

/// The ratio of `own` to `base`, paired by key (the round in which both were measured). `None` with
/// fewer than two pairs.
pub fn paired(own: &BTreeMap<u32, f64>, base: &BTreeMap<u32, f64>, seed: u64) -> Option<Paired> {
    let ratios: Vec<f64> = own
        .iter()
        .filter_map(|(round, value)| Some(value / base.get(round)?))
        .filter(|ratio| ratio.is_finite())
        .collect();
    if ratios.len() < 2 {
        return None;
    }
    let (ratio, interval95) = resample::median_with_interval(&ratios, seed)?;
    Some(Paired { ratio, interval95, pairs: ratios.len() })
}

/// Verdict on an interval of paired ratios of times: less is better.
pub fn verdict([low, high]: [f64; 2], pairs: usize) -> Verdict {
    if pairs < PAIRS {
        Verdict::Open
    } else if high < 1.0 {
        Verdict::Better
    } else if low > MARGIN {
        Verdict::Worse
    } else if high <= MARGIN {
        Verdict::NoWorse
    } else {
        Verdict::Open
    }
}

/// Verdict on an interval of paired ratios of rates: more is better.
pub fn verdict_of_rates([low, high]: [f64; 2], pairs: usize) -> Verdict {
    verdict([1.0 / high, 1.0 / low], pairs)
}
