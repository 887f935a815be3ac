//! The engine on the real machine with mechanisms and placements that fail.

use std::sync::LazyLock;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use threadtoll_machine::lock::machine_lock;
use threadtoll_machine::place::allowed_cpus;
use threadtoll_record::{BlockKind, Budget, Experiment, Layout, Pause, Relation, Subject};
use threadtoll_stats::resample::{Processes, median_with_interval};

use crate::error::{WRONG_MESSAGE, stuck};
use crate::mechanism::tests::{Fault, broken};
use crate::mechanism::{Mechanism, Mechanisms, Settings};
use crate::samples::{BlockSamples, RoundTrips, Samples};

use super::pair::pair;
use super::passes::{Pass, Watch};
use super::*;

/// A CPU that does not exist on any machine.
const NOWHERE: u32 = 8191;

fn gated() -> (Clock, ClockFacts) {
    static GATED: LazyLock<(Clock, ClockFacts)> = LazyLock::new(|| Clock::gate().unwrap());
    GATED.clone()
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

/// Measures the first block of a cell with this mechanism. Both ends are on one CPU.
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

/// Returns the error of `work`, which must return within a minute: a test that hangs would report
/// nothing.
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
    // These mechanisms need only memory and threads, which every sandbox has.
    for name in ["function-call", "atomic-store", "futex", "park", "std-condvar", "std-mpsc"] {
        assert!(missing.mechanisms.iter().all(|(missing, _)| missing != name), "{name}");
    }
}

/// Compares the measured loop, which stamps each stretch, with a loop that has only two stamps, one
/// at each end. The two loops alternate.
#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn stamps_between_stretches_are_negligible() {
    const PAIRS: u32 = 41;
    const BLOCK_NS: f64 = 20e6;
    let _alone = machine_lock().unwrap();
    let &[lead, follow, ..] = &allowed_cpus()[..] else {
        println!("skipped: two CPUs are needed");
        return;
    };
    let (clock, facts) = gated();
    let stamp_ns = facts.step_ns.get() + facts.read_ns.get();
    let settings = Settings { payload_bytes: 8, layout: Layout::Own, pause: Pause::Off };
    for name in ["atomic-store", "atomic-rmw", "futex"] {
        let make = Mechanisms::default().find(name).unwrap().maker(settings);
        let cpus = [vec![lead], vec![follow]];
        let mut pair = pair(&clock, name, make, Placement::Pinned, cpus, PATIENCE).unwrap();
        let warm_up = clock.ticks(WARM_UP_NS);
        let mut mean_ns = |stretches: u64, per_stretch: u64| {
            let (length, watch) = (u64::MAX, Watch::Nothing);
            let pass = Pass { warm_up, stretches, per_stretch, length, watch };
            pair.run(pass, PATIENCE).unwrap().mean_ns(&clock, per_stretch).unwrap()
        };
        let mut typical_ns = mean_ns(1, 20_000);
        let mut ratio = |index: u32| {
            let per_stretch = per_stretch(stamp_ns, typical_ns);
            let fit = BLOCK_NS / (typical_ns * per_stretch as f64);
            let stretches = fit.clamp(2.0, 100_000.0) as u64;
            let (bare, stretched) = if index.is_multiple_of(2) {
                let bare = mean_ns(1, stretches * per_stretch);
                (bare, mean_ns(stretches, per_stretch))
            } else {
                let stretched = mean_ns(stretches, per_stretch);
                (mean_ns(1, stretches * per_stretch), stretched)
            };
            typical_ns = bare.min(stretched).max(0.1);
            stretched / bare
        };
        let ratios: Vec<f64> = (0..PAIRS).map(&mut ratio).collect();
        let all = Processes::one(ratios.len());
        let (ratio, interval) = median_with_interval(&ratios, &all, 1).unwrap();
        println!("{name}: {ratio:.4} times as long with stamps, 95% interval {interval:?}");
        assert!(interval.is_none_or(|[low, _]| low < 1.01), "{name}: {interval:?}");
    }
}
