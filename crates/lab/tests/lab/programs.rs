//! Programs of other languages among our queues, mechanisms and locks.

use std::collections::{BTreeMap, BTreeSet};
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
use threadtoll_lab::queue::{LoadChoice, Overrides, Queues, scenario};
use threadtoll_lab::real::RealBackend;
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_lab::{LabError, Outcome, Registry, Share, Take, run};
use threadtoll_machine::clock::Clock;
use threadtoll_machine::machine_lock;
use threadtoll_machine::place::allowed_cpus;
use threadtoll_machine::topology::Topology;
use threadtoll_record::StrikeReason::{Crashed, Refused, WrongMessage};
use threadtoll_record::file::Results;
use threadtoll_record::{Machine, Origin, Placement, Plan, Record, Wait};

use crate::Nobody;
use crate::strikes::Told;

/// Scenarios that a program can be asked for by name.
const SCENARIOS: [&str; 8] =
    ["ask-reply", "stream", "open-loop", "burst", "workers", "funnel", "depth", "flood"];

/// Programs of the tests of `foreign::program`; each is called as it misbehaves.
fn programs(names: &[&str]) -> (TempDir, Vec<DescribedProgram>) {
    let folder = TempDir::new().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/foreign/program/tests/peer.c");
    let described = names.iter().map(|name| {
        let path = folder.path().join(name);
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-pthread", "-o"]).arg(&path).arg(&source);
        assert!(compiler.status().unwrap().success());
        describe(&path).unwrap_or_else(|fault| panic!("{name}: {fault}"))
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
    let load = match of {
        "open-loop" => LoadChoice { rates: Some(vec![100_000]), ..LoadChoice::default() },
        "burst" => LoadChoice {
            bursts: Some(vec![8]),
            gaps_ns: Some(vec![80_000]),
            ..LoadChoice::default()
        },
        "workers" => LoadChoice { receivers: Some(vec![2]), ..LoadChoice::default() },
        "depth" => LoadChoice { depths: Some(vec![50]), ..LoadChoice::default() },
        _ => LoadChoice::default(),
    };
    let choice = QueueChoice {
        queues,
        placements: vec![Placement::Pinned],
        waits: vec![Wait::Spin],
        neighbours: vec![None],
        overrides: Overrides { load, time_ns: Some(20_000_000), ..Overrides::default() },
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

fn alone(_: &Machine, _: &Plan, _: Share<'_>, _: &mut Take<'_>) -> Result<(), LabError> {
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
        let expected = match of {
            // One receiver, and more.
            "workers" => 2,
            // One sender, 2 and 4.
            "funnel" => 3,
            _ => 1,
        };
        assert_eq!(rows, expected, "{of}");
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
            tasks: (of == "pool").then_some(20),
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
    assert_eq!(refused[0].why, "its program only measures pools whose threads sleep");
}

#[test]
#[ignore = "real machine: ci/real.sh"]
fn a_program_is_measured_in_turns_with_ours_and_its_fault_costs_its_row() {
    let _alone = machine_lock().unwrap();
    if allowed_cpus().len() < 2 {
        println!("one CPU: no queue between two");
        return;
    }
    let (_folder, programs) = programs(&["good", "loses", "exits", "refuses", "computes"]);
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
                Err(LabError::Cell { reason: Crashed, .. }) => {}
                Err(error) => panic!("{of}: {error}"),
            }
        }
        let line = |name: &str| {
            let own = told.0.iter().find(|(row, ..)| row.starts_with(name));
            own.unwrap_or_else(|| panic!("{of} {name}: {:?}", told.0)).clone()
        };
        let ended = "its program ended by itself (exit status: 3)";
        assert_eq!(line("exits"), ("exits (poll)".into(), Crashed, ended.into()));
        assert_eq!(line("loses").1, WrongMessage);
        let (_, reason, what) = line("refuses");
        let refused = "it cannot be prepared: there is no memory for that";
        assert_eq!((reason, what.as_str()), (Refused, refused));
        let (_, reason, what) = line("computes");
        assert!(reason == Crashed && what.ends_with("of a CPU between its blocks"), "{what}");
        // Of `refuses`, each cell is tried.
        let name = |row: &'_ str| row.split([' ', ',']).next().unwrap_or_default().to_string();
        let names: BTreeSet<String> = told.0.iter().map(|(row, ..)| name(row)).collect();
        assert_eq!(names.len(), 4, "{:?}", told.0);
        let records = results.records();
        let record = records.iter().rfind(|record| record.cell.name() == "good");
        let record = record.unwrap_or_else(|| panic!("{of}: {:?}", told.0));
        assert_eq!(record.own_program.unwrap().warm_up_ms, Some(0.into()));
        let ours = records.iter().find(|record| record.cell.name() == "pipe");
        assert_eq!(ours.is_some(), of != "flood", "a pipe has one sender");
        assert!(ours.is_none_or(|ours| ours.own_program.is_none()));
        match of {
            "ask-reply" => {
                assert_eq!(record.quantiles.p50.unwrap().get().round(), 1000.0);
                assert_eq!(record.one_way_p50().unwrap().round(), 250.0);
            }
            "stream" => assert_eq!(record.rate_per_s.unwrap().get(), 2e6),
            "workers" => {
                let workers = record.workers.as_ref().unwrap();
                assert_eq!(workers.fairness.unwrap().get(), 1.0);
                assert!(!workers.bundle);
                assert_eq!(
                    record.rate_per_s.unwrap().get().round(),
                    (2_000.0 / 9.5e-3_f64).round()
                );
            }
            "funnel" => {
                let funnel = record.funnel.as_ref().unwrap();
                assert_eq!(funnel.chatty.p50.unwrap().get().round(), 700.0);
                assert_eq!(record.quantiles.p50.unwrap().get().round(), 300.0);
            }
            "depth" => {
                let calls = record.calls.as_ref().unwrap();
                assert_eq!(calls.send_ns.unwrap().get(), 10.0);
                assert!(record.resident_bytes.is_none());
            }
            "flood" => assert_eq!(record.quantiles.p50.unwrap().get().round(), 250.0),
            _ => {
                let open = record.open_loop.as_ref().unwrap();
                assert_eq!(open.rate_per_s.unwrap().get(), 100_000.0);
                assert!(!open.saturated);
                assert_eq!(open.cpu_ns_per_message.unwrap().get(), 450.0);
                let last_ns = record.burst.and_then(|burst| burst.last_ns);
                assert_eq!(last_ns.map(|ns| ns.get()), (of == "burst").then_some(600.0));
            }
        }
        assert!(!record.against.is_empty());
    }
}
