//! The real machine: threads that live as long as their group, run one block at a time, and sleep
//! in between.

mod agreement;
mod awake;
mod calibrate;
mod contending;
mod lacking;
mod neighbour;
mod overhead;
mod resting;
mod streaming;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use threadtoll_machine::clock::{self, Clock};
use threadtoll_machine::disturbance::{SystemCounters, SystemProbe, account};
use threadtoll_record::{
    BlockKind, ClockFacts, Kind, Layout, Machine, Pause, Placement, PlannedCell, fold,
};

use crate::contention::foretell::Calibration;
use crate::exchange::Ends;
use crate::gap;
use crate::mechanism::{self, Class, Mechanism, Settings};
use crate::queue::{self, Queues};
use crate::rig::{LabError, Measured, Now, Rig, Stage};

pub use lacking::lacking;
pub use overhead::{StretchCost, stretch_cost};

use awake::Awake;
use calibrate::Calibrator;
pub(crate) use calibrate::estimate_ns as calibration_ns;
use contending::Contending;
use neighbour::Neighbours;
use streaming::Streaming;
use worker::{Job, Make, Pair, Report, Watch};

/// A stamped block keeps at most this many samples: 1.6 MB a buffer.
pub const MAX_SAMPLES: u64 = 200_000;
/// A stretch is long enough that its two stamps are less than one part in this of it.
const STAMP_SHARE: f64 = 100.0;
/// Exchanges before the clock starts last about this long, so that both ends are awake and up to
/// speed.
const WARM_UP_NS: f64 = 500_000.0;
/// The same for free placement, where the scheduler is to have had its say: longer than its time
/// slice.
const WARM_UP_FREE_NS: f64 = 5_000_000.0;
/// The pilot lasts this long.
const PILOT_NS: f64 = 1_000_000.0;
/// A block of a given number of samples ends after an hour all the same.
const LONGEST_BLOCK_NS: f64 = 3.6e12;
/// No block is waited for longer than this, however little was asked for.
const PATIENCE: Duration = Duration::from_secs(20);

/// The real machine.
#[derive(Debug)]
pub struct RealRig {
    clock: Clock,
    facts: ClockFacts,
    patience: Duration,
    start: Instant,
    start_ticks: u64,
    queues: Queues,
}

impl RealRig {
    /// Measures with this clock, which has passed its gate with these findings.
    pub fn new(clock: Clock, facts: ClockFacts) -> Self {
        let queues = Queues::default();
        RealRig {
            clock,
            facts,
            patience: PATIENCE,
            start: Instant::now(),
            start_ticks: clock.stamp(),
            queues,
        }
    }

    /// The same with these queues.
    pub fn with_queues(self, queues: Queues) -> Self {
        RealRig { queues, ..self }
    }
}

impl Rig for RealRig {
    fn now(&mut self) -> Now {
        Now { unix_ns: clock::unix_ns(), since_start_s: self.start.elapsed().as_secs_f64() }
    }

    fn open<'a>(
        &'a mut self,
        machine: &Machine,
        group: &[PlannedCell],
    ) -> Result<Box<dyn Stage + 'a>, LabError> {
        let stamp_ns = self.facts.step_ns + self.facts.read_ns;
        let mut bounds = HashMap::new();
        for planned in group {
            if let (Placement::Pinned, &[a, b]) =
                (planned.cell.placement, planned.cell.cpus.as_slice())
                && let Entry::Vacant(entry) = bounds.entry((a, b))
            {
                entry.insert(agreement::bound_ns(&self.clock, a, b)?);
            }
        }
        let mut cells = Vec::with_capacity(group.len());
        for planned in group {
            let opening = Opening {
                clock: &self.clock,
                planned,
                allowed: &machine.allowed,
                stamp_ns,
                patience: self.patience,
            };
            cells.push(opening.open(self.queues)?);
        }
        let mut calibrator = Calibrator::new(&self.clock, self.patience);
        for opened in &mut cells {
            match opened {
                Opened::Contending(cell) => cell.calibrate(&mut calibrator)?,
                Opened::Streaming(cell) => cell.pilot()?,
                Opened::Exchanging(cell) => {
                    cell.pilot()?;
                    if let &[a, b] = cell.planned.cell.cpus.as_slice() {
                        let bound = bounds.get(&(a, b)).copied();
                        // A median one-way time is half a round trip, near enough for this
                        // decision.
                        cell.one_way_bound_ns =
                            bound.filter(|bound| *bound < fold::AGREEMENT * cell.mean_ns / 2.0);
                    }
                }
            }
        }
        Ok(Box::new(RealStage { rig: self, cells }))
    }

    fn recheck(&mut self) -> Result<(), LabError> {
        self.clock
            .recheck(&self.facts)
            .map(|_| ())
            .map_err(|refused| LabError::Clock(refused.to_string()))
    }
}

