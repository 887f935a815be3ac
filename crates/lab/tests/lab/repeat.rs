//! Runs that measure their first group again as the last one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use threadtoll_lab::backend::Backend;
use threadtoll_lab::mechanism::Mechanisms;
use threadtoll_lab::plan::{CpuSelection, MechanismChoice, estimate_ns, latency, remaining_ns};
use threadtoll_lab::simulated::{Regimes, SimulatedBackend, Variation};
use threadtoll_lab::{LabError, Observer, Outcome, Share, Take, run};
use threadtoll_record::file::{Appender, Results, read};
use threadtoll_record::{Budget, Machine, Placement, Plan, PlannedCell, Record, Repeat, unix_ns};

use super::{latency_plan, mechanism, run_simulated};

const SEED: u64 = 5;
const AFTER_NS: u64 = 60_000_000_000;

fn plan(after_ns: u64) -> Plan {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let mechanisms = ["atomic-rmw", "spin-yield", "futex"].map(mechanism);
    let choice =
        MechanismChoice { placements: vec![Placement::Pinned], ..MechanismChoice::default() };
    let budget = Budget {
        rounds: 21,
        stretch_ns: 2_000_000,
        stamped_ns: 2_000_000,
        stamped_count: Some(60),
    };
    let known = Mechanisms::default();
    let planned = latency(&site, &known, &mechanisms, &choice, budget, false);
    let mut plan = latency_plan(SEED, 1, planned);
    plan.groups.push(plan.groups[0].clone());
    plan.repeat = Some(Repeat { group: 0, after_ns });
    plan
}

/// Sees how the run waits, and can stop it then.
#[derive(Default)]
struct Waits {
    left_ns: Vec<u64>,
    blocks: u64,
    stops: bool,
    stop: AtomicBool,
}

struct Watch<'a>(&'a mut Waits, &'a AtomicBool);

impl Observer for Watch<'_> {
    fn group(&mut self, _: usize, _: usize, _: &[PlannedCell], _: u64) {}

    fn waits(&mut self, left_ns: u64, remaining_ns: u64) {
        assert!(remaining_ns > left_ns, "{remaining_ns} {left_ns}");
        self.0.left_ns.push(left_ns);
        if self.0.stops && self.0.left_ns.len() == 3 {
            self.1.store(true, Ordering::Relaxed);
        }
    }

    fn block(&mut self, _: &PlannedCell, _: u64, _: u64) {
        self.0.blocks += 1;
    }

    fn record(&mut self, _: &Record) {}
}

fn alone(_: &Machine, _: &Plan, _: &Share, _: &mut Take<'_>) -> Result<(), LabError> {
    unreachable!("no other process measures anything")
}

fn measure(results: &mut Results, path: &Path, waits: &mut Waits) -> Outcome {
    let mut file = Some(if path.exists() {
        Appender::resume(path, results.length, results.read_length).unwrap()
    } else {
        Appender::create(path, &results.machine, &results.plan).unwrap()
    });
    let stop = std::mem::take(&mut waits.stop);
    let mut backend = SimulatedBackend::new(SEED);
    run(&mut backend, &mut alone, results, &mut file, &mut Watch(waits, &stop), &stop).unwrap()
}

fn fresh(after_ns: u64) -> Results {
    Results::empty(SimulatedBackend::new(SEED).machine(), plan(after_ns))
}

/// Times of the blocks of a group in a file, in nanoseconds since the Unix epoch.
fn block_times(path: &Path, group: usize) -> Vec<i128> {
    // A reader keeps the blocks of groups without records.
    let text = std::fs::read_to_string(path).unwrap();
    let is_record = |line: &&str| line.contains("\"threadtoll.record/1\"");
    let lines: Vec<&str> = text.split_inclusive('\n').filter(|line| !is_record(line)).collect();
    let path = path.with_extension("blocks");
    std::fs::write(&path, lines.concat()).unwrap();
    let blocks = read(&path).unwrap().groups.remove(group).blocks;
    blocks.iter().map(|block| unix_ns(&block.at).unwrap()).collect()
}

