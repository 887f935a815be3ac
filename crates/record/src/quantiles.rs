//! Quantiles of a distribution.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Ns;

/// Quantiles in nanoseconds; null if fewer than 20 samples lie beyond them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Median.
    pub p50: Option<Ns>,
    /// 90%.
    pub p90: Option<Ns>,
    /// 99%.
    pub p99: Option<Ns>,
    /// 99.9%.
    #[serde(rename = "p99.9")]
    pub p999: Option<Ns>,
    /// 99.99%.
    #[serde(rename = "p99.99")]
    pub p9999: Option<Ns>,
}