/// What a cell is opened with.
#[derive(Clone, Copy)]
struct Opening<'a> {
    clock: &'a Clock,
    planned: &'a PlannedCell,
    allowed: &'a [u32],
    stamp_ns: f64,
    /// No block is waited for longer than this beyond what was foreseen.
    patience: Duration,
}

/// A cell with its threads: two that exchange, or some that stream or share a lock.
enum Opened {
    Exchanging(Box<Cell>),
    Streaming(Box<Streaming>),
    Contending(Box<Contending>),
}

impl Opening<'_> {
    fn open(self, queues: Queues) -> Result<Opened, LabError> {
        let cell = &self.planned.cell;
        if let Some(subject) = cell.lock() {
            let contending = Contending::open(self, subject)?;
            return Ok(Opened::Contending(Box::new(contending)));
        }
        let Some(queue) = cell.queue() else {
            let Some(mechanism) = mechanism::find(cell.name()) else {
                return Err(LabError::Unknown(cell.name().to_string()));
            };
            return Cell::open(self, mechanism).map(|cell| Opened::Exchanging(Box::new(cell)));
        };
        let unknown = || LabError::UnknownQueue(cell.label());
        let found = queues.of(queue).ok_or_else(unknown)?;
        let way = found.way(queue.wait).ok_or_else(unknown)?;
        if self.planned.kind() == Kind::Stream {
            let make = way.stream.ok_or_else(unknown)?;
            let flow = queue::Flow::of(queue);
            let make = Box::new(move || make(flow));
            let streaming =
                Streaming::open(self, make, queue::class(queue.wait), !found.bounded())?;
            return Ok(Opened::Streaming(Box::new(streaming)));
        }
        let make = way.ask_reply.ok_or_else(unknown)?;
        let capacity = queue::capacity(queue);
        let cell = Cell::start(self, Box::new(move || make(capacity)), queue::class(queue.wait))?;
        Ok(Opened::Exchanging(Box::new(cell)))
    }
}

struct RealStage<'a> {
    rig: &'a mut RealRig,
    cells: Vec<Opened>,
}

impl Stage for RealStage<'_> {
    fn now(&mut self) -> Now {
        self.rig.now()
    }

    fn block(&mut self, cell: usize, kind: BlockKind) -> Result<Measured, LabError> {
        let start_ticks = self.rig.start_ticks;
        match &mut self.cells[cell] {
            Opened::Exchanging(cell) => cell.block(kind, start_ticks),
            Opened::Streaming(cell) => cell.block(start_ticks),
            Opened::Contending(cell) => cell.block(kind, start_ticks),
        }
    }

    fn calibrated(&mut self, cell: usize) -> Option<Calibration> {
        match &self.cells[cell] {
            Opened::Contending(cell) => cell.calibration(),
            Opened::Exchanging(_) | Opened::Streaming(_) => None,
        }
    }
}

/// How many round trips a stretch holds, so that its stamp is lost in it.
fn per_stretch(stamp_ns: f64, round_trip_ns: f64) -> u64 {
    (STAMP_SHARE * stamp_ns / round_trip_ns).ceil().max(1.0) as u64
}

/// What is around the threads of a cell while they are measured: its load, and the machine's
/// account.
struct Around {
    system: SystemProbe,
    neighbours: Option<Neighbours>,
    awake: Option<Awake>,
}

impl Around {
    fn start(cell: &threadtoll_record::Cell, allowed: &[u32]) -> Result<Self, LabError> {
        Ok(Around {
            system: SystemProbe::new(&cell.cpus),
            neighbours: cell
                .neighbour
                .map(|kind| Neighbours::start(kind, &cell.cpus, allowed))
                .transpose()?,
            awake: cell.keep_awake.then(|| Awake::start(&cell.cpus)).transpose()?,
        })
    }

