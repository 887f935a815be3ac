//! Synthetic machines: trees like `/sys`, written into a directory.
//!
//! They serve to test plans, matrices and pages for machines that are not at hand. A
//! [`Topology`](super::Topology) read from one is marked `synthetic`, and nothing is measured on
//! it.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// A synthetic machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Synthetic {
    /// One CPU.
    OneCpu,
    /// Two sockets of 8 cores with two hardware threads each. Siblings are numbered 16 apart, as on
    /// x86.
    TwoSockets,
    /// A hybrid laptop: 4 fast cores with two hardware threads each, and 8 small ones. All share
    /// one cache and one node.
    HybridLaptop,
    /// An aarch64 server: 80 cores on two nodes, no siblings, and a system cache that the kernel
    /// hides.
    ArmServer,
    /// 500 CPUs: two nodes of eight caches, each shared by 16 cores with two hardware threads.
    /// Another 12 CPUs are offline.
    FiveHundred,
}

impl Synthetic {
    /// All synthetic machines.
    pub const ALL: [Synthetic; 5] = [
        Synthetic::OneCpu,
        Synthetic::TwoSockets,
        Synthetic::HybridLaptop,
        Synthetic::ArmServer,
        Synthetic::FiveHundred,
    ];

    /// Name of the machine.
    pub fn name(self) -> &'static str {
        match self {
            Synthetic::OneCpu => "one-cpu",
            Synthetic::TwoSockets => "two-sockets",
            Synthetic::HybridLaptop => "hybrid-laptop",
            Synthetic::ArmServer => "arm-server",
            Synthetic::FiveHundred => "five-hundred",
        }
    }

    /// Writes the machine's tree, which corresponds to `/sys`, into `root`.
    ///
    /// # Errors
    ///
    /// If the file system returns an error.
    pub fn write(self, root: &Path) -> io::Result<()> {
        match self {
            Synthetic::OneCpu => one_cpu(),
            Synthetic::TwoSockets => two_sockets(),
            Synthetic::HybridLaptop => hybrid_laptop(),
            Synthetic::ArmServer => arm_server(),
            Synthetic::FiveHundred => five_hundred(),
        }
        .write(root)
    }
}

impl fmt::Display for Synthetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Synthetic {
    type Err = String;

    fn from_str(name: &str) -> Result<Synthetic, String> {
        Synthetic::ALL.into_iter().find(|machine| machine.name() == name).ok_or_else(|| {
            let names = Synthetic::ALL.map(Synthetic::name).join(", ");
            format!("“{name}” is not a synthetic machine; choose one of {names}")
        })
    }
}

