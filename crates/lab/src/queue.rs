//! Queues and their scenarios.
//!
//! A queue is one file and one line in a registry: [`ours`] here, or a list of peers that the
//! caller adds (see [`Queues`]). It creates its two ends, for each of its ways of waiting. A
//! scenario, one file here and one line in [`SCENARIOS`], decides what the ends do. The two are
//! independent: an adapter is a [`Channel`], and every scenario's loops are monomorphised for it,
//! so nothing but the queue runs between two messages.
//!
//! Messages are 8 bytes: their number, and in the top byte the sender's number if there are
//! several. Only `payload` has others, so a queue carries any [`Message`].

mod arrivals;
pub mod check;
mod erased;
mod gathered;
mod lose;
mod message;
mod options;
mod paced;
mod slots;
mod words;

use std::sync::Arc;

use threadtoll::wait::Spin;
use threadtoll_record::{
    Budget, Build, Carry, Cell, Experiment, Kind, Load, Lose, MAX_ROUNDS, Origin, PlannedCell,
    QueueSubject, Wait,
};

use crate::budget::ROUNDS;
use crate::error::Unavailable;
use crate::exchange::Ends;
use crate::mechanism::Class;
use crate::program::Program;
use crate::program_file::ProgramFile;
use crate::stream::Streams;

pub use arrivals::{MAX_RATE, Trace};
pub use message::{MESSAGE_BYTES, Message, Words};
pub use options::{ArrivalsChoice, LoadChoice, LoadOption, Overrides, Unsuitable};
pub use slots::{Capacity, Slots};
pub use stream::{BATCH, RING_BYTES};

/// Default capacity of bounded queues.
pub const CAPACITY: u64 = 1024;
/// Half again as many rounds as a verdict needs: verdicts compare pairs of undisturbed blocks, and
/// every machine disturbs some.
const QUEUE_ROUNDS: u32 = ROUNDS + ROUNDS / 2;
/// Largest configurable capacity.
pub const MAX_CAPACITY: u64 = 1 << 24;
/// Block sizes of bare copies in words: 4, 16, 64 and 256 KiB.
pub(crate) const BLOCKS: [u64; 4] = [512, 2048, 8192, 32_768];
/// Largest configurable batch: the messages in a ring of [`RING_BYTES`].
pub const MAX_BATCH: u64 = BLOCKS[3];
/// Most sending threads.
pub const MAX_SENDERS: u32 = 64;
/// Most receiving threads.
pub const MAX_RECEIVERS: u64 = 64;

/// The sending end of a queue.
pub trait Source<M: Message = u64>: Send + 'static {
    /// Called once on the thread of this end, before the first message.
    fn enter(&mut self) {}

    /// Sends one message; waits while the queue is full, in the row's way.
    fn send(&mut self, message: M);

    /// True if `force_send` can make room.
    const OVERWRITES: bool = false;

    /// Sends one message, unless the queue is full; returns `false` if it is. Queues that are never
    /// full may leave it to `send`.
    fn try_send(&mut self, message: M) -> bool {
        self.send(message);
        true
    }

    /// Sends one message. If the queue is full, drops the oldest one and returns `true`.
    fn force_send(&mut self, message: M) -> bool {
        self.send(message);
        false
    }

    /// Sends all messages in order, with the queue's own batch calls if it has any.
    fn send_batch(&mut self, messages: &[M]) {
        messages.iter().for_each(|message| self.send(*message));
    }

    /// True if messages can be written and read in the queue's own slots, at both ends.
    const IN_PLACE: bool = false;

    /// Waits for a free slot as `send` does, fills it with the message that has this number, and
    /// sends that. Only called if [`IN_PLACE`](Self::IN_PLACE).
    fn send_in_place(&mut self, number: u64) {
        self.send(M::numbered(number));
    }
}

