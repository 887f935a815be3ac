//! Queues, and the scenarios that they are put through.
//!
//! A queue is one file and one line in a registry: [`ours`] here, or one of the lists of peers that
//! the caller adds (see [`Queues`]). It knows how to make its two ends, once for each way of
//! waiting; a scenario, which is one file here and one line in [`SCENARIOS`], decides what is done
//! with them. Neither knows of the other: an adapter is a [`Channel`], and the loops of every
//! scenario are monomorphised for it, so that between two messages there is nothing but the queue
//! itself.
//!
//! Messages are 8 bytes: their number, and in the top byte the sender's where there are several.

pub mod check;
mod words;

use std::sync::Arc;

use threadtoll_record::{Budget, Cell, Experiment, Kind, Origin, PlannedCell, QueueSubject, Wait};

use crate::budget::ROUNDS;
use crate::error::Unavailable;
use crate::exchange::Ends;
use crate::mechanism::Class;
use crate::program::Program;
use crate::stream::Streams;

pub(crate) use raw_copy::BLOCKS;
pub use stream::{BATCH, RING_BYTES};

/// Capacity of bounded queues where nothing else is said.
pub const CAPACITY: u64 = 1024;
/// Half again as many rounds as a verdict needs: it compares pairs of undisturbed blocks, and some
/// are disturbed on every machine.
const QUEUE_ROUNDS: u32 = ROUNDS + ROUNDS / 2;
/// Largest capacity that can be asked for.
pub const MAX_CAPACITY: u64 = 1 << 24;
/// Largest batch that can be asked for: as many messages as a ring of [`RING_BYTES`] holds.
pub const MAX_BATCH: u64 = BLOCKS[3];
/// Most sending threads.
pub const MAX_SENDERS: u32 = 64;

/// The end of a queue that sends.
pub trait Source: Send + 'static {
    /// Called once by the thread that will be this end, before the first message.
    fn enter(&mut self) {}

    /// Sends one message; where the queue is full, waits as the row says.
    fn send(&mut self, message: u64);

    /// Sends all of them in order, by the queue's own calls for many where it has any.
    fn send_batch(&mut self, messages: &[u64]) {
        messages.iter().for_each(|message| self.send(*message));
    }
}

/// The end of a queue that receives, waiting as its row says.
pub trait Sink: Send + 'static {
    /// Called once by the thread that will be this end, before the first message.
    fn enter(&mut self) {}

    /// Waits for the next message and takes it.
    fn receive(&mut self) -> u64;

    /// Waits for at least one message, then takes at most `limit` (never 0), by the queue's own
    /// batch calls where it has any. Hands them to `take` in order, in any number of slices, and
    /// returns their number.
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[u64])) -> usize {
        debug_assert!(limit > 0);
        take(&[self.receive()]);
        1
    }
}

/// A queue with one way of waiting, as a type: what an adapter implements.
pub trait Channel: 'static {
    /// Its sending end.
    type Source: Source;
    /// Its receiving end.
    type Sink: Sink;

    /// Makes both ends, with every byte that they share allocated and touched by the calling
    /// thread. Bounded queues hold `capacity` messages, or more where they cannot hold exactly
    /// that.
    ///
    /// # Errors
    ///
    /// If the machine refuses what the queue needs.
    fn open(capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable>;
}

/// A queue's row for one way of waiting.
#[derive(Clone)]
pub struct Way {
    /// How its receiver waits.
    pub wait: Wait,
    /// True if it has calls for many messages at once, at either end.
    pub batches: bool,
    /// True if several threads may send.
    pub many_senders: bool,
    programs: Programs,
}

/// The program of a row's threads in a scenario; `None` if it cannot be put through it.
type Programs = Arc<dyn Fn(&Scenario, Usage) -> Option<Program> + Send + Sync>;

/// Parameters of a row's use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) flow: Flow,
    /// How its receiver waits.
    pub(crate) class: Class,
    /// True if the queue takes memory as it fills.
    pub(crate) grows: bool,
}

/// Parameters of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) senders: u32,
    /// The largest batch.
    pub(crate) batch: u64,
    /// Messages that the queue holds, if it is bounded.
    pub(crate) capacity: usize,
}

impl Flow {
    /// The flow of a cell.
    pub(crate) fn of(subject: &QueueSubject) -> Self {
        Flow { senders: subject.senders, batch: subject.batch, capacity: capacity(subject) }
    }
}

/// The capacity with which the queue of a cell is made.
pub(crate) fn capacity(subject: &QueueSubject) -> usize {
    subject.capacity.unwrap_or(CAPACITY) as usize
}

