//! A simulated machine, whose figures are drawn from a seed. It has eight CPUs, unless it is given
//! another topology.
//!
//! Plans, files, tables and pages can be tested exactly on it. Its figures resemble no real
//! machine, and every line made with it says so.

mod delays;
mod fault;
mod kind;
mod locks;
mod messages;
mod overload;
mod regimes;
mod thread_group;
mod turns;
mod variation;

use std::cell::Cell as Mutable;
use std::rc::Rc;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_machine::topology::Topology;
use threadtoll_record::{
    Cell, ClockFacts, ClockSource, CpuNoise, CpuPlace, Grade, Machine, PlannedCell, Warning,
    run_id, timestamp,
};

use crate::LabError;
use crate::Registry;
use crate::backend::{At, Backend, Now, OpenCell};
use crate::program::Program;

pub use delays::{Delays, Service};
pub use fault::Fault;
pub use kind::{Kind, Thief};
pub use regimes::Regimes;
pub use variation::Variation;

use locks::Lock;
use messages::Messages;
use overload::OverloadedCell;
use thread_group::ThreadGroupCell;

use fault::Faulty;

/// 2026-01-01T00:00:00Z, the start of the simulated clock.
const START_NS: i128 = 1_767_225_600_000_000_000;

/// The simulated machine.
#[derive(Debug)]
pub struct SimulatedBackend {
    seed: u64,
    process: u32,
    time: Time,
    registry: Registry,
    kind: Kind,
    topology: Topology,
    processes_apart: f64,
    instances_apart: f64,
    variation: Variation,
    delays: Delays,
    faults: Vec<(String, Fault)>,
    groups: u32,
}

impl SimulatedBackend {
    /// Creates the machine with this seed. The upper half of the seed selects the machine's
    /// [`Kind`].
    pub fn new(seed: u64) -> Self {
        SimulatedBackend {
            seed,
            process: 0,
            time: Time::default(),
            registry: Registry::default(),
            kind: Kind::of(seed),
            topology: Self::topology(),
            processes_apart: 0.0,
            instances_apart: 0.0,
            variation: Variation::default(),
            delays: Delays::default(),
            faults: Vec::new(),
            groups: 0,
        }
    }

    /// Continues a run that has lasted this long, in the process with this number.
    pub fn continued(self, process: u32, seconds: f64) -> Self {
        self.time.elapsed_ns.set((seconds * 1e9) as u64);
        SimulatedBackend { process, ..self }
    }

    /// Looks up mechanisms, queues and locks in this registry.
    pub fn with_registry(self, registry: Registry) -> Self {
        SimulatedBackend { registry, ..self }
    }

    /// Gives the machine the CPUs of this topology.
    pub fn with_topology(self, topology: Topology) -> Self {
        SimulatedBackend { topology, ..self }
    }

    /// Makes the machine's speed change as `regimes` says.
    pub fn with_regimes(self, regimes: Regimes) -> Self {
        SimulatedBackend { kind: Kind { regimes, ..self.kind }, ..self }
    }

    /// Makes the machine's runs vary as `variation` says.
    pub fn with_variation(self, variation: Variation) -> Self {
        SimulatedBackend { variation, ..self }
    }

    /// Gives the queues of open loops these delays.
    pub fn with_delays(self, delays: Delays) -> Self {
        SimulatedBackend { delays, ..self }
    }

    /// Makes the cells of these mechanisms, queues or locks fail.
    pub fn with_faults(self, faults: Vec<(String, Fault)>) -> Self {
        SimulatedBackend { faults, ..self }
    }

    fn fault(&self, cell: &Cell) -> Option<Fault> {
        self.faults.iter().find(|(other, _)| other == cell.name()).map(|(_, fault)| *fault)
    }

    /// Slows down each cell in each process by its own random factor, whose logarithm has this
    /// standard deviation.
    pub fn with_processes_apart(self, processes_apart: f64) -> Self {
        SimulatedBackend { processes_apart, ..self }
    }

    /// Slows down each instance of an exchange or stream by its own random factor, whose logarithm
    /// has this standard deviation.
    pub fn with_instances_apart(self, instances_apart: f64) -> Self {
        SimulatedBackend { instances_apart, ..self }
    }

