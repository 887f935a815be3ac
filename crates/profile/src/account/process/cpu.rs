//! CPU time of the threads of a process, and the time in which they wait for work or for other
//! threads.

use std::collections::{HashMap, HashSet};

use threadtoll_stacks::process::Switches;

use crate::primitive::MAX_WAIT_TARGETS;

/// Minimum CPU time of the process, in clock ticks, for the kernel's share of it to be reported.
const MIN_TICKS: u64 = 20;

/// Maximum number of threads whose switches are counted.
const MAX_COUNTED: usize = 16;

/// A thread yields if, per second on a CPU or waiting for one, it leaves its CPU at least this many
/// times although it could go on, and this many times for each time it falls asleep.
const YIELDS_PER_S: f64 = 2_000.0;
const YIELDS_PER_SLEEP: u64 = 4;

/// A process that yields spends at least this part of its CPU time in the kernel.
const YIELDING_IN_KERNEL: f64 = 0.3;

/// Part of all switches on the machine that are yields of the process. A thread that loses its CPU
/// to one that wakes up looks like one that yields, but the other one has to fall asleep again, so
/// such losses are at most half of all switches.
const YIELDS_OF_ALL: f64 = 0.7;

#[derive(Debug, Default)]
pub(super) struct Cpu {
    /// Clock ticks spent in user mode and in the kernel, at the first reading and at the latest
    /// one.
    ticks: Option<[[u64; 2]; 2]>,
    /// The kernel's share between the latest two readings; `None` if there was too little CPU time.
    kernel_lately: Option<f64>,
    samples: HashMap<u32, Samples>,
    counted: HashMap<u32, Counted>,
    /// Switches on the whole machine at the latest reading.
    machine: Option<u64>,
    /// Samples of counted threads on CPUs, or waiting for one, between two readings: of all, and of
    /// those that yielded.
    yielded: [f64; 2],
}

/// A thread at the latest reading of its switches.
#[derive(Clone, Copy, Debug)]
struct Counted {
    switches: Switches,
    samples: Samples,
    at: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    all: f64,
    on_cpu: f64,
    at_rest: f64,
}

impl Cpu {
    pub(super) fn note_ticks(&mut self, now: [u64; 2]) {
        let [first, last] = self.ticks.unwrap_or([now; 2]);
        self.ticks = Some([first, now]);
        self.kernel_lately = kernel_share([last, now]);
    }

    pub(super) fn kernel_share(&self) -> Option<f64> {
        kernel_share(self.ticks?)
    }

    /// Those of these threads whose switches are to be counted: those that are being counted, and
    /// then those with the most time on CPUs.
    pub(super) fn count_next(&mut self, living: &HashSet<u32>) -> Vec<u32> {
        self.counted.retain(|tid, _| living.contains(tid));
        let known = living.iter().filter_map(|tid| Some((tid, self.samples.get(tid)?)));
        let mut threads: Vec<(bool, f64, u32)> = known
            .filter(|(_, of)| of.on_cpu > 0.0)
            .map(|(&tid, of)| (self.counted.contains_key(&tid), of.on_cpu, tid))
            .collect();
        threads.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        threads.into_iter().take(MAX_COUNTED).map(|(.., tid)| tid).collect()
    }

    /// Notes the switches of threads so far, and those on the whole machine. Call this after
    /// [`Cpu::note_ticks`].
    pub(super) fn note_switches(&mut self, threads: &[(u32, Switches)], machine: u64, at: u64) {
        let on_machine = self.machine.replace(machine).map(|last| machine.saturating_sub(last));
        let (mut yields, mut on_cpu, mut yielding) = (0, 0.0, 0.0);
        for &(tid, switches) in threads {
            let samples = self.samples.get(&tid).copied().unwrap_or_default();
            let now = Counted { switches, samples, at };
            let Some(last) = self.counted.insert(tid, now) else { continue };
            let grown = |of: fn(Switches) -> u64| of(switches).checked_sub(of(last.switches));
            // Fewer than before are those of another thread with the same TID.
            let left = grown(|of| of.involuntary).zip(grown(|of| of.voluntary));
            let (Some((left, slept)), true) = (left, samples.on_cpu > last.samples.on_cpu) else {
                continue;
            };
            let busy = samples.on_cpu - last.samples.on_cpu;
            let share = busy / (samples.all - last.samples.all);
            let seconds = share * at.saturating_sub(last.at) as f64 / 1e9;
            on_cpu += busy;
            if left as f64 >= YIELDS_PER_S * seconds && left / YIELDS_PER_SLEEP >= slept {
                (yields, yielding) = (yields + left, yielding + busy);
            }
        }
        let (Some(on_machine), Some(kernel)) = (on_machine, self.kernel_lately) else { return };
        let of_all = yields as f64 >= YIELDS_OF_ALL * on_machine as f64;
        self.yielded[0] += on_cpu;
        self.yielded[1] += if of_all && kernel >= YIELDING_IN_KERNEL { yielding } else { 0.0 };
    }