/// Memory of a bounded queue's messages.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// Messages that share a group of slots.
    pub messages: u64,
    /// Bytes of such a group, with whatever else lies in it.
    pub bytes: u64,
    /// True if the capacity is always a power of two.
    pub power_of_two: bool,
    /// Groups allocated in addition to those that hold the capacity, by the number of those.
    pub spare: fn(u64) -> u64,
}

impl Slots {
    /// Messages and nothing else.
    pub const PLAIN: Slots = Slots::groups(1, 8);
    /// Messages, each with a sequence number.
    pub const NUMBERED: Slots = Slots::groups(1, 16);

    /// Groups of this number of messages and bytes.
    pub const fn groups(messages: u64, bytes: u64) -> Self {
        Slots { messages, bytes, power_of_two: false, spare: |_| 0 }
    }

    /// These slots in a queue whose capacity is always a power of two.
    pub const fn power_of_two(self) -> Self {
        Slots { power_of_two: true, ..self }
    }

    /// The largest capacity of at most `wanted` messages.
    pub fn capacity(&self, wanted: u64) -> u64 {
        if self.power_of_two { 1 << wanted.max(1).ilog2() } else { wanted }
    }

    /// The largest capacity that fits into this memory.
    pub fn capacity_within(&self, bytes: u64) -> u64 {
        let groups = bytes / self.bytes;
        self.capacity(groups.saturating_sub((self.spare)(groups)) * self.messages)
    }

    /// The memory of a queue with this capacity.
    pub fn ring_bytes(&self, capacity: u64) -> u64 {
        let groups = capacity.div_ceil(self.messages);
        (groups + (self.spare)(groups)) * self.bytes
    }
}

/// Capacity of a queue.
#[derive(Clone, Copy, Debug)]
pub enum Capacity {
    /// As many messages as there is memory for.
    Unbounded,
    /// Fixed by its design, such as one message.
    Fixed,
    /// As many messages as it is asked to.
    Slots(Slots),
}

impl Way {
    fn new(
        wait: Wait,
        many_senders: bool,
        programs: impl Fn(&Scenario, Usage) -> Option<Program> + Send + Sync + 'static,
    ) -> Self {
        Way { wait, batches: false, many_senders, programs: Arc::new(programs) }
    }

    /// A queue with one sender.
    pub fn one_sender<C: Channel>(wait: Wait) -> Self {
        Self::new(wait, false, one_sender::<C>)
    }

    /// A queue whose sending end is cloned for each sender.
    pub fn many_senders<C: Channel<Source: Clone>>(wait: Wait) -> Self {
        Self::new(wait, true, many_senders::<C>)
    }

    /// This row, with calls for many messages at once.
    pub fn in_batches(self) -> Self {
        Way { batches: true, ..self }
    }

    /// Something that exchanges messages in a way of its own, and does nothing else.
    pub(crate) fn exchange_only(wait: Wait, make: fn() -> Result<Ends, Unavailable>) -> Self {
        Self::new(wait, false, move |scenario, usage| {
            let make = Box::new(make);
            (scenario.kind == Kind::Exchange)
                .then(|| Program::Exchange { make, class: usage.class })
        })
    }

    /// Something that streams in a way of its own, always in batches, and does nothing else.
    pub(crate) fn stream_only(wait: Wait, make: fn(Flow) -> Result<Streams, Unavailable>) -> Self {
        let way = Self::new(wait, false, move |scenario, usage| {
            let Usage { flow, class, grows } = usage;
            let make = Box::new(move || make(flow));
            (scenario.kind == Kind::Stream).then(|| Program::Stream { make, class, grows })
        });
        way.in_batches()
    }

    /// The program of its threads in a scenario, if it can be put through it.
    pub(crate) fn program(&self, scenario: &Scenario, usage: Usage) -> Option<Program> {
        (self.programs)(scenario, usage)
    }
}

