//! Reads the topology from a tree like `/sys`.
//!
//! | fact | file, below `devices/system` |
//! |---|---|
//! | online CPUs | `cpu/online` |
//! | core of a CPU | `cpu/cpuN/topology/core_cpus_list`, `thread_siblings_list` before Linux 5.3 |
//! | last-level cache of a CPU | `cpu/cpuN/cache/index*/{level,type,shared_cpu_list}` |
//! | node of a CPU | `node/nodeN/cpulist` |
//! | kind of a CPU (x86) | `../cpu_core/cpus`, `../cpu_atom/cpus`, `../cpu_lowpower/cpus` |
//! | kind of a CPU (others) | `cpu/cpuN/cpu_capacity` |
//!
//! The files are not trusted: lists may be garbage, contradict each other, or name CPUs that do not
//! exist. A core or a cache is identified by the lowest CPU that uses it. So "same core" and "same
//! cache" are equivalence relations, no matter what the files say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use threadtoll_record::CpuPlace;

use crate::cpulist;
use crate::place::allowed_cpus;
use crate::topology::{EFFICIENCY, PERFORMANCE, Topology};

const MAX_FILE: u64 = 1 << 20;
/// Longer lists of siblings are taken to be wrong (POWER has 8 per core).
const MAX_SIBLINGS: usize = 64;
const MAX_CACHES: u32 = 16;
/// Linux supports at most 1,024 nodes.
const MAX_NODES: u32 = 4_096;
/// If a CPU's highest visible cache is private to a core and below this level, the kernel is taken
/// to hide a shared one.
const LOWEST_SHARED_LEVEL: u32 = 3;
/// A core is small if its capacity is below this share of the largest core's capacity. Favoured
/// cores of one kind differ by less.
const SMALL_CORE: f64 = 0.75;

pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = Vec::new();
    // A named pipe in a synthetic tree must not block.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8(bytes).ok()?.trim().to_owned())
}

fn list(path: impl AsRef<Path>) -> Option<Vec<u32>> {
    cpulist::parse(&text(path)?)
}

impl Topology {
    /// Reads the tree under `root`. Any root other than `/sys` makes the topology synthetic.
    ///
    /// If nothing is readable, the topology has the CPUs in the calling thread's affinity, and
    /// `readable` is false.
    pub fn read(root: &Path) -> Topology {
        let real = fs::canonicalize(root).is_ok_and(|root| root == Path::new("/sys"));
        let online =
            list(root.join("devices/system/cpu/online")).filter(|online| !online.is_empty());
        let mut readable = online.is_some();
        let mut cpus: BTreeSet<u32> = online.unwrap_or_default().into_iter().collect();
        // Some containers show a wrong list, but CPUs that this process may use must be online.
        if real || cpus.is_empty() {
            cpus.extend(allowed_cpus());
        }

        let mut core_of = BTreeMap::new();
        let mut llc_of = BTreeMap::new();
        for &cpu in &cpus {
            let siblings = siblings(root, cpu);
            readable &= siblings.is_some();
            let siblings = siblings.unwrap_or_else(|| vec![cpu]);
            core_of.insert(cpu, lowest(&siblings, &cpus, cpu));
            if let Some(sharers) = last_level_cache(root, cpu, &siblings) {
                llc_of.insert(cpu, lowest(&sharers, &cpus, cpu));
            }
        }
        let mut cores = groups(&core_of);
        // Lists that are plausible one by one may add up to an impossible core. All are then
        // ignored.
        if cores.values().any(|threads| threads.len() > MAX_SIBLINGS) {
            readable = false;
            core_of = cpus.iter().map(|&cpu| (cpu, cpu)).collect();
            cores = groups(&core_of);
        }
        let caches = groups(&llc_of);
        let node_of = nodes(root);
        let kind_of = kinds(root, &cpus);
        let places = core_of.iter().map(|(&cpu, name)| {
            let smt = cores[name].clone();
            CpuPlace {
                cpu,
                core: smt[0],
                llc: llc_of.get(&cpu).map(|name| caches[name][0]),
                node: node_of.get(&cpu).copied().unwrap_or(0),
                smt,
                kind: kind_of.get(&cpu).map(|&kind| kind.into()),
            }
        });
        Topology { places: places.collect(), readable, synthetic: !real }
    }
}

