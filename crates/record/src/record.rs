use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::WORST;
use crate::plan::MAX_CELLS_IN_GROUP;
use crate::{
    Cause, Cell, Count, Experiment, Figures, Fraction, Histogram, MAX_ROUNDS, Ns, OwnProgram,
    PerSecond, Quantiles, Ratio, Text, Warning, Worst,
};

const MAX_WARNINGS: usize = 100;
/// Maximum number of regimes of a record. Each regime has at least three blocks of the reference.
const MAX_REGIMES: usize = MAX_ROUNDS as usize / 3;

/// The result of a cell, folded from its blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Id of the run.
    pub run: Text,
    /// Time of folding, RFC 3339 UTC.
    pub at: Text,
    /// Index of the group in the plan.
    pub group: usize,
    /// Attempt at the group that yielded the record, from 1.
    pub attempt: u32,
    /// Index of the group that this group repeats; absent unless this group is a repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<usize>,
    /// Name of the experiment: `latency`, `matrix`, …
    pub experiment: Experiment,
    /// The measured cell.
    pub cell: Cell,
    /// True if the figures come from a simulated machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// Pacing of the messages, such as `closed` if each message waited for the reply to the
    /// previous one.
    #[serde(rename = "loop")]
    pub loop_kind: LoopKind,
    /// Meaning of the record's values, such as `mean` and `quantiles`.
    pub kind: RecordKind,
    /// Unit of values whose names do not contain a unit.
    pub unit: Unit,
    /// Number of stamped round trips, messages, calls on a queue, or acquisitions of a lock.
    pub count: Count,
    /// One-way times; null unless the values are round trips.
    pub one_way: Option<OneWay>,
    /// Mean of the stamped round trips.
    pub mean: Option<Ns>,
    /// Shortest stamped round trip.
    pub min: Option<Ns>,
    /// Longest stamped round trip.
    pub max: Option<Ns>,
    /// Quantiles of all stamped round trips, each null if fewer than 20 samples lie beyond it.
    pub quantiles: Quantiles,
    /// Quantiles over the undisturbed blocks only.
    pub clean_quantiles: Quantiles,
    /// 95% intervals of the quantiles, from resampling blocks.
    pub interval95: Intervals,
    /// Resolution of a stamped value: clock step plus stamp cost, in nanoseconds.
    pub resolution_ns: Ns,
    /// Share of round trips that took longer than the limit.
    pub over: Over,
    /// Rate per second, median over blocks. For streams: messages of `payload_bytes` (for
    /// `raw-copy`, bytes divided by 8). For locks: acquisitions. Null for all other cells.
    pub rate_per_s: Option<PerSecond>,
    /// Distribution of the stamped round trips; null for streams, and in matrices on machines with
    /// more than 64 CPUs.
    pub histogram: Option<Histogram>,
    /// CPU time and context switches per hand-off, from stretches. For streams and open loops: per
    /// message. In open loops, the sender's wait for the next message is included.
    pub cost: Cost,
    /// Figures that only cells of this kind have.
    #[serde(flatten)]
    pub figures: Figures,
    /// Set if a separate program in another language measured the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_program: Option<OwnProgram>,
    /// Disturbances of the cell's blocks.
    pub disturbance: DisturbanceSummary,
    /// The 64 longest samples, longest first.
    pub worst: Vec<Worst>,
    /// Ratios of this cell to other cells of its group, paired by round. The reference comes first.
    pub against: Vec<Against>,
    /// Regimes (lasting states) of the machine while the group was measured, the fastest first;
    /// empty if there was only one. The record's own figures are those of the regime with the
    /// largest share of the time. Only its disturbance and its longest samples cover all blocks.
    #[serde(default)]
    pub regimes: Vec<Regime>,
    /// Number of processes that measured the cell, one after another.
    #[serde(default = "one")]
    pub processes: u32,
    /// Fraction of the variance of the blocks' main figure that is due to differences between
    /// processes; null if there was only one process.
    #[serde(default)]
    pub between_processes_share: Option<Fraction>,
    /// Warnings about the figures.
    pub warnings: Vec<Warning>,
}

/// Files without the member were written when there was only one process.
fn one() -> u32 {
    1
}