struct Tree {
    cpus: Vec<Cpu>,
    /// Level of the caches that [`Cpu::cache`] refers to.
    shared_level: u32,
    /// Performance-monitoring units of a hybrid machine, with their CPUs.
    units: Vec<(&'static str, Vec<u32>)>,
}

struct Cpu {
    number: u32,
    online: bool,
    core: u32,
    cache: Option<u32>,
    node: u32,
    capacity: Option<u32>,
}

fn one_cpu() -> Tree {
    let cpu = Cpu { number: 0, online: true, core: 0, cache: Some(0), node: 0, capacity: None };
    Tree { cpus: vec![cpu], shared_level: 3, units: vec![] }
}

fn two_sockets() -> Tree {
    let cpu = |number| {
        let core = number % 16;
        Cpu { number, online: true, core, cache: Some(core / 8), node: core / 8, capacity: None }
    };
    Tree { cpus: (0..32).map(cpu).collect(), shared_level: 3, units: vec![] }
}

fn hybrid_laptop() -> Tree {
    // Numbered as on Alder Lake: siblings of fast cores next to each other, then small cores.
    let cpu = |number| {
        let core = if number < 8 { number / 2 } else { number };
        Cpu { number, online: true, core, cache: Some(0), node: 0, capacity: None }
    };
    let units = vec![("cpu_core", (0..8).collect()), ("cpu_atom", (8..16).collect())];
    Tree { cpus: (0..16).map(cpu).collect(), shared_level: 3, units }
}

fn arm_server() -> Tree {
    let cpu = |number| Cpu {
        number,
        online: true,
        core: number,
        cache: None,
        node: number / 40,
        capacity: Some(1024),
    };
    Tree { cpus: (0..80).map(cpu).collect(), shared_level: 3, units: vec![] }
}

fn five_hundred() -> Tree {
    // 2 x 8 x 16 x 2 = 512 CPUs; siblings are 256 apart. Six cores are offline, including that of
    // CPU 0.
    let offline_cores = [0, 17, 100, 101, 128, 255];
    let cpu = |number| {
        let core = number % 256;
        let cache = core / 16;
        let online = !offline_cores.contains(&core);
        Cpu { number, online, core, cache: Some(cache), node: cache / 8, capacity: None }
    };
    Tree { cpus: (0..512).map(cpu).collect(), shared_level: 3, units: vec![] }
}

impl Tree {
    fn write(&self, root: &Path) -> io::Result<()> {
        let system = root.join("devices/system");
        let online = || self.cpus.iter().filter(|cpu| cpu.online);
        let numbers = |wanted: &dyn Fn(&Cpu) -> bool| -> Vec<u32> {
            online().filter(|cpu| wanted(cpu)).map(|cpu| cpu.number).collect()
        };
        put(&system.join("cpu/online"), &ranges(&numbers(&|_| true)))?;
        put(
            &system.join("cpu/possible"),
            &ranges(&self.cpus.iter().map(|cpu| cpu.number).collect::<Vec<_>>()),
        )?;
        for cpu in &self.cpus {
            let directory = system.join(format!("cpu/cpu{}", cpu.number));
            if !cpu.online {
                // The kernel removes all files of an offline CPU except `online`, which turns it on
                // again.
                put(&directory.join("online"), "0")?;
                continue;
            }
            let siblings = ranges(&numbers(&|other| other.core == cpu.core));
            put(&directory.join("topology/core_cpus_list"), &siblings)?;
            if let Some(capacity) = cpu.capacity {
                put(&directory.join("cpu_capacity"), &capacity.to_string())?;
            }
            let own = [(1, "Data"), (1, "Instruction"), (2, "Unified")]
                .map(|(level, kind)| (level, kind, &siblings));
            let shared =
                cpu.cache.map(|cache| ranges(&numbers(&|other| other.cache == Some(cache))));
            let shared = shared.iter().map(|sharers| (self.shared_level, "Unified", sharers));
            for (index, (level, kind, sharers)) in own.into_iter().chain(shared).enumerate() {
                let cache = directory.join(format!("cache/index{index}"));
                put(&cache.join("level"), &level.to_string())?;
                put(&cache.join("type"), kind)?;
                put(&cache.join("shared_cpu_list"), sharers)?;
            }
        }
        let nodes = self.cpus.iter().map(|cpu| cpu.node).max().unwrap_or(0);
        for node in 0..=nodes {
            let members = ranges(&numbers(&|cpu| cpu.node == node));
            put(&system.join(format!("node/node{node}/cpulist")), &members)?;
        }
        for (unit, cpus) in &self.units {
            put(&root.join("devices").join(unit).join("cpus"), &ranges(cpus))?;
        }
        Ok(())
    }
}

fn put(path: &Path, line: &str) -> io::Result<()> {
    let line = format!("{line}\n");
    match (fs::write(path, &line), path.parent()) {
        (Err(error), Some(directory)) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(directory)?;
            fs::write(path, line)
        }
        (result, _) => result,
    }
}

/// In the kernel's format: `0-3,8`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let written = runs.filter_map(|run| match run {
        [] => None,
        [one] => Some(one.to_string()),
        [first, .., last] => Some(format!("{first}-{last}")),
    });
    written.collect::<Vec<_>>().join(",")
}
