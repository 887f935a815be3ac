//! Runs of a plan on the simulated machine: the data that is kept if a run ends early.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use threadtoll_lab::backend::{At, Backend, Now, OpenCell};
use threadtoll_lab::mechanism::Mechanisms;
use threadtoll_lab::plan::{CpuSelection, MechanismChoice, latency};
use threadtoll_lab::samples::BlockSamples;
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_lab::{LabError, Observer, Outcome, Share, Take, run};
use threadtoll_record::file::{Appender, Results, read};
use threadtoll_record::{BlockKind, Budget, Machine, Placement, Plan, PlannedCell, Record};

use super::mechanism;

const SEED: u64 = 5;
const ROUNDS: u32 = 5;

/// These plans have one process.
fn alone(_: &Machine, _: &Plan, _: &Share, _: &mut Take<'_>) -> Result<(), LabError> {
    unreachable!("no other process measures anything")
}

fn plan() -> Plan {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let mechanisms = ["futex", "park", "eventfd"].map(mechanism);
    let choice = MechanismChoice {
        placements: vec![Placement::Pinned, Placement::SameCpu],
        ..MechanismChoice::default()
    };
    let budget = Budget {
        rounds: ROUNDS,
        stretch_ns: 1_000_000,
        stamped_ns: 1_000_000,
        stamped_count: Some(50),
    };
    let (groups, refused) =
        latency(&site, &Mechanisms::default(), &mechanisms, &choice, budget, true);
    Plan {
        processes: 1,
        run: SimulatedBackend::new(SEED).machine().run,
        command: vec!["latency".into()],
        seed: 1,
        over_ns: 10_000,
        options: BTreeMap::new(),
        folded: None,
        repeat: None,
        until_saturated: false,
        refused,
        groups,
    }
}

/// Blocks per group: four cells, two loops.
const BLOCKS: u64 = ROUNDS as u64 * 4 * 2;

/// Counts blocks, and stops the run after a given number.
#[derive(Default)]
struct Watcher {
    groups: Vec<usize>,
    blocks: u64,
    records: Vec<Record>,
    stop_after: Option<u64>,
    stop: AtomicBool,
}

struct Watch<'a>(&'a mut Watcher, &'a AtomicBool);

impl Observer for Watch<'_> {
    fn group(&mut self, index: usize, of: usize, _: &[PlannedCell], remaining_ns: u64) {
        assert!(index < of && remaining_ns > 0);
        self.0.groups.push(index);
    }

    fn block(&mut self, _: &PlannedCell, done: u64, of: u64) {
        assert!(done <= of && of == BLOCKS);
        self.0.blocks += 1;
        if Some(self.0.blocks) == self.0.stop_after {
            self.1.store(true, Ordering::Relaxed);
        }
    }

    fn record(&mut self, record: &Record) {
        self.0.records.push(record.clone());
    }
}

fn measure(
    backend: &mut dyn Backend,
    results: &mut Results,
    path: &Path,
    watcher: &mut Watcher,
) -> Result<Outcome, LabError> {
    let mut file = Some(if path.exists() {
        Appender::resume(path, results.length, results.read_length).unwrap()
    } else {
        Appender::create(path, &results.machine, &results.plan).unwrap()
    });
    let stop = std::mem::take(&mut watcher.stop);
    run(backend, &mut alone, results, &mut file, &mut Watch(watcher, &stop), &stop)
}

fn fresh() -> (SimulatedBackend, Results) {
    let backend = SimulatedBackend::new(SEED);
    let results = Results::empty(backend.machine(), plan());
    (backend, results)
}

/// Asserts that the results in memory and in the file are equal.
#[track_caller]
fn kept(results: &Results, path: &Path) -> Results {
    let file = read(path).unwrap();
    assert_eq!(file.groups, results.groups);
    assert!(file.notes.is_empty());
    file
}

#[test]
fn a_run_measures_everything_and_keeps_it() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let (mut backend, mut results) = fresh();
    let mut watcher = Watcher::default();
    assert_eq!(
        measure(&mut backend, &mut results, &path, &mut watcher).unwrap(),
        Outcome::Complete
    );
    assert_eq!((watcher.groups.as_slice(), watcher.blocks), ([0, 1].as_slice(), 2 * BLOCKS));
    assert_eq!(watcher.records, results.records());
    assert_eq!(watcher.records.len(), 8);
    assert!(kept(&results, &path).complete());
    assert!(watcher.records.iter().all(|record| record.count == 50 * u64::from(ROUNDS)));
}

#[test]
fn without_a_file_the_records_are_the_same() {
    let directory = TempDir::new().unwrap();
    let (mut backend, mut results) = fresh();
    measure(
        &mut backend,
        &mut results,
        &directory.path().join("run.jsonl"),
        &mut Watcher::default(),
    )
    .unwrap();
    let (mut backend, mut unkept) = fresh();
    let stop = AtomicBool::new(false);
    let mut watcher = Watcher::default();
    run(&mut backend, &mut alone, &mut unkept, &mut None, &mut Watch(&mut watcher, &stop), &stop)
        .unwrap();
    assert_eq!(unkept.groups, results.groups);
}