/// The receiving end of a queue, which waits in the row's way.
pub trait Sink<M: Message = u64>: Send + 'static {
    /// Called once on the thread of this end, before the first message.
    fn enter(&mut self) {}

    /// Waits for the next message and removes it.
    fn receive(&mut self) -> M;

    /// Waits for at least one message, then removes at most `limit` (never 0), with the queue's own
    /// batch calls if it has any. Passes them to `take` in order, in any number of slices, and
    /// returns their number.
    fn receive_batch(&mut self, limit: usize, mut take: impl FnMut(&[M])) -> usize {
        debug_assert!(limit > 0);
        take(&[self.receive()]);
        1
    }

    /// Waits for the next message, reads it in its slot, and releases that; returns the bits in
    /// which the message differs from the one with this number. Only called if
    /// [`IN_PLACE`](Source::IN_PLACE).
    fn receive_in_place(&mut self, number: u64) -> u64 {
        self.receive().difference(number)
    }
}

/// A queue with one way of waiting, for adapters to implement: without data where the queue is
/// known when this is compiled.
pub trait Channel<M: Message = u64>: Clone + Send + Sync + 'static {
    /// Its sending end.
    type Source: Source<M>;
    /// Its receiving end.
    type Sink: Sink<M>;

    /// Creates both ends, with every byte that they share allocated and touched on the calling
    /// thread. Bounded queues hold `capacity` messages, or more if they cannot hold exactly that
    /// number.
    ///
    /// # Errors
    ///
    /// If the machine refuses a resource.
    fn open(&self, capacity: usize) -> Result<(Self::Source, Self::Sink), Unavailable>;
}

/// A queue that carries messages of all sizes in [`MESSAGE_BYTES`].
pub trait AnySize:
    Channel + Channel<Words<8>> + Channel<Words<64>> + Channel<Words<512>> + Channel<Words<8192>>
{
}

impl<C> AnySize for C where
    C: Channel
        + Channel<Words<8>>
        + Channel<Words<64>>
        + Channel<Words<512>>
        + Channel<Words<8192>>
{
}

/// A queue that carries messages of all sizes from several senders.
pub trait ManySenders:
    AnySize
    + Channel<Source: Clone>
    + Channel<Words<8>, Source: Clone>
    + Channel<Words<64>, Source: Clone>
    + Channel<Words<512>, Source: Clone>
    + Channel<Words<8192>, Source: Clone>
{
}

impl<C> ManySenders for C where
    C: AnySize
        + Channel<Source: Clone>
        + Channel<Words<8>, Source: Clone>
        + Channel<Words<64>, Source: Clone>
        + Channel<Words<512>, Source: Clone>
        + Channel<Words<8192>, Source: Clone>
{
}

/// A queue's row for one way of waiting.
#[derive(Clone)]
pub struct Way {
    /// The receiver's way of waiting.
    pub wait: Wait,
    /// True if it has batch calls, at either end.
    pub batches: bool,
    /// True if several threads may send.
    pub many_senders: bool,
    /// True if several threads may receive.
    pub many_receivers: bool,
    programs: Programs,
}

/// Returns the program of a row's threads in a scenario, or `None` if the scenario does not apply.
type Programs = Arc<dyn Fn(&Scenario, Usage) -> Option<Program> + Send + Sync>;

#[derive(Clone, Debug)]
pub(crate) struct Usage {
    pub(crate) flow: Flow,
    pub(crate) class: Class,
    /// True if the queue allocates memory as it fills.
    pub(crate) grows: bool,
    pub(crate) load: Load,
    pub(crate) payload_bytes: u64,
}

/// Messages for which a row is planned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) load: &'a Load,
    /// Largest batch, if requested.
    pub(crate) batch: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) senders: u32,
    pub(crate) batch: u64,
    /// Capacity of the queue, if it is bounded.
    pub(crate) capacity: usize,
}

impl Flow {
    pub(crate) fn of(subject: &QueueSubject) -> Self {
        Flow { senders: subject.senders, batch: subject.batch, capacity: capacity(subject) }
    }
}

pub(crate) fn capacity(subject: &QueueSubject) -> usize {
    subject.capacity.unwrap_or(CAPACITY) as usize
}

impl Way {
    fn new(
        wait: Wait,
        programs: impl Fn(&Scenario, Usage) -> Option<Program> + Send + Sync + 'static,
    ) -> Self {
        Way {
            wait,
            batches: false,
            many_senders: false,
            many_receivers: false,
            programs: Arc::new(programs),
        }
    }

    /// A queue with one sender.
    pub fn one_sender<C: AnySize + Default>(wait: Wait) -> Self {
        Self::one_sender_of(C::default(), wait)
    }

