//! CPU time of the threads of a process, and the time in which they wait for work or for other
//! threads.

use std::collections::{HashMap, HashSet};

use threadtoll_stacks::process::Switches;

use crate::primitive::MAX_WAIT_TARGETS;

/// Minimum CPU time of the process, in clock ticks, for the kernel's share of it to be reported.
const MIN_TICKS: u64 = 20;

/// Maximum number of threads whose switches are counted.
const MAX_COUNTED: usize = 16;

/// A thread yields if, per second on a CPU or waiting for one, it gives up its CPU at least this
/// many times although it could go on, and this many times for each time it falls asleep. The
/// kernel takes the CPU from a thread that computes at most 1,000 times a second.
const YIELDS_PER_S: f64 = 2_000.0;
const YIELDS_PER_SLEEP: u64 = 4;

/// A process that yields spends at least this part of its CPU time in the kernel. Otherwise, threads
/// of other processes that often wake up take its CPUs.
const YIELDING_IN_KERNEL: f64 = 0.3;

#[derive(Debug, Default)]
pub(super) struct Cpu {
    /// Clock ticks spent in user mode and in the kernel, at the first reading and at the latest
    /// one.
    ticks: Option<[[u64; 2]; 2]>,
    samples: HashMap<u32, Samples>,
    /// Switches of threads at the first reading and at the latest one, with their times.
    switches: HashMap<u32, [(Switches, u64); 2]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    all: f64,
    on_cpu: f64,
    at_rest: f64,
}

impl Cpu {
    pub(super) fn note_ticks(&mut self, now: [u64; 2]) {
        let first = self.ticks.map_or(now, |[first, _]| first);
        self.ticks = Some([first, now]);
    }

    pub(super) fn kernel_share(&self) -> Option<f64> {
        let [[own, kernel], [own_now, kernel_now]] = self.ticks?;
        let (own, kernel) = (own_now.saturating_sub(own), kernel_now.saturating_sub(kernel));
        (own + kernel >= MIN_TICKS).then(|| kernel as f64 / (own + kernel) as f64)
    }

    /// Threads whose switches are to be counted: those that were counted before, then those with the
    /// most time on CPUs.
    pub(super) fn to_count(&self) -> Vec<u32> {
        let mut threads: Vec<(bool, f64, u32)> = self
            .samples
            .iter()
            .map(|(&tid, of)| (self.switches.contains_key(&tid), of.on_cpu, tid))
            .filter(|&(_, on_cpu, _)| on_cpu > 0.0)
            .collect();
        threads.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        threads.into_iter().take(MAX_COUNTED).map(|(.., tid)| tid).collect()
    }

    pub(super) fn note_switches(&mut self, tid: u32, switches: Switches, at: u64) {
        let now = (switches, at);
        let first = self.switches.get(&tid).map_or(now, |[first, _]| *first);
        self.switches.insert(tid, [first, now]);
    }

    /// Part of the time on CPUs, or waiting for one, of threads that yield: a lower bound.
    pub(super) fn yielding(&self) -> f64 {
        if self.kernel_share().is_none_or(|kernel| kernel < YIELDING_IN_KERNEL) {
            return 0.0;
        }
        let yields = |tid: &u32, of: &Samples| {
            let Some([(first, from), (last, to)]) = self.switches.get(tid).copied() else {
                return false;
            };
            let seconds = to.saturating_sub(from) as f64 / 1e9 * of.on_cpu / of.all;
            let given_up = last.involuntary.saturating_sub(first.involuntary);
            let slept = last.voluntary.saturating_sub(first.voluntary);
            given_up as f64 > YIELDS_PER_S * seconds && given_up / YIELDS_PER_SLEEP > slept
        };
        let on_cpu = |of: &Samples| of.on_cpu;
        let all: f64 = self.samples.values().map(on_cpu).sum();
        let yielding = self.samples.iter().filter(|(tid, of)| of.on_cpu > 0.0 && yields(tid, of));
        let yielding: f64 = yielding.map(|(_, of)| on_cpu(of)).sum();
        if all > 0.0 { yielding / all } else { 0.0 }
    }

    pub(super) fn sample(&mut self, tid: u32, weight: f64, on_cpu: bool, at_rest: bool) {
        if self.samples.len() < MAX_WAIT_TARGETS || self.samples.contains_key(&tid) {
            let of = self.samples.entry(tid).or_default();
            of.all += weight;
            of.on_cpu += if on_cpu { weight } else { 0.0 };
            of.at_rest += if at_rest { weight } else { 0.0 };
        }
    }

    pub(super) fn on_cpu(&self, threads: &HashSet<u32>) -> f64 {
        self.mean(threads, |of| of.on_cpu)
    }

    /// Share of a thread's samples in which it waited for work, or for other threads without
    /// waiting for a lock, averaged over `threads`.
    pub(super) fn at_rest(&self, threads: &HashSet<u32>) -> f64 {
        self.mean(threads, |of| of.at_rest)
    }

    fn mean(&self, threads: &HashSet<u32>, part: fn(&Samples) -> f64) -> f64 {
        let sampled = threads.iter().filter_map(|tid| self.samples.get(tid));
        sampled.map(|of| part(of) / of.all.max(f64::MIN_POSITIVE)).sum::<f64>()
            / threads.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Two threads that are always on a CPU, one of which switches, and the kernel's ticks.
    fn process(voluntary: u64, involuntary: u64, kernel: u64) -> Cpu {
        let mut cpu = Cpu::default();
        for tid in [1, 2] {
            cpu.sample(tid, 1.0, true, false);
            cpu.note_switches(tid, Switches { voluntary: 5, involuntary: 7 }, SECOND);
        }
        let switches = Switches { voluntary: 5 + voluntary, involuntary: 7 + involuntary };
        cpu.note_switches(2, switches, 3 * SECOND);
        cpu.note_ticks([0, 0]);
        cpu.note_ticks([100 - kernel, kernel]);
        cpu
    }

    #[test]
    fn a_thread_yields_if_it_often_gives_up_its_cpu_in_the_kernel_and_seldom_sleeps() {
        assert_eq!(process(0, 100_000, 80).yielding(), 0.5);
        assert_eq!(process(0, 1_900, 80).yielding(), 0.0, "the scheduler takes its CPU");
        assert_eq!(process(50_000, 100_000, 80).yielding(), 0.0, "others wake up");
        assert_eq!(process(0, 100_000, 10).yielding(), 0.0, "other processes take its CPU");
        assert_eq!(Cpu::default().yielding(), 0.0);
    }

    #[test]
    fn threads_counted_before_are_counted_again() {
        let mut cpu = Cpu::default();
        (0..100).for_each(|tid| cpu.sample(tid, f64::from(tid), true, false));
        cpu.sample(200, 1.0, false, true);
        assert!(cpu.to_count().into_iter().eq((84..100).rev()));
        cpu.note_switches(3, Switches::default(), SECOND);
        assert!(cpu.to_count().into_iter().eq([3].into_iter().chain((85..100).rev())));
    }
}
