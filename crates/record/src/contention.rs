use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CellPrediction, Count, Fraction, Ns, OverloadBlock, OverloadFigures, PerSecond, Ratio, Seconds,
    SignedNs,
};

/// Work and acquisitions of a block's threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentionBlock {
    /// Total work of all threads, in units of computation or, if the threads sleep instead, in
    /// nanoseconds of intended sleep.
    pub work: Ratio,
    /// Number of acquisitions by each thread; empty if a program in another language measured the
    /// cell and does not report these numbers.
    pub acquisitions: Vec<Count>,
    /// Work of a single thread per nanosecond on each CPU. The CPUs are measured in turn, because
    /// they may differ in speed. Empty if the cell has several threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_by_cpu: Vec<Ratio>,
    /// Total work per nanosecond of independent threads that run at the same time, one on each CPU.
    /// Measured just after the block. Absent unless the cell has a single thread and several CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_together: Option<Ratio>,
    /// Mean number of threads still waiting just after an acquisition. Absent unless a program in
    /// another language measured the cell and reports nothing else about waiting threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_on_entry_mean: Option<Ratio>,
    /// Times and queue lengths from stamps; absent in stretch blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ContentionSeen>,
    /// Fates and queue of callers who arrived from outside; absent if the threads set the pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<Box<OverloadBlock>>,
}

impl ContentionBlock {
    pub(crate) fn validate(&self, count: Count) -> Result<(), &'static str> {
        if let Some(overload) = &self.overload {
            overload.validate()?;
        }
        let known = !self.acquisitions.is_empty();
        if known && self.acquisitions.iter().copied().sum::<Count>() != count {
            return Err("the acquisitions of the threads do not add up to those of the block");
        }
        let Some(seen) = self.seen else { return Ok(()) };
        let threads = self.acquisitions.len();
        let most = count.get().saturating_mul(threads as u64);
        if seen.handoffs > count
            || seen.queue_on_entry.get() > most
            || seen.queue_told.is_some_and(|queue| queue.get() > most)
            || seen.queue_max as usize > threads
        {
            return Err(
                "the block has more waiting threads than threads, or more hand-offs than acquisitions",
            );
        }
        Ok(())
    }
}

/// Times and queue lengths from the stamps around each acquisition. Times are summed over all
/// threads, unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentionSeen {
    /// Waiting time of all threads, in nanoseconds.
    pub wait_ns: Ns,
    /// Hold time of all threads, in nanoseconds.
    pub hold_ns: Ns,
    /// Think time of all threads (neither holding the lock nor waiting for it), in nanoseconds.
    pub think_ns: Ns,
    /// Number of threads still waiting just after an acquisition, summed over the acquisitions.
    pub queue_on_entry: Count,
    /// Largest number of threads waiting at once.
    pub queue_max: u32,
    /// Number of acquisitions by threads that were already waiting when the lock was released.
    pub handoffs: Count,
    /// Time from a release until the waiting thread had the lock, summed over `handoffs`, in
    /// nanoseconds.
    pub handoff_ns: SignedNs,
    /// Longest wait of any thread, in nanoseconds.
    pub starved_ns: Ns,
    /// As `queue_on_entry`, but counted by the lock itself. Absent if the lock does not count its
    /// waiters, or the threads do not share tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_told: Option<Count>,
}

/// Figures of a cell with a lock, in addition to the distribution of waiting times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// Number of threads.
    pub threads: u32,
    /// Fraction of a thread's time for which it would hold the lock if it never waited. Computed
    /// from the intended times or, if threads sleep, from the measured times.
    pub hold_share: Option<Fraction>,
    /// Acquisitions per second of one thread that never waits, by the intended times.
    pub locks_per_s: PerSecond,
    /// Work per second of all threads, divided by that of one thread without the lock: median over
    /// pairs of blocks.
    pub speedup: Option<Ratio>,
    /// 95% interval of `speedup`, from resampling pairs.
    pub speedup_interval95: Option<[Ratio; 2]>,
    /// Total work of independent threads that run at the same time, one on each CPU, divided by the
    /// work of a single thread; median over blocks. No lock can give a larger speed-up. Absent
    /// unless the cell has a single thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_lock: Option<Ratio>,
    /// 95% interval of `without_lock`, from resampling blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_lock_interval95: Option<[Ratio; 2]>,
    /// Fraction of the threads' time that was spent waiting for the lock.
    pub wait_share: Option<Fraction>,
    /// Number of waiting threads, averaged over time; the holder does not count.
    pub queue_mean: Option<Ratio>,
    /// Mean number of threads still waiting just after a thread acquired the lock.
    pub queue_on_entry: Option<Ratio>,
    /// Mean number of threads that the lock itself counted as waiting just after a thread acquired
    /// it. Absent if the lock does not count its waiters, or the threads do not share tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_told: Option<Ratio>,
    /// Largest number of threads waiting at once.
    pub queue_max: Option<u32>,
    /// Jain's index of the threads' numbers of acquisitions: 1 if all are equal, 1/`threads` if one
    /// thread makes all acquisitions.
    pub fairness: Option<Fraction>,
    /// Longest wait of any thread, in nanoseconds.
    pub starved_ns: Option<Ns>,
    /// Mean time from a release until a waiting thread has the lock, in nanoseconds.
    pub handoff_ns: Option<SignedNs>,
    /// Measured mean hold time, in nanoseconds.
    pub hold_ns: Option<Ns>,
    /// 95% interval of `hold_ns`, from resampling blocks. Null in files of older versions.
    #[serde(default)]
    pub hold_ns_interval95: Option<[Ns; 2]>,
    /// Measured mean think time of a thread (time outside the lock), in nanoseconds.
    pub think_ns: Option<Ns>,
    /// 95% interval of `think_ns`, from resampling blocks. Null in files of older versions.
    #[serde(default)]
    pub think_ns_interval95: Option<[Ns; 2]>,
    /// Time for all tasks, in seconds, median over blocks; null if there is no fixed number of
    /// tasks.
    pub total_s: Option<Seconds>,
    /// 95% interval of `total_s`, from resampling blocks.
    pub total_s_interval95: Option<[Seconds; 2]>,
    /// Fates and queue of callers who arrived from outside; absent if the threads set the pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<Box<OverloadFigures>>,
    /// Prediction made before the cell was measured, or the reason why there is none (`refused`).
    /// Null for a single thread without a lock, and if no model accepts the calibrated figures.
    pub predicted: Option<CellPrediction>,
}