    /// A queue whose sending end is cloned for each sender.
    pub fn many_senders<C: ManySenders + Default>(wait: Wait) -> Self {
        Self::many_senders_of(C::default(), wait)
    }

    /// A queue whose ends are both cloned, for each sender and each receiver.
    pub fn many_receivers<C: ManySenders + Channel<Source: Clone, Sink: Clone> + Default>(
        wait: Wait,
    ) -> Self {
        Self::many_receivers_of(C::default(), wait)
    }

    /// As [`one_sender`](Self::one_sender), with a channel that has data.
    pub fn one_sender_of<C: AnySize>(channel: C, wait: Wait) -> Self {
        Self::new(wait, move |scenario, usage| one_sender(&channel, scenario, usage))
    }

    /// As [`many_senders`](Self::many_senders), with a channel that has data.
    pub fn many_senders_of<C: ManySenders>(channel: C, wait: Wait) -> Self {
        let programs = move |scenario: &Scenario, usage| many_senders(&channel, scenario, usage);
        Way { many_senders: true, ..Self::new(wait, programs) }
    }

    /// As [`many_receivers`](Self::many_receivers), with a channel that has data.
    pub fn many_receivers_of<C: ManySenders + Channel<Source: Clone, Sink: Clone>>(
        channel: C,
        wait: Wait,
    ) -> Self {
        let programs = move |scenario: &Scenario, usage| many_receivers(&channel, scenario, usage);
        Way { many_senders: true, many_receivers: true, ..Self::new(wait, programs) }
    }

    /// Marks the row as having batch calls.
    pub fn in_batches(self) -> Self {
        Way { batches: true, ..self }
    }

    /// Limits the row to uses that suit it.
    pub(crate) fn limited_to(
        self,
        suits: impl Fn(&Scenario, &Usage) -> bool + Send + Sync + 'static,
    ) -> Self {
        let Way { programs, .. } = self;
        let limited = move |scenario: &Scenario, usage: Usage| {
            if suits(scenario, &usage) { programs(scenario, usage) } else { None }
        };
        Way { programs: Arc::new(limited), ..self }
    }

    /// A row that a program measures in its own process, where `asked` allows the scenario, the
    /// load and the size of messages. A queue of ours stands in for it on simulated machines.
    pub(crate) fn elsewhere(
        wait: Wait,
        file: ProgramFile,
        asked: impl Fn(&str, &Load, u64) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::new(wait, move |scenario, usage| {
            if !asked(scenario.name, &usage.load, usage.payload_bytes) {
                return None;
            }
            let like = one_sender(&pipe::Unbounded::<Spin>::default(), scenario, usage)?;
            Some(Program::Elsewhere { file: file.clone(), like: Box::new(like) })
        })
    }

    /// A row with its own exchange, for no other scenario.
    pub(crate) fn exchange_only(wait: Wait, make: fn() -> Result<Ends, Unavailable>) -> Self {
        Self::new(wait, move |scenario, usage| {
            let make = Arc::new(make);
            (scenario.name == ask_reply::SCENARIO.name)
                .then(|| Program::Exchange { make, class: usage.class })
        })
    }

    /// A row with its own stream, always in batches, for no other scenario. `make` gets the batch.
    pub(crate) fn stream_only(wait: Wait, make: fn(u64) -> Result<Streams, Unavailable>) -> Self {
        let way = Self::new(wait, move |scenario, usage| {
            let Usage { flow, class, grows, .. } = usage;
            let make = Arc::new(move || make(flow.batch));
            (scenario.name == stream::SCENARIO.name).then(|| Program::Stream { make, class, grows })
        });
        way.in_batches()
    }

    /// Returns the program of the row's threads in a scenario, or `None` if the scenario does not
    /// apply.
    pub(crate) fn program(&self, scenario: &Scenario, usage: Usage) -> Option<Program> {
        (self.programs)(scenario, usage)
    }
}

