//! Programs of other languages among our queues, mechanisms and locks.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use threadtoll_lab::contention;
use threadtoll_lab::foreign::program::{DescribedProgram, describe};
use threadtoll_lab::plan::{
    CpuSelection, LockChoice, MechanismChoice, Planned, QueueChoice, budget,
    contention as plan_locks, latency, queue,
};
use threadtoll_lab::queue::{Overrides, Queues, scenario};
use threadtoll_lab::real::RealBackend;
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_lab::{LabError, Outcome, PATIENCE, Registry, Share, Take, run};
use threadtoll_machine::clock::Clock;
use threadtoll_machine::machine_lock;
use threadtoll_machine::place::allowed_cpus;
use threadtoll_machine::topology::Topology;
use threadtoll_record::file::Results;
use threadtoll_record::{Machine, Origin, Placement, Plan, Record, Wait};

use crate::Nobody;
use crate::strikes::Told;

/// Scenarios that a program can be asked for by name.
const SCENARIOS: [&str; 2] = ["ask-reply", "stream"];

/// Programs of the tests of `foreign::program`; each is called as it misbehaves.
fn programs(names: &[&str]) -> (TempDir, Vec<DescribedProgram>) {
    let folder = TempDir::new().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/foreign/program/tests/peer.c");
    let described = names.iter().map(|name| {
        let path = folder.path().join(name);
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-pthread", "-o"]).arg(&path).arg(&source);
        assert!(compiler.status().unwrap().success());
        describe(&path, PATIENCE).unwrap_or_else(|why| panic!("{name}: {why}"))
    });
    let described = described.collect();
    (folder, described)
}

fn registry(programs: &[DescribedProgram]) -> Registry {
    let rows: Vec<_> = programs.iter().map(DescribedProgram::rows).collect();
    let (mut queues, mut mechanisms, mut locks) = (Vec::new(), Vec::new(), Vec::new());
    for rows in rows {
        assert_eq!(rows.left_out, []);
        queues.extend(rows.queues);
        mechanisms.extend(rows.mechanisms);
        locks.extend(rows.locks);
    }
    Registry {
        queues: Queues::with(queues),
        mechanisms: threadtoll_lab::mechanism::Mechanisms::with(mechanisms),
        locks: threadtoll_lab::lock::Locks::with(locks),
    }
}

/// The programs' queues and `pipe`, in a scenario.
fn planned(site: &CpuSelection<'_>, registry: &Registry, of: &str) -> Planned {
    let all = registry.queues.all();
    let queues = all.filter(|queue| queue.name == "pipe" || queue.origin == Origin::C).collect();
    let choice = QueueChoice {
        queues,
        placements: vec![Placement::Pinned],
        waits: vec![Wait::Spin],
        neighbours: vec![None],
        overrides: Overrides { time_ns: Some(20_000_000), ..Overrides::default() },
    };
    queue(site, scenario(of).unwrap(), registry, &choice)
}

fn plan_of(machine: &Machine, command: &[&str], (groups, refused): Planned) -> Plan {
    Plan {
        run: machine.run.clone(),
        command: command.iter().map(|word| (*word).into()).collect(),
        seed: 1,
        over_ns: 10_000,
        options: BTreeMap::new(),
        folded: None,
        repeat: None,
        processes: 1,
        until_saturated: false,
        refused,
        groups,
    }
}

fn alone(_: &Machine, _: &Plan, _: &Share, _: &mut Take<'_>) -> Result<(), LabError> {
    unreachable!("no other process measures anything")
}

/// Runs a plan on the simulated machine.
fn simulated(registry: &Registry, command: &[&str], planned: Planned) -> Vec<Record> {
    let mut backend = SimulatedBackend::new(3).with_registry(registry.clone());
    let machine = backend.machine();
    let plan = plan_of(&machine, command, planned);
    let mut results = Results::empty(machine, plan);
    let stop = Default::default();
    let outcome = run(&mut backend, &mut alone, &mut results, &mut None, &mut Nobody, &stop);
    assert_eq!(outcome.unwrap(), Outcome::Complete);
    results.records()
}

