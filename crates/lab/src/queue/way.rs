//! A queue and its rows. There is one row for each wait strategy.

use std::sync::Arc;

use threadtoll::wait::Wait as Waiting;
use threadtoll_record::{Build, Load, Origin, QueueSubject, Wait};

use super::CAPACITY;
use super::slots::{Capacity, Slots};
use crate::error::{Make, Unavailable};
use crate::mechanism::Class;
use crate::program::{Program, StreamProgram};
use crate::stream::Streams;
use crate::thread_group::{BlockLogs, Log, Reading, ThreadGroup, ThreadGroupProgram, VirtualQueue};

/// Row of a queue: the queue with one wait strategy.
#[derive(Clone)]
pub struct Way {
    /// Wait strategy of the receiver.
    pub wait: Wait,
    /// True if either end has batch calls.
    pub batches: bool,
    /// True if several threads may send.
    pub many_senders: bool,
    /// True if several threads may receive.
    pub many_receivers: bool,
    pub(super) programs: Programs,
}

/// Returns the program of a row's threads, given the name of the scenario; `None` if the scenario
/// does not apply to the row.
type Programs = Arc<dyn Fn(&str, Usage) -> Option<Program> + Send + Sync>;

#[derive(Clone, Debug)]
pub(crate) struct Usage {
    pub(crate) flow: Flow,
    pub(crate) class: Class,
    /// True if the queue allocates memory as it fills.
    pub(crate) grows: bool,
    pub(crate) load: Load,
    pub(crate) payload_bytes: u64,
}

impl Usage {
    /// Returns a stream whose senders check the stop flag after every `round` messages.
    pub(super) fn stream(&self, round: u64, make: Make<Streams>) -> Program {
        let Usage { class, grows, .. } = *self;
        Program::Stream(StreamProgram { make, round, class, grows })
    }

    pub(super) fn threads(
        &self,
        threads: usize,
        make: impl Fn() -> Result<ThreadGroup, Unavailable> + Send + Sync + 'static,
        read: impl Fn(BlockLogs) -> Option<Reading> + Send + Sync + 'static,
        simulate: impl Fn(&mut VirtualQueue<'_>) -> Result<Vec<Log>, Unavailable>
        + Send
        + Sync
        + 'static,
    ) -> Program {
        Program::ThreadGroup(ThreadGroupProgram {
            make: Arc::new(make),
            threads,
            read: Arc::new(read),
            simulate: Arc::new(simulate),
            class: self.class,
            grows: self.grows,
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) senders: u32,
    pub(crate) batch: u64,
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
    pub(super) fn new(
        wait: Wait,
        programs: impl Fn(&str, Usage) -> Option<Program> + Send + Sync + 'static,
    ) -> Self {
        Way {
            wait,
            batches: false,
            many_senders: false,
            many_receivers: false,
            programs: Arc::new(programs),
        }
    }

    /// Declares that the row has batch calls.
    pub fn in_batches(self) -> Self {
        Way { batches: true, ..self }
    }

    /// Restricts the row to the uses that `suits` accepts.
    pub(crate) fn limited_to(
        self,
        suits: impl Fn(&str, &Usage) -> bool + Send + Sync + 'static,
    ) -> Self {
        let Way { programs, .. } = self;
        let limited = move |scenario: &str, usage: Usage| {
            if suits(scenario, &usage) { programs(scenario, usage) } else { None }
        };
        Way { programs: Arc::new(limited), ..self }
    }

    pub(crate) fn program(&self, scenario: &str, usage: Usage) -> Option<Program> {
        (self.programs)(scenario, usage)
    }
}

/// A queue that can be measured.
#[derive(Clone)]
pub struct Queue {
    /// Name of the queue on the command line and in files.
    pub name: String,
    /// Origin of the queue.
    pub origin: Origin,
    /// Version of the measured code.
    pub version: String,
    /// One-sentence description.
    pub sentence: String,
    /// Capacity of the queue.
    pub capacity: Capacity,
    /// Build of the queue's code; `None` if it was built with this program.
    pub built: Option<Build>,
    /// Rows, one for each wait strategy.
    pub ways: Vec<Way>,
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.wait.name())
    }
}

/// Waits of our queues, and their names in records.
pub const OUR_WAITS: [(Waiting, Wait); 4] = [
    (Waiting::Spin, Wait::Spin),
    (Waiting::SpinYield, Wait::SpinYield),
    (Waiting::Adaptive, Wait::Adaptive),
    (Waiting::Park, Wait::Park),
];

/// Rows of one of our queues that takes batches.
pub(super) fn ways(row: impl Fn(Waiting, Wait) -> Way) -> Vec<Way> {
    OUR_WAITS.map(|(waiting, wait)| row(waiting, wait).in_batches()).into()
}

impl Queue {
    pub(super) fn ours(name: &str, sentence: &str, capacity: Capacity, ways: Vec<Way>) -> Self {
        Queue {
            name: name.into(),
            origin: Origin::Ours,
            version: threadtoll::VERSION.into(),
            sentence: sentence.into(),
            capacity,
            built: None,
            ways,
        }
    }

    /// Returns `true` if a sender may have to wait.
    pub fn bounded(&self) -> bool {
        !matches!(self.capacity, Capacity::Unbounded)
    }

    /// Returns the memory layout of the queue's messages, if the capacity is configurable.
    pub fn slots(&self) -> Option<&Slots> {
        match &self.capacity {
            Capacity::Slots(slots) => Some(slots),
            Capacity::Unbounded | Capacity::Fixed => None,
        }
    }

    /// Returns the row with this wait strategy, if the queue has one.
    pub fn way(&self, wait: Wait) -> Option<&Way> {
        self.ways.iter().find(|way| way.wait == wait)
    }
}

pub(crate) fn class(wait: Wait) -> Class {
    match wait {
        Wait::Spin | Wait::Poll | Wait::PollBackoff => Class::Spin,
        Wait::SpinYield => Class::Poll,
        Wait::Park | Wait::Adaptive | Wait::Block => Class::Sleep,
    }
}
