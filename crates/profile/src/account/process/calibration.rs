//! Corrects how often threads are seen on a CPU where no records of context switches tell.
//!
//! A sample reads one thread after another, on a CPU that it takes from them. A thread that
//! switches thousands of times a second is woken, and waits for that CPU, before it is read, so too
//! many samples see it ready to run: with four threads that sync files on two CPUs, 66% of the
//! samples where the kernel counts 40% of the time. Each thread's samples on a CPU, and the others,
//! are weighted so that they agree with the kernel's count (`/proc/PID/task/TID/schedstat`).

use std::collections::HashMap;

use threadtoll_stacks::process::Activity;

use super::ProcessAccount;
use crate::circumstances::Circumstances;
use crate::clock::now;
use crate::primitive::MAX_WAIT_TARGETS;
use crate::sample::ThreadRead;

/// Minimum time in nanoseconds between two readings of a thread's count, and between two readings
/// for any threads of a process.
const READ_NS: u64 = 100_000_000;
const READ_ANY_NS: u64 = 5_000_000;

/// Time in nanoseconds after which what was seen counts by half: programs change what they do.
const HALF_NS: f64 = 2e9;

/// A thread that was not weighted for this many nanoseconds starts afresh: records of switches may
/// have shown its state meanwhile.
const FORGET_NS: u64 = 1_000_000_000;

/// Minimum number of samples from which weights are taken.
const FEWEST: f64 = 20.0;

/// Samples are not weighted if at most this share of them shows a thread on a CPU, or off it: these
/// few would stand for too much.
const LEAST_SHARE: f64 = 0.02;

/// Largest weight.
const MOST_WEIGHT: f64 = 2.0;

/// Weights of the samples of threads.
#[derive(Debug, Default)]
pub(super) struct Calibration {
    threads: HashMap<u32, Calibrated>,
    read_at: u64,
}

/// What was sampled of a thread, and what the kernel counted in the same time.
#[derive(Clone, Copy, Debug, Default)]
struct Calibrated {
    sampled_at: u64,
    /// Samples since the latest reading: all, and those on a CPU.
    since: [f64; 2],
    /// Samples before that, older ones counting less, with the time between readings, and the time
    /// on a CPU or waiting for one, in nanoseconds.
    before: [f64; 2],
    ns: [f64; 2],
    /// Time of the latest reading, and the kernel's count then.
    reading: Option<(u64, u64)>,
    /// Time of the sample with the latest reading.
    read_at: u64,
    /// True if the thread was seen off a CPU, and on one.
    seen: [bool; 2],
}

impl ProcessAccount {
    /// Weight of a sample of a picked thread: 1 where records of switches tell its state.
    pub(super) fn weight(&mut self, read: &ThreadRead, at: u64, seen: &Circumstances<'_>) -> f64 {
        if seen.state(read.tid, at).is_some() {
            return 1.0;
        }
        let count = || Some((now(), seen.lookups.cpu_ns(read.process, read.tid)?));
        self.calibration.weight(read.tid, read.activity == Activity::OnCpu, at, count)
    }
}

impl Calibration {
    /// Weight of a sample of this thread that saw it on a CPU or ready to run (`on_cpu`), or not.
    /// `count` reads the time, and the kernel's count for the thread, both in nanoseconds.
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
        // A thread of an idle pool needs no weights.
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

    /// Forgets threads that have ended.
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

    /// Sum of the weights of samples on a CPU and of others, of a thread that is on a CPU for this
    /// share of the time, but seen there in `seen` of 10 samples.
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
        // Too few, and a thread that is never seen on a CPU.
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
            // For ten seconds seen at seven tenths and there for four; then asleep for good.
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
