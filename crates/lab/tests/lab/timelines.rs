//! Timelines of simulated locks: one of each cell, also of runs that are stopped.

use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use threadtoll_lab::contention::{Overrides, hold_sweep};
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_lab::{LabError, Observer, Outcome, Share, Take, run};
use threadtoll_record::file::{Appender, Results, read};
use threadtoll_record::limits::TIMELINE;
use threadtoll_record::{Count, Machine, Plan, PlannedCell, Record, Timeline};

use super::contention::{measured, plan, planned, shares};
use super::{OURS, run_simulated};

fn overrides() -> Overrides {
    Overrides {
        threads: Some(vec![1, 2, 3]),
        loads: Some(hold_sweep::loads(None, Some(&shares(&[0.5])), None)),
        time_ns: Some(100_000_000),
        ..Overrides::default()
    }
}

/// Asserts that each cell of several threads has a timeline, and no other cell.
#[track_caller]
fn one_of_each(results: &Results) -> Vec<&Timeline> {
    let mut all = Vec::new();
    for (group, state) in results.plan.groups.iter().zip(&results.groups) {
        for (index, planned) in group.iter().enumerate() {
            let several = planned.cell.lock().is_some_and(|lock| lock.threads > 1);
            let mut found = state.timelines.iter().filter(|timeline| timeline.cell == index);
            all.extend(found.next());
            assert_eq!(found.count(), 0);
            assert_eq!(all.last().is_some_and(|last| last.cell == index), several, "{planned:?}");
        }
    }
    all
}

fn moments(timeline: &Timeline) -> Vec<[u64; 3]> {
    let mut all: Vec<[u64; 3]> =
        timeline.acquisitions.iter().flatten().map(|moments| moments.map(Count::get)).collect();
    all.sort_by_key(|[_, acquired, _]| *acquired);
    all
}

#[test]
fn each_cell_of_several_threads_has_one_of_its_first_undisturbed_block() {
    let results = measured("hold-sweep", &["std-mutex"], overrides(), 4, 0.0);
    let all = one_of_each(&results);
    assert_eq!(all.len(), 2);
    for timeline in all {
        assert!(timeline.clean && timeline.seq < 3, "{timeline:?}");
        let acquisitions = moments(timeline);
        assert!((100..=TIMELINE).contains(&acquisitions.len()), "{}", acquisitions.len());
        assert!(serde_json::to_string(timeline).unwrap().len() < 60_000);
        for pair in acquisitions.windows(2) {
            assert!(pair[0][2] <= pair[1][1], "two threads hold the lock: {pair:?}");
        }
        let waited = acquisitions.iter().filter(|[asked, acquired, _]| acquired > asked).count();
        assert!(waited > acquisitions.len() / 4, "{waited}");
    }
}

#[test]
fn several_processes_and_several_locks_leave_one_as_well() {
    let (groups, refused) = planned("hold-sweep", &["striped/8:std-mutex"], overrides());
    let run = SimulatedBackend::new(4).machine().run;
    let plan = Plan { run, refused, processes: 3, ..plan(groups) };
    let machine = || SimulatedBackend::new(4).with_registry(OURS.clone());
    let results = run_simulated(&machine, &plan);
    let all = one_of_each(&results);
    let at_once = |timeline: &Timeline| {
        let all = moments(timeline);
        all.windows(2).filter(|pair| pair[0][2] > pair[1][1]).count()
    };
    assert!(all.iter().any(|timeline| at_once(timeline) > 20), "each stripe is held by itself");
}

/// Stops a run after this number of blocks.
struct After<'a>(u64, &'a AtomicBool);

impl Observer for After<'_> {
    fn group(&mut self, _: usize, _: usize, _: &[PlannedCell], _: u64) {}

    fn block(&mut self, _: &PlannedCell, _: u64, _: u64) {
        self.0 = self.0.saturating_sub(1);
        self.1.store(self.0 == 0, Ordering::Relaxed);
    }

    fn record(&mut self, _: &Record) {}
}

fn alone(_: &Machine, _: &Plan, _: &Share, _: &mut Take<'_>) -> Result<(), LabError> {
    unreachable!("no other process measures anything")
}

#[test]
fn a_run_that_was_stopped_has_those_of_its_blocks_and_one_of_each_when_resumed() {
    let (groups, refused) = planned("hold-sweep", &["std-mutex"], overrides());
    let machine = SimulatedBackend::new(4).machine();
    let plan = Plan { run: machine.run.clone(), refused, ..plan(groups) };
    for blocks in [1, 5, 9, 14] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("run.jsonl");
        let mut results = Results::empty(machine.clone(), plan.clone());
        let mut file = Some(Appender::create(&path, &machine, &plan).unwrap());
        let measure = |results: &mut Results, file: &mut Option<Appender>, blocks: u64| {
            let mut backend = SimulatedBackend::new(4).with_registry(OURS.clone());
            let stop = AtomicBool::new(false);
            run(&mut backend, &mut alone, results, file, &mut After(blocks, &stop), &stop).unwrap()
        };
        assert_eq!(measure(&mut results, &mut file, blocks), Outcome::Interrupted, "{blocks}");
        drop(file);
        let mut kept = read(&path).unwrap();
        assert_eq!(kept.groups, results.groups);
        for block in kept.groups.iter().flat_map(|group| &group.blocks) {
            let lock = kept.plan.groups[block.group][block.cell].cell.lock();
            let several = lock.is_some_and(|lock| lock.threads > 1);
            let stamped = block.figures.contention().is_some_and(|own| own.seen.is_some());
            let timelines = &kept.groups[block.group].timelines;
            let shown = timelines.iter().any(|timeline| timeline.cell == block.cell);
            assert!(shown || !several || !stamped, "after {blocks} blocks: {block:?}");
        }
        let mut file = Some(Appender::resume(&path, kept.length, kept.read_length).unwrap());
        assert_eq!(measure(&mut kept, &mut file, u64::MAX), Outcome::Complete);
        one_of_each(&kept);
        assert_eq!(read(&path).unwrap().groups, kept.groups, "after {blocks} blocks");
    }
}
