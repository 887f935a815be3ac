//! Queues that fail cost their rows, and the others are measured.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use threadtoll::wait::Wait as Waiting;
use threadtoll_lab::mechanism::Unavailable;
use threadtoll_lab::plan::{
    CpuSelection, MechanismChoice, Planned, QueueChoice, budget, latency, queue,
};
use threadtoll_lab::queue::pipe::{From, Pipe, To};
use threadtoll_lab::queue::{
    Capacity, Channel, Message, Overrides, Queue, Queues, Sink, Source, Way, open_loop, scenario,
};
use threadtoll_lab::real::RealBackend;
use threadtoll_lab::simulated::{Delays, Fault, Service, SimulatedBackend};
use threadtoll_lab::{LabError, Observer, Outcome, Registry, Share, Take, run};
use threadtoll_machine::clock::Clock;
use threadtoll_machine::machine_lock;
use threadtoll_machine::place::allowed_cpus;
use threadtoll_machine::topology::Topology;
use threadtoll_record::file::{Appender, Results, read};
use threadtoll_record::{Machine, Origin, Placement, Plan, PlannedCell, Record, Strike, Wait};

use crate::{OURS, latency_plan, mechanism};

/// Message with which a queue fails, counted from 1.
const NTH: u64 = 15;

const SOUND: u8 = 0;
const LOSES: u8 = 1;
const REPEATS: u8 = 2;
const REORDERS: u8 = 3;
const SPOILS: u8 = 4;
const HANGS: u8 = 5;
const REFUSES: u8 = 6;
const PANICS: u8 = 7;

