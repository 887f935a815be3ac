use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Ns;
use crate::quantile::QuantileEstimate;
use crate::rounding::rounded_ns;

/// Quantiles in nanoseconds, each null if fewer than 20 samples lie beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Median.
    pub p50: Option<Ns>,
    /// 90% quantile.
    pub p90: Option<Ns>,
    /// 99% quantile.
    pub p99: Option<Ns>,
    /// 99.9% quantile.
    #[serde(rename = "p99.9")]
    pub p999: Option<Ns>,
    /// 99.99% quantile.
    #[serde(rename = "p99.99")]
    pub p9999: Option<Ns>,
}

impl Quantiles {
    /// The quantiles, in the order of the members.
    pub(crate) const ALL: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

    /// `found` must be estimates of [`Quantiles::ALL`].
    pub(crate) fn of(found: &[QuantileEstimate]) -> Self {
        let value = |index: usize| found[index].value.map(rounded_ns);
        Quantiles { p50: value(0), p90: value(1), p99: value(2), p999: value(3), p9999: value(4) }
    }
}
