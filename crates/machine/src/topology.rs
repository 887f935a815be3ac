//! Distances between CPUs.
//!
//! Distances describe structure, not speed. If a hypervisor hides the caches, two CPUs that share
//! one are only known to be on the same node.
//!
//! Source: `sysfs-devices-system-cpu` in `Documentation/ABI/stable` and `testing`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use threadtoll_record::{CpuPlace, Relation};

pub mod synthetic;

/// The CPUs of a machine and their cores, caches and nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Every online CPU, in ascending order.
    pub places: Vec<CpuPlace>,
    /// False if the kernel did not show which CPUs share a core; each CPU then counts as a core.
    pub readable: bool,
    /// True if the topology was read from a given tree instead of this machine.
    pub synthetic: bool,
}

/// Largest distance between the CPUs of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Hardware threads of one core.
    Smt,
    /// CPUs that share a last-level cache.
    Llc,
    /// CPUs of one NUMA node.
    Node,
    /// Any two CPUs.
    All,
}

impl Level {
    /// All levels, nearest first.
    pub const ALL: [Level; 4] = [Level::Smt, Level::Llc, Level::Node, Level::All];

    /// Name of the level on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Smt => "smt",
            Level::Llc => "llc",
            Level::Node => "node",
            Level::All => "all",
        }
    }

    /// The farthest relation that two CPUs of a pair at this level may have.
    pub fn farthest(self) -> Relation {
        match self {
            Level::Smt => Relation::Smt,
            Level::Llc => Relation::SameLlc,
            Level::Node => Relation::SameNode,
            Level::All => Relation::OtherNode,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(name: &str) -> Result<Level, String> {
        let named = Level::ALL.into_iter().find(|level| level.name() == name);
        named.ok_or_else(|| {
            format!("“{name}” is not a level of distance; choose smt, llc, node or all")
        })
    }
}

impl Topology {
    /// The place of a CPU.
    pub fn place(&self, cpu: u32) -> Option<&CpuPlace> {
        self.places
            .binary_search_by_key(&cpu, |place| place.cpu)
            .ok()
            .map(|index| &self.places[index])
    }

    /// Relation of two CPUs. A CPU outside the topology shares no core and no cache with others.
    pub fn relation(&self, a: u32, b: u32) -> Relation {
        if a == b {
            return Relation::SameCpu;
        }
        match (self.place(a), self.place(b)) {
            (Some(a), Some(b)) => relation(a, b),
            (a, b) if a.map_or(0, |place| place.node) == b.map_or(0, |place| place.node) => {
                Relation::SameNode
            }
            _ => Relation::OtherNode,
        }
    }

    /// All pairs of `allowed` CPUs that are no farther apart than `level`, in ascending order. The
    /// lower number comes first in each pair.
    pub fn pairs(&self, allowed: &[u32], level: Level) -> Vec<(u32, u32)> {
        each_pair(&sorted(allowed))
            .filter(|&(a, b)| self.relation(a, b) <= level.farthest())
            .collect()
    }

    /// The default pair to measure: two CPUs on different cores, as close together as possible.
    ///
    /// Siblings on one core come last, because they compete for its execution units. Equally close
    /// pairs are chosen by these preferences, in order: cores of the same kind; fast cores; with
    /// more than four CPUs, cores other than that of CPU 0, which handles most interrupts; low
    /// numbers.
    pub fn default_pair(&self, allowed: &[u32]) -> Option<(u32, u32)> {
        let best = self.one_per_relation(allowed);
        [Relation::SameLlc, Relation::SameNode, Relation::OtherNode, Relation::Smt]
            .into_iter()
            .find_map(|wanted| {
                best.iter().find(|(relation, _)| *relation == wanted).map(|&(_, pair)| pair)
            })
    }

    /// The best pair of `allowed` CPUs for each relation, nearest first, with the preferences of
    /// [`Topology::default_pair`].
    pub fn one_per_relation(&self, allowed: &[u32]) -> Vec<(Relation, (u32, u32))> {
        let cpus = sorted(allowed);
        let mut best: BTreeMap<Relation, (Fault, (u32, u32))> = BTreeMap::new();
        for pair in each_pair(&cpus) {
            let candidate = (self.fault(pair, cpus.len() > 4), pair);
            let held = best.entry(self.relation(pair.0, pair.1)).or_insert(candidate);
            *held = (*held).min(candidate);
        }
        best.into_iter().map(|(relation, (_, pair))| (relation, pair)).collect()
    }

    fn fault(&self, (a, b): (u32, u32), avoid_first: bool) -> Fault {
        let kinds = [a, b].map(|cpu| self.place(cpu).and_then(|place| place.kind.as_deref()));
        let first_core = self.place(0).map_or(0, |place| place.core);
        let on_first_core = |cpu| self.place(cpu).map_or(cpu, |place| place.core) == first_core;
        Fault {
            mixed: kinds[0] != kinds[1],
            slow: Reverse(kinds.iter().filter(|&&kind| kind == Some(PERFORMANCE)).count()),
            first_core: avoid_first && (on_first_core(a) || on_first_core(b)),
        }
    }
}

/// Drawbacks of a pair, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fault {
    mixed: bool,
    slow: Reverse<usize>,
    first_core: bool,
}

pub(crate) const PERFORMANCE: &str = "performance";
pub(crate) const EFFICIENCY: &str = "efficiency";

fn relation(a: &CpuPlace, b: &CpuPlace) -> Relation {
    if a.core == b.core {
        Relation::Smt
    } else if a.llc.is_some() && a.llc == b.llc {
        Relation::SameLlc
    } else if a.node == b.node {
        Relation::SameNode
    } else {
        Relation::OtherNode
    }
}

fn each_pair(cpus: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    cpus.iter().enumerate().flat_map(|(index, &a)| cpus[index + 1..].iter().map(move |&b| (a, b)))
}

fn sorted(cpus: &[u32]) -> Vec<u32> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}
