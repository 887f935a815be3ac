//! Queues, and the scenarios that they are put through.
//!
//! A queue is one file and one line in a registry: [`OURS`] here, or one of the lists of peers that
//! the caller adds (see [`Queues`]). It knows how to make its two ends, once for each way of
//! waiting; a scenario, which is one file here and one line in [`SCENARIOS`], decides what is done
//! with them. Neither knows of the other: an adapter is a [`Channel`], and the loops of every
//! scenario are monomorphised for it, so that between two messages there is nothing but the queue
//! itself.
//!
//! Messages are 8 bytes: their number, and in the top byte the sender's where there are several.

mod ask_reply;
mod call;
pub mod check;
pub mod funnel;
pub mod pipe;
mod raw_copy;
mod stream;
mod words;

use threadtoll_record::{Budget, Cell, Experiment, Kind, Origin, PlannedCell, QueueSubject, Wait};

use crate::exchange::Ends;
use crate::mechanism::{Class, Unavailable};
use crate::program::Program;

pub(crate) use raw_copy::BLOCKS;
pub use stream::BATCH;
pub(crate) use stream::{Course, Receives, Sends, Shared, Streams};

/// Default capacity of bounded queues in an ask-reply, where one message is under way.
pub const CAPACITY: u64 = 1024;
/// Default memory of bounded queues in a stream: equal for all, because speed depends on how far a
/// sender gets ahead.
pub const RING_BYTES: u64 = 256 << 10;
/// Largest capacity that can be asked for.
pub const MOST_CAPACITY: u64 = 1 << 24;
/// No more threads than this send at once.
pub const MOST_SENDERS: u32 = 64;

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
#[derive(Clone, Copy)]
pub struct Way {
    /// How its receiver waits.
    pub wait: Wait,
    /// Whether it has calls for many messages at once, at either end.
    pub batches: bool,
    /// Whether several threads may send.
    pub many_senders: bool,
    /// Makes the ends of an ask-reply; nothing where it only streams.
    pub(crate) ask_reply: Option<MakeEnds>,
    /// Makes the ends of a stream; nothing where it only asks and replies.
    pub(crate) stream: Option<MakeStreams>,
}

/// Makes the ends of an ask-reply, of queues with this capacity.
pub(crate) type MakeEnds = fn(usize) -> Result<Ends, Unavailable>;
/// Makes the ends of a stream.
pub(crate) type MakeStreams = fn(Flow) -> Result<Streams, Unavailable>;

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

    /// Groups of so many messages and bytes.
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
pub enum Room {
    /// As many messages as there is memory for.
    Unlimited,
    /// Fixed by its design, such as one message.
    Fixed,
    /// As many messages as it is asked to.
    Slots(Slots),
}

impl Way {
    /// A queue with one sender.
    pub const fn one_sender<C: Channel>(wait: Wait) -> Self {
        Way {
            wait,
            batches: false,
            many_senders: false,
            ask_reply: Some(ask_reply::ends::<C>),
            stream: Some(stream::one_sender::<C>),
        }
    }

    /// A queue whose sending end is cloned for each sender.
    pub const fn many_senders<C: Channel<Source: Clone>>(wait: Wait) -> Self {
        Way {
            wait,
            batches: false,
            many_senders: true,
            ask_reply: Some(ask_reply::ends::<C>),
            stream: Some(stream::many_senders::<C>),
        }
    }

    /// The same, with calls for many messages at once.
    pub const fn in_batches(self) -> Self {
        Way { batches: true, ..self }
    }

    /// Something that asks and replies in a way of its own, and cannot stream.
    pub(crate) const fn ask_reply_only(wait: Wait, make: MakeEnds) -> Self {
        Way { wait, batches: false, many_senders: false, ask_reply: Some(make), stream: None }
    }

    /// Something that streams in a way of its own, always in batches, and cannot ask and reply.
    pub(crate) const fn stream_only(wait: Wait, make: MakeStreams) -> Self {
        Way { wait, batches: true, many_senders: false, ask_reply: None, stream: Some(make) }
    }
}

/// A queue: what a registry knows of it.
#[derive(Clone, Copy)]
pub struct Queue {
    /// Its name on the command line and in files.
    pub name: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// Its version, of the very code that is measured.
    pub version: &'static str,
    /// What it is, in a sentence.
    pub sentence: &'static str,
    /// Its capacity.
    pub room: Room,
    /// Its rows: one for each way of waiting that it has.
    pub ways: &'static [Way],
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.wait.name())
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
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
        !matches!(self.room, Room::Unlimited)
    }

    /// The memory of its messages, where its capacity can be chosen.
    pub fn slots(&self) -> Option<&Slots> {
        match &self.room {
            Room::Slots(slots) => Some(slots),
            Room::Unlimited | Room::Fixed => None,
        }
    }

    /// Its row for this way of waiting, if it has one.
    pub fn way(&self, wait: Wait) -> Option<&'static Way> {
        self.ways.iter().find(|way| way.wait == wait)
    }
}

