//! Reads result files and validates everything in them: a file may come from anywhere.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use crate::{
    Block, BlockKind, CellPrediction, Figures, Line, Machine, Plan, PlannedCell, Record, Strike,
    Timeline, fold,
};

use super::source::Source;

/// Maximum length of the plan's line, in bytes. 125,000 pairs of CPUs fit into it.
const MAX_PLAN_LINE: u64 = 256 << 20;
/// Maximum length of the machine's line, in bytes. Thousands of CPUs fit into it.
const MAX_MACHINE_LINE: u64 = 16 << 20;
/// Maximum length of other lines, in bytes. Longer ones are rejected without reading them into
/// memory.
const MAX_BLOCK_LINE: u64 = 4 << 20;

/// Reason why a file could not be read as a result file.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// An I/O error.
    #[error("cannot read {}: {error}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// A line is invalid.
    #[error("{} is not a threadtoll file: line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Description of the fault, as a clause.
        what: String,
    },
    /// The file is a profile instead of measurements.
    #[error("{} is a profile, not a measurement", .0.display())]
    Profile(PathBuf),
    /// The file contains measurements instead of a profile.
    #[error("{} is a measurement, not a profile", .0.display())]
    NotProfile(PathBuf),
    /// The file belongs to a profile, but has no complete line with a profile yet.
    #[error("{} has no profile yet: it was interrupted, or has just begun", .0.display())]
    NothingYet(PathBuf),
}

/// Progress in measuring a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupState {
    /// Number of attempts so far.
    pub attempts: u32,
    /// Records of the group's complete attempt, if there is one.
    pub records: Option<Vec<Record>>,
    /// Blocks of the last attempt, in the order of measuring; empty once the attempt is complete.
    pub blocks: Vec<Block>,
    /// Predictions of the last attempt; empty once the attempt is complete, because its records
    /// contain them.
    pub predictions: Vec<CellPrediction>,
    /// Timelines of the last attempt, at most one for each cell.
    pub timelines: Vec<Timeline>,
    /// Indices of the cells that were given up.
    pub struck: BTreeSet<usize>,
}

impl GroupState {
    /// Keeps a timeline that is its cell's first, or its cell's first from an undisturbed block.
    /// Returns `false` for any other timeline.
    pub fn keep(&mut self, timeline: &Timeline) -> bool {
        match self.timelines.iter_mut().find(|kept| kept.cell == timeline.cell) {
            None => self.timelines.push(timeline.clone()),
            Some(kept) if timeline.clean && !kept.clean => kept.clone_from(timeline),
            Some(_) => return false,
        }
        true
    }

    /// Begins another attempt, and drops the figures of the previous one.
    pub fn begin(&mut self, attempt: u32) {
        self.attempts = attempt;
        self.blocks.clear();
        self.predictions.clear();
        self.timelines.clear();
    }
}

/// Contents of a result file, or of a run in progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The machine.
    pub machine: Machine,
    /// The plan.
    pub plan: Plan,
    /// Progress of each group of the plan.
    pub groups: Vec<GroupState>,
    /// Rows that were given up, in the order of the file.
    pub strikes: Vec<Strike>,
    /// Notes on repairs made while reading.
    pub notes: Vec<String>,
    /// Length of the valid part of the file, in bytes, uncompressed.
    pub length: u64,
    /// Length of the whole file when it was read, in bytes.
    pub read_length: u64,
    /// True if the file is compressed.
    pub packed: bool,
}

impl Results {
    /// Results of a run that has not measured anything yet.
    pub fn empty(machine: Machine, plan: Plan) -> Self {
        let groups = vec![GroupState::default(); plan.groups.len()];
        let (length, read_length) = (0, 0);
        Results {
            machine,
            plan,
            groups,
            strikes: Vec::new(),
            notes: Vec::new(),
            length,
            read_length,
            packed: false,
        }
    }

    fn is_struck(&self, group: usize, cell: usize) -> bool {
        self.groups[group].struck.contains(&cell)
    }

    /// Indices of the group's cells that were not given up.
    pub fn remaining(&self, group: usize) -> Vec<usize> {
        let cells = self.plan.groups[group].len();
        (0..cells).filter(|cell| !self.is_struck(group, *cell)).collect()
    }