    /// The load begins, and the machine's account is opened.
    fn go(&mut self) -> SystemCounters {
        self.neighbours.iter().for_each(Neighbours::go);
        self.awake.iter().for_each(Awake::go);
        self.system.sample()
    }

    /// What happened to the machine since then; the load ends.
    fn rest(&mut self, before: &SystemCounters) -> SystemCounters {
        let after = self.system.sample();
        self.awake.iter().for_each(Awake::rest);
        self.neighbours.iter().for_each(Neighbours::rest);
        after.delta(before)
    }
}

/// A cell whose two threads exchange messages.
struct Cell {
    planned: PlannedCell,
    class: Class,
    clock: Clock,
    pair: Pair,
    around: Around,
    /// The round trip as the last stretches found it.
    mean_ns: f64,
    stamp_ns: f64,
    next_seq: u64,
    one_way_bound_ns: Option<f64>,
    /// No block is waited for longer than this beyond what was foreseen.
    patience: Duration,
}

impl Cell {
    fn open(opening: Opening<'_>, mechanism: &'static Mechanism) -> Result<Self, LabError> {
        let cell = &opening.planned.cell;
        let settings = Settings {
            payload_bytes: cell.payload_bytes as usize,
            layout: cell.line.unwrap_or(Layout::Own),
            pause: cell.pause.unwrap_or(Pause::Off),
        };
        Self::start(opening, Box::new(move || mechanism.make(&settings)), mechanism.class)
    }

    fn start(opening: Opening<'_>, make: Make<Ends>, class: Class) -> Result<Self, LabError> {
        let Opening { clock, planned, allowed, stamp_ns, patience } = opening;
        let cell = &planned.cell;
        let (lead_cpus, follow_cpus) = match (cell.placement, cell.cpus.as_slice()) {
            (Placement::Pinned, &[a, b]) => (vec![a], vec![b]),
            (Placement::Free, cpus) => (cpus.to_vec(), cpus.to_vec()),
            (_, cpus) => (vec![cpus[0]], vec![cpus[0]]),
        };
        let pair = Pair::start(clock, cell.name(), make, cell.placement, lead_cpus, follow_cpus)?;
        Ok(Cell {
            planned: planned.clone(),
            class,
            clock: *clock,
            pair,
            around: Around::start(cell, allowed)?,
            mean_ns: 1000.0,
            stamp_ns,
            next_seq: 1,
            one_way_bound_ns: None,
            patience,
        })
    }

    /// Finds out roughly how long a round trip takes: first with a stamp for each, which a cheap
    /// mechanism would take for a part of itself, then without.
    fn pilot(&mut self) -> Result<(), LabError> {
        let stamped = self.run(PILOT_NS, MAX_SAMPLES, 1, PILOT_NS / 2.0, Watch::Nothing)?;
        self.learn(&stamped, 1);
        // The cheapest hand-offs cost a tenth of a stamp: stretches that are ten times too long do
        // no harm here.
        let long = per_stretch(self.stamp_ns, self.mean_ns) * 10;
        let long = long.min((PILOT_NS / self.mean_ns).ceil() as u64);
        let stretches = self.run(0.0, MAX_SAMPLES, long, PILOT_NS, Watch::Nothing)?;
        self.learn(&stretches, long);
        Ok(())
    }

    /// Takes the mean round trip from stretches.
    fn learn(&mut self, report: &Report, per_stretch: u64) {
        let round_trips = report.times.len().saturating_sub(1) as u64 * per_stretch;
        if round_trips > 0 {
            self.mean_ns = (self.elapsed_ns(report) / round_trips as f64).max(0.1);
        }
    }

    fn elapsed_ns(&self, report: &Report) -> f64 {
        match (report.times.first(), report.times.last()) {
            (Some(first), Some(last)) => self.clock.ns(last.saturating_sub(*first)),
            _ => 0.0,
        }
    }