impl Record {
    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        if self.worst.len() > WORST
            || self.against.len() > MAX_CELLS_IN_GROUP
            || self.warnings.len() > MAX_WARNINGS
            || self.regimes.len() > MAX_REGIMES
            || self.regimes.iter().any(|regime| regime.against.len() > MAX_CELLS_IN_GROUP)
        {
            return Err("the record is longer than any that threadtoll writes");
        }
        if (self.kind == RecordKind::RoundTrip) != self.one_way.is_some() {
            return Err("a record of round trips, and no other, must have one-way times");
        }
        let fits = match self.figures {
            Figures::HandOffs(_) => {
                matches!(self.kind, RecordKind::RoundTrip | RecordKind::Stream)
            }
            Figures::Shared { .. } => self.kind == RecordKind::Stream,
            Figures::Contention { .. } => self.kind == RecordKind::Wait,
            Figures::OpenLoop(_) => self.kind == RecordKind::Delivery,
            Figures::Depth(_) => self.kind == RecordKind::Calls,
            Figures::SendCall(_) => self.kind == RecordKind::SendCall,
        };
        if !fits {
            return Err("the record's figures do not match its kind");
        }
        let threads = self.figures.contention().map(|contention| contention.threads);
        if threads != self.cell.lock().map(|lock| lock.threads) {
            return Err("the record does not match its cell's lock or number of threads");
        }
        if let Some(overload) =
            self.figures.contention().and_then(|contention| contention.overload.as_ref())
        {
            overload.validate()?;
        }
        self.disturbance.validate()
    }

    /// The one-way median, in nanoseconds, if there is one.
    pub fn one_way_p50(&self) -> Option<f64> {
        self.one_way.as_ref()?.p50.map(Ns::get)
    }

    /// 95% interval of the one-way median, in nanoseconds.
    pub fn one_way_p50_interval95(&self) -> Option<[f64; 2]> {
        Some(self.one_way.as_ref()?.p50_interval95?.map(Ns::get))
    }
}

/// The figures of a cell in one regime (lasting state) of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Regime {
    /// One-way median of the reference, in nanoseconds.
    pub reference_ns: Ns,
    /// Fraction of the group's measuring time. The fractions of all regimes sum to less than 1 if
    /// the regime changed during some blocks.
    pub share: Fraction,
    /// Number of the cell's blocks in this regime, both stretch and stamped.
    pub blocks: u32,
    /// One-way times; null unless the values are round trips.
    pub one_way: Option<OneWay>,
    /// Mean of the stamped round trips.
    pub mean: Option<Ns>,
    /// Shortest stamped round trip.
    pub min: Option<Ns>,
    /// Longest stamped round trip.
    pub max: Option<Ns>,
    /// Quantiles of all stamped round trips, each null if fewer than 20 samples lie beyond it.
    pub quantiles: Quantiles,
    /// 95% intervals of the quantiles, from resampling blocks.
    pub interval95: Intervals,
    /// Messages or acquisitions per second, as in the record.
    pub rate_per_s: Option<PerSecond>,
    /// CPU time and context switches per hand-off, as in the record.
    pub cost: Cost,
    /// Figures that only cells of this kind have, as in the record.
    #[serde(flatten)]
    pub figures: Figures,
    /// Ratios of this cell to other cells of its group, paired by round. The reference comes first.
    pub against: Vec<Against>,
}

/// Pacing of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoopKind {
    /// Each message waited for the reply to the previous one.
    Closed,
    /// Messages were sent at planned times.
    Open,
    /// Messages were sent as fast as the queue took them.
    Streaming,
}

/// Meaning of a record's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    /// A round trip of a message and its reply.
    RoundTrip,
    /// A stream in one direction, which has a rate but no values of single messages.
    Stream,
    /// Time from when a thread requested a lock until it acquired the lock.
    Wait,
    /// Time from when a message was due until it was received.
    Delivery,
    /// Time of a send call plus a receive call.
    Calls,
    /// Time of a send call.
    SendCall,
}

/// The unit of a record's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
}

/// Method with which one-way times were obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OneWayMethod {
    /// Half of a round trip.
    HalfRoundTrip,
    /// Stamps on both CPUs, whose clocks agree closely enough.
    Stamped,
}

