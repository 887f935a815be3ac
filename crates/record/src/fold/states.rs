//! The blocks of a group by regime of the machine.

use crate::{BlockKind, median, regimes};

use super::{Marked, round, stretch_median};

/// A regime of a group.
pub(super) struct State {
    /// One-way median of the reference.
    pub(super) reference_ns: f64,
    /// Share of the group's measuring time.
    pub(super) share: f64,
}

/// The regimes of a group, the fastest first, and the one of each block: that of the reference's
/// blocks before and after it, if it is the same.
pub(super) fn states(all: &[Marked<'_>]) -> (Vec<State>, Vec<Option<usize>>) {
    let references: Vec<(usize, f64)> = all
        .iter()
        .enumerate()
        .filter(|(_, marked)| marked.block.cell == 0 && marked.block.kind == BlockKind::Stretch)
        .filter_map(|(at, marked)| Some((at, stretch_median(marked.block)?)))
        .collect();
    let medians: Vec<f64> = references.iter().map(|(_, median)| *median).collect();
    let found = regimes(&medians);
    let count = found.iter().max().map_or(1, |last| last + 1);
    let of_block: Vec<Option<usize>> = (0..all.len())
        .map(|at| {
            let next = references.partition_point(|(reference, _)| *reference < at);
            let after = found.get(next).copied();
            let before = match references.get(next) {
                Some((reference, _)) if *reference == at => after,
                _ => next.checked_sub(1).and_then(|before| found.get(before).copied()),
            };
            match (before, after) {
                (Some(before), Some(after)) => (before == after).then_some(before),
                (known, None) | (None, known) => Some(known.unwrap_or(0)),
            }
        })
        .collect();
    let time_ns = |of: &dyn Fn(Option<usize>) -> bool| -> f64 {
        let blocks = all.iter().zip(&of_block).filter(|(_, state)| of(**state));
        blocks.map(|(marked, _)| marked.block.elapsed_ns.as_f64()).sum()
    };
    let whole_ns = time_ns(&|_| true);
    let states = (0..count)
        .map(|state| {
            let own = medians.iter().zip(&found).filter(|(_, of)| **of == state);
            State {
                reference_ns: median(own.map(|(median, _)| *median))
                    .map_or(0.0, |ns| round(ns / 2.0)),
                share: time_ns(&|of| of == Some(state)) / whole_ns.max(1.0),
            }
        })
        .collect();
    (states, of_block)
}
