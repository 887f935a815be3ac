//! Folds the blocks of a group into its records.
//!
//! The measuring command and the reader of an interrupted file share this code, so both make the
//! same records. The rules are those of `docs/method/statistics.md`: means, medians and ratios come
//! from stretches, the distribution from stamped blocks, and intervals from resampling blocks. A
//! ratio pairs blocks of the same round, and leaves out blocks during which the reference changed.
//! No figure mixes two regimes of the machine. Each [`Kind`] of cell has its own file here.

mod calls;
mod contention;
mod distribution;
mod exchange;
mod marks;
mod open_loop;
mod overload;
mod send_call;
mod states;
mod stream;
mod warnings;

use std::collections::{BTreeMap, BTreeSet};

use threadtoll_stats::median;
use threadtoll_stats::resample::Processes;

use crate::compare::{self, Paired, Round};
use crate::rounding::{rounded_ns, significant};
use crate::{
    Against, Block, BlockKind, Cell, CellPrediction, Class, Cost, Count, DepthFigures,
    DisturbanceSummary, Figures, Kind, LoopKind, Machine, OneWay, OpenLoopFigures, Origin, Over,
    OwnProgram, Plan, PlannedCell, Quantiles, QueueSubject, Record, RecordKind, Regime, Subject,
    Unit, Verdict, Wait, Warning, Work,
};

/// Largest disagreement of two CPUs' clocks at which one-way times may be stamped directly, as a
/// fraction of the median one-way time.
pub const AGREEMENT: f64 = 0.05;
/// Fraction of disturbed blocks above which a record has a warning.
pub const DISTURBED_SHARE: f64 = 0.25;

use distribution::{Distribution, intervals, quantiles_of, worst};
pub use marks::drifted;
use marks::{Marked, stretch_median, summary};
use states::State;
pub use warnings::WARNINGS;

/// Value of `Against::of` for a ratio of rates.
const RATE: &str = "rate_per_s";

/// Folds the blocks of one attempt at group `group`, in the order of measuring, into one record for
/// each cell that has blocks.
///
/// `blocks` and `predictions` must belong to this group and attempt. `at` is the time of folding.
pub fn fold(
    machine: &Machine,
    plan: &Plan,
    group: usize,
    attempt: u32,
    blocks: &[Block],
    predictions: &[CellPrediction],
    at: &str,
) -> Vec<Record> {
    let Some(cells) = plan.groups.get(group) else { return Vec::new() };
    // The reference shows how fast cache lines move between CPUs, which does not matter to sleeping
    // threads.
    let sleeps = |planned: &PlannedCell| {
        planned.cell.lock().is_some_and(|subject| subject.work == Work::Sleep)
    };
    let all: Vec<Marked<'_>> = blocks
        .iter()
        .zip(drifted(blocks))
        .zip(contention::work_drifted(cells, blocks, predictions))
        .map(|((block, moved), work_drifted)| {
            let drifted = moved && !cells.get(block.cell).is_some_and(sleeps);
            Marked { block, moved, drifted, work_drifted }
        })
        .collect();
    let (states, of_block) = states::states(&all);
    let split: Vec<Vec<Marked<'_>>> = (0..states.len())
        .map(|state| {
            let own = all.iter().zip(&of_block).filter(|(_, of)| **of == Some(state));
            own.map(|(marked, _)| *marked).collect()
        })
        .collect();
    let has_blocks = |index: &usize| all.iter().any(|marked| marked.block.cell == *index);
    (0..cells.len())
        .filter(has_blocks)
        .map(|index| {
            // The seed depends only on the plan and the cell, so a resumed run gets the same
            // intervals.
            let seed = plan.seed ^ ((group as u64) << 20) ^ ((index as u64) << 8);
            let prediction = predictions.iter().find(|prediction| prediction.cell == index);
            let folding =
                Folding { machine, plan, group, attempt, at, index, all: &all, prediction, seed };
            if states.len() == 1 || sleeps(&cells[index]) {
                return folding.record(folding.outcome(), Vec::new());
            }
            let (mut main, mut regimes, mut warnings) = (None, Vec::new(), Vec::new());
            for (state, blocks) in states.iter().zip(&split) {
                let mut outcome = Folding { all: blocks, ..folding }.outcome();
                let own = blocks.iter().filter(|marked| marked.block.cell == index);
                regimes.push(outcome.regime(state, own.count()));
                warnings.append(&mut outcome.warnings);
                main = match main {
                    Some((longest, main)) if longest >= state.share => Some((longest, main)),
                    _ => Some((state.share, outcome)),
                };
            }
            let mut outcome = main.map_or_else(|| folding.outcome(), |(_, outcome)| outcome);
            let mut told = BTreeSet::new();
            warnings.retain(|warning: &Warning| told.insert(warning.code.clone()));
            outcome.warnings = warnings;
            folding.record(outcome, regimes)
        })
        .collect()
}

