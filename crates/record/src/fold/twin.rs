//! Twins: how far apart two copies of one source are in a group.

use crate::compare;
use crate::{Cell, PlannedCell, Warning};

use super::{Marked, main_figures, warnings};

/// Two copies of one source, in one group and regime.
#[derive(Clone, Copy)]
pub(super) struct Twin<'a> {
    original: &'a Cell,
    /// The larger figure divided by the smaller one.
    pub(super) off: f64,
}

impl<'a> Twin<'a> {
    /// The twin that is off most, if the group has one.
    pub(super) fn of(cells: &'a [PlannedCell], all: &[Marked<'_>], seed: u64) -> Option<Self> {
        let twins = cells.iter().enumerate().filter_map(|(twin, planned)| {
            let original = cells.iter().position(|other| is_twin_of(&planned.cell, &other.cell))?;
            let found = ratio(cells, all, original, twin, seed)?;
            let off = found.max(1.0 / found);
            off.is_finite().then_some(Twin { original: &cells[original].cell, off })
        });
        twins.max_by(|a, b| a.off.total_cmp(&b.off))
    }

    /// Returns `true` if the twin is off by more than the margin of verdicts.
    pub(super) fn decides_nothing(self) -> bool {
        self.off > compare::MARGIN
    }

    pub(super) fn warning(self) -> Option<Warning> {
        let percent = (self.off - 1.0) * 100.0;
        self.decides_nothing().then(|| warnings::twin_apart(self.original.name(), percent))
    }
}

fn ratio(
    cells: &[PlannedCell],
    all: &[Marked<'_>],
    original: usize,
    twin: usize,
    seed: u64,
) -> Option<f64> {
    let figures = |cell: usize| main_figures(all, cell, &cells[cell]);
    Some(compare::paired(&figures(original), &figures(twin), seed)?.ratio)
}

/// Returns `true` if `other` is the twin of `cell`.
pub(super) fn is_twin_of(other: &Cell, cell: &Cell) -> bool {
    other.is_twin() && other.original() == *cell
}