    /// The group's cells that were not given up.
    pub fn remaining_cells(&self, group: usize) -> Cow<'_, [PlannedCell]> {
        let planned = &self.plan.groups[group];
        if self.groups[group].struck.is_empty() {
            return planned.into();
        }
        self.remaining(group).into_iter().map(|cell| planned[cell].clone()).collect()
    }

    /// Gives up a row, in its group and in all later ones. The current attempt at the group ends. A
    /// group with nothing left to measure counts as complete, without records.
    pub fn strike(&mut self, strike: Strike) {
        for group in strike.group..self.groups.len() {
            let cells = 0..self.plan.groups[group].len();
            let covered: Vec<usize> =
                cells.clone().filter(|cell| strike.covers(&self.plan, group, *cell)).collect();
            let state = &mut self.groups[group];
            if covered.is_empty() || state.records.is_some() {
                continue;
            }
            state.struck.extend(covered);
            let GroupState { struck, .. } = state;
            state.blocks.retain(|block| !struck.contains(&block.cell));
            state.predictions.retain(|prediction| !struck.contains(&prediction.cell));
            state.timelines.retain(|timeline| !struck.contains(&timeline.cell));
            let is_left = |cell| !struck.contains(&cell) && self.plan.may_strike(group, cell);
            if !cells.into_iter().any(is_left) {
                state.records = Some(Vec::new());
                state.blocks.clear();
                state.predictions.clear();
                state.timelines.clear();
            }
        }
        self.strikes.push(strike);
    }

    /// Returns `true` if every row was given up before it was measured.
    pub fn nothing_left(&self) -> bool {
        let measured = |group: &GroupState| group.records.as_ref().is_none_or(|it| !it.is_empty());
        !self.strikes.is_empty() && !self.groups.iter().any(measured)
    }

    /// Records of all groups in plan order, without those of a [repetition](Self::repetition). The
    /// blocks of a group that has no records yet are folded.
    pub fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            if self.plan.repeated_by(index).is_some() {
                continue;
            }
            match &group.records {
                Some(complete) => records.extend(complete.iter().cloned()),
                None => {
                    let at = group.blocks.last().map_or("", |block| &*block.at);
                    records.extend(fold(
                        &self.machine,
                        &self.plan,
                        index,
                        group.attempts,
                        &group.blocks,
                        &group.predictions,
                        at,
                    ));
                }
            }
        }
        records
    }

    /// Records of the group that was measured twice, and those of its repetition; `None` unless
    /// both groups are complete.
    pub fn repetition(&self) -> Option<[&[Record]; 2]> {
        let last = self.groups.len().checked_sub(1)?;
        let records = |group: usize| self.groups.get(group)?.records.as_deref();
        Some([records(self.plan.repeated_by(last)?)?, records(last)?])
    }

    /// Drops the timelines, and the histograms and longest samples of all records: they make up
    /// most of a folded file.
    pub fn drop_samples(&mut self) {
        self.groups.iter_mut().for_each(|group| group.timelines.clear());
        let records = self.groups.iter_mut().flat_map(|group| &mut group.records).flatten();
        records.for_each(|record| {
            record.histogram = None;
            record.worst.clear();
            let of_regimes = record.regimes.iter_mut().map(|regime| &mut regime.figures);
            for figures in of_regimes.chain([&mut record.figures]) {
                if let Figures::OpenLoop(own) = figures {
                    own.open_loop.lateness.histogram = None;
                }
            }
        });
    }

    /// Reason why a run cannot continue in this file, and advice; `None` if it can.
    pub fn not_resumable(&self) -> Option<(&'static str, &'static str)> {
        if self.plan.folded.is_some() {
            Some((
                "it is folded, so it lacks the raw measurements",
                "resume the raw file, or measure again",
            ))
        } else if self.packed {
            Some(("it is compressed", "unpack it first: gunzip"))
        } else {
            None
        }
    }

    /// Returns `true` if every group is complete.
    pub fn complete(&self) -> bool {
        self.complete_groups().iter().all(|complete| *complete)
    }
}

/// Reads a result file, plain or compressed with gzip. The file is not changed.
///
/// If the last line has no line feed, because the run was interrupted, it is ignored with a note.
///
/// # Errors
///
/// If the file cannot be read, or is not a valid result file.
pub fn read(path: &Path) -> Result<Results, Fault> {
    let (mut reader, machine, plan) = begin_reading(path)?;
    if plan.is_profile() {
        return Err(Fault::Profile(path.to_path_buf()));
    }
    read_results(&mut reader, machine, plan)
}