#[derive(Clone, Copy)]
struct Folding<'a> {
    machine: &'a Machine,
    plan: &'a Plan,
    group: usize,
    attempt: u32,
    at: &'a str,
    index: usize,
    /// Blocks of all cells of the group, in one regime or in all regimes.
    all: &'a [Marked<'a>],
    prediction: Option<&'a CellPrediction>,
    seed: u64,
}

struct FoldedCell {
    loop_kind: LoopKind,
    kind: RecordKind,
    count: Count,
    one_way: Option<OneWay>,
    distribution: Distribution,
    /// Rate per second, and its 95% interval.
    rate: Option<(f64, Option<[f64; 2]>)>,
    cost: Cost,
    figures: Figures,
    against: Vec<Against>,
    /// Fraction of the variance between blocks that is due to differences between processes.
    between_processes: Option<f64>,
    warnings: Vec<Warning>,
}

impl FoldedCell {
    fn regime(&self, state: &State, blocks: usize) -> Regime {
        let FoldedCell { distribution, rate, .. } = self;
        Regime {
            reference_ns: state.reference_ns.into(),
            share: significant(state.share).into(),
            blocks: blocks as u32,
            one_way: self.one_way.clone(),
            mean: distribution.mean,
            min: distribution.min,
            max: distribution.max,
            quantiles: Quantiles::of(&distribution.all),
            interval95: intervals(&distribution.all, *rate),
            rate_per_s: rate.map(|(rate, _)| rate.into()),
            cost: self.cost,
            figures: of_regime(self.figures.clone()),
            against: self.against.clone(),
        }
    }
}

/// Removes the figures that are not reported for each regime.
fn of_regime(figures: Figures) -> Figures {
    match figures {
        Figures::OpenLoop(own) => {
            let none = OpenLoopFigures { refused: None, dropped: None, idle: None, ..own };
            Figures::OpenLoop(none)
        }
        Figures::Depth(own) => Figures::Depth(DepthFigures { resident_bytes: None, ..own }),
        Figures::HandOffs(_) | Figures::SendCall(_) => Figures::default(),
        Figures::Contention { .. } | Figures::Shared { .. } => figures,
    }
}

struct ComparedFigure {
    of: &'static str,
    own: fn(&Block) -> Option<f64>,
    base: fn(&Block) -> Option<f64>,
    more_is_better: bool,
}

