//! Blocks around which the machine changed.

use std::collections::BTreeMap;

use crate::limits::DRIFT;
use crate::{Block, BlockKind, Cause, DisturbanceSummary};

/// Largest undisturbed change of the reference as a multiple of its median change. A normal
/// distribution exceeds it in 0.7% of cases.
const UNUSUAL: f64 = 4.0;
/// Smallest change that is a drift however usual it is: more than addresses, which made 20% on one
/// machine.
const MOST: f64 = 0.30;

/// A block, and whether the reference changed around it.
#[derive(Clone, Copy)]
pub(super) struct Marked<'a> {
    pub(super) block: &'a Block,
    pub(super) moved: bool,
    /// The change disturbed the block.
    pub(super) drifted: bool,
    /// Threads that share nothing did other work around the block than when it was predicted.
    pub(super) work_drifted: bool,
}

impl Marked<'_> {
    pub(super) fn clean(&self) -> bool {
        self.block.clean && !self.drifted && !self.work_drifted
    }
}

/// The figure of a block that ratios and drift use: the median over its stretches.
pub(super) fn stretch_median(block: &Block) -> Option<f64> {
    match block.kind {
        BlockKind::Stretch => block.histogram.as_ref()?.quantile_ns(0.5),
        BlockKind::Stamped => None,
    }
}

/// Returns for each block whether the reference changed unusually and by more than `DRIFT`, or by
/// more than 30%, between its neighbours in time, which were measured by the same process.
///
/// Each round has another instance of the reference, with other addresses. Instances differ by a
/// few percent on many machines, which is no change of the machine.
///
/// The reference's own blocks are never marked: each is a valid sample of its time.
pub fn drifted(blocks: &[Block]) -> Vec<bool> {
    let references: Vec<(usize, f64)> = blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| block.cell == 0)
        .filter_map(|(at, block)| Some((at, stretch_median(block)?)))
        .collect();
    let within = |pair: &&[(usize, f64)]| blocks[pair[0].0].process == blocks[pair[1].0].process;
    // The larger one divided by the smaller one, less 1.
    let change = |pair: &[(usize, f64)]| {
        let ratio = pair[1].1 / pair[0].1;
        ratio.max(1.0 / ratio) - 1.0
    };
    let mut changes: Vec<f64> = references.windows(2).filter(within).map(change).collect();
    changes.sort_by(f64::total_cmp);
    // The lower median of the others, from the view of a large change.
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