pub(super) fn begin_reading(path: &Path) -> Result<(Reader<'_>, Machine, Plan), Fault> {
    let system = |error| Fault::System { path: path.to_path_buf(), error };
    let source = Source::open(path).map_err(system)?;
    let mut reader = Reader { path, source, number: 0, offset: 0 };
    let machine = match reader.next(MAX_MACHINE_LINE)? {
        Next::Line(Line::Machine(machine)) => *machine,
        Next::Line(_) | Next::Incomplete => {
            return Err(reader.fault("it does not describe the machine"));
        }
        Next::End => return Err(reader.fault_at(1, "the file is empty")),
    };
    machine.validate().map_err(|what| reader.fault(what))?;
    let plan = match reader.next(MAX_PLAN_LINE)? {
        Next::Line(Line::Plan(plan)) => *plan,
        Next::Line(_) | Next::Incomplete => {
            return Err(reader.fault("it is not the plan"));
        }
        Next::End => return Err(reader.fault_at(2, "the plan is missing")),
    };
    if !plan.is_profile() {
        plan.validate().map_err(|what| reader.fault(&what))?;
    }
    if plan.run != machine.run {
        return Err(reader.fault("the plan belongs to another run"));
    }
    Ok((reader, machine, plan))
}

pub(super) fn read_results(
    reader: &mut Reader<'_>,
    machine: Machine,
    plan: Plan,
) -> Result<Results, Fault> {
    let mut results = Results::empty(machine, plan);
    let mut seen: Vec<HashSet<(usize, u32, BlockKind)>> =
        vec![HashSet::new(); results.groups.len()];
    let mut partial: Vec<Vec<Option<Record>>> = vec![Vec::new(); results.groups.len()];
    loop {
        match reader.next(MAX_BLOCK_LINE)? {
            Next::Line(Line::Block(block)) => {
                take_block(&mut results, &mut seen, &mut partial, *block)
                    .map_err(|what| reader.fault(&what))?;
            }
            Next::Line(Line::CellPrediction(prediction)) => {
                take_prediction(&mut results, &mut seen, &mut partial, *prediction)
                    .map_err(|what| reader.fault(&what))?;
            }
            Next::Line(Line::Timeline(timeline)) => {
                take_timeline(&mut results, &mut seen, &mut partial, *timeline)
                    .map_err(|what| reader.fault(&what))?;
            }
            Next::Line(Line::Strike(strike)) => {
                take_strike(&mut results, &mut seen, &mut partial, *strike)
                    .map_err(|what| reader.fault(&what))?;
            }
            Next::Line(Line::Record(record)) => {
                take_record(&mut results, &mut seen, &mut partial, *record)
                    .map_err(|what| reader.fault(&what))?;
            }
            Next::Line(Line::Profile(_) | Line::Trace(_)) => {
                return Err(reader.fault("a profile among measurements"));
            }
            Next::Line(Line::Machine(_) | Line::Plan(_)) => {
                return Err(reader.fault("the file has a second machine or a second plan"));
            }
            Next::Incomplete if results.plan.folded.is_some() => {
                return Err(reader.fault("the last line of a folded file is incomplete"));
            }
            Next::Incomplete => {
                results.notes.push(reader.incomplete());
                break;
            }
            Next::End => break,
        }
    }
    if results.plan.folded.is_some() {
        let begun = |group: &GroupState| group.attempts > 0 && group.records.is_none();
        if let Some(group) = results.groups.iter().position(begun) {
            return Err(
                reader.fault(&format!("records of group {group} are missing after this line"))
            );
        }
    }
    results.length = reader.offset;
    results.read_length = reader
        .source
        .length()
        .map_err(|error| Fault::System { path: reader.path.to_path_buf(), error })?;
    results.packed = reader.source.packed;
    Ok(results)
}

fn take_block(
    results: &mut Results,
    seen: &mut [HashSet<(usize, u32, BlockKind)>],
    partial: &mut [Vec<Option<Record>>],
    block: Block,
) -> Result<(), String> {
    if results.plan.folded.is_some() {
        return Err("a folded file cannot have blocks".into());
    }
    if block.run != results.plan.run {
        return Err("the block belongs to another run".into());
    }
    let Some(planned) = results.plan.groups.get(block.group) else {
        return Err(format!("the plan has no group {}", block.group));
    };
    let Some(cell) = planned.get(block.cell) else {
        return Err(format!("group {} of the plan has no cell {}", block.group, block.cell));
    };
    if block.seq >= cell.budget.rounds {
        return Err(format!("the plan has no round {} in group {}", block.seq, block.group));
    }
    if block.process != results.plan.process(block.seq, cell.budget.rounds) {
        return Err(format!("process {} does not measure round {}", block.process, block.seq));
    }
    let fits = match (block.figures.contention(), cell.cell.lock()) {
        (None, None) => true,
        (Some(contention), Some(lock)) => {
            let threads = contention.acquisitions.len();
            // A program in another language may not report the acquisitions of each thread.
            let threads =
                threads == lock.threads as usize || threads == 0 && block.own_program.is_some();
            threads && contention.overload.is_some() == lock.overload.is_some()
        }
        _ => false,
    };
    if !fits {
        return Err("the block does not match its cell's lock or number of threads".into());
    }
    if results.is_struck(block.group, block.cell) {
        return Err("the block's cell had been given up before".into());
    }
    block.validate()?;
    begin(results, seen, partial, (block.group, block.attempt), "block")?;
    if !seen[block.group].insert((block.cell, block.seq, block.kind)) {
        return Err("a block is in the file twice".into());
    }
    results.groups[block.group].blocks.push(block);
    Ok(())
}

