//! The engine on the real machine with mechanisms and placements that fail.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use threadtoll_machine::lock::machine_lock;
use threadtoll_machine::place::allowed_cpus;
use threadtoll_record::{BlockKind, Budget, Experiment, Layout, Pause, Relation, Subject};

use crate::error::{WRONG_MESSAGE, stuck};
use crate::mechanism::tests::{Fault, broken};
use crate::mechanism::{Mechanism, Mechanisms, Settings};
use crate::samples::{BlockSamples, RoundTrips, Samples};

use super::pair::pair;
use super::*;

/// A CPU that does not exist on any machine.
const NOWHERE: u32 = 8191;

fn gated() -> (Clock, ClockFacts) {
    Clock::gate().unwrap()
}

fn clock() -> Clock {
    gated().0
}

fn planned(mechanism: &str, placement: Placement, cpus: Vec<u32>) -> PlannedCell {
    let cell = Cell {
        subject: Subject::Mechanism { mechanism: mechanism.into(), class: None },
        placement,
        cpus,
        relation: Relation::SameCpu,
        payload_bytes: 64,
        line: None,
        pause: None,
        keep_awake: false,
        neighbour: None,
        built: None,
    };
    let budget = Budget {
        rounds: 1,
        stretch_ns: 1_000_000,
        stamped_ns: 1_000_000,
        stamped_count: Some(300),
    };
    PlannedCell::new(Experiment::Latency, cell, budget)
}

/// First block of a cell with this mechanism, both ends on one CPU.
fn block(mechanism: &Mechanism, patience: Duration) -> Result<BlockSamples, LabError> {
    let allowed = allowed_cpus();
    let planned = planned(&mechanism.name, Placement::SameCpu, vec![allowed[0]]);
    let clock = clock();
    let context = CellContext {
        clock,
        environment: Environment::start(&planned.cell, &allowed)?,
        planned,
        stamp_ns: 20.0,
        patience,
        start_ticks: 0,
    };
    let settings = Settings { payload_bytes: 64, layout: Layout::Own, pause: Pause::Off };
    let mut cell = Exchange::open(context, mechanism.maker(settings), mechanism.class)?;
    let calibrator = Calibrator::new(&clock, patience);
    cell.prepare(&mut GroupState { bounds_ns: HashMap::new(), calibrator })?;
    cell.block(BlockKind::Stamped)
}

/// The error of an operation that must return by itself; a hanging test would report nothing.
fn refused(work: impl FnOnce() -> Option<LabError> + Send + 'static) -> String {
    let (done, answer) = channel();
    thread::spawn(move || done.send(work()));
    let error = answer.recv_timeout(Duration::from_secs(60)).unwrap();
    error.unwrap().to_string()
}

#[test]
fn a_sound_mechanism_gives_the_samples_that_were_asked_for() {
    let _alone = machine_lock().unwrap();
    let BlockSamples { counters, samples } =
        block(&broken("sound", Fault::Nothing, Fault::Nothing), PATIENCE).unwrap();
    let Samples::Exchange(RoundTrips { stretches, .. }) = samples else { panic!("{samples:?}") };
    assert_eq!((stretches.lengths_ps.len(), stretches.operations_each), (300, 1));
    assert!(stretches.lengths_ps.iter().all(|ps| *ps > 0));
    assert!(counters.cost.voluntary_switches >= 300, "{:?}", counters.cost);
}

#[test]
fn a_wrong_message_ends_the_run() {
    let _alone = machine_lock().unwrap();
    match block(&broken("replaying", Fault::Replayed, Fault::Nothing), PATIENCE) {
        Err(LabError::Row { name, clause, .. }) => {
            assert_eq!((name.as_str(), clause.as_str()), ("replaying", WRONG_MESSAGE));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_that_never_comes_ends_the_run_when_patience_does() {
    let _alone = machine_lock().unwrap();
    let losing = broken("losing", Fault::Lost, Fault::Nothing);
    match block(&losing, Duration::from_millis(300)) {
        Err(LabError::Row { name, clause, .. }) => {
            assert_eq!((name.as_str(), clause), ("losing", stuck(Duration::from_millis(300))));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_end_that_cannot_be_placed_ends_the_run_and_the_other_end_does_not_wait_for_it() {
    let here = allowed_cpus()[0];
    for (lead, follow) in [(NOWHERE, here), (here, NOWHERE), (NOWHERE, NOWHERE)] {
        for name in ["futex", "park", "std-mpsc"] {
            let error = refused(move || {
                let settings =
                    Settings { payload_bytes: 8, layout: Layout::Own, pause: Pause::Off };
                let mechanisms = Mechanisms::default();
                let make = mechanisms.find(name)?.maker(settings);
                let cpus = [vec![lead], vec![follow]];
                pair(&clock(), name, make, Placement::Pinned, cpus, PATIENCE).err()
            });
            assert!(error.contains("cannot place a thread") && error.contains("8191"), "{error}");
        }
    }
}

#[test]
fn load_that_cannot_be_placed_ends_the_run() {
    let error = refused(|| keep_awake::keep_awake(&[NOWHERE]).err());
    assert!(error.contains("8191"), "{error}");
    let kind = threadtoll_record::Neighbour::Spin;
    let error = refused(move || neighbour::neighbours(kind, &[NOWHERE], &[]).err());
    assert!(error.contains("8191"), "{error}");
}

#[test]
fn a_mechanism_that_this_version_does_not_have_is_named() {
    let machine = crate::simulated::SimulatedBackend::new(1).machine();
    let planned = planned("telepathy", Placement::SameCpu, vec![allowed_cpus()[0]]);
    let (clock, facts) = gated();
    match RealBackend::new(clock, facts).open(&machine, &[planned], &mut |_| Ok(())).err() {
        Some(LabError::Unknown(what)) => assert_eq!(what, "mechanism “telepathy”"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_missing_that_can_be_made() {
    let missing = missing_capabilities(&Mechanisms::default());
    for (name, why) in &missing.mechanisms {
        println!("{name}: {why}");
    }
    // These need nothing but memory and threads, in any sandbox.
    for name in ["function-call", "atomic-store", "futex", "park", "std-condvar", "std-mpsc"] {
        assert!(missing.mechanisms.iter().all(|(missing, _)| missing != name), "{name}");
    }
}
