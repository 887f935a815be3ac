//! Plans, and runs of plans.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use threadtoll_lab::mechanism::Mechanism;
use threadtoll_lab::plan::Planned;
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_lab::{LabError, Observer, Outcome, Registry, Share, Take, measure_share};
use threadtoll_record::file::Results;
use threadtoll_record::{Machine, Plan, PlannedCell, Record};

mod comparison;
mod contention;
mod foreign;
mod instances;
mod load;
mod overload;
mod plan;
mod programs;
mod queue;
mod regimes;
mod registry;
mod repeat;
mod run;
mod served;
mod strikes;
mod timelines;

/// The default registry.
static OURS: LazyLock<Registry> = LazyLock::new(Registry::default);

fn mechanism(name: &str) -> &'static Mechanism {
    OURS.mechanisms.find(name).unwrap()
}

struct Nobody;

impl Observer for Nobody {
    fn group(&mut self, _: usize, _: usize, _: &[PlannedCell], _: u64) {}

    fn block(&mut self, _: &PlannedCell, _: u64, _: u64) {}

    fn record(&mut self, _: &Record) {}
}

/// The plan of `latency` with these groups on the simulated machine of this seed.
fn latency_plan(seed: u64, processes: u32, (groups, refused): Planned) -> Plan {
    Plan {
        run: SimulatedBackend::new(seed).machine().run,
        command: vec!["latency".into()],
        seed,
        over_ns: 10_000,
        options: BTreeMap::new(),
        folded: None,
        repeat: None,
        until_saturated: false,
        processes,
        refused,
        groups,
    }
}

/// Measures a plan on a simulated machine, with a backend of its own for each process.
fn run_simulated(machine: &dyn Fn() -> SimulatedBackend, plan: &Plan) -> Results {
    let mut backend = machine();
    let mut results = Results::empty(backend.machine(), plan.clone());
    let stop = AtomicBool::new(false);
    let mut launch = |facts: &Machine,
                      plan: &Plan,
                      share: &Share,
                      take: &mut Take<'_>|
     -> Result<(), LabError> {
        let mut other = machine().continued(share.process, share.since_start_s);
        measure_share(&mut other, facts, plan, share, take, &stop).map(|_| ())
    };
    let outcome =
        threadtoll_lab::run(&mut backend, &mut launch, &mut results, &mut None, &mut Nobody, &stop);
    assert_eq!(outcome.unwrap(), Outcome::Complete);
    results
}