impl<'a> Folding<'a> {
    fn cells(&self) -> &'a [PlannedCell] {
        &self.plan.groups[self.group]
    }

    fn planned(&self) -> &'a PlannedCell {
        &self.cells()[self.index]
    }

    fn cell(&self) -> &'a Cell {
        &self.planned().cell
    }

    fn own(&self) -> impl Iterator<Item = &'a Marked<'a>> + use<'a> {
        let index = self.index;
        self.all.iter().filter(move |marked| marked.block.cell == index)
    }

    fn blocks(&self, kind: BlockKind) -> impl Iterator<Item = &'a Block> + use<'a> {
        self.own().map(|marked| marked.block).filter(move |block| block.kind == kind)
    }

    fn compared(&self, by: impl Fn(Kind) -> ComparedFigure) -> Vec<Against> {
        let cells = self.cells();
        compared(cells, self.index)
            .into_iter()
            .filter_map(|other| {
                let ComparedFigure { of, own, base, more_is_better } = by(cells[other].kind());
                let figures = |cell: usize, figure: fn(&Block) -> Option<f64>| {
                    by_round(self.all, cell, |marked| !marked.drifted, figure)
                };
                let own = figures(self.index, own);
                let found = compare::paired(&own, &figures(other, base), self.seed)?;
                let judge =
                    if more_is_better { compare::verdict_of_rates } else { compare::verdict };
                Some(self.against(&cells[other].cell, of, found, judge))
            })
            .collect()
    }

    fn against(
        &self,
        cell: &Cell,
        of: &str,
        found: Paired,
        judge: fn([f64; 2], usize) -> Verdict,
    ) -> Against {
        // The verdict is based on the rounded interval, because that one is printed.
        let interval95 = found.interval95.map(significant);
        Against {
            cell: cell.clone(),
            of: of.into(),
            ratio: significant(found.ratio).into(),
            interval95: interval95.map(Into::into),
            blocks: found.pairs as u32,
            verdict: judge(interval95, found.pairs),
        }
    }

    fn outcome(&self) -> FoldedCell {
        let mut outcome = match (self.cell().lock(), self.planned().kind()) {
            (Some(lock), _) => contention::fold(self, lock),
            (None, Kind::Stream) => stream::fold(self),
            (None, Kind::OpenLoop) => open_loop::fold(self),
            (None, Kind::Depth) => calls::fold(self),
            (None, Kind::SendCall) => send_call::fold(self),
            (None, Kind::Exchange | Kind::Contention) => exchange::fold(self),
        };
        let main = main_figures(self.all, self.index, self.planned());
        let of_process = || main.keys().map(|(process, _)| *process);
        let values: Vec<f64> = main.values().copied().collect();
        outcome.between_processes =
            Processes::of(of_process()).share_between(&values).map(significant);
        outcome.warnings.extend(several_levels(&values, &states::levels(of_process(), &values)));
        outcome
    }

    fn own_program(&self) -> Option<OwnProgram> {
        let blocks = || self.own().filter_map(|marked| marked.block.own_program);
        let warm_ups = blocks().filter_map(|own| Some(own.warm_up_ms?.as_f64()));
        let warm_up_ms = median(warm_ups).map(|ms| (ms.round() as u64).into());
        blocks().next().map(|_| OwnProgram { warm_up_ms })
    }

    /// `outcome` is that of the main regime, whereas `self` contains the blocks of all regimes.
    fn record(&self, outcome: FoldedCell, regimes: Vec<Regime>) -> Record {
        let planned = self.planned();
        let FoldedCell { distribution, rate, .. } = outcome;
        let clock = &self.machine.clock;
        let disturbance = summary(self.own());
        let histogram =
            distribution.histogram.filter(|_| planned.experiment.keeps_histograms(self.machine));
        Record {
            run: self.plan.run.clone(),
            at: self.at.into(),
            group: self.group,
            attempt: self.attempt,
            repeats: self.plan.repeated_by(self.group),
            experiment: planned.experiment.clone(),
            cell: planned.cell.clone(),
            simulated: self.machine.simulated,
            loop_kind: outcome.loop_kind,
            kind: outcome.kind,
            unit: Unit::Ns,
            count: outcome.count,
            one_way: outcome.one_way,
            mean: distribution.mean,
            min: distribution.min,
            max: distribution.max,
            quantiles: Quantiles::of(&distribution.all),
            clean_quantiles: Quantiles::of(&distribution.clean),
            interval95: intervals(&distribution.all, rate),
            resolution_ns: rounded_ns(clock.step_ns.get() + clock.read_ns.get()),
            over: Over { limit_ns: self.plan.over_ns, share: distribution.over_share },
            rate_per_s: rate.map(|(rate, _)| rate.into()),
            histogram,
            cost: outcome.cost,
            figures: outcome.figures,
            own_program: self.own_program(),
            worst: worst(self.blocks(BlockKind::Stamped)),
            against: outcome.against,
            regimes,
            processes: processes(self.own().map(|marked| marked.block)).count() as u32,
            between_processes_share: outcome.between_processes.map(Into::into),
            warnings: disturbed(&disturbance).into_iter().chain(outcome.warnings).collect(),
            disturbance,
        }
    }
}

