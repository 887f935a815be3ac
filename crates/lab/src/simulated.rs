//! A machine that does not exist: eight CPUs whose figures are drawn from a seed.
//!
//! It stands behind the same seam as the real one, so that plans, files, folding, tables and pages
//! can be tested to the letter, and interrupted at every instant without waiting. Its figures
//! resemble no machine's, and every line made with it says so.

mod locks;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_machine::topology::Topology;
use threadtoll_record::{
    BlockCost, BlockKind, Cell, ClockFacts, ClockSource, CpuNoise, CpuPlace, Disturbance, Grade,
    Kind, Machine, Origin, Placement, PlannedCell, QueueSubject, Relation, Wait, WaitFamily,
    Warning, run_id, timestamp,
};

use crate::contention::foretell::Calibration;
use crate::lock::Named;
use crate::mechanism::{self, Class};
use crate::queue::{self, Queues};
use crate::rig::{LabError, Measured, Now, Rig, Stage};

/// 2026-01-01T00:00:00Z: where the simulated clock starts.
const START_NS: i128 = 1_767_225_600_000_000_000;
/// Values of a simulated block, enough for every quantile but the last.
const STRETCHES: u64 = 60;
const SAMPLES: u64 = 1200;

/// The simulated machine.
#[derive(Debug)]
pub struct SimulatedRig {
    seed: u64,
    elapsed_ns: u64,
    queues: Queues,
}

impl SimulatedRig {
    /// The machine of this seed.
    pub fn new(seed: u64) -> Self {
        SimulatedRig { seed, elapsed_ns: 0, queues: Queues::default() }
    }

    /// The same with these queues.
    pub fn with_queues(self, queues: Queues) -> Self {
        SimulatedRig { queues, ..self }
    }

    /// How its CPUs are arranged: two last-level caches with two cores of two hardware threads
    /// each.
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

    /// Its line in a file.
    pub fn machine(&self) -> Machine {
        let topology = Self::topology();
        let allowed: Vec<u32> = topology.places.iter().map(|place| place.cpu).collect();
        Machine {
            run: run_id(START_NS, self.seed as u32),
            at: timestamp(START_NS),
            tool: format!("threadtoll {} (simulated)", env!("CARGO_PKG_VERSION")),
            simulated: true,
            synthetic: false,
            cpu: format!("simulated, seed {}", self.seed),
            arch: "simulated".into(),
            cpus: allowed.len() as u32,
            noise: allowed
                .iter()
                .map(|cpu| CpuNoise {
                    cpu: *cpu,
                    watched_ns: 100_000_000,
                    gaps: vec![(1_000, 12), (10_000, 3)],
                    lost_share: 0.0004,
                    longest_ns: 21_000,
                })
                .collect(),
            allowed,
            topology: topology.places,
            quota_cpus: None,
            kernel: "simulated".into(),
            governor: Some("performance".into()),
            boost: Some(false),
            virtualised: None,
            idle_driver: None,
            timer_slack_ns: Some(50_000),
            membarrier: true,
            clock: ClockFacts {
                source: ClockSource::Simulated,
                step_ns: 1.0,
                read_ns: 10.0,
                invariant: true,
                tick_ns: 1.0,
                drift_ppm: 0.0,
            },
            grade: Grade::B,
            warnings: vec![Warning::new(
                "simulated",
                "No figure here was measured: the machine is simulated.",
            )],
        }
    }
}

impl Rig for SimulatedRig {
    fn now(&mut self) -> Now {
        now(self.elapsed_ns)
    }

