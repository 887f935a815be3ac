//! The cost of the adapter interface, derived from our own pipe, which is measured both ways.

use threadtoll_record::{Origin, Wait};

use super::pairs::case;
use super::{Comparison, Row};
use crate::sentences::{self as say, Sentence};
use crate::units::{time, time_range};

/// A sentence for each comparison that has our pipe both as itself and as an adapter, neither of
/// them with pauses between polls.
pub(super) fn findings(comparisons: &[Comparison<'_>]) -> Vec<Sentence> {
    comparisons
        .iter()
        .flat_map(|comparison| {
            let is_own = |row: &&Row<'_>| {
                row.queue().is_some_and(|queue| {
                    (&*queue.queue, queue.origin, queue.wait) == ("pipe", Origin::Ours, Wait::Spin)
                })
            };
            let own = comparison.rows.iter().find(is_own);
            let adapters = comparison.rows.iter().filter(|row| {
                row.record.cell.name() == "pipe-adapter"
                    && row.queue().is_some_and(|queue| queue.wait == Wait::Poll)
            });
            adapters.filter_map(move |adapter| {
                let own = own?;
                Some(say::interface_cost(
                    case(comparison, None),
                    "pipe-adapter (poll)",
                    figures(adapter)?,
                    figures(own)?,
                ))
            })
        })
        .collect()
}

/// Time per message as text: `91.0 ns (88.2–93.5 ns)`.
fn figures(row: &Row<'_>) -> Option<String> {
    let interval = match row.record.interval95.rate_per_s {
        Some([low, high]) => [1e9 / high.get(), 1e9 / low.get()],
        None => row.record.one_way_p50_interval95()?,
    };
    Some(format!("{} ({})", time(row.ns()?), time_range(interval)))
}
