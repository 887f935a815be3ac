//! CPU time of the threads of a process, and the time in which they wait for work or for other
//! threads.

use std::collections::{HashMap, HashSet};

use crate::primitive::MAX_WAIT_TARGETS;

/// Minimum CPU time of the process, in clock ticks, for the kernel's share of it to be reported.
const MIN_TICKS: u64 = 20;

#[derive(Debug, Default)]
pub(super) struct Cpu {
    /// Clock ticks spent in user mode and in the kernel, at the first reading and at the latest
    /// one.
    ticks: Option<[[u64; 2]; 2]>,
    samples: HashMap<u32, Samples>,
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