/// Lists the CPUs of each group, in ascending order. A group's name is the number of a CPU, which
/// contradictory lists of the kernel may put into another group. Callers therefore identify a group
/// by its first CPU.
fn groups(name_of: &BTreeMap<u32, u32>) -> BTreeMap<u32, Vec<u32>> {
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&cpu, &name) in name_of {
        groups.entry(name).or_default().push(cpu);
    }
    groups
}

/// The lowest online CPU among `group` and `cpu`.
fn lowest(group: &[u32], online: &BTreeSet<u32>, cpu: u32) -> u32 {
    group.iter().copied().filter(|other| online.contains(other)).fold(cpu, u32::min)
}

fn siblings(root: &Path, cpu: u32) -> Option<Vec<u32>> {
    let topology = root.join(format!("devices/system/cpu/cpu{cpu}/topology"));
    let believable = 1..=MAX_SIBLINGS;
    let named = |name: &str| {
        list(topology.join(name)).filter(|siblings| believable.contains(&siblings.len()))
    };
    named("core_cpus_list").or_else(|| named("thread_siblings_list"))
}

/// CPUs that share the last-level data cache of `cpu`; `None` if the kernel hides that cache.
fn last_level_cache(root: &Path, cpu: u32, siblings: &[u32]) -> Option<Vec<u32>> {
    let mut last: Option<(u32, Vec<u32>)> = None;
    for index in 0..MAX_CACHES {
        let cache = root.join(format!("devices/system/cpu/cpu{cpu}/cache/index{index}"));
        let Some(level) = text(cache.join("level")) else { break };
        let Ok(level) = level.parse::<u32>() else { continue };
        let holds_data =
            text(cache.join("type")).is_some_and(|kind| kind == "Data" || kind == "Unified");
        if holds_data
            && last.as_ref().is_none_or(|(highest, _)| level > *highest)
            && let Some(sharers) =
                list(cache.join("shared_cpu_list")).filter(|sharers| !sharers.is_empty())
        {
            last = Some((level, sharers));
        }
    }
    let (level, sharers) = last?;
    let shared_between_cores = sharers.iter().any(|sharer| !siblings.contains(sharer));
    (level >= LOWEST_SHARED_LEVEL || shared_between_cores).then_some(sharers)
}

/// Node of each CPU; the lowest one if several nodes list the CPU.
fn nodes(root: &Path) -> BTreeMap<u32, u32> {
    let directory = root.join("devices/system/node");
    let mut nodes: Vec<u32> = fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
        .filter(|&node| node < MAX_NODES)
        .collect();
    nodes.sort_unstable();
    let mut node_of = BTreeMap::new();
    for node in nodes {
        for cpu in list(directory.join(format!("node{node}/cpulist"))).unwrap_or_default() {
            node_of.entry(cpu).or_insert(node);
        }
    }
    node_of
}

/// Kind of each CPU; empty if all CPUs are of one kind.
fn kinds(root: &Path, cpus: &BTreeSet<u32>) -> BTreeMap<u32, &'static str> {
    // On hybrid x86, Linux has a performance-monitoring unit for each kind of core.
    let mut kind_of = BTreeMap::new();
    for (unit, kind) in
        [("cpu_core", PERFORMANCE), ("cpu_atom", EFFICIENCY), ("cpu_lowpower", "low-power")]
    {
        for cpu in list(root.join("devices").join(unit).join("cpus")).unwrap_or_default() {
            kind_of.entry(cpu).or_insert(kind);
        }
    }
    if kind_of.is_empty() {
        let capacity = |cpu: u32| {
            let capacity = text(root.join(format!("devices/system/cpu/cpu{cpu}/cpu_capacity")))?;
            Some((cpu, capacity.parse::<u32>().ok()?))
        };
        let capacities: Vec<(u32, u32)> = cpus.iter().filter_map(|&cpu| capacity(cpu)).collect();
        let greatest = capacities.iter().map(|&(_, capacity)| capacity).max().unwrap_or(0);
        let kind = |capacity| {
            if f64::from(capacity) < SMALL_CORE * f64::from(greatest) {
                EFFICIENCY
            } else {
                PERFORMANCE
            }
        };
        kind_of = capacities.into_iter().map(|(cpu, capacity)| (cpu, kind(capacity))).collect();
    }
    kind_of.retain(|cpu, _| cpus.contains(cpu));
    let first = kind_of.values().next().copied();
    if kind_of.values().all(|&kind| Some(kind) == first) {
        kind_of.clear();
    }
    kind_of
}