/// The queues of this project, and the bare copy that is the limit of any.
pub static OURS: &[Queue] =
    &[pipe::UNBOUNDED, pipe::BOUNDED, funnel::QUEUE, call::QUEUE, raw_copy::QUEUE];

/// Every queue that can be named: ours first, then the caller's peers; and twins of ours.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queues {
    peers: &'static [Queue],
    twins: &'static [Queue],
}

impl Queues {
    /// Ours and these.
    pub const fn with(peers: &'static [Queue], twins: &'static [Queue]) -> Self {
        Queues { peers, twins }
    }

    /// All of them, ours first.
    pub fn all(&self) -> impl Iterator<Item = &'static Queue> + use<> {
        OURS.iter().chain(self.peers)
    }

    /// The queue of that name.
    pub fn find(&self, name: &str) -> Option<&'static Queue> {
        self.all().find(|queue| queue.name == name)
    }

    /// The twin of that queue, if the caller has one.
    pub fn twin(&self, name: &str) -> Option<&'static Queue> {
        self.twins.iter().find(|queue| queue.name == name)
    }

    /// What the threads of a cell run; `None` if there is no such queue, or it cannot be used so.
    pub(crate) fn program(&self, planned: &PlannedCell, subject: &QueueSubject) -> Option<Program> {
        let queue = self.of(subject)?;
        let way = queue.way(subject.wait)?;
        let class = class(subject.wait);
        if planned.kind() == Kind::Stream {
            let (make, flow) = (way.stream?, Flow::of(subject));
            let make = Box::new(move || make(flow));
            return Some(Program::Stream { make, class, grows: !queue.bounded() });
        }
        let (make, capacity) = (way.ask_reply?, capacity(subject));
        Some(Program::Exchange { make: Box::new(move || make(capacity)), class })
    }

    /// The queue that a cell was planned with.
    pub(crate) fn of(&self, subject: &QueueSubject) -> Option<&'static Queue> {
        if subject.origin == Origin::Twin {
            self.twin(&subject.queue)
        } else {
            self.find(&subject.queue)
        }
    }
}

/// Something that can be done with queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub sentence: &'static str,
    /// What its threads do.
    pub kind: Kind,
}

/// Every scenario.
pub const SCENARIOS: &[Scenario] = &[ask_reply::SCENARIO, stream::SCENARIO];

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

    /// Whether a queue's row can be put through it.
    pub fn takes(&self, way: &Way) -> bool {
        if self.kind == Kind::Stream { way.stream.is_some() } else { way.ask_reply.is_some() }
    }
}

/// Where an end that waits like this can be measured.
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
        for queue in OURS {
            assert_eq!(queues.find(queue.name), Some(queue));
            assert!(queue.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{queue:?}");
            assert!(!queue.sentence.is_empty() && queue.sentence.len() < 100, "{queue:?}");
            for (at, way) in queue.ways.iter().enumerate() {
                assert!(SCENARIOS.iter().any(|scenario| scenario.takes(way)), "{queue:?}");
                assert!(queue.ways[..at].iter().all(|other| other.wait != way.wait), "{queue:?}");
            }
        }
        assert_eq!(queues.find("tube"), None);
        assert!(
            SCENARIOS.iter().all(|one| scenario(one.name) == Some(one)
                && Scenario::of(&one.experiment()) == Some(one))
        );
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
        for queue in OURS {
            for way in queue.ways {
                let senders: &[u32] = if way.many_senders { &[1, 2] } else { &[1] };
                let batches: &[u64] = match queue.origin {
                    Origin::Raw => &BLOCKS,
                    _ if way.batches => &[1, 100, BATCH],
                    _ => &[1],
                };
                for (senders, batch) in
                    senders.iter().flat_map(|one| batches.iter().map(move |batch| (*one, *batch)))
                {
                    if way.stream.is_some() {
                        check::stream(way, senders, batch, CAPACITY, 10_000)
                            .unwrap_or_else(|why| panic!("{queue:?} {batch}: {why}"));
                    }
                }
                if way.ask_reply.is_some() {
                    check::ask_reply(way, 10_000).unwrap_or_else(|why| panic!("{queue:?}: {why}"));
                }
            }
        }
    }
}
