//! Published figures for the same hand-offs, queues and pools.
//!
//! `machine` has all that the articles say about their machines.

use threadtoll_record::{Layout, LockSubject, Pause, Placement, Record, Wait, Work};

use crate::units::{per_second, range};

/// A published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Published {
    /// Our equivalent rows.
    pub(crate) names: &'static [&'static str],
    pub(crate) figure: Figure,
    /// The placement in the source, or `None` if unknown.
    pub(crate) placement: Option<Placement>,
    /// The published time in nanoseconds.
    pub(crate) ns: f64,
    /// True if the source says “or worse”.
    pub(crate) or_worse: bool,
    pub(crate) year: u16,
    pub(crate) author: &'static str,
    /// Author, place and date of the publication.
    pub(crate) source: &'static str,
    /// Machine and program that it was measured with.
    pub(crate) machine: &'static str,
}

/// A kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// One way through a mechanism, with the layout of its counters, or `None` if unknown.
    HandOff(Option<Layout>),
    /// One way through a queue whose receiver waits in one of these ways.
    Message(&'static [Wait]),
    /// Time per message of a stream, of which the source says that it is shorter still.
    Stream { batched: bool },
}

const THOMPSON_LINE: &str = "M. Thompson, Mechanical Sympathy, August 2011";
const THOMPSON_LOCK: &str = "M. Thompson, Mechanical Sympathy, November 2011";
const HABR: &str = "an article on Habr on queues between threads, February 2016";
const ATOMIC_RMW: &[&str] = &["atomic-rmw"];
const VOLATILE: &[&str] = &["java-volatile", "atomic-seqcst"];
const CONDVAR: &[&str] = &["java-condition", "std-condvar", "pthread-condvar"];
pub(crate) const DISRUPTOR: &[&str] =
    &["disruptor-busy-spin", "disruptor-yielding", "disruptor-blocking"];
const NEHALEM: &str = "Java 6 on Windows 7, Nehalem 2.8 GHz";
const FEDORA: &str = "Java 6 on Fedora 15, Sandy Bridge 2.0 GHz";
pub(crate) const POLLED: &[Wait] = &[Wait::Poll, Wait::PollBackoff];
pub(crate) const BLOCKED: &[Wait] = &[Wait::Block];

pub(crate) const PUBLISHED: [Published; 14] = [
    Published {
        figure: Figure::HandOff(Some(Layout::Shared)),
        machine: "C++ with lock xadd on a Sandy Bridge laptop, 2.2 GHz",
        ..thompson(ATOMIC_RMW, 45.0)
    },
    Published {
        machine: "Java volatile on a Sandy Bridge laptop, 2.2 GHz",
        ..thompson(VOLATILE, 50.0)
    },
    lock(Placement::Pinned, 2082.0, NEHALEM),
    lock(Placement::Pinned, 2360.0, FEDORA),
    lock(Placement::Free, 3689.0, NEHALEM),
    lock(Placement::Free, 16_808.0, FEDORA),
    Published { or_worse: true, ..habr(&["sleep-poll"], 40_000.0, USLEEP) },
    Published {
        figure: Figure::Message(POLLED),
        ..habr(&["mutex-queue"], 400.0, "a mutex and a queue, polled; the machine is not named")
    },
    Published {
        figure: Figure::Message(POLLED),
        ..habr(LOCK_FREE, 400.0, "a lock-free queue, polled; the machine is not named")
    },
    Published {
        figure: Figure::Message(BLOCKED),
        or_worse: true,
        ..habr(&["mutex-queue-usleep"], 40_000.0, USLEEP)
    },
    Published {
        figure: Figure::Message(BLOCKED),
        ..habr(&["d-concurrency"], 5_000.0, "std.concurrency of D; the machine is not named")
    },
    Published {
        figure: Figure::Message(BLOCKED),
        ..habr(&["asio-post"], 4_300.0, "boost::asio, one sender; the machine is not named")
    },
    disruptor(false, 40.0, "LMAX Disruptor, batches at the consumer; the machine is not named"),
    disruptor(true, 10.0, "LMAX Disruptor, batches at both ends; the machine is not named"),
];

/// Lock-free queues in C++ between two threads.
pub(crate) const LOCK_FREE: &[&str] = &["boost-queue", "boost-spsc"];
const USLEEP: &str = "usleep; the machine is not named";

const fn thompson(names: &'static [&'static str], ns: f64) -> Published {
    Published {
        names,
        figure: Figure::HandOff(None),
        placement: Some(Placement::Pinned),
        ns,
        or_worse: false,
        year: 2011,
        author: "M. Thompson",
        source: THOMPSON_LINE,
        machine: "",
    }
}