    /// Factor by which a cell is slower than its true time, in this group and process.
    fn slower(&self, cell: &Cell) -> f64 {
        let seed = !self.seed ^ fingerprint(cell) ^ (u64::from(self.process) << 40);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let here = (self.processes_apart * normal(&mut rng)).exp();
        here * self.variation.factor(cell, self.seed, self.groups)
    }

    /// On a simulated machine, a similar program of ours replaces a program in another language.
    fn program(&self, planned: &PlannedCell) -> Result<Program, LabError> {
        Ok(match self.registry.program(planned)? {
            Program::Elsewhere { like, .. } => *like,
            program => program,
        })
    }

    /// Time of a cell in a regime, without noise, in nanoseconds: per round trip, per message, or
    /// per acquisition of a lock by any thread.
    ///
    /// # Errors
    ///
    /// If the registry lacks the cell's mechanism, queue or lock.
    pub fn truth_ns(&self, planned: &PlannedCell, regime: usize) -> Result<f64, LabError> {
        let cell = &planned.cell;
        let value_ns = match self.program(planned)? {
            Program::Contention(spec, subject) => match &subject.overload {
                Some(_) => overload::value_ns(&spec, &subject),
                None => locks::value_ns(cell, &spec, &subject),
            },
            Program::Exchange { class, .. } => messages::value_ns(class, false, cell),
            Program::Stream(program) => messages::value_ns(program.class, true, cell),
            Program::ThreadGroup(program) => thread_group::service_ns(program.class, cell),
            Program::Elsewhere { .. } => unreachable!("its `like` is run instead"),
        };
        Ok(value_ns * self.kind.regimes.factor(regime, cell))
    }

    /// Topology of eight CPUs: two last-level caches, each with two cores of two hardware threads.
    pub fn topology() -> Topology {
        let places = (0..8)
            .map(|cpu| CpuPlace {
                cpu,
                core: cpu & !1,
                llc: Some(cpu & !3),
                node: 0,
                smt: vec![cpu & !1, cpu | 1],
                kind: None,
            })
            .collect();
        Topology { places, readable: true, synthetic: false }
    }

    /// The machine's line in a results file.
    pub fn machine(&self) -> Machine {
        let topology = &self.topology;
        let allowed: Vec<u32> = topology.places.iter().map(|place| place.cpu).collect();
        Machine {
            run: run_id(START_NS, self.seed as u32).into(),
            at: timestamp(START_NS).into(),
            tool: format!("threadtoll {} (simulated)", env!("CARGO_PKG_VERSION")).into(),
            simulated: true,
            synthetic: false,
            cpu: format!("simulated, seed {}", self.seed).into(),
            arch: "simulated".into(),
            cpus: allowed.len() as u32,
            noise: allowed
                .iter()
                .map(|cpu| CpuNoise {
                    cpu: *cpu,
                    watched_ns: 100_000_000.into(),
                    gaps: vec![(1_000.into(), 12.into()), (10_000.into(), 3.into())],
                    lost_share: 0.0004.into(),
                    longest_ns: 21_000.into(),
                })
                .collect(),
            allowed,
            topology: topology.places.clone(),
            quota_cpus: None,
            kernel: "simulated".into(),
            governor: Some("performance".into()),
            boost: Some(false),
            virtualised: None,
            idle_driver: None,
            timer_slack_ns: Some(50_000.into()),
            membarrier: true,
            clock: ClockFacts {
                source: ClockSource::Simulated,
                step_ns: 1.0.into(),
                read_ns: 10.0.into(),
                invariant: true,
                tick_ns: 1.0.into(),
                drift_ppm: 0.0.into(),
            },
            grade: Grade::B,
            warnings: vec![Warning::new(
                "simulated",
                "The machine is simulated; no figure was measured.",
            )],
        }
    }
}

impl Backend for SimulatedBackend {
    fn now(&mut self) -> Now {
        self.time.now()
    }

