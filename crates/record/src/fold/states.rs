//! Assigns the blocks of a group to regimes (lasting states) of the machine.

use threadtoll_stats::{median, regimes};

use crate::BlockKind;
use crate::limits::DRIFT;

use super::{Marked, stretch_median};
use crate::rounding::round;

pub(super) struct State {
    /// One-way median of the reference, in nanoseconds.
    pub(super) reference_ns: f64,
    /// Fraction of the group's measuring time.
    pub(super) share: f64,
}

/// The level of each figure, found by [`regimes`]. `processes` contains the process that measured
/// each figure.
///
/// In each process, the memory of a cell has different addresses, which affect its speed for as
/// long as the process lives. If there are several processes, levels are regimes of the machine
/// only if some process stays at one level and then changes to another. Otherwise, the levels are
/// differences between processes, which intervals already cover.
pub(super) fn levels(processes: impl Iterator<Item = u32>, figures: &[f64]) -> Vec<usize> {
    const LEAST: usize = 3;
    let mut levels = regimes(figures, DRIFT);
    let each: Vec<(u32, usize)> = processes.zip(levels.iter().copied()).collect();
    let stays: Vec<&[(u32, usize)]> = each.chunk_by(|one, next| one.1 == next.1).collect();
    let changed = stays.windows(2).any(|pair| {
        let [before, after] = [pair[0], pair[1]];
        let within = before.last().map(|last| last.0) == after.first().map(|first| first.0);
        within && before.len().min(after.len()) >= LEAST
    });
    let several = each.iter().any(|(process, _)| *process != each[0].0);
    if several && !changed {
        levels.fill(0);
    }
    levels
}

/// The regimes of a group, the fastest first, and the regime of each block. A block is in the
/// regime of the reference's blocks before and after it in the same process. If these two differ,
/// the block is in no regime.
pub(super) fn states(all: &[Marked<'_>]) -> (Vec<State>, Vec<Option<usize>>) {
    let references: Vec<(usize, f64)> = all
        .iter()
        .enumerate()
        .filter(|(_, marked)| marked.block.cell == 0 && marked.block.kind == BlockKind::Stretch)
        .filter_map(|(at, marked)| Some((at, stretch_median(marked.block)?)))
        .collect();
    let medians: Vec<f64> = references.iter().map(|(_, median)| *median).collect();
    let process = |at: usize| all[at].block.process;
    let found = levels(references.iter().map(|(at, _)| process(*at)), &medians);
    let count = found.iter().max().map_or(1, |last| last + 1);
    let of_block: Vec<Option<usize>> = (0..all.len())
        .map(|at| {
            let next = references.partition_point(|(reference, _)| *reference < at);
            let state = |nth: usize| {
                let near =
                    references.get(nth).is_some_and(|(near, _)| process(*near) == process(at));
                found.get(nth).copied().filter(|_| near)
            };
            let after = state(next);
            let before = match references.get(next) {
                Some((reference, _)) if *reference == at => after,
                _ => next.checked_sub(1).and_then(state),
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