/// Begins an attempt if the line is the attempt's first. Otherwise checks that the line belongs to
/// the current attempt.
fn begin(
    results: &mut Results,
    seen: &mut [HashSet<(usize, u32, BlockKind)>],
    partial: &mut [Vec<Option<Record>>],
    (group, attempt): (usize, u32),
    what: &str,
) -> Result<(), String> {
    let folded = results.plan.folded.is_some();
    let ended = |strike: &Strike| (strike.group, strike.attempt) == (group, attempt);
    if !folded && results.strikes.iter().any(ended) {
        return Err(format!("attempt {attempt} at group {group} had ended before this {what}"));
    }
    let state = &mut results.groups[group];
    if state.records.is_some() && (folded || attempt <= state.attempts) {
        return Err(format!("group {group} was complete before this {what}"));
    }
    if folded && state.attempts == 0 && attempt > 0 {
        // A folded file contains only the complete attempt, whose number may be above 1.
        state.attempts = attempt;
    } else if !folded && attempt == state.attempts + 1 {
        state.begin(attempt);
        seen[group].clear();
        partial[group].clear();
    } else if attempt != state.attempts || attempt == 0 {
        return Err(format!(
            "attempt {attempt} at group {group} does not follow attempt {}",
            state.attempts
        ));
    }
    Ok(())
}

/// Gives up a row. This ends the current attempt, except in a folded file, which contains only
/// complete attempts.
fn take_strike(
    results: &mut Results,
    seen: &mut [HashSet<(usize, u32, BlockKind)>],
    partial: &mut [Vec<Option<Record>>],
    strike: Strike,
) -> Result<(), String> {
    strike.validate(&results.plan)?;
    if results.is_struck(strike.group, strike.cell) {
        return Err("a row was given up twice".into());
    }
    if results.plan.folded.is_none() {
        begin(results, seen, partial, (strike.group, strike.attempt), "line")?;
        if partial[strike.group].iter().any(Option::is_some) {
            return Err("a row was given up after its group was measured".into());
        }
    } else if results.groups[strike.group].attempts > 0 {
        return Err("a row was given up after its group was measured".into());
    }
    results.strike(strike);
    Ok(())
}

/// Takes a prediction, which must be its cell's only one, and precede all blocks of its group.
fn take_prediction(
    results: &mut Results,
    seen: &mut [HashSet<(usize, u32, BlockKind)>],
    partial: &mut [Vec<Option<Record>>],
    prediction: CellPrediction,
) -> Result<(), String> {
    if prediction.run != results.plan.run {
        return Err("the prediction belongs to another run".into());
    }
    let Some(planned) = results.plan.groups.get(prediction.group) else {
        return Err(format!("the plan has no group {}", prediction.group));
    };
    if planned.get(prediction.cell).is_none_or(|planned| planned.cell.lock().is_none()) {
        return Err(format!(
            "group {} of the plan has no cell {} with a lock",
            prediction.group, prediction.cell
        ));
    }
    begin(results, seen, partial, (prediction.group, prediction.attempt), "prediction")?;
    let recorded = partial[prediction.group].iter().any(Option::is_some);
    let state = &mut results.groups[prediction.group];
    if recorded || !state.blocks.is_empty() {
        return Err(format!(
            "group {} was being measured before this prediction",
            prediction.group
        ));
    }
    if state.predictions.iter().any(|other| other.cell == prediction.cell) {
        return Err("a cell is predicted twice".into());
    }
    state.predictions.push(prediction);
    Ok(())
}

fn take_timeline(
    results: &mut Results,
    seen: &mut [HashSet<(usize, u32, BlockKind)>],
    partial: &mut [Vec<Option<Record>>],
    timeline: Timeline,
) -> Result<(), String> {
    timeline.validate(&results.plan)?;
    if results.is_struck(timeline.group, timeline.cell) {
        return Err("the timeline's cell was given up before".into());
    }
    begin(results, seen, partial, (timeline.group, timeline.attempt), "timeline")?;
    if !results.groups[timeline.group].keep(&timeline) {
        return Err("a cell has a second timeline that is no better than its first".into());
    }
    Ok(())
}