#[test]
fn the_repetition_comes_after_the_wait_and_apart_from_the_other_records() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let (mut results, mut waits) = (fresh(AFTER_NS), Waits::default());
    let start_ns = SimulatedBackend::new(SEED).now().unix_ns;
    let last = results.plan.groups.len() - 1;
    // The other groups are measured during the wait.
    let of = |groups: std::ops::Range<usize>, results: &Results| {
        estimate_ns(results.plan.groups[groups].iter().map(Vec::as_slice), 1)
    };
    let expected_ns = of(0..1, &results) + AFTER_NS + of(last..last + 1, &results);
    assert_eq!(remaining_ns(&results, start_ns), expected_ns);
    assert_eq!(measure(&mut results, &path, &mut waits), Outcome::Complete);
    assert_eq!(remaining_ns(&results, start_ns), 0);
    assert!(waits.left_ns[0] <= AFTER_NS && waits.left_ns.is_sorted_by(|a, b| a > b));
    let end_ns = block_times(&path, 0).into_iter().max().unwrap();
    let again_ns = block_times(&path, last).into_iter().min().unwrap();
    assert!(again_ns - end_ns >= i128::from(AFTER_NS), "{}", again_ns - end_ns);

    let file = read(&path).unwrap();
    assert!(file.complete());
    assert_eq!(file.records(), results.records());
    assert!(file.records().iter().all(|record| record.group < last && record.repeats.is_none()));
    let [first, again] = file.repetition().unwrap();
    assert_eq!(first.len(), again.len());
    for (first, again) in first.iter().zip(again) {
        assert_eq!((first.group, first.repeats, &first.cell), (0, None, &again.cell));
        assert_eq!((again.group, again.repeats), (last, Some(0)));
    }
}

#[test]
fn a_group_that_is_due_is_measured_at_once() {
    let directory = TempDir::new().unwrap();
    let (mut results, mut waits) = (fresh(1), Waits::default());
    let path = directory.path().join("run.jsonl");
    assert_eq!(measure(&mut results, &path, &mut waits), Outcome::Complete);
    assert!(waits.left_ns.is_empty(), "{:?}", waits.left_ns);
    assert!(results.repetition().is_some());
}

#[test]
fn a_run_that_is_stopped_in_the_wait_is_kept_and_completed() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let mut waits = Waits { stops: true, ..Waits::default() };
    let mut results = fresh(AFTER_NS);
    assert_eq!(measure(&mut results, &path, &mut waits), Outcome::Interrupted);
    assert_eq!(waits.left_ns.len(), 3);
    let mut file = read(&path).unwrap();
    let last = file.groups.len() - 1;
    assert_eq!(file.groups, results.groups);
    assert_eq!(file.groups[last].attempts, 0);
    assert!(!file.complete() && file.repetition().is_none() && !file.records().is_empty());

    let (before, mut again) = (waits.blocks, Waits::default());
    assert_eq!(measure(&mut file, &path, &mut again), Outcome::Complete);
    assert!(!again.left_ns.is_empty(), "the rest of the wait");
    let of = |groups: &[Vec<PlannedCell>]| groups.iter().map(|group| group.len() as u64 * 42).sum();
    let (first, repetition) = file.plan.groups.split_at(last);
    assert_eq!((before, again.blocks), (of(first), of(repetition)), "nothing is measured twice");
    assert!(read(&path).unwrap().repetition().is_some());
}

#[test]
fn a_repetition_that_was_cut_off_is_not_mixed_with_other_records() {
    let complete = run_simulated(&|| SimulatedBackend::new(SEED), &plan(1));
    let mut cut = complete.clone();
    let last = cut.groups.len() - 1;
    cut.groups[last].records = None;
    assert_eq!(cut.records(), complete.records());
    assert!(cut.repetition().is_none());
}

#[test]
fn figures_of_both_are_those_of_the_machine_at_that_time() {
    let figures = |records: &[Record]| -> Vec<f64> {
        records.iter().map(|record| record.one_way_p50().unwrap()).collect()
    };
    let quotients = |machine: &dyn Fn() -> SimulatedBackend| -> Vec<f64> {
        let results = run_simulated(machine, &plan(AFTER_NS));
        let [first, again] = results.repetition().unwrap().map(figures);
        again.iter().zip(first).map(|(again, first)| again / first).collect()
    };
    let steady = quotients(&|| SimulatedBackend::new(SEED));
    assert!(steady.iter().all(|quotient| (quotient - 1.0).abs() < 0.02), "{steady:?}");
    let varying = Variation { cell: 0.1, ..Variation::default() };
    let varied = quotients(&|| SimulatedBackend::new(SEED).with_variation(varying.clone()));
    assert!(varied.iter().any(|quotient| (quotient - 1.0).abs() > 0.05), "{varied:?}");
    // The repetition begins half a wave after the first group has ended.
    let regimes = Regimes::Drifting { wave_ns: 2 * AFTER_NS };
    let drifted = quotients(&|| SimulatedBackend::new(SEED).with_regimes(regimes));
    assert!(drifted.iter().all(|quotient| (1.5..1.7).contains(quotient)), "{drifted:?}");
}