/// A queue, as registered.
#[derive(Clone)]
pub struct Queue {
    /// Its name on the command line and in files.
    pub name: String,
    /// Origin.
    pub origin: Origin,
    /// Version of the measured code.
    pub version: String,
    /// One-sentence description.
    pub sentence: String,
    /// Capacity.
    pub capacity: Capacity,
    /// The facts of its build, if it was not built with this program.
    pub built: Option<Build>,
    /// Rows, one for each way of waiting.
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
    /// Returns `true` if a sender may have to wait.
    pub fn bounded(&self) -> bool {
        !matches!(self.capacity, Capacity::Unbounded)
    }

    /// Memory layout of its messages, if the capacity is configurable.
    pub fn slots(&self) -> Option<&Slots> {
        match &self.capacity {
            Capacity::Slots(slots) => Some(slots),
            Capacity::Unbounded | Capacity::Fixed => None,
        }
    }

    /// The row for a way of waiting, if the queue has one.
    pub fn way(&self, wait: Wait) -> Option<&Way> {
        self.ways.iter().find(|way| way.wait == wait)
    }
}

macro_rules! queues {
    ($($vis:vis $file:ident),+ $(,)?) => {
        $($vis mod $file;)+

        /// Returns this project's queues, and the bare copy that bounds them all.
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

/// All known queues: ours first, then the caller's peers.
#[derive(Clone, Debug)]
pub struct Queues {
    all: Arc<[Queue]>,
}

impl Default for Queues {
    fn default() -> Self {
        Self::with(Vec::new())
    }
}

impl Queues {
    /// Our queues and these peers.
    pub fn with(peers: Vec<Queue>) -> Self {
        Queues { all: ours().into_iter().chain(peers).collect() }
    }

    /// All queues, ours first.
    pub fn all(&self) -> impl Iterator<Item = &Queue> {
        self.all.iter()
    }

    /// Returns the queue with this name.
    pub fn find(&self, name: &str) -> Option<&Queue> {
        self.all().find(|queue| queue.name == name)
    }

    /// Returns the program of a cell's threads, or `None` if there is no such queue or it does not
    /// support the cell.
    pub(crate) fn program(&self, planned: &PlannedCell, subject: &QueueSubject) -> Option<Program> {
        let scenario = Scenario::of(&planned.experiment)?;
        let queue = self.find(&subject.queue)?;
        let usage = Usage {
            flow: Flow::of(subject),
            class: class(subject.wait),
            grows: !queue.bounded(),
            load: subject.load.clone(),
            payload_bytes: planned.cell.payload_bytes,
        };
        queue.way(subject.wait)?.program(scenario, usage)
    }
}

/// A queue scenario.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// One-sentence description.
    pub sentence: &'static str,
    /// Kind of loop that the threads run.
    pub kind: Kind,
    /// Options for loads that the scenario has.
    options: &'static [LoadOption],
    /// Options of which at least one must be given; none of a scenario that has a default.
    required: &'static [LoadOption],
    /// Rejects other options that the scenario does not have, and unusable values.
    check: fn(&Overrides) -> Result<(), Unsuitable>,
    /// Loads of a queue's cells.
    pub(crate) loads: fn(&Overrides) -> Vec<Load>,
    /// Bytes of its messages.
    pub(crate) payloads: fn(&Overrides) -> Vec<u64>,
    /// Checks that the scenario can have this load. The error is a clause.
    pub(crate) has_load: fn(&Load) -> Result<(), String>,
    pub(crate) budget: fn(&Overrides, &Load) -> Budget,
    pub(crate) capacity: fn(&Slots, &Load) -> u64,
    /// Default numbers of senders, given the options and the number of CPUs.
    pub(crate) senders: fn(&Overrides, usize) -> Vec<u32>,
    /// Largest batches of a queue's cells.
    pub(crate) batches: fn(&Queue, &Way, &Asked<'_>) -> Vec<u64>,
    /// Mechanism measured next to queues whose receiver sleeps.
    pub(crate) wake_up: Option<&'static str>,
    pub(crate) grouping: Grouping,
}

/// Cells that are compared with each other, and so share a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Rows with the same load.
    Load,
    /// A row's cells with all loads.
    Row,
    /// Rows with the same load, and our rows' cells with all loads.
    LoadAndRow,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Loads of a scenario that sends as fast as it can.
fn no_loads(_: &Overrides) -> Vec<Load> {
    vec![Load::NONE]
}

/// Messages of one word.
fn one_word(_: &Overrides) -> Vec<u64> {
    vec![8]
}

fn has_no_load(load: &Load) -> Result<(), String> {
    (*load == Load::NONE).then_some(()).ok_or_else(|| "the scenario has no such load".into())
}

/// A possible number of rounds.
fn rounds(wanted: f64) -> u32 {
    wanted.round().clamp(f64::from(QUEUE_ROUNDS), f64::from(MAX_ROUNDS)) as u32
}

/// Measuring time per round of cells other than queues in scenarios of their own kinds.
const OTHERS_NS: u64 = 3_000_000;

/// The loops of a scenario, compiled for every queue, which return the program of its threads;
/// `None` if the scenario does not apply.
trait Loops {
    fn one_sender<C: AnySize>(channel: &C, usage: Usage) -> Option<Program>;

    /// For a queue whose sending end is cloned.
    fn many_senders<C: ManySenders>(channel: &C, usage: Usage) -> Option<Program> {
        Self::one_sender(channel, usage)
    }

    /// For a queue whose ends are both cloned.
    fn many_receivers<C: ManySenders + Channel<Source: Clone, Sink: Clone>>(
        channel: &C,
        usage: Usage,
    ) -> Option<Program> {
        Self::many_senders(channel, usage)
    }
}

/// Compiles the scenarios' loops for every queue.
macro_rules! scenarios {
    ($($module:ident),+ $(,)?) => {
        $(mod $module;)+

        /// Every scenario.
        pub const SCENARIOS: &[Scenario] = &[$($module::SCENARIO),+];

        fn one_sender<C: AnySize>(
            channel: &C,
            scenario: &Scenario,
            usage: Usage,
        ) -> Option<Program> {
            $(if scenario.name == $module::SCENARIO.name {
                return $module::Compiled::one_sender(channel, usage);
            })+
            None
        }

        fn many_senders<C: ManySenders>(
            channel: &C,
            scenario: &Scenario,
            usage: Usage,
        ) -> Option<Program> {
            $(if scenario.name == $module::SCENARIO.name {
                return $module::Compiled::many_senders(channel, usage);
            })+
            None
        }

        fn many_receivers<C: ManySenders + Channel<Source: Clone, Sink: Clone>>(
            channel: &C,
            scenario: &Scenario,
            usage: Usage,
        ) -> Option<Program> {
            $(if scenario.name == $module::SCENARIO.name {
                return $module::Compiled::many_receivers(channel, usage);
            })+
            None
        }
    };
}

scenarios! {
    ask_reply,
    stream,
    open_loop,
    burst,
    depth,
    workers,
    flood,
    funnel_load,
    night_watch,
    payload,
    for_me,
}

/// Returns the scenario with this name.
pub fn scenario(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// Returns the scenario that an experiment's cells belong to.
    pub(crate) fn of(experiment: &Experiment) -> Option<&'static Scenario> {
        match experiment {
            Experiment::Queue(name) => scenario(name),
            Experiment::Latency | Experiment::Matrix | Experiment::Contention(_) => None,
        }
    }

    /// The experiment of the scenario's cells.
    pub fn experiment(&self) -> Experiment {
        Experiment::queue(self.name)
    }

    pub(crate) fn planned(&self, cell: Cell, budget: Budget) -> PlannedCell {
        // The reference, and the mechanism behind a wake-up, are exchanges.
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
        (self.senders)(&Overrides::default(), 1).iter().any(|senders| *senders > 1)
    }

    /// Checks that the scenario has these options.
    ///
    /// # Errors
    ///
    /// If it does not have them, or not with these values.
    pub fn check(&self, overrides: &Overrides) -> Result<(), Unsuitable> {
        let foreign = LoadOption::ALL
            .into_iter()
            .find(|option| option.is_given(&overrides.load) && !self.options.contains(option));
        if let Some(option) = foreign {
            return Err(Unsuitable {
                why: format!("{} does not apply to {}", option.name(), self.name),
                hint: "omit it, or use another scenario: `threadtoll list scenarios`",
            });
        }
        let is_given = |option: &LoadOption| option.is_given(&overrides.load);
        if !self.required.is_empty() && !self.required.iter().any(is_given) {
            let names: Vec<&str> = self.required.iter().map(|option| option.name()).collect();
            return Err(Unsuitable {
                why: format!("{} has no default traffic: give {}", self.name, names.join(" or ")),
                hint: "such as --rate 50000 for 50,000 messages per second, or --arrivals FILE",
            });
        }
        self.check_flow(overrides)
    }

    /// Checks everything but which options for loads are given.
    pub(crate) fn check_flow(&self, overrides: &Overrides) -> Result<(), Unsuitable> {
        (self.check)(overrides)
    }

    /// Returns `true` if the scenario applies to a queue's row, with any load.
    pub fn takes(&self, way: &Way) -> bool {
        let carry = self.has_carries().then_some(Carry::Moved);
        self.takes_usage(way, false, &Load { carry, ..Load::NONE }, 8)
    }

    /// Returns `true` if a queue's row can lose such messages in the scenario.
    pub fn loses(&self, queue: &Queue, way: &Way, lose: Lose) -> bool {
        let load = Load { lose: Some(lose), ..Load::NONE };
        self.takes_usage(way, !queue.bounded(), &load, 8)
    }

    /// Returns `true` if the scenario applies to a queue's row with this load and messages of this
    /// size.
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
        way.program(self, usage).is_some()
    }

    /// Returns `true` if its loads are rates up to the one that saturates each queue.
    pub fn until_saturated(&self, load: &LoadChoice) -> bool {
        self.name == open_loop::SCENARIO.name && open_loop::until_saturated(load)
    }

    /// Returns `true` if messages are carried in several ways.
    pub fn has_carries(&self) -> bool {
        self.options.contains(&LoadOption::Carry)
    }

    /// Returns `true` if the queue has a row that carries messages in this way.
    pub fn carries(&self, queue: &Queue, carry: Carry) -> bool {
        let load = Load { carry: Some(carry), ..Load::NONE };
        queue.ways.iter().any(|way| {
            MESSAGE_BYTES.into_iter().any(|bytes| self.takes_with(queue, way, &load, bytes))
        })
    }

    /// Returns `true` if the scenario can have messages of this many bytes.
    pub(crate) fn has_payload(&self, bytes: u64) -> bool {
        bytes == 8 || self.options.contains(&LoadOption::Payload)
    }

    /// Returns `true` if a thread waits for the time of each message without sleeping.
    pub(crate) fn paces(&self) -> bool {
        self.kind == Kind::OpenLoop
    }
}

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
    fn larger_messages_take_as_much_more_memory() {
        let slots = Slots::NUMBERED.of(4096);
        assert_eq!((slots.ring_bytes(10), slots.capacity_within(RING_BYTES)), (41_040, 63));
        assert_eq!(Slots::groups(32, 288).of(64).ring_bytes(1), 32 * 64 + 32);
        assert_eq!(Slots::NUMBERED.of(8).ring_bytes(3), Slots::NUMBERED.ring_bytes(3));
    }

    #[test]
    fn ours_carry_messages_of_all_sizes() {
        // All sizes with the first wait of a queue, two with the others.
        let first = [&MESSAGE_BYTES[..], &[24]].concat();
        let others = vec![64, 65_536];
        for queue in ours() {
            let ways = queue.ways.iter().filter(|way| payload::SCENARIO.takes(way));
            for (way, sizes) in ways.zip(std::iter::once(&first).chain(std::iter::repeat(&others)))
            {
                for (carry, bytes) in
                    Carry::ALL.iter().flat_map(|carry| sizes.iter().map(|bytes| (*carry, *bytes)))
                {
                    let messages = ((1 << 20) / bytes).clamp(8, 200);
                    let carried = check::payload(
                        way,
                        carry,
                        bytes,
                        if bytes > 4096 { 3 } else { 64 },
                        messages,
                    );
                    let carried = carried.unwrap_or_else(|why| {
                        panic!("{queue:?}, {way:?}, {carry}, {bytes} B: {why}")
                    });
                    let typed = MESSAGE_BYTES.contains(&bytes);
                    let expected = match carry {
                        Carry::Moved => typed && queue.origin == Origin::Ours,
                        Carry::InPlace => typed && queue.name.starts_with("pipe"),
                    };
                    assert_eq!(carried, expected, "{queue:?}, {carry}, {bytes} B");
                }
            }
        }
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
