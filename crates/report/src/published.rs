//! Published figures for the same hand-offs.
//!
//! `machine` has all that the articles say about their machines.

use threadtoll_record::{Cell, Layout, Pause, Placement};

/// A published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Published {
    /// Our equivalent mechanisms.
    pub(crate) mechanisms: &'static [&'static str],
    /// The placement in the source, or `None` if unknown.
    pub(crate) placement: Option<Placement>,
    /// The layout of the counters in the source, or `None` if unknown.
    pub(crate) line: Option<Layout>,
    /// The published one-way time in nanoseconds.
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

const THOMPSON_LINE: &str = "M. Thompson, Mechanical Sympathy, August 2011";
const THOMPSON_LOCK: &str = "M. Thompson, Mechanical Sympathy, November 2011";
const HABR: &str = "an article on Habr on queues between threads, February 2016";
const CONDVAR: &[&str] = &["std-condvar", "pthread-condvar"];
const NEHALEM: &str = "Java 6 on Windows 7, Nehalem 2.8 GHz";
const FEDORA: &str = "Java 6 on Fedora 15, Sandy Bridge 2.0 GHz";

pub(crate) const PUBLISHED: [Published; 7] = [
    Published {
        mechanisms: &["atomic-rmw"],
        placement: Some(Placement::Pinned),
        line: Some(Layout::Shared),
        ns: 45.0,
        or_worse: false,
        year: 2011,
        author: "M. Thompson",
        source: THOMPSON_LINE,
        machine: "C++ with lock xadd on a Sandy Bridge laptop, 2.2 GHz",
    },
    Published {
        mechanisms: &["atomic-seqcst"],
        placement: Some(Placement::Pinned),
        line: None,
        ns: 50.0,
        or_worse: false,
        year: 2011,
        author: "M. Thompson",
        source: THOMPSON_LINE,
        machine: "Java volatile on a Sandy Bridge laptop, 2.2 GHz",
    },
    lock(Placement::Pinned, 2082.0, NEHALEM),
    lock(Placement::Pinned, 2360.0, FEDORA),
    lock(Placement::Free, 3689.0, NEHALEM),
    lock(Placement::Free, 16_808.0, FEDORA),
    Published {
        mechanisms: &["sleep-poll"],
        placement: None,
        line: None,
        ns: 40_000.0,
        or_worse: true,
        year: 2016,
        author: "Habr",
        source: HABR,
        machine: "usleep; the machine is not named",
    },
];

const fn lock(placement: Placement, ns: f64, machine: &'static str) -> Published {
    Published {
        mechanisms: CONDVAR,
        placement: Some(placement),
        line: None,
        ns,
        or_worse: false,
        year: 2011,
        author: "M. Thompson",
        source: THOMPSON_LOCK,
        machine,
    }
}

impl Published {
    /// Returns `true` for a cell measured as the figure was. Only plain cells match: no twin, no
    /// pause hint, no payload, no CPU kept awake, and no neighbours.
    pub(crate) fn is_for(&self, cell: &Cell) -> bool {
        !cell.is_twin()
            && cell.payload_bytes == 8
            && !cell.keep_awake
            && cell.neighbour.is_none()
            && cell.pause != Some(Pause::On)
            && self.mechanisms.contains(&cell.name())
            && self.placement.is_none_or(|placement| placement == cell.placement)
            && (self.line.is_none() || cell.line.is_none() || self.line == cell.line)
    }
}

/// The published figures for a cell, in ascending order.
pub(crate) fn published(cell: &Cell) -> Vec<&'static Published> {
    PUBLISHED.iter().filter(|figure| figure.is_for(cell)).collect()
}

/// Text for a table: `45 ns (2011)`, `2.08–2.36 µs (2011)`, `≥40 µs (2016)`; `None` without
/// figures.
pub(crate) fn summary(figures: &[&Published]) -> Option<String> {
    let (first, last) = (figures.first()?, figures.last()?);
    let least = if first.or_worse { "≥" } else { "" };
    Some(format!("{least}{} ({})", crate::units::range(first.ns, last.ns), first.year))
}
