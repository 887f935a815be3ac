//! One point of an experiment: every parameter that makes it what it is.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Class, LockSubject, Spread, Work};

/// Where the two ends of a hand-off run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Each end is bound to a CPU of its own (the one-thread rungs: to one CPU).
    Pinned,
    /// Both ends are bound to the same CPU.
    SameCpu,
    /// The scheduler places both ends among the allowed CPUs.
    Free,
}

impl Placement {
    /// All placements, in the order in which tables show them.
    pub const ALL: [Placement; 3] = [Placement::Pinned, Placement::SameCpu, Placement::Free];

    /// The name that the command line and the files use.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Pinned => "pinned",
            Placement::SameCpu => "same-cpu",
            Placement::Free => "free",
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How the CPUs of the two ends are related, from nearest to farthest.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// One thread is both ends.
    SameThread,
    /// Two threads share one CPU.
    SameCpu,
    /// Two hardware threads of one core.
    Smt,
    /// Two cores that share their last-level cache.
    SameLlc,
    /// Two cores of one NUMA node without a common last-level cache.
    SameNode,
    /// Two cores of different NUMA nodes.
    OtherNode,
    /// The scheduler decides.
    Free,
}

impl Relation {
    /// The name that the files use.
    pub fn name(self) -> &'static str {
        match self {
            Relation::SameThread => "same-thread",
            Relation::SameCpu => "same-cpu",
            Relation::Smt => "smt",
            Relation::SameLlc => "same-llc",
            Relation::SameNode => "same-node",
            Relation::OtherNode => "other-node",
            Relation::Free => "free",
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where the two counters of a cache-line mechanism lie.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Each counter has cache lines of its own.
    Own,
    /// Both counters share one cache line.
    Shared,
}

/// Whether a spinning end executes the CPU's pause hint in its loop.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Pause {
    /// With the hint.
    On,
    /// Without it.
    Off,
}

/// What other threads do while a cell is measured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbour {
    /// Other threads compute and touch no memory.
    Spin,
    /// Other threads stream through memory larger than the caches.
    Memory,
    /// Other threads sleep and wake all the time.
    Churn,
}

/// Where a queue comes from.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The library of this project.
    Ours,
    /// A queue of this project once more, compiled and registered as a peer is. Where its ratio to
    /// the original differs from 1, other ratios may be wrong by as much.
    Twin,
    /// A crate, or the standard library of Rust.
    Rust,
    /// A C++ library.
    #[serde(rename = "c++")]
    Cpp,
    /// A Java library.
    Java,
    /// Go.
    Go,
    /// D.
    D,
    /// No queue at all: a bare copy, which is the limit of any.
    Raw,
}

impl Origin {
    /// The name that the files use.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Ours => "ours",
            Origin::Twin => "twin",
            Origin::Rust => "rust",
            Origin::Cpp => "c++",
            Origin::Java => "java",
            Origin::Go => "go",
            Origin::D => "d",
            Origin::Raw => "raw",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How the receiver of a queue waits while there is no message.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// It spins.
    Spin,
    /// It spins and lets go of its CPU in between.
    SpinYield,
    /// It sleeps in the kernel until it is woken.
    Park,
    /// It spins for as long as that is likely to be cheaper, then sleeps.
    Adaptive,
    /// It calls a queue's attempt to receive in a tight loop: the spinning of a queue that knows
    /// only attempts.
    Poll,
    /// Like `poll`, with about a hundred of the CPU's pause hints after each attempt that fails.
    PollBackoff,
    /// It calls a queue's blocking receive, whatever that does.
    Block,
}

impl Wait {
    /// All ways, in the order in which tables show them.
    pub const ALL: [Wait; 7] = [
        Wait::Spin,
        Wait::SpinYield,
        Wait::Poll,
        Wait::PollBackoff,
        Wait::Adaptive,
        Wait::Park,
        Wait::Block,
    ];

