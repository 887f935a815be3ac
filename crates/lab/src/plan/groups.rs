use threadtoll_record::{Budget, Cell, Class, Experiment, LockSubject, PlannedCell, Refused};

use crate::contention::calibration_schedule::calibration_ns;
use crate::mechanism::{Mechanism, Mechanisms};

use super::cells::CpuSelection;

/// Maximum number of cells in a group, including the reference. It keeps a round of the group's
/// blocks to a fraction of a second.
pub(super) const GROUP: usize = 8;
/// Maximum length of a group: short, so that the machine's regime (a lasting state, such as the
/// distance of two cores) rarely changes within a group.
const GROUP_NS: u64 = 8_000_000_000;
/// Time per block on top of its length: for the warm-up, and for writing the results.
const BLOCK_OVERHEAD_NS: u64 = 3_000_000;
/// Time to replace the threads and the memory of a cell, once per round.
const REOPENING_NS: u64 = 300_000;
/// Time per group on top of its blocks: for threads, memory, pilot runs and checks of the clocks.
const GROUP_OVERHEAD_NS: u64 = 60_000_000;
/// Time to start a process and to check its clock.
const LAUNCH_NS: u64 = 60_000_000;

#[derive(Default)]
pub(super) struct PlanBuilder {
    pub(super) groups: Vec<Vec<PlannedCell>>,
    pub(super) refused: Vec<Refused>,
}

impl PlanBuilder {
    /// Repeated refusals of the same thing are recorded once.
    pub(super) fn refuse(&mut self, what: String, why: &str) {
        if self.refused.iter().all(|refused| refused.what != *what) {
            self.refused.push(Refused { what: what.into(), why: why.into() });
        }
    }
}

/// A variant that signals after unlocking (`-after`) joins the bundle of the plain variant, which
/// precedes it, because the two are compared.
pub(super) fn bundle(bundles: &mut Vec<Vec<Cell>>, mechanism: &Mechanism, cells: Vec<Cell>) {
    let plain = mechanism.name.strip_suffix("-after");
    match bundles.last_mut() {
        Some(last) if plain.is_some() && last.first().map(Cell::name) == plain => {
            last.extend(cells)
        }
        _ => bundles.push(cells),
    }
}

/// Number of cells in a group, including the reference.
pub(super) fn size(budget: Budget) -> usize {
    (GROUP_NS / cell_ns(&budget).max(1)).clamp(4, GROUP as u64) as usize
}

pub(super) fn planned_as(experiment: Experiment, budget: Budget) -> impl Fn(Cell) -> PlannedCell {
    move |cell| PlannedCell::new(experiment.clone(), cell, budget)
}

/// Packs bundles of cells, all at one placement, into groups. Each group includes the row with
/// which its other rows are compared. This is the futex for sleeping mechanisms, which are never
/// mixed with others, and the reference otherwise.
pub(super) fn compared_groups(
    bundles: Vec<Vec<Cell>>,
    site: &CpuSelection<'_>,
    known: &Mechanisms,
    budget: Budget,
) -> Vec<Vec<PlannedCell>> {
    let sleeps = |cell: &Cell| cell.subject.class() == Some(Class::Sleep);
    let reference = site.reference();
    let (sleeping, others): (Vec<_>, Vec<_>) =
        bundles.into_iter().partition(|bundle| bundle.first().is_some_and(sleeps));
    let futex = sleeping.iter().flatten().next().and_then(|cell| {
        let futex = known.find("futex").filter(|futex| site.missing.of(futex).is_none())?;
        Some(Cell { subject: futex.subject(), keep_awake: false, ..cell.clone() })
    });
    let fixed = |compared: &Cell| {
        let compared = Some(compared.clone()).filter(|compared| *compared != reference);
        std::iter::once(reference.clone()).chain(compared).collect::<Vec<Cell>>()
    };
    let planned = planned_as(Experiment::Latency, budget);
    [
        group(others, &fixed(&reference), budget, &planned),
        group(sleeping, &fixed(futex.as_ref().unwrap_or(&reference)), budget, &planned),
    ]
    .concat()
}

/// The cells of a bundle are compared with each other, so they stay in one group if they fit. Each
/// group begins with the `fixed` cells, which are not repeated if the user has also named them.
pub(super) fn group(
    bundles: Vec<Vec<Cell>>,
    fixed: &[Cell],
    budget: Budget,
    planned: impl Fn(Cell) -> PlannedCell,
) -> Vec<Vec<PlannedCell>> {
    let mut groups: Vec<Vec<PlannedCell>> = Vec::new();
    let mut asked_for_fixed = false;
    let begin = || fixed.iter().cloned().map(&planned).collect::<Vec<PlannedCell>>();
    let size = size(budget).max(fixed.len() + 2);
    for bundle in bundles {
        let all: Vec<Cell> = bundle
            .into_iter()
            .filter(|cell| {
                let is_fixed = fixed.contains(cell);
                asked_for_fixed |= is_fixed;
                !is_fixed
            })
            .collect();
        let mut rest = all.into_iter();
        while rest.len() > 0 {
            let room = groups.last().map_or(0, |group| size - group.len());
            if rest.len() > room && (room == 0 || rest.len() + fixed.len() <= size) {
                groups.push(begin());
                continue;
            }
            if let Some(group) = groups.last_mut() {
                group.extend(rest.by_ref().take(room).map(&planned));
            }
        }
    }
    if groups.is_empty() && asked_for_fixed {
        groups.push(begin());
    }
    groups
}

/// Estimated time for groups, each measured in this number of processes. If a budget gives a number
/// of samples, 10 µs per sample are assumed.
pub fn estimate_ns<'a>(groups: impl IntoIterator<Item = &'a [PlannedCell]>, processes: u32) -> u64 {
    let processes = u64::from(processes);
    let opening_ns = processes * (LAUNCH_NS + GROUP_OVERHEAD_NS);
    let group_ns = |group: &[PlannedCell]| {
        let cells = group.iter().enumerate().map(|(nth, planned)| {
            let own = planned.cell.lock().filter(|lock| !shares_calibration(lock, &group[..nth]));
            let calibration_ns = own.map_or(0, calibration_ns);
            cell_ns(&planned.budget).saturating_add(calibration_ns.saturating_mul(processes))
        });
        cells.fold(opening_ns, u64::saturating_add)
    };
    groups.into_iter().map(group_ns).fold(0, u64::saturating_add)
}

/// Returns `true` if one of these cells is calibrated by the same measurements: overloads of a lock
/// differ only in who arrives.
fn shares_calibration(lock: &LockSubject, others: &[PlannedCell]) -> bool {
    let like = |other: &LockSubject| {
        LockSubject { overload: None, ..other.clone() }
            == LockSubject { overload: None, ..lock.clone() }
    };
    lock.overload.is_some() && others.iter().filter_map(|other| other.cell.lock()).any(like)
}

fn cell_ns(budget: &Budget) -> u64 {
    let stamped_ns =
        budget.stamped_count.map_or(budget.stamped_ns, |count| count.saturating_mul(10_000));
    let blocks = budget.kinds().len() as u64;
    let visit_ns =
        budget.stretch_ns.saturating_add(stamped_ns).saturating_add(blocks * BLOCK_OVERHEAD_NS);
    let visit_ns = visit_ns.saturating_add(REOPENING_NS);
    visit_ns.saturating_mul(u64::from(budget.rounds))
}