fn take_record(
    results: &mut Results,
    seen: &mut [HashSet<(usize, u32, BlockKind)>],
    partial: &mut [Vec<Option<Record>>],
    record: Record,
) -> Result<(), String> {
    if record.run != results.plan.run {
        return Err("the record belongs to another run".into());
    }
    if record.group >= results.plan.groups.len() {
        return Err(format!("the plan has no group {}", record.group));
    }
    let folded = results.plan.folded.is_some();
    if folded {
        begin(results, seen, partial, (record.group, record.attempt), "record")?;
    }
    if record.repeats != results.plan.repeated_by(record.group) {
        return Err("the record and the plan disagree about the group that is repeated".into());
    }
    let remaining = results.remaining(record.group);
    let planned = &results.plan.groups[record.group];
    let state = &mut results.groups[record.group];
    if record.attempt != state.attempts || record.attempt == 0 {
        return Err(format!(
            "no blocks of attempt {} at group {} precede the record",
            record.attempt, record.group
        ));
    }
    if record.simulated != results.machine.simulated {
        return Err("of the record and the machine, only one is simulated".into());
    }
    record.validate()?;
    if !folded && state.blocks.is_empty() {
        return Err(format!("group {} was complete before this record", record.group));
    }
    let complete = &mut partial[record.group];
    complete.resize(planned.len(), None);
    let free = remaining
        .iter()
        .copied()
        .find(|cell| planned[*cell].cell == record.cell && complete[*cell].is_none());
    let Some(index) = free else {
        return Err(
            "the record's cell is not in the group, was given up, or already has a record".into()
        );
    };
    if planned[index].experiment != record.experiment {
        return Err("the record and its cell belong to different experiments".into());
    }
    let told = state.predictions.iter().find(|prediction| prediction.cell == index);
    if record.figures.contention().and_then(|contention| contention.predicted.as_ref()) != told {
        return Err("the record's prediction differs from the one made before".into());
    }
    complete[index] = Some(record);
    if remaining.iter().all(|cell| complete[*cell].is_some()) {
        state.records = Some(complete.drain(..).flatten().collect());
        state.blocks.clear();
        state.predictions.clear();
    }
    Ok(())
}

enum Next {
    Line(Line),
    Incomplete,
    End,
}

pub(super) enum NextText {
    Line,
    Incomplete,
    End,
}

pub(super) struct Reader<'a> {
    pub(super) path: &'a Path,
    source: Source,
    pub(super) number: u64,
    offset: u64,
}

pub(super) fn parse(text: &[u8]) -> Result<Line, String> {
    serde_json::from_slice(text).map_err(|error| render_error(&error))
}

impl Reader<'_> {
    fn next(&mut self, limit: u64) -> Result<Next, Fault> {
        let mut text = Vec::new();
        match self.next_text(limit, &mut text)? {
            NextText::Line => parse(&text).map(Next::Line).map_err(|what| self.fault(&what)),
            NextText::Incomplete => Ok(Next::Incomplete),
            NextText::End => Ok(Next::End),
        }
    }

    pub(super) fn next_text(&mut self, limit: u64, text: &mut Vec<u8>) -> Result<NextText, Fault> {
        text.clear();
        (&mut self.source.lines)
            .take(limit + 1)
            .read_until(b'\n', text)
            .map_err(|error| Fault::System { path: self.path.to_path_buf(), error })?;
        if text.is_empty() {
            return Ok(NextText::End);
        }
        self.number += 1;
        if text.len() as u64 > limit {
            return Err(self.fault("it is longer than any line that threadtoll writes"));
        }
        if text.last() != Some(&b'\n') {
            return Ok(NextText::Incomplete);
        }
        self.offset += text.len() as u64;
        Ok(NextText::Line)
    }

    pub(super) fn incomplete(&self) -> String {
        format!(
            "The last line of {} is incomplete, as after an interrupted run, and is ignored.",
            self.path.display()
        )
    }

    pub(super) fn fault(&self, what: &str) -> Fault {
        self.fault_at(self.number, what)
    }

    pub(super) fn fault_at(&self, line: u64, what: &str) -> Fault {
        Fault::Line { path: self.path.to_path_buf(), line, what: what.to_string() }
    }
}

/// Serde's message, limited to 160 characters; `?` replaces control characters. Its position is
/// left out, because the caller reports the number of the line in the file.
pub(super) fn render_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    let mut short: String =
        text.chars().map(|c| if c.is_control() { '?' } else { c }).take(160).collect();
    if text.chars().nth(160).is_some() {
        short.push('…');
    }
    short
}