#[test]
fn a_run_that_is_told_to_stop_keeps_every_block_and_goes_on_from_the_group() {
    for after in [1, 7, BLOCKS - 1, BLOCKS, BLOCKS + 1, 2 * BLOCKS - 1] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("run.jsonl");
        let (mut backend, mut results) = fresh();
        let mut watcher = Watcher { stop_after: Some(after), ..Watcher::default() };
        assert_eq!(
            measure(&mut backend, &mut results, &path, &mut watcher).unwrap(),
            Outcome::Interrupted,
            "{after}"
        );
        assert_eq!(watcher.blocks, after);
        let mut file = kept(&results, &path);
        assert!(!file.complete());
        let blocks: usize = file.groups.iter().map(|group| group.blocks.len()).sum();
        let in_records =
            file.groups.iter().filter(|group| group.records.is_some()).count() as u64 * BLOCKS;
        assert_eq!(blocks as u64 + in_records, after);

        let mut again = Watcher::default();
        let mut backend = SimulatedBackend::new(SEED);
        assert_eq!(measure(&mut backend, &mut file, &path, &mut again).unwrap(), Outcome::Complete);
        assert_eq!(again.blocks, 2 * BLOCKS - in_records, "no finished group is measured twice");
        let attempts: Vec<u32> =
            kept(&file, &path).groups.iter().map(|group| group.attempts).collect();
        assert_eq!(
            attempts,
            if after <= BLOCKS { [2, 1] } else { [1, 2] },
            "stopped after {after}"
        );
    }
}

#[test]
fn a_run_that_was_stopped_before_it_began_measures_nothing() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let (mut backend, mut results) = fresh();
    let mut watcher = Watcher { stop: AtomicBool::new(true), ..Watcher::default() };
    assert_eq!(
        measure(&mut backend, &mut results, &path, &mut watcher).unwrap(),
        Outcome::Interrupted
    );
    assert_eq!((watcher.blocks, watcher.groups.len()), (0, 0));
}

/// The simulated machine, failing at a given block or at the recheck of its clock.
struct Failing {
    backend: SimulatedBackend,
    blocks_left: Rc<Cell<u64>>,
    clock: bool,
}

struct FailingCell {
    cell: Box<dyn OpenCell>,
    blocks_left: Rc<Cell<u64>>,
}

impl Backend for Failing {
    fn now(&mut self) -> Now {
        self.backend.now()
    }

    fn open(
        &mut self,
        machine: &Machine,
        group: &[PlannedCell],
        at: &mut At<'_>,
    ) -> Result<Vec<Box<dyn OpenCell>>, LabError> {
        let failing = |cell| -> Box<dyn OpenCell> {
            Box::new(FailingCell { cell, blocks_left: Rc::clone(&self.blocks_left) })
        };
        Ok(self.backend.open(machine, group, at)?.into_iter().map(failing).collect())
    }

    fn wait(&mut self, ns: u64) {
        self.backend.wait(ns);
    }

    fn recheck(&mut self) -> Result<(), LabError> {
        if self.clock { Err(LabError::Clock("it went astray".into())) } else { Ok(()) }
    }
}

impl OpenCell for FailingCell {
    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let Some(left) = self.blocks_left.get().checked_sub(1) else {
            return Err(LabError::Place { cpus: vec![2], reason: "it went away".into() });
        };
        self.blocks_left.set(left);
        self.cell.block(kind)
    }
}

#[test]
fn a_run_that_fails_keeps_what_it_had() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let (backend, mut results) = fresh();
    let mut backend =
        Failing { backend, blocks_left: Rc::new(Cell::new(BLOCKS + 3)), clock: false };
    let error = measure(&mut backend, &mut results, &path, &mut Watcher::default()).unwrap_err();
    assert!(matches!(error, LabError::Place { .. }), "{error}");
    let file = kept(&results, &path);
    assert!(file.groups[0].records.is_some());
    assert_eq!(file.groups[1].blocks.len(), 3);
    assert_eq!(
        file.records().len(),
        4 + file.groups[1]
            .blocks
            .iter()
            .map(|block| block.cell)
            .collect::<std::collections::BTreeSet<_>>()
            .len()
    );
}

#[test]
fn a_clock_that_went_astray_fails_the_run_and_its_group_has_no_records() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let (backend, mut results) = fresh();
    let mut backend = Failing { backend, blocks_left: Rc::new(Cell::new(u64::MAX)), clock: true };
    let error = measure(&mut backend, &mut results, &path, &mut Watcher::default()).unwrap_err();
    assert!(matches!(error, LabError::Clock(_)), "{error}");
    let file = kept(&results, &path);
    assert!(file.groups.iter().all(|group| group.records.is_none()));
    assert_eq!(
        file.groups[0].blocks.len() as u64,
        BLOCKS,
        "what was measured is kept, to be looked at"
    );
}

#[test]
fn a_machine_that_changes_its_mind_is_caught_at_it() {
    let (mut backend, mut results) = fresh();
    let stop = AtomicBool::new(false);
    let mut watcher = Watcher::default();
    run(&mut backend, &mut alone, &mut results, &mut None, &mut Watch(&mut watcher, &stop), &stop)
        .unwrap();
    let drifted = |record: &&Record| {
        record.disturbance.causes.keys().any(|cause| cause.name() == "reference-drift")
    };
    assert!(
        results.records().iter().filter(drifted).count() > 0,
        "each group is slow for one round"
    );
    for record in results.records() {
        // The remaining pairs show the cell's own ratio, within its noise of a few percent.
        for against in &record.against {
            let [low, high] = against.interval95;
            assert!(high.get() / low.get() < 1.2, "{}: {low} to {high}", record.cell.name());
            assert!(against.blocks < ROUNDS, "disturbed pairs are left out");
        }
    }
}
