//! How evenly threads share something.

use crate::{Block, BlockKind, Funnel, FunnelBlock, Histogram, Workers, resample};

use super::{Folding, QUANTILES, processes, quantiles, significant};

/// Jain's index (R. Jain, D. Chiu and W. Hawe, DEC TR-301, 1984) of what each of `threads` got;
/// those that are not listed got nothing.
pub(super) fn jain(got: impl Iterator<Item = f64> + Clone, threads: usize) -> Option<f64> {
    let sum: f64 = got.clone().sum();
    let squares: f64 = got.map(|own| own.powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (threads as f64 * squares))
}

/// The receivers of a cell; `None` if there is one that does not share.
pub(super) fn workers(folding: &Folding<'_>) -> Option<Workers> {
    let own = || folding.own().filter_map(|marked| marked.block.figures.workers());
    let bundle = own().next()?.bundle;
    let indices: Vec<f64> = own()
        .filter_map(|block| {
            let messages = block.messages.iter().map(|count| count.as_f64());
            jain(messages, block.messages.len())
        })
        .collect();
    Some(Workers { bundle, fairness: mean(&indices).map(|index| significant(index).into()) })
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The chatty senders of a cell; `None` if it tells them not apart.
pub(super) fn funnel(folding: &Folding<'_>) -> Option<Funnel> {
    let own: Vec<(&Block, &FunnelBlock)> = folding
        .blocks(BlockKind::Stamped)
        .filter_map(|block| Some((block, block.figures.open_loop()?.funnel.as_ref()?)))
        .collect();
    own.first()?;
    let indices: Vec<f64> = own
        .iter()
        .filter(|(_, funnel)| funnel.means_ns.len() > 1)
        .filter_map(|(_, funnel)| {
            jain(funnel.means_ns.iter().map(|mean| mean.get()), funnel.means_ns.len())
        })
        .collect();
    let chatty: Vec<(&Block, &Histogram)> =
        own.iter().filter_map(|(block, funnel)| Some((*block, funnel.chatty.as_ref()?))).collect();
    let histograms: Vec<&Histogram> = chatty.iter().map(|(_, histogram)| *histogram).collect();
    let of_process = processes(chatty.iter().map(|(block, _)| *block));
    let found = resample::quantiles(&histograms, &of_process, &QUANTILES, folding.seed);
    let fairness = mean(&indices).map(|index| significant(index).into());
    Some(Funnel { chatty: quantiles(&found), fairness })
}
