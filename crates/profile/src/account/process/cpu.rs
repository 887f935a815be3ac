//! CPU time of the threads of a process.

use std::collections::{HashMap, HashSet};

use crate::primitive::MAX_WAIT_TARGETS;

/// Minimum number of clock ticks for which the kernel's share is reported.
const MIN_TICKS: u64 = 20;

#[derive(Debug, Default)]
pub(super) struct Cpu {
    /// Clock ticks that the process has spent on a CPU, in user mode and in the kernel: at first,
    /// and now.
    ticks: Option<[[u64; 2]; 2]>,
    /// Number of samples of each thread, and of those among them that saw it on a CPU.
    samples: HashMap<u32, (u64, u64)>,
}

impl Cpu {
    /// Notes the clock ticks that the process has spent on a CPU, in user mode and in the kernel.
    pub(super) fn note_ticks(&mut self, now: [u64; 2]) {
        let first = self.ticks.map_or(now, |[first, _]| first);
        self.ticks = Some([first, now]);
    }

    /// Share of the CPU time that was spent in the kernel.
    pub(super) fn kernel_share(&self) -> Option<f64> {
        let [[own, kernel], [own_now, kernel_now]] = self.ticks?;
        let (own, kernel) = (own_now.saturating_sub(own), kernel_now.saturating_sub(kernel));
        (own + kernel >= MIN_TICKS).then(|| kernel as f64 / (own + kernel) as f64)
    }

    pub(super) fn sample(&mut self, tid: u32, on_cpu: bool) {
        if self.samples.len() < MAX_WAIT_TARGETS || self.samples.contains_key(&tid) {
            let (all, running) = self.samples.entry(tid).or_default();
            *all += 1;
            *running += u64::from(on_cpu);
        }
    }

    /// Sum, over these threads, of the share of its samples that saw each on a CPU.
    pub(super) fn of(&self, threads: &HashSet<u32>) -> f64 {
        let sampled = threads.iter().filter_map(|tid| self.samples.get(tid));
        sampled.map(|&(all, running)| running as f64 / all as f64).sum()
    }
}