/// A queue, as a registry knows it.
#[derive(Clone)]
pub struct Queue {
    /// Its name on the command line and in files.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Its version, of the very code that is measured.
    pub version: String,
    /// Its description, in a sentence.
    pub sentence: String,
    /// Its capacity.
    pub capacity: Capacity,
    /// Its rows: one for each way of waiting that it has.
    pub ways: Vec<Way>,
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.wait.name())
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Queue {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Queue {
    /// Returns `true` if its sender may have to wait.
    pub fn bounded(&self) -> bool {
        !matches!(self.capacity, Capacity::Unbounded)
    }

    /// The memory of its messages, where its capacity can be chosen.
    pub fn slots(&self) -> Option<&Slots> {
        match &self.capacity {
            Capacity::Slots(slots) => Some(slots),
            Capacity::Unbounded | Capacity::Fixed => None,
        }
    }

    /// Its row for this way of waiting, if it has one.
    pub fn way(&self, wait: Wait) -> Option<&Way> {
        self.ways.iter().find(|way| way.wait == wait)
    }
}

/// Declares the files of queues.
macro_rules! queues {
    ($($vis:vis $file:ident),+ $(,)?) => {
        $($vis mod $file;)+

        /// Returns the queues of this project, and the bare copy that is the limit of any.
        pub fn ours() -> Vec<Queue> {
            let mut all = Vec::new();
            $(all.extend($file::queues());)+
            all
        }
    };
}

queues! {
    pub pipe,
    pub funnel,
    call,
    raw_copy,
}

/// Every queue that can be named: ours first, then the caller's peers; and twins of ours.
#[derive(Clone, Debug)]
pub struct Queues {
    all: Arc<[Queue]>,
    twins: Arc<[Queue]>,
}

impl Default for Queues {
    fn default() -> Self {
        Self::with(Vec::new(), Vec::new())
    }
}

impl Queues {
    /// Ours and these.
    pub fn with(peers: Vec<Queue>, twins: Vec<Queue>) -> Self {
        Queues { all: ours().into_iter().chain(peers).collect(), twins: twins.into() }
    }

    /// All of them, ours first.
    pub fn all(&self) -> impl Iterator<Item = &Queue> {
        self.all.iter()
    }

    /// The queue of that name.
    pub fn find(&self, name: &str) -> Option<&Queue> {
        self.all().find(|queue| queue.name == name)
    }

    /// The twin of that queue, if the caller has one.
    pub fn twin(&self, name: &str) -> Option<&Queue> {
        self.twins.iter().find(|queue| queue.name == name)
    }

    /// The program of a cell's threads; `None` if there is no such queue, or it cannot be used so.
    pub(crate) fn program(&self, planned: &PlannedCell, subject: &QueueSubject) -> Option<Program> {
        let scenario = Scenario::of(&planned.experiment)?;
        let queue = self.of(subject)?;
        let usage =
            Usage { flow: Flow::of(subject), class: class(subject.wait), grows: !queue.bounded() };
        queue.way(subject.wait)?.program(scenario, usage)
    }

    /// The queue that a cell was planned with.
    pub(crate) fn of(&self, subject: &QueueSubject) -> Option<&Queue> {
        if subject.origin == Origin::Twin {
            self.twin(&subject.queue)
        } else {
            self.find(&subject.queue)
        }
    }
}

/// Command-line overrides; `None` keeps the scenario's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// The largest batch, 1 for one message at a time.
    pub batch: Option<u64>,
    /// Numbers of sending threads.
    pub senders: Option<Vec<u32>>,
    /// Messages that bounded queues hold.
    pub capacities: Option<Vec<u64>>,
    /// Measuring time per cell, in nanoseconds.
    pub time_ns: Option<u64>,
    /// Stamped samples per cell.
    pub samples: Option<u64>,
}

/// Why options do not suit a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsuitable {
    /// The reason.
    pub why: String,
    /// What to do instead.
    pub hint: &'static str,
}

/// Something that can be done with queues.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its description, in a sentence.
    pub sentence: &'static str,
    /// The kind of loop that its threads run.
    pub kind: Kind,
    /// Refuses options that it does not have.
    check: fn(&Overrides) -> Result<(), Unsuitable>,
    pub(crate) budget: fn(&Overrides) -> Budget,
    /// Default capacity of a bounded queue.
    pub(crate) capacity: fn(&Slots) -> u64,
    /// Largest batches of a queue's cells, by the one that was asked for.
    pub(crate) batches: fn(&Queue, &Way, Option<u64>) -> Vec<u64>,
    /// The mechanism that queues whose receiver sleeps are measured next to.
    pub(crate) wake_up: Option<&'static str>,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Declares the files of scenarios, and has their loops compiled for every queue.
macro_rules! scenarios {
    ($($module:ident),+ $(,)?) => {
        $(mod $module;)+

        /// Every scenario.
        pub const SCENARIOS: &[Scenario] = &[$($module::SCENARIO),+];

        fn one_sender<C: Channel>(scenario: &Scenario, usage: Usage) -> Option<Program> {
            $(if scenario.name == $module::SCENARIO.name {
                return $module::one_sender::<C>(usage);
            })+
            None
        }

        fn many_senders<C: Channel<Source: Clone>>(
            scenario: &Scenario,
            usage: Usage,
        ) -> Option<Program> {
            $(if scenario.name == $module::SCENARIO.name {
                return $module::many_senders::<C>(usage);
            })+
            None
        }
    };
}