    /// The name that the command line and the files use.
    pub fn name(self) -> &'static str {
        match self {
            Wait::Spin => "spin",
            Wait::SpinYield => "spin-yield",
            Wait::Park => "park",
            Wait::Adaptive => "adaptive",
            Wait::Poll => "poll",
            Wait::PollBackoff => "poll-backoff",
            Wait::Block => "block",
        }
    }

    /// Tells if asking for this way of waiting includes rows that wait like `other`: a wait of ours
    /// brings along the peers that it is compared with.
    pub fn brings(self, other: Wait) -> bool {
        self == other
            || matches!(
                (self, other),
                (Wait::Spin, Wait::Poll | Wait::PollBackoff)
                    | (Wait::Park | Wait::Adaptive, Wait::Block)
            )
    }

    /// What ratios are taken within: a queue that burns its CPU is not compared with one that
    /// sleeps.
    pub fn family(self) -> WaitFamily {
        match self {
            Wait::Spin | Wait::SpinYield | Wait::Poll | Wait::PollBackoff => WaitFamily::Spinning,
            Wait::Park | Wait::Adaptive | Wait::Block => WaitFamily::Blocking,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The two ways of waiting that are compared within, and not with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitFamily {
    /// The waiting end looks again and again, and is never woken.
    Spinning,
    /// The waiting end may sleep, and is then woken.
    Blocking,
}

/// What a cell measures. A file tells them apart by their first field.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(untagged)]
pub enum Subject {
    /// A way of handing over.
    Mechanism {
        /// Its name, as `threadtoll list mechanisms` gives it.
        mechanism: String,
        /// How its ends wait; absent where the name tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Class>,
    },
    /// A queue.
    Queue(QueueSubject),
    /// A lock.
    Lock(LockSubject),
}

/// A queue and how it is used.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct QueueSubject {
    /// Its name, as `threadtoll list queues` or `threadtoll list peers` gives it.
    pub queue: String,
    /// Where it comes from.
    pub origin: Origin,
    /// How its receiver waits.
    pub wait: Wait,
    /// Messages that it holds; null where it is not bounded, and in files that were written before
    /// this was said.
    #[serde(default)]
    pub capacity: Option<u64>,
    /// Bytes of the memory in which these lie; null as above.
    #[serde(default)]
    pub ring_bytes: Option<u64>,
    /// The largest batch; 1 where messages are sent and received one at a time. Of `raw-copy`: the
    /// words of a block.
    pub batch: u64,
    /// Its version.
    pub version: String,
    /// How many threads send.
    pub senders: u32,
}

impl Subject {
    /// The mechanism of that name, whose ends wait like this.
    pub fn mechanism(name: impl Into<String>, class: Class) -> Self {
        let mechanism = name.into();
        let class = (Class::usual(&mechanism) != Some(class)).then_some(class);
        Subject::Mechanism { mechanism, class }
    }

    /// Its name, whatever it is.
    pub fn name(&self) -> &str {
        match self {
            Subject::Mechanism { mechanism, .. } => mechanism,
            Subject::Queue(queue) => &queue.queue,
            Subject::Lock(lock) => &lock.lock,
        }
    }

    /// How the ends of a mechanism wait, if it is known.
    pub fn class(&self) -> Option<Class> {
        match self {
            Subject::Mechanism { mechanism, class } => class.or_else(|| Class::usual(mechanism)),
            Subject::Queue(_) | Subject::Lock(_) => None,
        }
    }

    /// How it waits, as far as ratios care.
    pub fn family(&self) -> WaitFamily {
        match self {
            Subject::Queue(queue) => queue.wait.family(),
            Subject::Mechanism { .. } => self.class().map_or(WaitFamily::Blocking, Class::family),
            Subject::Lock(_) => WaitFamily::Blocking,
        }
    }
}

/// One point of an experiment.
///
/// Two cells that compare equal are the same measurement. Parameters that do not apply to a cell
/// are absent.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Cell {
    /// What is measured.
    #[serde(flatten)]
    pub subject: Subject,
    /// Where the ends run.
    pub placement: Placement,
    /// The CPUs: of the first and the second end when pinned (of all senders, then of the receiver;
    /// of a lock: those that its threads share in turns), one when both share it, all allowed ones
    /// when free.
    pub cpus: Vec<u32>,
    /// How those CPUs are related.
    pub relation: Relation,
    /// Bytes of one message, its 8-byte sequence number included; of locks 0.
    pub payload_bytes: u64,
    /// Layout of the counters, for the mechanisms that have a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Layout>,
    /// Pause hint in the spin loop, for the mechanisms that have a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// True where a lowest-priority spinner kept the CPUs from idling.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_awake: bool,
    /// Load beside the measured threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
}