/// One-way times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWay {
    /// Mean one-way time: half the mean of the round trips in stretches.
    pub mean: Option<Ns>,
    /// Median one-way time, by `method`.
    pub p50: Option<Ns>,
    /// Method for the median.
    pub method: OneWayMethod,
    /// 95% interval of the mean, from resampling blocks.
    pub mean_interval95: Option<[Ns; 2]>,
    /// 95% interval of the median, from resampling blocks.
    pub p50_interval95: Option<[Ns; 2]>,
    /// Number of negative times among the directly stamped ones; absent if there are no such times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative: Option<Count>,
    /// Largest possible disagreement of the two CPUs' clocks, in either direction, in nanoseconds;
    /// absent without directly stamped times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_bound_ns: Option<Ns>,
}

/// 95% intervals of the quantiles, from resampling blocks; null if the quantile is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Intervals {
    /// Interval of the median.
    pub p50: Option<[Ns; 2]>,
    /// Interval of the 90% quantile.
    pub p90: Option<[Ns; 2]>,
    /// Interval of the 99% quantile.
    pub p99: Option<[Ns; 2]>,
    /// Interval of the 99.9% quantile.
    #[serde(rename = "p99.9")]
    pub p999: Option<[Ns; 2]>,
    /// Interval of the 99.99% quantile.
    #[serde(rename = "p99.99")]
    pub p9999: Option<[Ns; 2]>,
    /// Interval of the rate; absent if there is no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<[PerSecond; 2]>,
}

/// Fraction of samples (round trips, deliveries, send calls) over a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Over {
    /// The limit in nanoseconds.
    pub limit_ns: u64,
    /// Fraction of samples that took longer than the limit; null if there are no samples.
    pub share: Option<Fraction>,
}

/// CPU time and context switches of all threads per hand-off (half a round trip, a message of a
/// stream, or an acquisition).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// CPU time in user mode per hand-off, in nanoseconds.
    pub user_ns_per_op: Option<Ns>,
    /// CPU time in the kernel per hand-off, in nanoseconds.
    pub system_ns_per_op: Option<Ns>,
    /// Number of voluntary context switches per hand-off.
    pub voluntary_switches_per_op: Option<Ratio>,
    /// Number of involuntary context switches per hand-off.
    pub involuntary_switches_per_op: Option<Ratio>,
}

/// Disturbances of the blocks of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DisturbanceSummary {
    /// Number of blocks, both stretch and stamped.
    pub blocks: u32,
    /// Number of disturbed blocks.
    pub disturbed: u32,
    /// Number of blocks by cause of disturbance; a block can have several causes.
    pub causes: BTreeMap<Cause, u32>,
}

impl DisturbanceSummary {
    fn validate(&self) -> Result<(), &'static str> {
        let mut marked = self.causes.values().chain([&self.disturbed]);
        if self.blocks > 2 * MAX_ROUNDS || marked.any(|count| *count > self.blocks) {
            return Err("the record counts more disturbed blocks than there are");
        }
        Ok(())
    }
}

/// Verdict on a ratio that is paired by round: the first variant that fits the ratio's 95%
/// interval. The margin is 5%, and 21 pairs are needed. Ratios of rates are judged by their
/// reciprocals, because more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval lies below 1/1.05.
    Better,
    /// The whole interval lies above 1.05.
    Worse,
    /// The whole interval lies from 1/1.05 to 1.05.
    Same,
    /// The upper bound is at most 1.05.
    NoWorse,
    /// The lower bound is at least 1/1.05.
    NoBetter,
    /// The pairs are inconclusive, or there are fewer than 21.
    Open,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "same",
            Verdict::NoWorse => "no-worse",
            Verdict::NoBetter => "no-better",
            Verdict::Open => "open",
        })
    }
}

/// Ratio of this cell to another cell of its group, paired by round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// The other cell.
    pub cell: Cell,
    /// The compared figure: `one_way.p50`, `rate_per_s`, or `work_per_s` (work of the threads,
    /// relative to one thread alone).
    pub of: Text,
    /// Median, over the pairs, of this cell's figure divided by the other cell's. For a stream and
    /// a cell without a rate: number of the stream's messages in the time of one hand-off of the
    /// other cell.
    pub ratio: Ratio,
    /// 95% interval of the median, from resampling pairs.
    pub interval95: [Ratio; 2],
    /// Number of pairs of blocks.
    pub blocks: u32,
    /// Verdict on `interval95`.
    pub verdict: Verdict,
}
