//! The interface of a scenario, which decides what the threads of a queue do.

use threadtoll_record::{
    Budget, Carry, Cell, Count, Experiment, Kind, Load, Lose, MAX_ROUNDS, PlannedCell,
};

use super::QUEUE_ROUNDS;
use super::channel::{AnySize, Channel, ManySenders};
use super::message::MESSAGE_BYTES;
use super::options::Overrides;
use super::slots::{RING_BYTES, Slots};
use super::way::{Flow, Queue, Usage, Way, class};
use crate::budget::LONG_BLOCK_NS;
use crate::program::Program;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) load: &'a Load,
    pub(crate) batch: Option<u64>,
}

/// A queue scenario.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Name of the scenario on the command line.
    pub name: &'static str,
    /// One-sentence description.
    pub sentence: &'static str,
    /// Kind of loop that the threads run.
    pub kind: Kind,
    /// Default loads of a queue's cells.
    pub(crate) loads: fn() -> Vec<Load>,
    /// Default message sizes in bytes.
    pub(crate) payloads: &'static [u64],
    /// Possible message sizes in bytes.
    pub(crate) sizes: &'static [u64],
    /// Checks that the scenario supports a load. The error is a clause, not a whole sentence.
    pub(crate) has_load: fn(&Load) -> Result<(), String>,
    pub(crate) budget: fn(&Overrides, &Load) -> Budget,
    pub(crate) capacity: fn(&Slots, &Load) -> u64,
    /// Default numbers of senders, given a load and the number of CPUs.
    pub(crate) senders: fn(&Load, usize) -> Vec<u32>,
    /// True if the scenario also supports numbers of senders other than the default.
    pub any_senders: bool,
    pub(crate) batches: fn(&Queue, &Way, &Asked<'_>) -> Vec<u64>,
    /// Mechanism that is measured along with queues whose receiver sleeps.
    pub(crate) wake_up: Option<&'static str>,
    pub(crate) grouping: Grouping,
}

/// Cells that are compared with each other. Their blocks are therefore interleaved in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Rows with the same load.
    Load,
    /// All loads of a row.
    Row,
    /// Rows with the same load. For our own queues, also all loads of a row.
    LoadAndRow,
}

/// Values that most scenarios share: one sender sends single words as fast as it can, rows with the
/// same load are compared, and no message is stamped.
pub(super) const DEFAULT: Scenario = Scenario {
    name: "",
    sentence: "",
    kind: Kind::Stream,
    loads: || vec![Load::NONE],
    payloads: ONE_WORD,
    sizes: ONE_WORD,
    has_load: |load| only(&Load::NONE, true, load, "the scenario does not support this load"),
    budget: |overrides, _| {
        let time_ns = overrides.time_ns.unwrap_or(STREAM_NS);
        let rounds = (time_ns / LONG_BLOCK_NS).clamp(QUEUE_ROUNDS.into(), MAX_ROUNDS.into());
        Budget {
            rounds: rounds as u32,
            stretch_ns: (time_ns / rounds).max(1),
            stamped_ns: 0,
            stamped_count: None,
        }
    },
    capacity: |slots, _| slots.capacity_within(RING_BYTES),
    senders: |_, _| vec![1],
    any_senders: false,
    batches: |_, _, _| vec![1],
    wake_up: None,
    grouping: Grouping::Load,
};

/// Default measuring time of a stream: 31 blocks of 12 ms.
const STREAM_NS: u64 = 372_000_000;

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const ONE_WORD: &[u64] = &[8];

/// Rejects a load that is out of range or differs from `allowed`. The error is the clause `why`.
pub(super) fn only(allowed: &Load, in_range: bool, load: &Load, why: &str) -> Result<(), String> {
    (in_range && load == allowed).then_some(()).ok_or_else(|| why.into())
}

pub(super) fn within(figure: Option<Count>, most: u64) -> bool {
    figure.is_some_and(|figure| (1..=most).contains(&figure.get()))
}