    fn open<'a>(
        &'a mut self,
        _: &Machine,
        group: &[PlannedCell],
    ) -> Result<Box<dyn Stage + 'a>, LabError> {
        let mut cells = Vec::with_capacity(group.len());
        for planned in group {
            let cell = &planned.cell;
            let class = match (cell.lock(), cell.queue()) {
                (Some(lock), _) => {
                    Named::parse(&lock.lock)
                        .map_err(|_| LabError::UnknownLock(lock.lock.clone()))?;
                    Class::Sleep
                }
                (None, Some(queue)) => {
                    let known = self.queues.of(queue).and_then(|known| known.way(queue.wait));
                    known.ok_or_else(|| LabError::UnknownQueue(cell.label()))?;
                    queue::class(queue.wait)
                }
                (None, None) => {
                    let known = mechanism::find(cell.name());
                    known.ok_or_else(|| LabError::Unknown(cell.name().to_string()))?.class
                }
            };
            let streams = planned.kind() == Kind::Stream;
            // Drawn from the cell, the loop and the seed alone: a resumed run, whose blocks come in
            // another order, finds the same figures again.
            let seed = fingerprint(&planned.cell) ^ self.seed;
            cells.push(SimulatedCell {
                planned: planned.clone(),
                class,
                streams,
                value_ns: match cell.queue() {
                    Some(queue) => queue_ns(queue, streams, cell),
                    None => round_trip_ns(class, cell),
                },
                loops: [seed, !seed].map(|seed| (Xoshiro256PlusPlus::seed_from_u64(seed), 0)),
            });
        }
        Ok(Box::new(SimulatedStage { rig: self, cells }))
    }

    fn recheck(&mut self) -> Result<(), LabError> {
        Ok(())
    }
}

fn now(elapsed_ns: u64) -> Now {
    Now { unix_ns: START_NS + i128::from(elapsed_ns), since_start_s: elapsed_ns as f64 / 1e9 }
}

/// FNV-1a over what makes a cell what it is.
fn fingerprint(cell: &Cell) -> u64 {
    let text = format!("{} {:?} {:?}", cell.label(), cell.placement, cell.cpus);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// From 0.8 to 1.2, as the cell's name has it.
fn spread(cell: &Cell) -> f64 {
    0.8 + 0.4 * (fingerprint(cell) >> 11) as f64 / (1u64 << 53) as f64
}

/// The same for queues: a round trip, or the time per message.
fn queue_ns(queue: &QueueSubject, streams: bool, cell: &Cell) -> f64 {
    let spins = queue.wait.family() == WaitFamily::Spinning;
    let whole = match (streams, queue.origin, queue.batch) {
        (false, _, _) if queue.wait == Wait::Adaptive => 260.0,
        (false, _, _) if spins => 240.0,
        (false, _, _) => 9_000.0,
        (true, Origin::Raw, _) => 0.4,
        (true, _, 1) if spins => 9.0,
        (true, _, 1) => 45.0,
        (true, _, _) => 1.5,
    };
    whole * spread(cell) * f64::from(queue.senders).sqrt()
}

/// A round trip that is plausible enough for tables to look like tables.
fn round_trip_ns(class: Class, cell: &Cell) -> f64 {
    let spread = spread(cell);
    let class_ns = match (class, cell.name()) {
        (Class::OneThread, "function-call") => 3.0,
        (Class::OneThread, "fiber-switch") => 12.0,
        (Class::OneThread, _) => 90.0,
        (Class::Spin, _) => 110.0,
        (Class::Poll, "spin-yield") => 220.0,
        (Class::Poll, _) => 115_000.0,
        (Class::Sleep, _) => 7_000.0,
    };
    let distance = match cell.relation {
        Relation::SameThread => 1.0,
        Relation::SameCpu => 0.7,
        Relation::Smt => 0.4,
        Relation::SameLlc => 1.0,
        Relation::SameNode => 2.2,
        Relation::OtherNode => 4.0,
        Relation::Free => 1.6,
    };
    let awake = if cell.keep_awake { 0.5 } else { 1.0 };
    class_ns * spread * distance * awake + cell.payload_bytes as f64 * 0.02
}

struct SimulatedStage<'a> {
    rig: &'a mut SimulatedRig,
    cells: Vec<SimulatedCell>,
}

struct SimulatedCell {
    planned: PlannedCell,
    class: Class,
    streams: bool,
    /// A round trip, or the time per message of a stream.
    value_ns: f64,
    /// Of stretches and of stamped blocks: what its figures are drawn from, and its rounds so far.
    loops: [(Xoshiro256PlusPlus, u32); 2],
}