/// Figures of a cell's blocks, by round, without the blocks for which `counts` is false.
fn by_round(
    all: &[Marked<'_>],
    cell: usize,
    counts: impl Fn(&Marked<'_>) -> bool,
    figure: impl Fn(&Block) -> Option<f64>,
) -> BTreeMap<Round, f64> {
    all.iter()
        .filter(|marked| marked.block.cell == cell && counts(marked))
        .filter_map(|marked| {
            Some(((marked.block.process, marked.block.seq), figure(marked.block)?))
        })
        .collect()
}

/// Warns if the figures of the cell have several levels although the reference has only one.
fn several_levels(figures: &[f64], levels: &[usize]) -> Option<Warning> {
    let last = *levels.iter().max().filter(|last| **last > 0)?;
    let at = |level: usize| {
        median(figures.iter().zip(levels).filter(|(_, of)| **of == level).map(|(own, _)| *own))
    };
    let apart = at(last)? / at(0)?;
    Some(warnings::several_levels(last + 1, apart))
}

fn main_figures(all: &[Marked<'_>], cell: usize, planned: &PlannedCell) -> BTreeMap<Round, f64> {
    let undrifted =
        |figure: fn(&Block) -> Option<f64>| by_round(all, cell, |marked| !marked.drifted, figure);
    match planned.kind() {
        Kind::Exchange => undrifted(stretch_median),
        Kind::Stream => undrifted(stream::rate),
        Kind::OpenLoop => undrifted(open_loop::time),
        Kind::Depth => undrifted(calls::time),
        Kind::SendCall => undrifted(send_call::time),
        Kind::Contention => contention::work_by_round(all, cell, planned),
    }
}

/// Compares times by the medians of stretches, even if the record's median comes from stamps. A
/// ratio to another mechanism must not include the cost of stamps.
fn times(_: Kind) -> ComparedFigure {
    ComparedFigure {
        of: "one_way.p50",
        own: stretch_median,
        base: stretch_median,
        more_is_better: false,
    }
}

/// Indices of the cells in a group with which the cell `index` is compared, the reference first.
/// The plan determines which cells share a group. After the reference come:
///
/// - for a mechanism that signals after unlocking, or that is kept awake: its plain variant;
/// - for a sleeping mechanism: the futex;
/// - for a threadtoll queue: every mechanism, and every queue with the same load, in its wait
///   family. If the queue may sleep but hardly ever does, also its own spinning variant. If it
///   sends batches, also every bare copy (`raw-copy`);
/// - for a queue with several receivers: the same queue with one receiver;
/// - for a queue with messages in place: the same queue with moved messages.
pub fn compared(cells: &[PlannedCell], index: usize) -> Vec<usize> {
    let Some(planned) = cells.get(index).filter(|planned| planned.cell.lock().is_none()) else {
        return Vec::new();
    };
    let cell = &planned.cell;
    let like = |other: &Cell| match &cell.subject {
        Subject::Mechanism { .. } => {
            partner(cell).as_ref() == Some(other) || is_futex_for(other, cell)
        }
        Subject::Queue(queue) => {
            is_base_of(other, cell) || queue.origin == Origin::Ours && rivals(planned, queue, other)
        }
        // Locks are compared by another figure; see the module `contention`.
        Subject::Lock(_) => false,
    };
    let others = (1..cells.len()).filter(|other| like(&cells[*other].cell));
    std::iter::once(0).chain(others).filter(|other| *other != index).collect()
}

/// The plain variant of a cell that signals after unlocking, or that is kept awake.
fn partner(cell: &Cell) -> Option<Cell> {
    match cell.mechanism()?.strip_suffix("-after") {
        Some(plain) => {
            let subject = Subject::mechanism(plain, cell.subject.class()?);
            Some(Cell { subject, ..cell.clone() })
        }
        None if cell.keep_awake => Some(Cell { keep_awake: false, ..cell.clone() }),
        None => None,
    }
}

/// Returns `true` if `other` is the plain futex, and `cell` is another mechanism that sleeps.
fn is_futex_for(other: &Cell, cell: &Cell) -> bool {
    let futex = Subject::mechanism("futex", Class::Sleep);
    other.subject == futex
        && !other.keep_awake
        && cell.subject.class() == Some(Class::Sleep)
        && cell.placement == other.placement
}

/// Returns `true` if `other` is the same queue with its base load, such as one receiver instead of
/// several.
fn is_base_of(other: &Cell, cell: &Cell) -> bool {
    let Subject::Queue(queue) = &cell.subject else { return false };
    let base = queue.load.base().map(|load| QueueSubject { load, ..queue.clone() });
    base.is_some_and(|base| other.queue() == Some(&base)) && other.placement == cell.placement
}

/// Returns `true` if a cell with a threadtoll queue is compared with the cell `other`.
fn rivals(planned: &PlannedCell, queue: &QueueSubject, other: &Cell) -> bool {
    let cell = &planned.cell;
    let alike = cell.subject.family() == other.subject.family();
    let Some(rival) = other.queue() else { return alike };
    if rival.load != queue.load {
        return false;
    }
    // A receiver that never spins sleeps whenever it waits. In a stream, it hardly ever waits.
    let hardly_sleeps =
        queue.wait == Wait::Adaptive || queue.wait == Wait::Park && planned.kind() == Kind::Stream;
    let itself_spinning = hardly_sleeps
        && *rival == QueueSubject { wait: Wait::Spin, ..queue.clone() }
        && other.placement == cell.placement;
    alike || itself_spinning || (queue.batch > 1 && rival.origin == Origin::Raw)
}

fn disturbed(disturbance: &DisturbanceSummary) -> Option<Warning> {
    let DisturbanceSummary { blocks, disturbed, .. } = disturbance;
    let many = f64::from(*disturbed) > DISTURBED_SHARE * f64::from(*blocks);
    many.then(|| warnings::disturbed(disturbed, blocks))
}

fn oversubscribed(cell: &Cell) -> Option<Warning> {
    cell.oversubscribed().then(warnings::oversubscribed)
}

/// CPU time and switches per operation. Each counted exchange, message or acquisition stands for
/// `operations_each` operations.
fn cost<'a>(blocks: impl Iterator<Item = &'a Block>, operations_each: f64) -> Cost {
    let blocks: Vec<&Block> = blocks.collect();
    let sum = |of: fn(&Block) -> Count| blocks.iter().map(|block| of(block)).sum::<Count>();
    let operations = operations_each * sum(|block| block.cost_round_trips).as_f64();
    let per_op = |of: fn(&Block) -> Count| {
        (operations > 0.0).then(|| significant(sum(of).as_f64() / operations))
    };
    Cost {
        user_ns_per_op: per_op(|block| block.cost.user_ns).map(Into::into),
        system_ns_per_op: per_op(|block| block.cost.system_ns).map(Into::into),
        voluntary_switches_per_op: per_op(|block| block.cost.voluntary_switches).map(Into::into),
        involuntary_switches_per_op: per_op(|block| block.cost.involuntary_switches)
            .map(Into::into),
    }
}

fn processes<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Processes {
    Processes::of(blocks.into_iter().map(|block| block.process))
}