const fn lock(placement: Placement, ns: f64, machine: &'static str) -> Published {
    Published {
        placement: Some(placement),
        source: THOMPSON_LOCK,
        machine,
        ..thompson(CONDVAR, ns)
    }
}

const fn habr(names: &'static [&'static str], ns: f64, machine: &'static str) -> Published {
    Published {
        placement: None,
        year: 2016,
        author: "Habr",
        source: HABR,
        machine,
        ..thompson(names, ns)
    }
}

const fn disruptor(batched: bool, ns: f64, machine: &'static str) -> Published {
    Published {
        figure: Figure::Stream { batched },
        placement: None,
        machine,
        ..thompson(DISRUPTOR, ns)
    }
}

impl Published {
    /// Returns `true` for a record measured as the figure was. Only plain cells match: no pause
    /// hint, no payload, no CPU kept awake, no neighbours, one sender.
    pub(crate) fn is_for(&self, record: &Record) -> bool {
        let cell = &record.cell;
        let scenario = |name| record.experiment.scenario() == Some(name);
        let of_its_kind = match (self.figure, cell.queue()) {
            (Figure::HandOff(line), None) => {
                line.is_none() || cell.line.is_none() || line == cell.line
            }
            (Figure::Message(waits), Some(queue)) => {
                scenario("ask-reply") && waits.contains(&queue.wait)
            }
            (Figure::Stream { batched }, Some(queue)) => {
                scenario("stream") && queue.senders == 1 && batched == (queue.batch > 1)
            }
            _ => false,
        };
        of_its_kind
            && cell.payload_bytes == 8
            && !cell.keep_awake
            && cell.neighbour.is_none()
            && cell.pause != Some(Pause::On)
            && self.names.contains(&cell.name())
            && self.placement.is_none_or(|placement| placement == cell.placement)
    }
}

/// The published figures for a record, in ascending order.
pub(crate) fn published(record: &Record) -> Vec<&'static Published> {
    PUBLISHED.iter().filter(|figure| figure.is_for(record)).collect()
}

/// Text for a table: `45 ns (2011)`, `2.08–2.36 µs (2011)`, `≥40 µs (2016)`; for streams
/// `≥25.0 M/s (2011)`. `None` without figures.
pub(crate) fn summary(figures: &[&Published]) -> Option<String> {
    let (first, last) = (figures.first()?, figures.last()?);
    let text = match first.figure {
        Figure::Stream { .. } => format!("≥{}/s", per_second(1e9 / first.ns)),
        _ => {
            let least = if first.or_worse { "≥" } else { "" };
            format!("{least}{}", range(first.ns, last.ns))
        }
    };
    Some(format!("{text} ({})", first.year))
}

/// `Published: M. Thompson, …; an article on Habr ….`; `None` without figures.
pub(crate) fn sources<'a>(records: impl Iterator<Item = &'a Record>) -> Option<String> {
    let mut sources: Vec<&Published> = records.flat_map(published).collect();
    sources.sort_by(|a, b| (a.year, a.source).cmp(&(b.year, b.source)));
    sources.dedup_by_key(|figure| figure.source);
    let names: Vec<&str> = sources.iter().map(|figure| figure.source).collect();
    (!names.is_empty()).then(|| format!("Published: {}.", names.join("; ")))
}

/// Time for all tasks and mean queue on entry, published for a pool of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PublishedPool {
    threads: u32,
    pub(crate) total_ms: f64,
    pub(crate) queue_on_entry: f64,
}

const fn pool(threads: u32, total_ms: f64, queue_on_entry: f64) -> PublishedPool {
    PublishedPool { threads, total_ms, queue_on_entry }
}

/// A. Sukhovitsky’s `ReentrantLock(true)`: 1,000 tasks, each 5 ms of sleep under the lock and
/// 95 ms outside it.
const POOLS: [PublishedPool; 7] = [
    pool(1, 105_729.0, 0.0),
    pool(5, 21_047.0, 0.0),
    pool(10, 10_605.0, 0.0),
    pool(16, 6_718.0, 0.0),
    pool(20, 6_252.0, 2.63),
    pool(25, 6_259.0, 7.5),
    pool(32, 6_259.0, 14.36),
];

/// The published figures for a cell of a pool.
pub(crate) fn published_pool(subject: &LockSubject) -> Option<&'static PublishedPool> {
    let alike = subject.tasks == Some(1000)
        && subject.work == Work::Sleep
        && (subject.hold_ns, subject.think_ns) == (5_000_000, 95_000_000);
    POOLS.iter().find(|pool| alike && pool.threads == subject.threads)
}
