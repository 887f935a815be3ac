//! Corrects the number of samples that see a thread on a CPU, if there are no records of context
//! switches.
//!
//! A sample reads one thread after another, on a CPU that it takes from them. A thread that
//! switches thousands of times a second is woken before it is read, and then waits for that CPU. So
//! too many samples see the thread ready to run. With four threads that sync files on two CPUs, 66%
//! of the samples saw a thread on a CPU, where the kernel counted 40% of the time. A thread's
//! samples on a CPU and off it are weighted so that they agree with the kernel's count
//! (`/proc/PID/task/TID/schedstat`).

use std::collections::HashMap;

use threadtoll_stacks::process::Activity;

use super::ProcessAccount;
use crate::circumstances::Circumstances;
use crate::clock::now;
use crate::primitive::MAX_WAIT_TARGETS;
use crate::sample::ThreadRead;

/// Minimum time in nanoseconds between two readings of one thread's CPU time, and between readings
/// for any two threads of a process.
const READ_NS: u64 = 100_000_000;
const READ_ANY_NS: u64 = 5_000_000;

/// Half-life of past samples, in nanoseconds: programs change their behaviour.
const HALF_NS: f64 = 2e9;

/// A thread's counts are reset if none of its samples was weighted for this many nanoseconds.
/// Meanwhile, records of switches may have shown the thread's state.
const FORGET_NS: u64 = 1_000_000_000;

const FEWEST: f64 = 20.0;

/// Samples are weighted only if at least this share of them is on a CPU, and at least this share
/// off it. Fewer samples would get too much weight.
const LEAST_SHARE: f64 = 0.02;

const MOST_WEIGHT: f64 = 2.0;

#[derive(Debug, Default)]
pub(super) struct Calibration {
    threads: HashMap<u32, Calibrated>,
    read_at: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Calibrated {
    sampled_at: u64,
    /// Number of samples since the latest reading of the kernel's count: all, and those on a CPU.
    since: [f64; 2],
    /// Sums up to the latest reading, in which older samples count less: samples, all and on a CPU;
    /// and nanoseconds, all and on a CPU or waiting for one.
    before: [f64; 2],
    ns: [f64; 2],
    reading: Option<(u64, u64)>,
    read_at: u64,
    /// Two flags: the thread was seen off a CPU; the thread was seen on a CPU.
    seen: [bool; 2],
}

impl ProcessAccount {
    /// Weight of a sample of a randomly picked thread. It is 1 if records of context switches show
    /// the thread's state.
    pub(super) fn weight(&mut self, read: &ThreadRead, at: u64, seen: &Circumstances<'_>) -> f64 {
        if seen.state(read.tid, at).is_some() {
            return 1.0;
        }
        let count = || Some((now(), seen.lookups.cpu_ns(read.process, read.tid)?));
        self.calibration.weight(read.tid, read.activity == Activity::OnCpu, at, count)
    }
}

impl Calibration {
    /// Weight of a sample of this thread. `on_cpu` is `true` if the thread ran or was ready to run.
    /// `count` returns the time and the kernel's count for the thread, both in nanoseconds.
    pub(super) fn weight(
        &mut self,
        tid: u32,
        on_cpu: bool,
        at: u64,
        count: impl FnOnce() -> Option<(u64, u64)>,
    ) -> f64 {
        if self.threads.len() >= MAX_WAIT_TARGETS && !self.threads.contains_key(&tid) {
            return 1.0;
        }
        let of = self.threads.entry(tid).or_default();
        if at.saturating_sub(of.sampled_at) > FORGET_NS {
            *of = Calibrated::default();
        }
        of.sampled_at = at;
        of.seen[usize::from(on_cpu)] = true;
        // A thread that is always off the CPU needs no weights.
        let due = of.seen == [true; 2] && at >= of.read_at + READ_NS;
        if due && at >= self.read_at + READ_ANY_NS {
            (of.read_at, self.read_at) = (at, at);
            if let Some(reading) = count() {
                of.read(reading);
            }
        }
        of.since[0] += 1.0;
        of.since[1] += f64::from(u8::from(on_cpu));
        of.weight(on_cpu).unwrap_or(1.0)
    }