scenarios! {
    ask_reply,
    stream,
}

/// The scenario of that name.
pub fn scenario(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// The scenario to which the cells of an experiment belong.
    pub(crate) fn of(experiment: &Experiment) -> Option<&'static Scenario> {
        match experiment {
            Experiment::Queue(name) => scenario(name),
            Experiment::Latency | Experiment::Matrix | Experiment::Contention(_) => None,
        }
    }

    /// The experiment that its cells belong to.
    pub fn experiment(&self) -> Experiment {
        Experiment::queue(self.name)
    }

    /// A cell of it.
    pub(crate) fn planned(&self, cell: Cell, budget: Budget) -> PlannedCell {
        PlannedCell::of_kind(self.kind, self.experiment(), cell, budget)
    }

    /// Checks that it has these options.
    ///
    /// # Errors
    ///
    /// If it does not, or not with these values.
    pub fn check(&self, overrides: &Overrides) -> Result<(), Unsuitable> {
        (self.check)(overrides)
    }

    /// Returns `true` if a queue's row can be put through it.
    pub fn takes(&self, way: &Way) -> bool {
        let flow = Flow { senders: 1, batch: 1, capacity: 1 };
        let usage = Usage { flow, class: class(way.wait), grows: false };
        way.program(self, usage).is_some()
    }
}

/// The class of an end that waits like this.
pub(crate) fn class(wait: Wait) -> Class {
    match wait {
        Wait::Spin | Wait::Poll | Wait::PollBackoff => Class::Spin,
        Wait::SpinYield => Class::Poll,
        Wait::Park | Wait::Adaptive | Wait::Block => Class::Sleep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_the_contract_has_them_and_found_again() {
        let queues = Queues::default();
        for queue in queues.all() {
            assert_eq!(queues.find(&queue.name), Some(queue));
            assert!(queue.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{queue:?}");
            assert!(!queue.sentence.is_empty() && queue.sentence.len() < 100, "{queue:?}");
            for (at, way) in queue.ways.iter().enumerate() {
                assert!(SCENARIOS.iter().any(|scenario| scenario.takes(way)), "{queue:?}");
                assert!(queue.ways[..at].iter().all(|other| other.wait != way.wait), "{queue:?}");
            }
        }
        assert_eq!(queues.find("tube"), None);
        assert!(SCENARIOS.iter().all(|one| {
            Scenario::of(&one.experiment()).is_some_and(|found| found.name == one.name)
        }));
    }

    #[test]
    fn a_capacity_is_what_the_queue_takes() {
        let lines = Slots { spare: |groups| groups / 64, ..Slots::groups(7, 64) };
        assert_eq!(
            (lines.capacity_within(RING_BYTES), lines.ring_bytes(28_224)),
            (28_224, RING_BYTES - 64)
        );
        assert_eq!((lines.capacity(1000), lines.ring_bytes(1000)), (1000, (143 + 2) * 64));
        assert_eq!(Slots::NUMBERED.capacity_within(RING_BYTES), 16_384);
        let powers = Slots::PLAIN.power_of_two();
        assert_eq!(
            (powers.capacity(1023), powers.capacity(1024), powers.capacity(1)),
            (512, 1024, 1)
        );
        assert_eq!(powers.ring_bytes(512), 4096);
    }

    #[test]
    fn ours_deliver_what_was_sent() {
        for queue in ours() {
            for way in &queue.ways {
                let senders: &[u32] = if way.many_senders { &[1, 2] } else { &[1] };
                let batches: &[u64] = match queue.origin {
                    Origin::Raw => &BLOCKS,
                    _ if way.batches => &[1, 100, BATCH],
                    _ => &[1],
                };
                for (senders, batch) in
                    senders.iter().flat_map(|one| batches.iter().map(move |batch| (*one, *batch)))
                {
                    if stream::SCENARIO.takes(way) {
                        check::stream(way, senders, batch, CAPACITY, 10_000)
                            .unwrap_or_else(|why| panic!("{queue:?} {batch}: {why}"));
                    }
                }
                if ask_reply::SCENARIO.takes(way) {
                    check::ask_reply(way, 10_000).unwrap_or_else(|why| panic!("{queue:?}: {why}"));
                }
            }
        }
    }
}