pub(super) fn rounds(wanted: f64) -> u32 {
    wanted.round().clamp(f64::from(QUEUE_ROUNDS), f64::from(MAX_ROUNDS)) as u32
}

/// Measuring time per round of a cell without a queue, in scenarios whose queue cells run neither
/// exchanges nor streams.
const OTHERS_NS: u64 = 3_000_000;

/// The loops of a scenario, compiled for every queue. Each function returns the program of the
/// scenario's threads; `None` if the scenario does not apply to the queue.
pub(super) trait Loops {
    fn one_sender<C: AnySize>(channel: &C, usage: Usage) -> Option<Program>;

    fn many_senders<C: ManySenders>(channel: &C, usage: Usage) -> Option<Program> {
        Self::one_sender(channel, usage)
    }

    fn many_receivers<C: ManySenders + Channel<Source: Clone, Sink: Clone>>(
        channel: &C,
        usage: Usage,
    ) -> Option<Program> {
        Self::many_senders(channel, usage)
    }
}

impl Scenario {
    /// Returns the experiment to which the scenario's cells belong.
    pub fn experiment(&self) -> Experiment {
        Experiment::queue(self.name)
    }

    pub(crate) fn planned(&self, cell: Cell, budget: Budget) -> PlannedCell {
        // Cells without a queue (the reference and the wake-up mechanism) are exchanges.
        let budget = match self.kind {
            Kind::OpenLoop | Kind::Depth | Kind::SendCall if cell.queue().is_none() => {
                Budget { stretch_ns: OTHERS_NS, stamped_ns: 0, stamped_count: None, ..budget }
            }
            _ => budget,
        };
        PlannedCell::of_kind(self.kind, self.experiment(), cell, budget)
    }

    /// Returns `true` if the scenario has several senders by default.
    pub fn has_several_senders(&self) -> bool {
        self.usual_senders(&(self.loads)(), 1).iter().any(|senders| *senders > 1)
    }

    pub(crate) fn usual_senders(&self, loads: &[Load], cpus: usize) -> Vec<u32> {
        (self.senders)(loads.first().unwrap_or(&Load::NONE), cpus)
    }

    /// Returns `true` if the scenario can measure a queue's row, apart from the details of the
    /// load.
    pub fn takes(&self, way: &Way) -> bool {
        let carry = (self.loads)().first().and_then(|load| load.carry);
        self.takes_usage(way, false, &Load { carry, ..Load::NONE }, 8)
    }

    /// Returns `true` if the scenario can measure a queue's row with loss of this kind.
    pub fn loses(&self, queue: &Queue, way: &Way, lose: Lose) -> bool {
        let load = Load { lose: Some(lose), ..Load::NONE };
        self.takes_usage(way, !queue.bounded(), &load, 8)
    }

    pub(crate) fn takes_with(
        &self,
        queue: &Queue,
        way: &Way,
        load: &Load,
        payload_bytes: u64,
    ) -> bool {
        self.takes_usage(way, !queue.bounded(), load, payload_bytes)
    }

    fn takes_usage(&self, way: &Way, grows: bool, load: &Load, payload_bytes: u64) -> bool {
        let flow = Flow { senders: 1, batch: 1, capacity: 1 };
        let class = class(way.wait);
        let usage = Usage { flow, class, grows, load: load.clone(), payload_bytes };
        way.program(self.name, usage).is_some()
    }

    /// Returns `true` if the queue has a row that carries messages in this way.
    pub fn carries(&self, queue: &Queue, carry: Carry) -> bool {
        let load = Load { carry: Some(carry), ..Load::NONE };
        queue.ways.iter().any(|way| {
            MESSAGE_BYTES.into_iter().any(|bytes| self.takes_with(queue, way, &load, bytes))
        })
    }

    /// Returns `true` if a thread spins until each message is due.
    pub(crate) fn paces(&self) -> bool {
        self.kind == Kind::OpenLoop
    }
}
