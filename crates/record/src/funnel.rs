use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadtoll_stats::resample::Processes;

use crate::quantile;
use crate::rounding::rounded_ns;
use crate::sharing::{jain, mean_index};
use crate::{Fraction, Histogram, Ns, Quantiles};

/// Figures of the chatty senders in a block, among whose messages a few important ones are sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunnelBlock {
    /// Delivery times of the chatty senders' messages; null if there are none.
    pub chatty: Option<Histogram>,
    /// Mean delivery time of each chatty sender, in nanoseconds.
    pub means_ns: Vec<Ns>,
}

/// Figures of the chatty senders; the record's own values are those of the important messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Funnel {
    /// Quantiles of the delivery times of the chatty senders' messages.
    pub chatty: Quantiles,
    /// Jain's index of the chatty senders' mean delivery times in a block, averaged over blocks: 1
    /// if all means are equal. Null unless there are several senders.
    pub fairness: Option<Fraction>,
}

impl FunnelBlock {
    /// Computes the figures. `senders` contains the delivery times of each chatty sender's
    /// messages, in picoseconds.
    pub fn of(senders: &[Vec<u64>]) -> Self {
        let mut all = Histogram::new();
        senders.iter().flatten().for_each(|ps| all.record_ps(*ps));
        let own = senders.iter().filter(|own| !own.is_empty());
        let mean = |own: &Vec<u64>| own.iter().sum::<u64>() as f64 / 1e3 / own.len() as f64;
        FunnelBlock {
            chatty: (all.count() > 0).then(|| all.packed()),
            means_ns: own.map(|own| rounded_ns(mean(own))).collect(),
        }
    }
}

impl Funnel {
    pub(crate) fn of<'a>(
        blocks: impl Iterator<Item = (u32, &'a FunnelBlock)>,
        seed: u64,
    ) -> Option<Self> {
        let blocks: Vec<(u32, &FunnelBlock)> = blocks.collect();
        blocks.first()?;
        let several = blocks.iter().map(|(_, block)| &block.means_ns).filter(|own| own.len() > 1);
        let indices = several.filter_map(|own| jain(own.iter().map(|mean| mean.get()), own.len()));
        let chatty: Vec<(u32, &Histogram)> = blocks
            .iter()
            .filter_map(|(process, block)| Some((*process, block.chatty.as_ref()?)))
            .collect();
        let histograms: Vec<&Histogram> = chatty.iter().map(|(_, histogram)| *histogram).collect();
        let of_process = Processes::of(chatty.iter().map(|(process, _)| *process));
        let found = quantile::estimates(&histograms, &of_process, &Quantiles::ALL, seed);
        Some(Funnel { chatty: Quantiles::of(&found), fairness: mean_index(indices) })
    }
}