    fn open(
        &mut self,
        _: &Machine,
        group: &[PlannedCell],
        at: &mut At<'_>,
    ) -> Result<Vec<Box<dyn OpenCell>>, LabError> {
        self.groups += 1;
        let process = u64::from(self.process) << 40;
        let open = |planned: &PlannedCell| -> Result<Box<dyn OpenCell>, LabError> {
            let draws = Draws {
                time: self.time.clone(),
                planned: planned.clone(),
                seed: self.seed,
                machine: self.kind,
                calibration: self.variation.calibration,
                slower: self.slower(&planned.cell),
                instances: Instances::new(
                    self.instances_apart,
                    self.seed ^ fingerprint(&planned.cell).rotate_left(20) ^ process,
                ),
                // The seed does not depend on the order of blocks, so that a resumed run gets the
                // same figures.
                loops: [false, true].map(|stamped| {
                    let seed = fingerprint(&planned.cell) ^ self.seed ^ process;
                    let seed = if stamped { !seed } else { seed };
                    (Xoshiro256PlusPlus::seed_from_u64(seed), 0)
                }),
            };
            Ok(match self.program(planned)? {
                Program::Exchange { class, .. } => Box::new(Messages::new(draws, class, false)),
                Program::Stream(program) => Box::new(Messages::new(draws, program.class, true)),
                Program::ThreadGroup(program) => {
                    Box::new(ThreadGroupCell::new(draws, program, self.delays))
                }
                Program::Contention(spec, subject) => match subject.overload {
                    Some(load) => Box::new(OverloadedCell::new(draws, *spec, subject, load)),
                    None => Box::new(Lock::new(draws, *spec, subject)),
                },
                Program::Elsewhere { .. } => unreachable!("its `like` is run instead"),
            })
        };
        let mut cells = Vec::new();
        for (index, planned) in group.iter().enumerate() {
            at(index)?;
            let cell = open(planned)?;
            cells.push(match self.fault(&planned.cell) {
                None => cell,
                Some(fault) => Box::new(Faulty::open(cell, &planned.cell, fault)?),
            });
        }
        Ok(cells)
    }

    fn leaves_threads(&self) -> bool {
        false
    }

    fn elapse(&mut self, blocks: u64, ns: u64) {
        (0..blocks).for_each(|_| self.time.block_took(0));
        self.time.elapsed_ns.set(self.time.elapsed_ns.get() + ns);
    }

    fn wait(&mut self, ns: u64) {
        self.time.elapsed_ns.set(self.time.elapsed_ns.get() + ns);
    }

    fn recheck(&mut self) -> Result<(), LabError> {
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
struct Time {
    elapsed_ns: Rc<Mutable<u64>>,
}

impl Time {
    fn now(&self) -> Now {
        let elapsed_ns = self.elapsed_ns.get();
        Now { unix_ns: START_NS + i128::from(elapsed_ns), since_start_s: elapsed_ns as f64 / 1e9 }
    }

    fn block_took(&self, ns: u64) {
        self.elapsed_ns.set(self.elapsed_ns.get() + ns + 1_000_000);
    }
}

struct Draws {
    time: Time,
    planned: PlannedCell,
    seed: u64,
    machine: Kind,
    /// Standard deviation of the logarithm of a calibrated figure between repeats.
    calibration: f64,
    /// Factor by which the cell is slower than its true time.
    slower: f64,
    instances: Instances,
    /// Generator and number of rounds so far, for stretches and for stamped blocks.
    loops: [(Xoshiro256PlusPlus, u32); 2],
}

struct Instances {
    rng: Xoshiro256PlusPlus,
    apart: f64,
    slower: f64,
}

impl Instances {
    fn new(apart: f64, seed: u64) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut instances = Instances { rng, apart, slower: 1.0 };
        instances.next();
        instances
    }

    fn next(&mut self) {
        self.slower = (self.apart * normal(&mut self.rng)).exp();
    }
}

/// An approximately normal random number.
fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// FNV-1a hash of a cell's identity.
fn fingerprint(cell: &Cell) -> u64 {
    let text = format!("{} {:?} {:?}", cell.label(), cell.placement, cell.cpus);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}