impl Cell {
    /// The name of what is measured.
    pub fn name(&self) -> &str {
        self.subject.name()
    }

    /// The mechanism, if it is one.
    pub fn mechanism(&self) -> Option<&str> {
        match &self.subject {
            Subject::Mechanism { mechanism, .. } => Some(mechanism),
            Subject::Queue(_) | Subject::Lock(_) => None,
        }
    }

    /// The queue, if it is one.
    pub fn queue(&self) -> Option<&QueueSubject> {
        match &self.subject {
            Subject::Queue(queue) => Some(queue),
            Subject::Mechanism { .. } | Subject::Lock(_) => None,
        }
    }

    /// The lock and what is done with it, if it is one.
    pub fn lock(&self) -> Option<&LockSubject> {
        match &self.subject {
            Subject::Lock(lock) => Some(lock),
            Subject::Mechanism { .. } | Subject::Queue(_) => None,
        }
    }

    /// Whether more threads want CPUs than the cell has: they take turns, and the scheduler's
    /// slices are part of the figure.
    ///
    /// Never where all threads were put on one CPU on purpose, nor where they sleep and want none.
    pub fn oversubscribed(&self) -> bool {
        let threads = match &self.subject {
            Subject::Queue(queue) => queue.senders as usize + 1,
            Subject::Lock(lock) if lock.work == Work::Spin => lock.threads as usize,
            Subject::Lock(_) | Subject::Mechanism { .. } => 0,
        };
        self.placement != Placement::SameCpu && threads > self.cpus.len()
    }

    /// The subject with the parameters that set it apart within one placement, as tables label it
    /// (`atomic-rmw, shared line, pause`).
    ///
    /// Payloads of 8 bytes, own lines and the absence of a pause hint are the usual case and are
    /// not mentioned.
    pub fn label(&self) -> String {
        let mut label = self.name().to_string();
        if let Some(queue) = self.queue() {
            if queue.origin == Origin::Twin {
                label.push_str(" (twin)");
            }
            if queue.origin != Origin::Raw {
                label.push_str(&format!(", {}", queue.wait));
            }
            if let Some(capacity) = queue.capacity {
                label.push_str(&format!(", capacity {capacity}"));
            }
            match (queue.origin, queue.batch) {
                (_, 0 | 1) => {}
                (Origin::Raw, words) => label.push_str(&format!(", blocks of {words} words")),
                (_, batch) => label.push_str(&format!(", batches of {batch}")),
            }
            if queue.senders != 1 {
                label.push_str(&format!(", {} senders", queue.senders));
            }
        }
        if let Some(lock) = self.lock() {
            label.push_str(&lock_label(lock));
        }
        if self.line == Some(Layout::Shared) {
            label.push_str(", shared line");
        }
        if self.pause == Some(Pause::On) {
            label.push_str(", pause");
        }
        if self.keep_awake {
            label.push_str(", kept awake");
        }
        if self.payload_bytes != 8 && self.lock().is_none() {
            label.push_str(&format!(", {} B", self.payload_bytes));
        }
        match self.neighbour {
            None => {}
            Some(Neighbour::Spin) => label.push_str(", beside spinners"),
            Some(Neighbour::Memory) => label.push_str(", beside memory streams"),
            Some(Neighbour::Churn) => label.push_str(", beside churn"),
        }
        label
    }
}

