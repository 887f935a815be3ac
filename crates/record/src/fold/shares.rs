//! How evenly threads share something.

use crate::{Count, Workers};

use super::{Folding, significant};

/// Jain's index (R. Jain, D. Chiu and W. Hawe, DEC TR-301, 1984) of what each of `threads` got;
/// those that are not listed got nothing.
pub(super) fn jain(got: &[Count], threads: usize) -> Option<f64> {
    let sum: f64 = got.iter().map(|count| count.as_f64()).sum();
    let squares: f64 = got.iter().map(|count| count.as_f64().powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (threads as f64 * squares))
}

/// The receivers of a cell; `None` if there is one that does not share.
pub(super) fn workers(folding: &Folding<'_>) -> Option<Workers> {
    let own = || folding.own().filter_map(|marked| marked.block.workers.as_ref());
    let bundle = own().next()?.bundle;
    let indices: Vec<f64> =
        own().filter_map(|block| jain(&block.messages, block.messages.len())).collect();
    let mean = indices.iter().sum::<f64>() / indices.len().max(1) as f64;
    let fairness = (!indices.is_empty()).then(|| significant(mean).into());
    Some(Workers { bundle, fairness })
}