    pub(super) fn retain(&mut self, is_alive: impl Fn(&u32) -> bool) {
        self.threads.retain(|tid, _| is_alive(tid));
    }
}

impl Calibrated {
    fn read(&mut self, (now, count): (u64, u64)) {
        let since = std::mem::take(&mut self.since);
        let Some((before, counted)) = self.reading.replace((now, count)) else { return };
        let ns = [now.saturating_sub(before), count.saturating_sub(counted)].map(|ns| ns as f64);
        let kept = (-ns[0] / HALF_NS).exp2();
        for (sum, more) in self.before.iter_mut().chain(&mut self.ns).zip(since.iter().chain(&ns)) {
            *sum = kept * *sum + more;
        }
    }

    fn weight(&self, on_cpu: bool) -> Option<f64> {
        let ([samples, on], [ns, counted]) = (self.before, self.ns);
        if samples < FEWEST || ns == 0.0 {
            return None;
        }
        let (counted, seen) = ((counted / ns).min(1.0), on / samples);
        let may_weigh = (LEAST_SHARE..=1.0 - LEAST_SHARE).contains(&seen);
        let [counted, seen] = if on_cpu { [counted, seen] } else { [1.0 - counted, 1.0 - seen] };
        may_weigh.then(|| (counted / seen).min(MOST_WEIGHT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Weights of the samples on a CPU and of those off it, divided by the number of samples. The
    /// kernel counts the share `counted` of the time on a CPU; `seen` of 10 samples see the thread
    /// there.
    fn weights(counted: Option<f64>, seen: u64, samples: u64) -> [f64; 2] {
        let mut calibration = Calibration::default();
        let mut sums = [0.0; 2];
        for sample in 0..samples {
            let at = 5_000 * MS + 7 * MS * sample;
            let on_cpu = sample * 7 % 10 < seen;
            let count = || counted.map(|share| (at, (at as f64 * share) as u64));
            sums[usize::from(!on_cpu)] += calibration.weight(1, on_cpu, at, count);
        }
        sums.map(|sum| sum / samples as f64)
    }

    #[test]
    fn samples_agree_with_the_kernel() {
        let [on, off] = weights(Some(0.4), 7, 2_000);
        assert!((on - 0.4).abs() < 0.02 && (off - 0.6).abs() < 0.02, "{on} {off}");
        let [on, off] = weights(Some(0.2), 2, 2_000);
        assert!((on - 0.2).abs() < 0.01 && (off - 0.8).abs() < 0.01, "{on} {off}");
    }

    #[test]
    fn samples_count_as_they_are_where_the_kernel_does_not_tell() {
        assert_eq!(weights(None, 7, 100), [0.7, 0.3]);
        assert_eq!(weights(Some(0.4), 7, 10), [0.7, 0.3]);
        assert_eq!(weights(Some(0.4), 0, 1_000), [0.0, 1.0]);
    }

    #[test]
    fn weights_follow_a_program_that_changes() {
        let mut calibration = Calibration::default();
        let mut counted = 0.0;
        let mut last = 0.0;
        for sample in 0..4_000_u64 {
            let at = 5_000 * MS + 5 * MS * sample;
            // For ten seconds, the thread is on a CPU in 7 of 10 samples, but for 40% of the time.
            // Then it sleeps.
            let on_cpu = sample < 2_000 && sample * 7 % 10 < 7;
            counted += if sample < 2_000 { 0.4 * 5e6 } else { 0.0 };
            last = calibration.weight(1, on_cpu, at, || Some((at, counted as u64)));
            assert!(last <= MOST_WEIGHT);
        }
        assert!((last - 1.0).abs() < 0.05, "{last}");
    }

    #[test]
    fn counts_are_read_seldom() {
        let mut calibration = Calibration::default();
        let mut reads = 0;
        for sample in 0..10_000 {
            let at = 5_000 * MS + sample * MS / 10;
            calibration.weight((sample % 2_000) as u32, sample / 2_000 % 2 == 0, at, || {
                reads += 1;
                Some((at, at))
            });
        }
        assert!((100..=201).contains(&reads), "{reads} in a second");
    }
}