impl Stage for SimulatedStage<'_> {
    fn now(&mut self) -> Now {
        now(self.rig.elapsed_ns)
    }

    fn calibrated(&mut self, cell: usize) -> Option<Calibration> {
        locks::calibration(&self.cells[cell].planned.cell)
    }

    fn block(&mut self, cell: usize, kind: BlockKind) -> Result<Measured, LabError> {
        let began_s = self.rig.elapsed_ns as f64 / 1e9;
        if let Some(lock) = self.cells[cell].planned.cell.lock() {
            let measured = locks::block(lock.clone(), &mut self.cells[cell], kind, began_s);
            self.rig.elapsed_ns +=
                measured.contended.as_ref().map_or(0, |contended| contended.elapsed_ns) + 1_000_000;
            return Ok(measured);
        }
        let measured = self.cells[cell].block(kind, began_s);
        self.rig.elapsed_ns += measured.stretches_ps.iter().sum::<u64>() / 1000 + 1_000_000;
        Ok(measured)
    }
}

impl SimulatedCell {
    fn block(&mut self, kind: BlockKind, began_s: f64) -> Measured {
        let cell = &self.planned.cell;
        let stamped = kind == BlockKind::Stamped;
        let (rng, round) = &mut self.loops[usize::from(stamped)];
        // A third of the way through each group the machine changes its mind for a round, as
        // virtual ones do.
        let weather =
            if *round > 0 && *round == self.planned.budget.rounds / 3 { 1.5 } else { 1.0 };
        *round += 1;
        let (stretches, per_stretch) = match kind {
            BlockKind::Stretch => (STRETCHES, (10_000.0 / self.value_ns).ceil().max(1.0) as u64),
            BlockKind::Stamped => {
                (self.planned.budget.stamped_count.unwrap_or(SAMPLES).clamp(2, SAMPLES), 1)
            }
        };
        let stamp_ns = if stamped { 10.0 } else { 0.0 };
        let mut stretches_ps: Vec<u64> = (0..stretches)
            .map(|_| {
                let noise = 1.0 + 0.08 * rng.random::<f64>() * rng.random::<f64>();
                let one = self.value_ns * weather * noise + stamp_ns;
                (one * per_stretch as f64 * 1000.0) as u64
            })
            .collect();
        // One block in twelve is disturbed by something that pushes an end aside once.
        let pushed = rng.random_range(0..12) == 0;
        if pushed {
            let at = rng.random_range(0..stretches_ps.len());
            stretches_ps[at] += rng.random_range(20_000_000..90_000_000);
        }
        let round_trips = stretches * per_stretch;
        let elapsed_ns = stretches_ps.iter().sum::<u64>() / 1000;
        let (busy, switches) = match self.class {
            Class::OneThread => (1.0, 0),
            Class::Spin | Class::Poll => (2.0, 0),
            Class::Sleep if self.streams => (1.6, round_trips / 50),
            Class::Sleep => (0.7, 2 * round_trips),
        };
        let one_way_ps = if stamped && cell.placement == Placement::Pinned && self.value_ns > 2000.0
        {
            stretches_ps
                .iter()
                .flat_map(|ps| [(*ps / 2) as i64 + 50_000, (*ps / 2) as i64 - 50_000])
                .collect()
        } else {
            Vec::new()
        };
        let pick = |rng: &mut Xoshiro256PlusPlus| cell.cpus[rng.random_range(0..cell.cpus.len())];
        let (lead_cpus, follow_cpus) = if stamped && cell.placement == Placement::Free {
            (
                (0..=stretches).map(|_| pick(rng)).collect(),
                (0..stretches).map(|_| pick(rng)).collect(),
            )
        } else {
            (vec![cell.cpus[0]], Vec::new())
        };
        let spins = self.class == Class::Spin;
        Measured {
            per_stretch,
            accounted_round_trips: round_trips,
            began_s,
            lead_cpus,
            follow_cpus,
            one_way_ps,
            clock_bound_ns: 45.0,
            cost: BlockCost {
                user_ns: (elapsed_ns as f64 * busy * 0.4) as u64,
                system_ns: (elapsed_ns as f64 * busy * 0.6) as u64,
                voluntary_switches: switches,
                involuntary_switches: u64::from(pushed),
            },
            disturbance: Disturbance {
                causes: Vec::new(),
                migrations: Some(0),
                run_queue_ns: Some(if pushed { 30_000 } else { 0 }),
                steal_ns: Some(0),
                page_faults: 0,
                gap_ns: spins.then(|| crate::gap::vanished_ps(&stretches_ps) / 1000),
                throttled: None,
            },
            spins,
            grows: self.streams,
            stretches_ps,
            contended: None,
        }
    }
}