/// Hangs asleep, to leave the CPUs to other tests.
fn hang_if(hangs: bool) {
    if hangs {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

/// A pipe with a fault. Its receiver sleeps, so that what hangs leaves the CPUs to other tests. If
/// it hangs, so does its sender, which would fill the memory otherwise.
#[derive(Clone, Debug, Default)]
struct Faulty<const FAULT: u8>;

#[derive(Debug)]
struct Sender<M: Message, const FAULT: u8> {
    inner: To<M>,
    sent: u64,
    kept: Option<M>,
}

impl<M: Message, const FAULT: u8> Source<M> for Sender<M, FAULT> {
    fn send(&mut self, message: M) {
        self.sent += 1;
        hang_if(FAULT == HANGS && self.sent >= NTH);
        match (FAULT, self.sent == NTH) {
            (LOSES, true) => {}
            (REPEATS, true) => {
                self.inner.send(message);
                self.inner.send(message);
            }
            (REORDERS, true) => self.kept = Some(message),
            (SPOILS, true) => self.inner.send(M::all(7)),
            (PANICS, true) => panic!("a queue of a test ends its thread"),
            _ => self.inner.send(message),
        }
        if self.sent > NTH
            && let Some(kept) = self.kept.take()
        {
            self.inner.send(kept);
        }
    }
}

#[derive(Debug)]
struct Receiver<M: Message, const FAULT: u8> {
    inner: From<M>,
    received: u64,
}

impl<M: Message, const FAULT: u8> Sink<M> for Receiver<M, FAULT> {
    fn receive(&mut self) -> M {
        self.received += 1;
        hang_if(FAULT == HANGS && self.received >= NTH);
        self.inner.receive()
    }
}

impl<M: Message, const FAULT: u8> Channel<M> for Faulty<FAULT> {
    type Source = Sender<M, FAULT>;
    type Sink = Receiver<M, FAULT>;

    fn open(&self, capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable> {
        if FAULT == REFUSES {
            return Err(Unavailable::new("no memory", io::Error::other("it is a test")));
        }
        let (source, sink) = Pipe::unbounded(Waiting::Park).open(capacity)?;
        let source = Sender { inner: source, sent: 0, kept: None };
        Ok((source, Receiver { inner: sink, received: 0 }))
    }
}

fn faulty<const FAULT: u8>(name: &str) -> Queue {
    Queue {
        name: name.into(),
        origin: Origin::Rust,
        version: "1.0.0".into(),
        sentence: "a queue of a test".into(),
        capacity: Capacity::Unbounded,
        built: None,
        ways: vec![Way::one_sender::<Faulty<FAULT>>(Wait::Block)],
    }
}

fn registry() -> Registry {
    let queues = vec![
        faulty::<SOUND>("sound"),
        faulty::<LOSES>("loses"),
        faulty::<REPEATS>("repeats"),
        faulty::<REORDERS>("reorders"),
        faulty::<SPOILS>("spoils"),
        faulty::<HANGS>("hangs"),
        faulty::<REFUSES>("refuses"),
        faulty::<PANICS>("panics"),
        faulty::<SOUND>("sound-too"),
    ];
    Registry { queues: Queues::with(queues), ..OURS.clone() }
}

fn planned(
    site: &CpuSelection<'_>,
    registry: &Registry,
    of: &str,
    rates: Option<Vec<u64>>,
) -> Planned {
    let choice = QueueChoice {
        queues: registry.queues.all().filter(|queue| queue.version == "1.0.0").collect(),
        placements: vec![Placement::Pinned],
        waits: Vec::new(),
        neighbours: vec![None],
        overrides: Overrides {
            loads: rates.map(|rates| open_loop::loads(None, None, Some(&rates))),
            time_ns: Some(20_000_000),
            ..Overrides::default()
        },
    };
    queue(site, scenario(of).unwrap(), registry, &choice)
}

fn plan_of(machine: &Machine, site: &CpuSelection<'_>, registry: &Registry, of: &str) -> Plan {
    // Enough for each block to reach the message at which a queue fails.
    let rates = (of == "open-loop").then(|| vec![200_000]);
    let (groups, refused) = planned(site, registry, of, rates);
    Plan {
        run: machine.run.clone(),
        command: vec!["queue".into(), of.into()],
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

/// A row that was given up, as the user is told of it.
pub(super) type GivenUp = (String, String);

/// An observer that keeps what was given up.
#[derive(Default)]
pub(super) struct Told(pub(super) Vec<GivenUp>);

impl Observer for Told {
    fn group(&mut self, _: usize, _: usize, _: &[PlannedCell], _: u64) {}

    fn block(&mut self, _: &PlannedCell, done: u64, of: u64) {
        assert!(done <= of);
    }

    fn record(&mut self, _: &Record) {}

    fn struck(&mut self, plan: &Plan, strike: &Strike) {
        self.0.push((strike.name(plan), strike.what.to_string()));
    }
}

fn alone(_: &Machine, _: &Plan, _: &Share, _: &mut Take<'_>) -> Result<(), LabError> {
    unreachable!("no other process measures anything")
}

fn labels(results: &Results) -> Vec<String> {
    let records = results.records();
    let queues = records.iter().filter(|record| record.cell.queue().is_some());
    queues.map(|record| record.cell.name().to_string()).collect()
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn every_fault_of_a_queue_costs_its_row_and_a_line() {
    let _alone = machine_lock().unwrap();
    if allowed_cpus().len() < 2 {
        println!("one CPU: no queue between two");
        return;
    }
    let registry = registry();
    let (clock, facts) = Clock::gate().unwrap();
    let topology = Topology::read(Path::new("/sys"));
    let cpus = allowed_cpus();
    let site = CpuSelection::whole(&topology, &cpus);
    let mut machine = SimulatedBackend::new(1).machine();
    (machine.simulated, machine.allowed, machine.noise) = (false, cpus.clone(), Vec::new());
    machine.topology = topology.places.clone();
    (machine.cpus, machine.clock) = (cpus.len() as u32, facts.clone());
    for of in ["ask-reply", "stream", "open-loop"] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("run.jsonl");
        let plan = plan_of(&machine, &site, &registry, of);
        let mut file = Some(Appender::create(&path, &machine, &plan).unwrap());
        let mut results = Results::empty(machine.clone(), plan);
        let mut told = Told::default();
        let (mut failed, stop) = (0, Default::default());
        loop {
            // A row that fails ends the run, which goes on as if in a new process.
            let mut real = RealBackend::new(clock, facts.clone())
                .with_registry(registry.clone())
                .with_patience(Duration::from_secs(3));
            match run(&mut real, &mut alone, &mut results, &mut file, &mut told, &stop) {
                Ok(outcome) => {
                    assert_eq!(outcome, Outcome::Complete);
                    break;
                }
                Err(LabError::Cell { .. }) => failed += 1,
                Err(error) => panic!("{error}"),
            }
            drop(file);
            results = read(&path).unwrap();
            assert!(!results.complete() && results.notes.is_empty());
            file = Some(Appender::resume(&path, results.length, results.read_length).unwrap());
        }
        let why = |name: &str| {
            let name = format!("{name} (block)");
            let mut of_row = told.0.iter().filter(|(row, _)| *row == name);
            let (_, why) = of_row.next().unwrap_or_else(|| panic!("{of} {name}: {:?}", told.0));
            assert!(of_row.next().is_none(), "{name} was given up twice");
            why.as_str()
        };
        let wrong = "a message was wrong, lost, repeated or out of order";
        let hung = "it made no progress for 3 s";
        assert_eq!((why("spoils"), why("hangs")), (wrong, hung), "{of}");
        assert_eq!(why("panics"), "one of its threads ended early", "{of}");
        assert_eq!(why("refuses"), "it cannot be measured here: no memory: it is a test", "{of}");
        // An end may notice, or wait for a message that does not come: with answers of which one
        // came twice, too.
        for name in ["loses", "repeats", "reorders"] {
            assert!([wrong, hung].contains(&why(name)), "{of}: {name}");
        }
        assert_eq!(failed, told.0.len(), "{of}");

        let file = read(&path).unwrap();
        assert_eq!((&file.groups, &file.strikes), (&results.groups, &results.strikes));
        assert!(file.complete() && !file.nothing_left());
        let left: Vec<String> = labels(&file);
        assert!(!left.is_empty() && left.iter().all(|name| name.starts_with("sound")), "{left:?}");
        assert!(left.iter().any(|name| name == "sound-too"));
    }
}

/// A run of `latency` on the simulated machine with these faults, in this process.
fn simulated(
    faults: &[(&str, Fault)],
    of: &[&str],
) -> (Result<Outcome, LabError>, Results, Vec<GivenUp>) {
    let faults = faults.iter().map(|(name, fault)| (name.to_string(), *fault)).collect();
    let mut backend = SimulatedBackend::new(3).with_registry(OURS.clone()).with_faults(faults);
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let mechanisms: Vec<_> = of.iter().map(|name| mechanism(name)).collect();
    let choice = MechanismChoice {
        placements: vec![Placement::Pinned, Placement::SameCpu],
        ..MechanismChoice::default()
    };
    let budget = budget(1_000_000, Some(50));
    let planned = latency(&site, &OURS.mechanisms, &mechanisms, &choice, budget, true);
    let mut results = Results::empty(backend.machine(), latency_plan(3, 1, planned));
    let (mut told, stop) = (Told::default(), Default::default());
    let outcome = run(&mut backend, &mut alone, &mut results, &mut None, &mut told, &stop);
    (outcome, results, told.0)
}

#[test]
fn a_row_that_fails_is_given_up_once_with_all_that_is_left_of_it() {
    for fault in [Fault::Hung, Fault::WrongMessage, Fault::Refused] {
        let (outcome, results, told) = simulated(&[("eventfd", fault)], &["eventfd", "park"]);
        assert_eq!(outcome.unwrap(), Outcome::Complete);
        let [(name, _)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(name, "eventfd");
        let names: Vec<String> =
            results.records().iter().map(|record| record.cell.name().to_string()).collect();
        assert!(names.iter().any(|name| name == "park") && !names.contains(&"eventfd".into()));
        let planned = results.plan.groups.iter().flatten();
        assert!(planned.filter(|planned| planned.cell.name() == "eventfd").count() > 1);
    }
}

#[test]
fn a_run_in_which_every_row_fails_is_complete_and_has_nothing() {
    // The futex is what the others are compared with, and a row as well.
    let faults = ["eventfd", "park", "futex"].map(|name| (name, Fault::Hung));
    let (outcome, results, told) = simulated(&faults, &["eventfd", "park"]);
    assert_eq!((outcome.unwrap(), told.len()), (Outcome::Complete, 3));
    assert!(results.nothing_left() && results.records().is_empty());
}

#[test]
fn what_others_are_compared_with_can_be_given_up() {
    let (outcome, results, told) = simulated(&[("futex", Fault::Hung)], &["futex", "park"]);
    assert_eq!(outcome.unwrap(), Outcome::Complete);
    let [(row, _)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(row.as_str(), "futex");
    let records = results.records();
    assert!(records.iter().all(|record| record.cell.name() != "futex"));
    // The others are still compared with the reference.
    let others: Vec<&Record> =
        records.iter().filter(|record| record.cell.name() == "park").collect();
    assert_eq!(others.len(), 2, "pinned and on one CPU");
    for record in others {
        assert_eq!(record.against.len(), 1);
        assert_eq!(record.against[0].cell, results.plan.groups[record.group][0].cell);
    }
}

#[test]
fn a_reference_that_fails_ends_the_run() {
    let (outcome, results, told) = simulated(&[("atomic-store", Fault::Hung)], &["atomic-rmw"]);
    let error = outcome.unwrap_err();
    assert!(matches!(error, LabError::Cell { .. }), "{error:?}");
    assert!(error.to_string().starts_with("atomic-store"), "{error}");
    assert!(told.is_empty() && results.strikes.is_empty() && !results.complete());
}

/// A sweep of rates, and for each of its groups, `true` if it was measured.
fn swept(faults: &[(&str, Fault)]) -> (Vec<bool>, Results) {
    let registry = registry();
    let faults = faults.iter().map(|(name, fault)| (name.to_string(), *fault)).collect();
    // Saturated above a million messages per second.
    let delays = Delays { service: Some(Service::Fixed(1_000.0)), ..Delays::default() };
    let mut backend = SimulatedBackend::new(3)
        .with_registry(registry.clone())
        .with_delays(delays)
        .with_faults(faults);
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let mut plan = plan_of(&backend.machine(), &site, &registry, "open-loop");
    let rates = vec![100_000, 4_000_000, 16_000_000];
    plan.groups = planned(&site, &registry, "open-loop", Some(rates)).0;
    plan.until_saturated = true;
    let mut results = Results::empty(backend.machine(), plan);
    let stop = Default::default();
    let mut told = Told::default();
    let outcome = run(&mut backend, &mut alone, &mut results, &mut None, &mut told, &stop);
    assert_eq!(outcome.unwrap(), Outcome::Complete);
    (results.groups.iter().map(|group| group.records.is_some()).collect(), results)
}

#[test]
fn a_sweep_ends_where_the_rows_that_are_left_saturate() {
    let (all, _) = swept(&[]);
    assert!(all.first() == Some(&true) && all.last() == Some(&false), "{all:?}");
    let (without, results) = swept(&[("sound-too", Fault::WrongMessage)]);
    assert_eq!(without, all);
    let rows = results.saturated_rows().into_values().flatten();
    assert!(rows.map(|row| row.name().to_string()).all(|name| name != "sound-too"));
}