/// What sets a lock's cells apart: `, 2 threads, hold 3333 ns, think 30000 ns`.
fn lock_label(lock: &LockSubject) -> String {
    let mut label = match lock.threads {
        1 => ", 1 thread".to_string(),
        threads => format!(", {threads} threads"),
    };
    label.push_str(&format!(", hold {} ns, think {} ns", lock.hold_ns, lock.think_ns));
    if lock.spread == Spread::Fixed {
        label.push_str(", fixed");
    }
    if lock.work == Work::Sleep {
        label.push_str(", asleep");
    }
    if let Some(share) = lock.read_share {
        label.push_str(&format!(", {}% reads", share.value() * 100.0));
    }
    if let Some(tasks) = lock.tasks {
        label.push_str(&format!(", {tasks} tasks"));
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_mention_only_what_is_unusual() {
        let mut cell = Cell {
            subject: Subject::mechanism("atomic-rmw", Class::Spin),
            placement: Placement::Pinned,
            cpus: vec![0, 1],
            relation: Relation::SameLlc,
            payload_bytes: 8,
            line: Some(Layout::Own),
            pause: Some(Pause::Off),
            keep_awake: false,
            neighbour: None,
        };
        assert_eq!(cell.label(), "atomic-rmw");
        cell.line = Some(Layout::Shared);
        cell.pause = Some(Pause::On);
        cell.keep_awake = true;
        cell.payload_bytes = 4096;
        cell.neighbour = Some(Neighbour::Churn);
        assert_eq!(
            cell.label(),
            "atomic-rmw, shared line, pause, kept awake, 4096 B, beside churn"
        );
    }

    fn stream(senders: u32) -> Cell {
        Cell {
            subject: Subject::Queue(QueueSubject {
                queue: "funnel".into(),
                origin: Origin::Ours,
                wait: Wait::SpinYield,
                capacity: None,
                ring_bytes: None,
                batch: 256,
                version: "0.1.0".into(),
                senders,
            }),
            placement: Placement::Pinned,
            cpus: vec![0, 1],
            relation: Relation::SameLlc,
            payload_bytes: 8,
            line: None,
            pause: None,
            keep_awake: false,
            neighbour: None,
        }
    }

    #[test]
    fn queues_say_how_they_are_used() {
        assert_eq!(stream(1).label(), "funnel, spin-yield, batches of 256");
        assert_eq!(stream(2).label(), "funnel, spin-yield, batches of 256, 2 senders");
        assert!(stream(2).oversubscribed() && !stream(1).oversubscribed());
        let mut bounded = stream(1);
        if let Subject::Queue(queue) = &mut bounded.subject {
            *queue = QueueSubject {
                origin: Origin::Twin,
                capacity: Some(1024),
                batch: 1,
                ..queue.clone()
            };
        }
        assert_eq!(bounded.label(), "funnel (twin), spin-yield, capacity 1024");
    }

    /// What stands in files that were written before there were queues, to the letter.
    #[test]
    fn a_cell_is_written_flat_and_a_mechanism_as_ever() {
        let text = r#"{"mechanism":"futex","placement":"pinned","cpus":[0,1],"relation":"same-llc","payload_bytes":8}"#;
        let cell: Cell = serde_json::from_str(text).unwrap();
        assert_eq!((cell.mechanism(), cell.queue()), (Some("futex"), None));
        assert_eq!(serde_json::to_string(&cell).unwrap(), text);
        assert_eq!(cell.subject.class(), Some(Class::Sleep));
        let new = r#"{"mechanism":"carrier-pigeon","class":"poll""#;
        let other: Cell =
            serde_json::from_str(&text.replace(r#"{"mechanism":"futex""#, new)).unwrap();
        assert_eq!(other.subject, Subject::mechanism("carrier-pigeon", Class::Poll));
        let unknown: Cell = serde_json::from_str(&text.replace("futex", "smoke-signal")).unwrap();
        assert_eq!(unknown.subject.class(), None);
        let text = r#"{"queue":"funnel","origin":"ours","wait":"spin-yield","capacity":null,"ring_bytes":null,"batch":256,"version":"0.1.0","senders":1,"placement":"pinned","cpus":[0,1],"relation":"same-llc","payload_bytes":8}"#;
        assert_eq!(serde_json::to_string(&stream(1)).unwrap(), text);
        assert_eq!(serde_json::from_str::<Cell>(text).unwrap(), stream(1));
        // Before queues said what they hold.
        let old = text.replace(r#""capacity":null,"ring_bytes":null,"#, "");
        assert_eq!(serde_json::from_str::<Cell>(&old).unwrap(), stream(1));
    }

    #[test]
    fn names_in_files_are_those_that_are_shown() {
        for wait in Wait::ALL {
            assert_eq!(serde_json::to_value(wait).unwrap(), wait.name());
        }
        let origins = [
            Origin::Ours,
            Origin::Twin,
            Origin::Rust,
            Origin::Cpp,
            Origin::Java,
            Origin::Go,
            Origin::D,
            Origin::Raw,
        ];
        for origin in origins {
            assert_eq!(serde_json::to_value(origin).unwrap(), origin.name());
        }
    }
}
