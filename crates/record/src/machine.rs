//! The first line of a file: the machine on which it was made.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Fraction, Ns, Ratio, SignedRatio, Text};

/// The machine, as it was when the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Names the run; the same in every line of the file.
    pub run: Text,
    /// When the run began, RFC 3339 UTC.
    pub at: Text,
    /// The program that wrote the file, with its commit and compiler.
    pub tool: Text,
    /// True where a simulated machine made the figures.
    pub simulated: bool,
    /// True where the topology was read from a given tree and not from this machine; nothing was
    /// measured then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub synthetic: bool,
    /// Model name of the CPU.
    pub cpu: Text,
    /// Instruction set, as `uname -m` names it.
    pub arch: Text,
    /// Number of CPUs that are online.
    pub cpus: u32,
    /// Every online CPU and where it sits, in ascending order.
    pub topology: Vec<CpuPlace>,
    /// The CPUs that this process may use, in ascending order.
    pub allowed: Vec<u32>,
    /// CPU time that the control group grants, in CPUs; null without a limit.
    pub quota_cpus: Option<Ratio>,
    /// Kernel release.
    pub kernel: Text,
    /// Frequency governor of the allowed CPUs; null where the kernel shows none.
    pub governor: Option<Text>,
    /// True if frequency boost is enabled; null where the kernel does not say.
    pub boost: Option<bool>,
    /// The hypervisor; null on bare metal.
    pub virtualised: Option<Text>,
    /// Idle driver of the kernel; null where there is none.
    pub idle_driver: Option<Text>,
    /// Timer slack of this process in nanoseconds; null where it cannot be read.
    pub timer_slack_ns: Option<Count>,
    /// True if expedited private membarrier works here.
    pub membarrier: bool,
    /// The clock that stamped the figures.
    pub clock: ClockFacts,
    /// Noise on each allowed CPU before the run; empty where it was not looked at.
    pub noise: Vec<CpuNoise>,
    /// Fitness of the machine to be measured.
    pub grade: Grade,
    /// Obstacles to measuring, each with advice.
    pub warnings: Vec<Warning>,
}

/// Where one CPU sits. Numbers of cores, caches and nodes are unique across the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuPlace {
    /// The kernel's number of the CPU.
    pub cpu: u32,
    /// Its core: the lowest CPU number among its hardware threads.
    pub core: u32,
    /// Its last-level cache: the lowest CPU number that shares it; null where the kernel does not
    /// say.
    pub llc: Option<u32>,
    /// Its NUMA node.
    pub node: u32,
    /// All hardware threads of its core, itself included.
    pub smt: Vec<u32>,
    /// Kind of core on a hybrid machine (`performance`, `efficiency`); absent where all are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Text>,
}

/// Where stamps come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClockSource {
    /// The x86 time-stamp counter.
    Tsc,
    /// The generic timer of aarch64.
    Cntvct,
    /// `clock_gettime(CLOCK_MONOTONIC_RAW)`.
    MonotonicRaw,
    /// The clock of the simulated machine.
    Simulated,
}

/// Measured properties of the clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockFacts {
    /// Where stamps come from.
    pub source: ClockSource,
    /// Smallest step that was observed between two stamps, in nanoseconds.
    pub step_ns: Ns,
    /// Median cost of one stamp, in nanoseconds.
    pub read_ns: Ns,
    /// True if the counter keeps its rate through frequency changes and sleep.
    pub invariant: bool,
    /// Nominal length of one tick in nanoseconds, as calibrated.
    pub tick_ns: Ns,
    /// Disagreement with CLOCK_MONOTONIC_RAW over the calibration, in parts per million.
    pub drift_ppm: SignedRatio,
}

/// Noise on one CPU while a thread did nothing but read the clock on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuNoise {
    /// The CPU.
    pub cpu: u32,
    /// Time for which it was watched, in nanoseconds.
    pub watched_ns: Count,
    /// Gaps by length: the lower bound of each class in nanoseconds and how many gaps fell into it.
    pub gaps: Vec<(Count, Count)>,
    /// Share of the time that was lost in gaps.
    pub lost_share: Fraction,
    /// The longest gap, in nanoseconds.
    pub longest_ns: Count,
}

/// Fitness of a machine to be measured, A best. The thresholds stand in `threadtoll check --help`
/// and `docs/method.md`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Grade {
    /// Nothing that is known to matter stands in the way.
    A,
    /// Small figures hold; tails may carry the machine's noise.
    B,
    /// Medians hold; tails are the machine's as much as the mechanism's.
    C,
    /// Only ratios within one group mean something.
    D,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Grade::A => "A",
            Grade::B => "B",
            Grade::C => "C",
            Grade::D => "D",
        })
    }
}

/// Something that a reader of the figures should know, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// A stable name for scripts.
    pub code: Text,
    /// The finding and what helps, as sentences.
    pub text: Text,
}

impl Warning {
    /// Makes a warning.
    pub fn new(code: impl Into<Text>, text: impl Into<Text>) -> Self {
        Warning { code: code.into(), text: text.into() }
    }
}

impl Machine {
    /// Checks what was read from a file.
    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        if self.cpus as usize != self.topology.len() || self.cpus == 0 {
            return Err("the machine's number of CPUs is not that of its topology");
        }
        if !self.topology.is_sorted_by(|a, b| a.cpu < b.cpu)
            || !self.allowed.is_sorted_by(|a, b| a < b)
        {
            return Err("the machine's CPUs are not in ascending order");
        }
        Ok(())
    }

    /// Says why figures of `other` must not be joined with those of `self`, or nothing if they may.
    pub fn differs_from(&self, other: &Machine) -> Option<String> {
        if self.simulated != other.simulated {
            let kind = |simulated| if simulated { "a simulated machine" } else { "a real machine" };
            return Some(format!(
                "it was made on {}, and this is {}",
                kind(other.simulated),
                kind(self.simulated)
            ));
        }
        if self.cpu != other.cpu {
            return Some(format!("it was made on “{}”, and this is “{}”", other.cpu, self.cpu));
        }
        if self.cpus != other.cpus {
            return Some(format!(
                "it was made on {} CPUs, and this machine has {}",
                other.cpus, self.cpus
            ));
        }
        if self.topology != other.topology {
            return Some("it was made on a machine whose CPUs are arranged differently".into());
        }
        None
    }
}
