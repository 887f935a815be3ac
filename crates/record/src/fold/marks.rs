//! Marks the blocks around which the machine changed.

use std::collections::BTreeMap;

use crate::limits::DRIFT;
use crate::{Block, BlockKind, Cause, DisturbanceSummary};

/// A change of the reference is unusual if it is over this many times the median change. Of
/// normally distributed changes, 0.7% are unusual.
const UNUSUAL: f64 = 4.0;
/// A larger change of the reference always counts as a drift, even if large changes are usual. The
/// limit exceeds the effect of memory addresses, which was 20% on one machine.
const MOST: f64 = 0.30;

#[derive(Clone, Copy)]
pub(super) struct Marked<'a> {
    pub(super) block: &'a Block,
    pub(super) moved: bool,
    /// True if a change of the reference disturbed the block.
    pub(super) drifted: bool,
    /// True if independent threads did more or less work around the block than when the prediction
    /// was made.
    pub(super) work_drifted: bool,
}

impl Marked<'_> {
    pub(super) fn clean(&self) -> bool {
        self.block.clean && !self.drifted && !self.work_drifted
    }
}

/// Median over the block's stretches, which is the figure for ratios and drift.
pub(super) fn stretch_median(block: &Block) -> Option<f64> {
    match block.kind {
        BlockKind::Stretch => block.histogram.as_ref()?.quantile_ns(0.5),
        BlockKind::Stamped => None,
    }
}

/// For each block, `true` if the time of the reference changed around the block: between the
/// reference's last block before it and the reference's first block after it, if one process
/// measured both. The change must exceed `DRIFT` and be unusual, or exceed 30%.
///
/// Each round creates the reference anew, at other addresses. On many machines, this alone changes
/// its time by a few percent.
///
/// Blocks of the reference itself are never marked, because each is a valid sample of its time.
pub fn drifted(blocks: &[Block]) -> Vec<bool> {
    let references: Vec<(usize, f64)> = blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| block.cell == 0)
        .filter_map(|(at, block)| Some((at, stretch_median(block)?)))
        .collect();
    let within = |pair: &&[(usize, f64)]| blocks[pair[0].0].process == blocks[pair[1].0].process;
    // The larger time divided by the smaller one, minus 1.
    let change = |pair: &[(usize, f64)]| {
        let ratio = pair[1].1 / pair[0].1;
        ratio.max(1.0 / ratio) - 1.0
    };
    let mut changes: Vec<f64> = references.windows(2).filter(within).map(change).collect();
    changes.sort_by(f64::total_cmp);
    // The lower median of all changes except the largest, which may be the one to judge.
    let usual = changes.len().checked_sub(2).map_or(0.0, |others| changes[others / 2]);
    let largest = (UNUSUAL * usual).clamp(DRIFT, MOST);
    let mut drifted = vec![false; blocks.len()];
    for pair in references.windows(2).filter(within).filter(|pair| change(pair) > largest) {
        let (from, to) = (pair[0].0, pair[1].0);
        for (mark, block) in drifted[from..to].iter_mut().zip(&blocks[from..to]) {
            *mark = block.cell != 0;
        }
    }
    drifted
}

pub(super) fn summary<'a>(blocks: impl Iterator<Item = &'a Marked<'a>>) -> DisturbanceSummary {
    let (mut all, mut disturbed, mut causes) = (0, 0, BTreeMap::new());
    for marked in blocks {
        all += 1;
        disturbed += u32::from(!marked.clean());
        for cause in &marked.block.disturbance.causes {
            *causes.entry(*cause).or_insert(0) += 1;
        }
        if marked.drifted {
            *causes.entry(Cause::ReferenceDrift).or_insert(0) += 1;
        }
        if marked.work_drifted {
            *causes.entry(Cause::WorkDrift).or_insert(0) += 1;
        }
    }
    DisturbanceSummary { blocks: all, disturbed, causes }
}
