//! Exchanges and streams on the simulated machine.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_record::{
    BlockKind, Carry, Cell, Origin, Placement, QueueSubject, Relation, Wait, WaitFamily,
};

use crate::LabError;
use crate::backend::OpenCell;
use crate::mechanism::Class;
use crate::samples::{BlockSamples, RoundTrips, Samples, Stretches};
use crate::stalls::stalled_ps;

use super::variation::noise;
use super::{Draws, Thief, fingerprint};

/// Number of values per simulated block, enough for every quantile except the highest.
const STRETCHES: u64 = 60;
const SAMPLES: u64 = 1200;

pub(super) struct Messages {
    draws: Draws,
    class: Class,
    streams: bool,
    /// Time of a round trip or, for a stream, time per message.
    value_ns: f64,
}

impl Messages {
    pub(super) fn new(draws: Draws, class: Class, streams: bool) -> Self {
        let value_ns = value_ns(class, streams, &draws.planned.cell);
        Messages { draws, class, streams, value_ns }
    }
}

/// Returns the time of a cell's round trip or, for a stream, the time per message.
pub(super) fn value_ns(class: Class, streams: bool, cell: &Cell) -> f64 {
    match cell.queue() {
        Some(queue) => queue_ns(queue, streams, cell),
        None => round_trip_ns(class, cell),
    }
}

impl OpenCell for Messages {
    fn reopen(&mut self) -> Result<(), LabError> {
        self.draws.instances.next();
        Ok(())
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let Draws { time, planned, loops, seed, machine, slower, instances, .. } = &mut self.draws;
        let cell = &planned.cell;
        let began_s = time.now().since_start_s;
        let now_ns = time.elapsed_ns.get();
        let speed = machine.regimes.slower(now_ns, *seed, cell);
        let stamped = kind == BlockKind::Stamped;
        let (rng, round) = &mut loops[usize::from(stamped)];
        // A third of the way through each group, the machine is slower for one round, like some
        // virtual machines.
        let weather = if *round > 0 && *round == planned.budget.rounds / 3 { 1.5 } else { 1.0 };
        *round += 1;
        let slowed = *slower * instances.slower * weather * speed * machine.regimes.noise(rng);
        let (stretches, per_stretch) = match kind {
            BlockKind::Stretch => (STRETCHES, (10_000.0 / self.value_ns).ceil().max(1.0) as u64),
            BlockKind::Stamped => {
                (planned.budget.stamped_count.unwrap_or(SAMPLES).clamp(2, SAMPLES), 1)
            }
        };
        let stamp_ns = if stamped { 10.0 } else { 0.0 };
        let mut stretches_ps: Vec<u64> = (0..stretches)
            .map(|_| {
                let one = self.value_ns * slowed * noise(rng) + stamp_ns;
                (one * per_stretch as f64 * 1000.0) as u64
            })
            .collect();
        let mut stolen_ns = 0;
        if let Some((at, ps)) = Thief::takes(rng, stretches_ps.len()) {
            stretches_ps[at] += ps;
            stolen_ns = ps / 1000;
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
                .flat_map(|ps| [(*ps / 2) as i64 + 2_000, (*ps / 2) as i64 - 2_000])
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
        time.block_took(elapsed_ns);
        let [user_ns, system_ns] =
            [0.4, 0.6].map(|share| (elapsed_ns as f64 * busy * share) as u64);
        let cost = [user_ns, system_ns, switches];
        let mut counters = machine.thief.counters(stolen_ns, cost, round_trips);
        (counters.spins, counters.grows) = (spins, self.streams);
        if spins {
            counters.disturbance.gap_ns = Some((stalled_ps(&stretches_ps) / 1000).into());
        }
        let stretches = Stretches { lengths_ps: stretches_ps, operations_each: per_stretch };
        let samples = if self.streams {
            Samples::Stream(stretches)
        } else {
            Samples::Exchange(RoundTrips {
                stretches,
                began_s,
                lead_cpus,
                follow_cpus,
                one_way_ps,
                clock_bound_ns: 45.0,
            })
        };
        Ok(BlockSamples { counters, samples })
    }
}

/// A factor from 0.8 to 1.2, determined by the cell's name.
fn spread(cell: &Cell) -> f64 {
    0.8 + 0.4 * (fingerprint(cell) >> 11) as f64 / (1u64 << 53) as f64
}

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
    let one = whole * spread(cell) * f64::from(queue.senders).sqrt();
    // `one` includes the time of the first word. Each other word adds `word_ns`.
    let words = cell.payload_bytes as f64 / 8.0;
    let word_ns = match queue.load.carry {
        None => return one,
        Some(Carry::Moved) => 0.8,
        Some(Carry::InPlace) => 0.5,
    };
    one + word_ns * (words - 1.0)
}

/// The times are plausible, so that tables look realistic.
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