#[test]
fn rows_of_programs_are_planned_with_how_they_were_built() {
    let (_folder, programs) = programs(&["good"]);
    let registry = registry(&programs);
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    for of in SCENARIOS {
        let records = simulated(&registry, &["queue", of], planned(&site, &registry, of));
        let mut rows = 0;
        for record in records.iter().filter(|record| record.cell.name() == "good") {
            rows += 1;
            let cell = &record.cell;
            let built = cell.built.as_ref().unwrap();
            assert_eq!((&*built.language, &*built.compiler), ("c", "cc, none"));
            assert_eq!(cell.queue().unwrap().origin, Origin::C);
        }
        assert_eq!(rows, 1, "{of}");
    }
    for of in ["open-loop", "workers"] {
        let (groups, _) = planned(&site, &registry, of);
        assert!(groups.iter().flatten().all(|planned| planned.cell.name() != "good"), "{of}");
    }
    // Its messages have 8 bytes.
    let payload = planned(&site, &registry, "payload");
    assert!(payload.0.iter().flatten().all(|planned| planned.cell.name() != "good"));

    let mechanism = registry.mechanisms.find("good-spin").unwrap();
    let choice =
        MechanismChoice { placements: vec![Placement::Pinned], ..MechanismChoice::default() };
    let of = latency(
        &site,
        &registry.mechanisms,
        &[mechanism],
        &choice,
        budget(1_000_000, Some(50)),
        true,
    );
    let records = simulated(&registry, &["latency"], of);
    let record = records.iter().find(|record| record.cell.name() == "good-spin").unwrap();
    assert!(record.cell.built.is_some());

    let pool = |of: &str| {
        let overrides = contention::Overrides {
            threads: Some(vec![4]),
            loads: (of == "pool").then(|| contention::pool::loads(None, None, None, Some(20))),
            ..contention::Overrides::default()
        };
        let choice = LockChoice {
            locks: vec!["good-fair".into()],
            placements: vec![Placement::Pinned],
            overrides,
        };
        plan_locks(&site, contention::scenario(of).unwrap(), &registry.locks, &choice)
    };
    let records = simulated(&registry, &["contention", "pool"], pool("pool"));
    let record = records.iter().find(|record| record.cell.name() == "good-fair").unwrap();
    assert!(record.cell.built.is_some());
    let (groups, refused) = pool("hold-think");
    assert!(groups.is_empty());
    assert_eq!(refused[0].why, "its program measures only `contention pool` with --work sleep");
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn a_program_is_measured_in_turns_with_ours_and_its_fault_costs_its_row() {
    let _alone = machine_lock().unwrap();
    if allowed_cpus().len() < 2 {
        println!("one CPU: no queue between two");
        return;
    }
    let (_folder, programs) = programs(&["good", "loses", "exits", "refuses"]);
    let registry = registry(&programs);
    let (clock, facts) = Clock::gate().unwrap();
    let topology = Topology::read(Path::new("/sys"));
    let cpus = allowed_cpus();
    let site = CpuSelection::whole(&topology, &cpus);
    let mut machine = SimulatedBackend::new(1).machine();
    (machine.simulated, machine.allowed, machine.noise) = (false, cpus.clone(), Vec::new());
    machine.topology = topology.places.clone();
    (machine.cpus, machine.clock) = (cpus.len() as u32, facts.clone());
    for of in SCENARIOS {
        let plan = plan_of(&machine, &["queue", of], planned(&site, &registry, of));
        let mut results = Results::empty(machine.clone(), plan);
        let (mut told, stop) = (Told::default(), Default::default());
        loop {
            let mut real = RealBackend::new(clock, facts.clone())
                .with_registry(registry.clone())
                .with_patience(Duration::from_secs(10));
            match run(&mut real, &mut alone, &mut results, &mut None, &mut told, &stop) {
                Ok(outcome) => break assert_eq!(outcome, Outcome::Complete),
                // In a run each share has a process of its own, and only that ends.
                Err(LabError::Cell { .. }) => {}
                Err(error) => panic!("{of}: {error}"),
            }
        }
        told.0.sort();
        let told: Vec<(&str, &str)> =
            told.0.iter().map(|(row, what)| (row.as_str(), what.as_str())).collect();
        let [(exits, ended), (loses, lost), (refuses, refused)] = told[..] else {
            panic!("{of}: {told:?}")
        };
        assert_eq!([exits, loses, refuses], ["exits (poll)", "loses (poll)", "refuses (poll)"]);
        assert_eq!(ended, "its program ended by itself (exit status: 3)");
        assert!(lost.contains(" checked "), "{lost}");
        assert_eq!(refused, "it cannot be prepared: there is no memory for that");
        let records = results.records();
        let record = records.iter().rfind(|record| record.cell.name() == "good");
        let record = record.unwrap_or_else(|| panic!("{of}: {told:?}"));
        assert_eq!(record.own_program.unwrap().warm_up_ms, Some(0.into()));
        let ours = records.iter().find(|record| record.cell.name() == "pipe").unwrap();
        assert!(ours.own_program.is_none());
        if of == "ask-reply" {
            assert_eq!(record.quantiles.p50.unwrap().get().round(), 1000.0);
            assert_eq!(record.one_way_p50().unwrap().round(), 250.0);
            assert!(record.worst.is_empty(), "its order is not known");
        } else {
            assert_eq!(record.rate_per_s.unwrap().get(), 2e6);
        }
        assert!(!record.against.is_empty());
    }
}