    /// Part of the time on CPUs, or waiting for one, in which threads yielded again and again, of
    /// the threads whose switches were counted.
    pub(super) fn yielding(&self) -> f64 {
        let [all, yielded] = self.yielded;
        if all > 0.0 { yielded / all } else { 0.0 }
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

/// The kernel's share of the CPU time between two readings.
fn kernel_share([[own, kernel], [own_now, kernel_now]]: [[u64; 2]; 2]) -> Option<f64> {
    let (own, kernel) = (own_now.saturating_sub(own), kernel_now.saturating_sub(kernel));
    (own + kernel >= MIN_TICKS).then(|| kernel as f64 / (own + kernel) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A thread is on a CPU for two seconds, with these switches, those of others, and these ticks
    /// in the kernel.
    fn run(cpu: &mut Cpu, [voluntary, involuntary, others]: [u64; 3], kernel: u64) -> f64 {
        let before = cpu.ticks.map_or([0; 2], |[_, last]| last);
        let last = cpu.counted.get(&2).map_or((Switches::default(), 0), |of| (of.switches, of.at));
        let (machine, (switches, at)) = (cpu.machine.unwrap_or_default(), last);
        cpu.note_ticks(before);
        cpu.note_switches(&[(2, switches)], machine, at);
        cpu.sample(2, 1.0, true, false);
        cpu.note_ticks([before[0] + 100 - kernel, before[1] + kernel]);
        let switches = Switches {
            voluntary: switches.voluntary + voluntary,
            involuntary: switches.involuntary + involuntary,
        };
        let machine = machine + voluntary + involuntary + others;
        cpu.note_switches(&[(2, switches)], machine, at + 2 * SECOND);
        cpu.yielding()
    }

    #[test]
    fn a_thread_yields_if_it_often_leaves_its_cpu_in_the_kernel_and_seldom_sleeps() {
        let yields = |switches, kernel| run(&mut Cpu::default(), switches, kernel);
        assert_eq!(yields([0, 100_000, 1_000], 80), 1.0);
        assert_eq!(yields([0, 1_900, 1_000], 80), 0.0, "the scheduler takes its CPU");
        assert_eq!(yields([50_000, 100_000, 0], 80), 0.0, "it sleeps, too");
        assert_eq!(yields([0, 100_000, 100_000], 80), 0.0, "others wake up and sleep again");
        assert_eq!(yields([0, 100_000, 1_000], 10), 0.0, "it computes");
        assert_eq!(Cpu::default().yielding(), 0.0);
    }

    #[test]
    fn only_the_time_in_which_a_thread_yields_counts() {
        let mut cpu = Cpu::default();
        run(&mut cpu, [0, 1_000_000, 0], 80);
        run(&mut cpu, [0, 10, 0], 80);
        run(&mut cpu, [0, 10, 0], 80);
        assert_eq!(run(&mut cpu, [0, 10, 0], 80), 0.25);
    }

    #[test]
    fn threads_that_live_are_counted_again() {
        let mut cpu = Cpu::default();
        (0..100).for_each(|tid| cpu.sample(tid, f64::from(tid), true, false));
        cpu.sample(200, 1.0, false, true);
        let living: HashSet<u32> = (0..=200).collect();
        assert!(cpu.count_next(&living).into_iter().eq((84..100).rev()));
        cpu.note_switches(&[(3, Switches::default())], 0, SECOND);
        assert!(cpu.count_next(&living).into_iter().eq([3].into_iter().chain((85..100).rev())));
        assert!(cpu.count_next(&(0..3).collect()).into_iter().eq([2, 1]));
    }
}