    /// Runs both ends once: warming up, and then stretches until there are as many as asked for or
    /// the time is over.
    fn run(
        &mut self,
        warm_up_ns: f64,
        stretches: u64,
        per_stretch: u64,
        length_ns: f64,
        watch: Watch,
    ) -> Result<Report, LabError> {
        let job = Job {
            first: self.next_seq,
            warm_up: self.clock.ticks(warm_up_ns),
            stretches,
            per_stretch,
            length: self.clock.ticks(length_ns),
            watch,
        };
        // A block ends by the clock, or when it has its samples; one that lasts many times as long
        // as it should is stuck.
        let round_trips = stretches.saturating_mul(per_stretch) as f64;
        let foreseen_ns = length_ns.min(round_trips * (self.mean_ns + self.stamp_ns) * 10.0);
        let patience = self.patience + Duration::from_nanos((foreseen_ns * 5.0) as u64);
        let report = self.pair.run(job, patience)?;
        self.next_seq = report.next;
        Ok(report)
    }

    fn block(&mut self, kind: BlockKind, start_ticks: u64) -> Result<Measured, LabError> {
        let free = self.planned.cell.placement == Placement::Free;
        let budget = &self.planned.budget;
        let (stretches, per_stretch, length_ns, watch) = match kind {
            BlockKind::Stretch => {
                let length_ns = budget.stretch_ns as f64;
                // A block that is to be longer than its marks can hold gets longer stretches; twice
                // as many fit as are foreseen, should the machine be faster than it was.
                let fits = length_ns / self.mean_ns;
                let least = (2.0 * fits / MAX_SAMPLES as f64).ceil() as u64;
                (
                    MAX_SAMPLES,
                    per_stretch(self.stamp_ns, self.mean_ns).max(least),
                    length_ns,
                    Watch::Nothing,
                )
            }
            BlockKind::Stamped => {
                let watch = match (free, self.one_way_bound_ns) {
                    (true, _) => Watch::Cpus,
                    (false, Some(_)) => Watch::OneWay,
                    (false, None) => Watch::Nothing,
                };
                match budget.stamped_count {
                    // Whoever asks for a number of samples gets it, however long it takes.
                    Some(count) => (count.min(MAX_SAMPLES), 1, LONGEST_BLOCK_NS, watch),
                    None => (MAX_SAMPLES, 1, budget.stamped_ns as f64, watch),
                }
            }
        };
        let warm_up_ns = if free { WARM_UP_FREE_NS } else { WARM_UP_NS };

        let before = self.around.go();
        let report = self.run(warm_up_ns, stretches, per_stretch, length_ns, watch);
        let system = self.around.rest(&before);
        let report = report?;

        if kind == BlockKind::Stretch {
            self.learn(&report, per_stretch);
        }
        Ok(self.measured(report, per_stretch, system, start_ticks, watch))
    }

    fn measured(
        &self,
        report: Report,
        per_stretch: u64,
        system: SystemCounters,
        start_ticks: u64,
        watch: Watch,
    ) -> Measured {
        let stretches_ps: Vec<u64> = report
            .times
            .windows(2)
            .map(|pair| self.clock.ps(pair[1].saturating_sub(pair[0])))
            .collect();
        let spins = self.class == Class::Spin;
        let gap_ns = spins.then(|| gap::vanished_ps(&stretches_ps) / 1000);
        let (cost, disturbance) = account(&report.threads, system, gap_ns);
        let one_way_ps = match watch {
            Watch::OneWay => self.one_way_ps(&report),
            Watch::Nothing | Watch::Cpus => Vec::new(),
        };
        Measured {
            per_stretch,
            accounted_round_trips: report.accounted,
            began_s: report
                .times
                .first()
                .map_or(0.0, |first| self.clock.ns(first.saturating_sub(start_ticks)) / 1e9),
            lead_cpus: if report.cpus.is_empty() {
                vec![self.planned.cell.cpus[0]]
            } else {
                report.cpus
            },
            follow_cpus: report.follow_cpus,
            one_way_ps,
            clock_bound_ns: self.one_way_bound_ns.unwrap_or(0.0),
            cost,
            disturbance,
            spins,
            grows: false,
            stretches_ps,
            contended: None,
        }
    }

    /// Both directions of each round trip, from the stamps of both ends.
    fn one_way_ps(&self, report: &Report) -> Vec<i64> {
        let difference = |later: u64, earlier: u64| {
            let ticks = later.wrapping_sub(earlier) as i64;
            self.clock.ps(ticks.unsigned_abs()) as i64 * ticks.signum()
        };
        report
            .times
            .windows(2)
            .zip(&report.follow_times)
            .flat_map(|(round, arrival)| {
                [difference(*arrival, round[0]), difference(round[1], *arrival)]
            })
            .collect()
    }
}
