//! Ratios of paired figures, with verdicts from their intervals.

use std::collections::BTreeMap;

use threadtoll_stats::resample::{self, Processes};

use crate::Verdict;

/// Largest ratio that still counts as equal.
pub const MARGIN: f64 = 1.05;
/// Minimum number of pairs for a verdict.
pub const PAIRS: usize = 21;

/// Largest ratio of two reference times that count as one regime (lasting state of the machine),
/// however far apart they were measured.
pub const ALIKE: f64 = 1.3;

/// Index of the process that measured a round, and index of the round in its group.
pub type Round = (u32, u32);

/// The ratio of two series of figures from the same rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Median over the pairs.
    pub ratio: f64,
    /// 95% interval of the median, from resampling pairs.
    pub interval95: [f64; 2],
    /// Number of pairs.
    pub pairs: usize,
}

/// The ratio of `own` to `base`, paired by round; `None` if there are fewer than two pairs.
pub fn paired(
    own: &BTreeMap<Round, f64>,
    base: &BTreeMap<Round, f64>,
    seed: u64,
) -> Option<Paired> {
    let (processes, ratios): (Vec<u32>, Vec<f64>) = own
        .iter()
        .filter_map(|(round, value)| Some((round.0, value / base.get(round)?)))
        .filter(|(_, ratio)| ratio.is_finite())
        .unzip();
    if ratios.len() < 2 {
        return None;
    }
    let (ratio, interval95) =
        resample::median_with_interval(&ratios, &Processes::of(processes), seed)?;
    Some(Paired { ratio, interval95: interval95?, pairs: ratios.len() })
}

/// Verdict for times, which are better if smaller.
pub fn verdict([low, high]: [f64; 2], pairs: usize) -> Verdict {
    const LEAST: f64 = 1.0 / MARGIN;
    if pairs < PAIRS {
        Verdict::Open
    } else if high < LEAST {
        Verdict::Better
    } else if low > MARGIN {
        Verdict::Worse
    } else if low >= LEAST && high <= MARGIN {
        Verdict::Same
    } else if high <= MARGIN {
        Verdict::NoWorse
    } else if low >= LEAST {
        Verdict::NoBetter
    } else {
        Verdict::Open
    }
}

/// Verdict for rates, which are better if larger.
pub fn verdict_of_rates([low, high]: [f64; 2], pairs: usize) -> Verdict {
    verdict([1.0 / high, 1.0 / low], pairs)
}
