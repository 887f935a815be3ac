use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadtoll_stats::mean;

use crate::rounding::significant;
use crate::{Count, Fraction};

/// Receivers that share a sender's messages in a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkersBlock {
    /// True if each receiver has a queue of its own, and the sender sends to these queues in turn;
    /// false if all receivers share one queue.
    pub bundle: bool,
    /// Number of messages that each receiver got.
    pub messages: Vec<Count>,
}

/// Receivers that share a sender's messages, over all blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workers {
    /// True if each receiver has a queue of its own, and the sender sends to these queues in turn;
    /// false if all receivers share one queue.
    pub bundle: bool,
    /// Jain's index of the receivers' numbers of messages in a block, averaged over blocks; 1 if
    /// all receivers got equally many.
    pub fairness: Option<Fraction>,
}

impl Workers {
    pub(crate) fn of<'a>(blocks: impl Iterator<Item = &'a WorkersBlock>) -> Option<Self> {
        let blocks: Vec<&WorkersBlock> = blocks.collect();
        let bundle = blocks.first()?.bundle;
        let indices = blocks.iter().filter_map(|block| {
            let messages = block.messages.iter().map(|count| count.as_f64());
            jain(messages, block.messages.len())
        });
        Some(Workers { bundle, fairness: mean_index(indices) })
    }
}

/// Jain's index (R. Jain, D. Chiu and W. Hawe, DEC TR-301, 1984) of the amounts that `threads`
/// threads got. Threads that are not in `got` got nothing.
pub(crate) fn jain(got: impl Iterator<Item = f64> + Clone, threads: usize) -> Option<f64> {
    let sum: f64 = got.clone().sum();
    let squares: f64 = got.map(|own| own.powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (threads as f64 * squares))
}

pub(crate) fn mean_index(indices: impl Iterator<Item = f64>) -> Option<Fraction> {
    let indices: Vec<f64> = indices.collect();
    mean(&indices).map(|mean| significant(mean).into())
}
