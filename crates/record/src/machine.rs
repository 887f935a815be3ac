use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Fraction, Ns, Ratio, SignedRatio, Text, Warning};

/// The first line of a file: the machine at the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// ID of the run, repeated in every line of the file.
    pub run: Text,
    /// Start of the run, RFC 3339 UTC.
    pub at: Text,
    /// Program that wrote the file, with its commit and compiler.
    pub tool: Text,
    /// True if the figures come from a simulated machine.
    pub simulated: bool,
    /// True if the topology was read from a given directory instead of this machine. Nothing was
    /// measured then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub synthetic: bool,
    /// Model name of the CPU.
    pub cpu: Text,
    /// Instruction set, as `uname -m` names it.
    pub arch: Text,
    /// Number of CPUs that are online.
    pub cpus: u32,
    /// Place of every online CPU, in ascending order of CPU numbers.
    pub topology: Vec<CpuPlace>,
    /// CPUs that the process may use, in ascending order.
    pub allowed: Vec<u32>,
    /// CPU time allowed by the control group, in CPUs; null without a limit.
    pub quota_cpus: Option<Ratio>,
    /// Kernel release.
    pub kernel: Text,
    /// Frequency governor of the allowed CPUs; null if unknown.
    pub governor: Option<Text>,
    /// True if frequency boost is enabled; null if unknown.
    pub boost: Option<bool>,
    /// The hypervisor; null on bare metal.
    pub virtualised: Option<Text>,
    /// Idle driver of the kernel; null without one.
    pub idle_driver: Option<Text>,
    /// Timer slack of this process in nanoseconds; null if unknown.
    pub timer_slack_ns: Option<Count>,
    /// True if expedited private membarrier works on the machine.
    pub membarrier: bool,
    /// Clock that the stamps are read from.
    pub clock: ClockFacts,
    /// Noise on each allowed CPU before the run; empty if not measured.
    pub noise: Vec<CpuNoise>,
    /// Grade of the machine.
    pub grade: Grade,
    /// Obstacles to measuring, each with advice.
    pub warnings: Vec<Warning>,
}

/// Place of a CPU. Core, cache and node numbers are unique in the whole machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuPlace {
    /// The kernel's number of the CPU.
    pub cpu: u32,
    /// Core, identified by the lowest CPU number among its hardware threads.
    pub core: u32,
    /// Last-level cache, identified by the lowest CPU number that shares it; null if unknown.
    pub llc: Option<u32>,
    /// NUMA node.
    pub node: u32,
    /// All hardware threads of the CPU's core, including the CPU itself.
    pub smt: Vec<u32>,
    /// Kind of core on a hybrid machine (`performance`, `efficiency`); absent if all cores are of
    /// one kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Text>,
}

/// Source of stamps.
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
    /// Source of the stamps.
    pub source: ClockSource,
    /// Smallest observed step between two stamps, in nanoseconds.
    pub step_ns: Ns,
    /// Median cost of one stamp, in nanoseconds.
    pub read_ns: Ns,
    /// True if the counter keeps its rate through changes of frequency and through sleep.
    pub invariant: bool,
    /// Calibrated length of one tick, in nanoseconds.
    pub tick_ns: Ns,
    /// Drift against CLOCK_MONOTONIC_RAW during calibration, in parts per million.
    pub drift_ppm: SignedRatio,
}

/// Noise of a CPU: gaps seen by a thread on the CPU that did nothing but read the clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuNoise {
    /// Number of the CPU.
    pub cpu: u32,
    /// Duration of the test, in nanoseconds.
    pub watched_ns: Count,
    /// Gaps by length. Each bucket has its lower bound in nanoseconds, and its number of gaps.
    pub gaps: Vec<(Count, Count)>,
    /// Share of the test's time that was lost in gaps.
    pub lost_share: Fraction,
    /// The longest gap, in nanoseconds.
    pub longest_ns: Count,
}

/// Grade of a machine; A is the best. The thresholds are in `threadtoll check --help`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Grade {
    /// No known obstacle.
    A,
    /// Medians and small differences are reliable; tails may include noise of the machine.
    B,
    /// Medians are reliable within this run; tails include noise of the machine.
    C,
    /// Only ratios within one group are reliable.
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

impl Machine {
    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        if self.cpus as usize != self.topology.len() || self.cpus == 0 {
            return Err("the machine's number of CPUs does not match its topology");
        }
        if !self.topology.is_sorted_by(|a, b| a.cpu < b.cpu)
            || !self.allowed.is_sorted_by(|a, b| a < b)
        {
            return Err("the machine's CPUs are not in ascending order");
        }
        Ok(())
    }

    /// Reason why figures from `other` must not be combined with figures from `self`; `None` if
    /// there is none.
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
            return Some("it was made on a machine with a different topology".into());
        }
        None
    }
}
