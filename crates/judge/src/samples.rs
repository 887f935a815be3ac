//! Samples of one lock, summed up as they come, and the figures that they show.
//!
//! Held share, queue and hand-offs are averages over samples at random times, one drawn from each
//! of many equal spans. Their intervals are those of independent times, which err more than that
//! wherever a figure outlasts a span. Of the threads, a sample may show a random subset only: each
//! waiter seen stands for as many as the subset is short of.
//!
//! The rate of samples may change over a run, as a budget demands, and one sample may answer for
//! several instants that passed while the sampler had no CPU. So each counts by the time that it
//! stands for, and tells no more than one.
//!
//! # Late samples
//!
//! A sample that waited for a CPU saw the lock some time after its own instant, and not at a random
//! one: a holder that computes occupies the CPU, and the sampler gets it as the holder lets go. So
//! late samples show too little, and dropping them drops more instants at which the lock was held
//! than others. The instants themselves were fixed beforehand, so samples on time are right about
//! theirs, and only the late ones' are open. While a sampler waits the lock changes by one hold and
//! one waiter at most, and to the side that late samples lean away from: that bounds each figure.
//! A figure whose bounds are further apart than [`MAX_BIAS`] is withheld.
//!
//! # Before the lock is known
//!
//! Most locks are known once a thread was seen waiting for them. Until then nobody was, and their
//! words were not read: what was read is not a fair part of the run, but begins when threads wait.
//! So the time before counts as later runs of looks do that saw nobody waiting, with an error as
//! large as such runs differ among each other.

use super::interval::{self, Estimate, Z, student};
use super::sample::Sample;
use super::unwaited::Unwaited;

/// Largest distance of the bounds that late samples leave to a figure: of a share as it is, of a
/// queue relative to it where it exceeds one thread.
pub const MAX_BIAS: f64 = 0.1;

/// Most stretches kept; neighbours are merged when there are more.
const MAX_STRETCHES: usize = 32;

/// Fewest stretches that show a variance.
const MIN_STRETCHES: usize = 5;

/// Index of a figure in [`Moments`].
const HELD: usize = 0;
const QUEUE: usize = 1;
const WAKING: usize = 2;

/// Weighted sums, for each pair of figures over the samples that have both.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Moments {
    /// Sum of weights.
    weights: [f64; 3],
    /// Sum of weight × figure.
    sums: [f64; 3],
    /// Sum of weight².
    pairs: [[f64; 3]; 3],
    /// Sum of weight² × first figure.
    firsts: [[f64; 3]; 3],
    /// Sum of weight² × first figure × second figure.
    products: [[f64; 3]; 3],
    /// Largest weight of a waiter.
    waiter: f64,
}

impl Moments {
    fn add(&mut self, figures: [Option<f64>; 3], sample: Sample, times: f64) {
        let weight = sample.time;
        for (i, first) in figures.iter().enumerate() {
            let Some(first) = first else { continue };
            self.weights[i] += weight * times;
            self.sums[i] += first * weight * times;
            for (j, second) in figures.iter().enumerate() {
                let Some(second) = second else { continue };
                let squared = weight * weight * times;
                self.pairs[i][j] += squared;
                self.firsts[i][j] += squared * first;
                self.products[i][j] += squared * first * second;
            }
        }
        self.waiter = self.waiter.max(sample.waiter);
    }

    fn merged(mut self, other: &Self) -> Self {
        for i in 0..3 {
            self.weights[i] += other.weights[i];
            self.sums[i] += other.sums[i];
            for j in 0..3 {
                self.pairs[i][j] += other.pairs[i][j];
                self.firsts[i][j] += other.firsts[i][j];
                self.products[i][j] += other.products[i][j];
            }
        }
        self.waiter = self.waiter.max(other.waiter);
        self
    }

    /// Takes the looks at threads from `all`, at which nothing was seen but what is here.
    fn take_looks(&mut self, all: &Self) {
        for i in [QUEUE, WAKING] {
            self.weights[i] = all.weights[i];
            for j in [QUEUE, WAKING] {
                self.pairs[i][j] = all.pairs[i][j];
            }
        }
        self.waiter = self.waiter.max(all.waiter);
    }

    fn mean(&self, figure: usize) -> Option<f64> {
        (self.weights[figure] > 0.0).then(|| self.sums[figure] / self.weights[figure])
    }

    fn estimate(&self, figure: usize) -> Option<Estimate> {
        let value = self.mean(figure)?;
        let (first, product) = (self.firsts[figure][figure], self.products[figure][figure]);
        let size = match figure {
            HELD => 1.0,
            _ if first > 0.0 => product / first,
            _ => self.waiter.max(1.0),
        };
        let samples = self.weights[figure].powi(2) / self.pairs[figure][figure];
        Some(interval::mean(value, size, samples))
    }

    /// Covariance of the means.
    fn covariance(&self) -> [[f64; 3]; 3] {
        let mut covariance = [[0.0; 3]; 3];
        for (i, row) in covariance.iter_mut().enumerate() {
            for (j, cell) in row.iter_mut().enumerate() {
                let (Some(one), Some(other)) = (self.mean(i), self.mean(j)) else { continue };
                let about = self.products[i][j] - one * self.firsts[j][i]
                    + other * (one * self.pairs[i][j] - self.firsts[i][j]);
                *cell = about / (self.weights[i] * self.weights[j]);
            }
        }
        covariance
    }
}

/// Weighted sums of a stretch of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Stretch {
    weights: [f64; 3],
    sums: [f64; 3],
}

impl Stretch {
    fn add(&mut self, other: &Stretch) {
        for i in 0..3 {
            self.weights[i] += other.weights[i];
            self.sums[i] += other.sums[i];
        }
    }
}

/// Samples of one lock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockSamples {
    on_time: Moments,
    late: Moments,
    stretches: Vec<Stretch>,
    /// Binary logarithm of the seconds in a stretch.
    doublings: u32,
    unwaited: Unwaited,
    /// Share of the time, and seconds, that had passed before its word was read at all.
    unknown: f64,
    unknown_s: f64,
}

/// A figure, as far as the samples allow one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// No sample shows it.
    Unknown,
    /// Late samples leave it open by this much.
    Withheld(f64),
    /// The figure.
    Known(Estimate),
}

impl Figure {
    /// The figure, if it is known.
    pub fn known(self) -> Option<Estimate> {
        match self {
            Self::Known(estimate) => Some(estimate),
            Self::Unknown | Self::Withheld(_) => None,
        }
    }
}

/// Held share, queue and threads being woken, and the covariance of what another stretch of the
/// program would have shown instead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    /// Held share, mean queue, and mean number of threads being woken while nobody holds the lock.
    pub values: [f64; 3],
    /// Their covariance.
    pub covariance: [[f64; 3]; 3],
    /// Factor of a 95% interval.
    pub factor: f64,
}

impl LockSamples {
    /// Adds `times` equal samples, taken in this second of the run.
    pub fn add(&mut self, second: u64, sample: Sample, times: u64) {
        self.add_figures(second, sample, times);
        self.unwaited.add(&sample, times);
    }

    /// Adds a sample whose queue may be on time even though the rest of it is late.
    pub fn add_with_queue(&mut self, second: u64, sample: Sample, queue_late: bool) {
        if sample.late == queue_late {
            self.add(second, sample, 1);
            return;
        }
        self.add_figures(second, Sample { queue: None, ..sample }, 1);
        let queue = Sample { held: None, waking: None, late: queue_late, ..sample };
        self.add_figures(second, queue, 1);
        self.unwaited.add(&sample, 1);
    }

    fn add_figures(&mut self, second: u64, sample: Sample, times: u64) {
        let figures = [sample.held.map(f64::from), sample.queue, sample.waking];
        let times = times as f64;
        let moments = if sample.late { &mut self.late } else { &mut self.on_time };
        moments.add(figures, sample, times);
        while second >> self.doublings.min(63) >= MAX_STRETCHES as u64 {
            self.merge_neighbours();
        }
        let stretch = self.stretch((second >> self.doublings.min(63)) as usize);
        for (i, figure) in figures.iter().enumerate() {
            if let Some(figure) = figure {
                stretch.weights[i] += sample.time * times;
                stretch.sums[i] += figure * sample.time * times;
            }
        }
    }

    /// Adds samples without the word of a lock for which nobody waits.
    pub fn extend(&mut self, more: &LockSamples) {
        self.on_time = self.on_time.merged(&more.on_time);
        self.late = self.late.merged(&more.late);
        self.add_stretches(more, Stretch::add);
    }

    /// These samples of a lock among `all` samples: at those that are missing here, nobody waited
    /// for it, and its word was not read. Of `run_s` seconds, it was not known for the first ones.
    pub fn among(&self, all: &LockSamples, unknown_s: f64, run_s: f64) -> LockSamples {
        let unknown = if run_s > 0.0 { (unknown_s / run_s).min(1.0) } else { 0.0 };
        let mut samples = LockSamples { unknown, unknown_s, ..self.clone() };
        samples.on_time.take_looks(&all.on_time);
        samples.late.take_looks(&all.late);
        for stretch in &mut samples.stretches {
            (stretch.weights[QUEUE], stretch.weights[WAKING]) = (0.0, 0.0);
        }
        samples.add_stretches(all, |stretch, all| {
            stretch.weights[QUEUE] += all.weights[QUEUE];
            stretch.weights[WAKING] += all.weights[WAKING];
        });
        samples
    }

    fn add_stretches(&mut self, more: &LockSamples, add: impl Fn(&mut Stretch, &Stretch)) {
        while self.doublings < more.doublings {
            self.merge_neighbours();
        }
        for (index, stretch) in more.stretches.iter().enumerate() {
            add(self.stretch(index >> (self.doublings - more.doublings)), stretch);
        }
    }

    fn stretch(&mut self, index: usize) -> &mut Stretch {
        if self.stretches.len() <= index {
            self.stretches.resize(index + 1, Stretch::default());
        }
        &mut self.stretches[index]
    }

    fn merge_neighbours(&mut self) {
        self.doublings += 1;
        let merged = |pair: &[Stretch]| {
            let mut merged = Stretch::default();
            pair.iter().for_each(|stretch| merged.add(stretch));
            merged
        };
        self.stretches = self.stretches.chunks(2).map(merged).collect();
    }

    /// Share of time for which the lock is held.
    pub fn held(&self) -> Figure {
        match self.figure(HELD) {
            Figure::Known(read) if self.unknown > 0.0 => {
                let (known, unwaited) = (1.0 - self.unknown, self.unwaited.held(self.unknown_s));
                let value = known * read.value + self.unknown * unwaited.value;
                let both = |read: f64, unwaited: f64| (known * read).hypot(self.unknown * unwaited);
                let below = both(read.value - read.low, unwaited.value - unwaited.low);
                let above = both(read.high - read.value, unwaited.high - unwaited.value);
                Figure::Known(Estimate {
                    value,
                    low: (value - below).max(0.0),
                    high: (value + above).min(1.0),
                })
            }
            figure => figure,
        }
    }

    /// Mean number of threads waiting.
    pub fn queue(&self) -> Figure {
        self.figure(QUEUE)
    }

    /// Mean number of threads being woken while nobody holds the lock; zero if they are not told
    /// from running ones.
    pub fn waking(&self) -> Estimate {
        match self.figure(WAKING) {
            Figure::Known(estimate) => estimate,
            Figure::Unknown | Figure::Withheld(_) => Estimate::exact(0.0),
        }
    }

    /// Share of time for which the lock is held or handed over.
    pub fn busy(&self) -> Option<Estimate> {
        let held = self.held().known()?;
        let waking = self.waking();
        let aside = (waking.value - waking.low).hypot(held.value - held.low);
        let above = (waking.high - waking.value).hypot(held.high - held.value);
        let value = held.value + waking.value;
        Some(Estimate { value, low: value - aside, high: value + above }.map(|end| end.min(1.0)))
    }

    fn figure(&self, figure: usize) -> Figure {
        let all = self.on_time.merged(&self.late);
        let Some(read) = all.estimate(figure) else { return Figure::Unknown };
        let (low, high) = self.bounds(figure);
        let bias = high - low;
        let most = if figure == HELD { MAX_BIAS } else { MAX_BIAS * read.value.max(1.0) };
        if bias > most {
            return Figure::Withheld(bias);
        }
        let (below, above) = (read.value - read.low, read.high - read.value);
        Figure::Known(Estimate {
            value: (low + high) / 2.0,
            low: (low - below).max(0.0),
            high: if figure == HELD { (high + above).min(1.0) } else { high + above },
        })
    }

    /// Bounds that late samples leave to a figure, without their chance error.
    fn bounds(&self, figure: usize) -> (f64, f64) {
        let (on_time, late) = (self.on_time.weights[figure], self.late.weights[figure]);
        let all = on_time + late;
        let sums = self.on_time.sums[figure] + self.late.sums[figure];
        let read = sums / all;
        let Some(late_mean) = self.late.mean(figure) else { return (read, read) };
        let share = late / all;
        // Zero and one are unlike for any number of late samples.
        let chance = |moments: &Moments| match moments.estimate(figure) {
            Some(estimate) => (estimate.high - estimate.low) / (2.0 * Z),
            None => f64::INFINITY,
        };
        let lean = self.on_time.mean(figure).unwrap_or(late_mean) - late_mean;
        let noise = 2.0 * chance(&self.on_time).hypot(chance(&self.late));
        let most = if figure == HELD { 1.0 } else { f64::INFINITY };
        let above = if lean > -noise { (late_mean + 1.0).min(most) } else { late_mean };
        let below = if lean < noise { (late_mean - 1.0).max(0.0) } else { late_mean };
        (read - share * (late_mean - below), read + share * (above - late_mean))
    }

    /// The means for predictions; `None` if held share or queue is not known.
    pub fn means(&self) -> Option<Means> {
        let (held, queue) = (self.held().known()?, self.queue().known()?);
        let values = [held.value, queue.value, self.waking().value];
        let all = self.on_time.merged(&self.late);
        let mut covariance = all.covariance();
        // A queue that no sample showed is uncertain nevertheless.
        let unseen = |estimate: Estimate| ((estimate.high - estimate.low) / (2.0 * Z)).powi(2);
        for (i, estimate) in [(HELD, held), (QUEUE, queue), (WAKING, self.waking())] {
            covariance[i][i] = covariance[i][i].max(unseen(estimate));
        }
        let mut factor = Z;
        if let Some((between, stretches)) = self.between(values) {
            let mut scale = [1.0f64; 3];
            for i in 0..3 {
                if between[i][i] > 0.0 {
                    scale[i] = (covariance[i][i] / between[i][i]).sqrt().max(1.0);
                }
            }
            for i in 0..3 {
                for j in 0..3 {
                    let wider = between[i][j] * scale[i] * scale[j];
                    if i != j || wider > covariance[i][i] {
                        covariance[i][j] = wider;
                    }
                }
            }
            factor = student(stretches - 1.0);
        }
        Some(Means { values, covariance, factor })
    }

    /// Covariance of the means by the differences between stretches, and their number.
    fn between(&self, means: [f64; 3]) -> Option<([[f64; 3]; 3], f64)> {
        let most = self.stretches.iter().map(|each| each.weights[QUEUE]).fold(0.0, f64::max);
        let full: Vec<&Stretch> = self
            .stretches
            .iter()
            .filter(|each| each.weights[QUEUE] > most / 2.0 && each.weights[HELD] > 0.0)
            .collect();
        if full.len() < MIN_STRETCHES {
            return None;
        }
        let total: f64 = full.iter().map(|each| each.weights[QUEUE]).sum();
        let mut covariance = [[0.0; 3]; 3];
        for stretch in &full {
            let mut off = [0.0; 3];
            for i in 0..3 {
                if stretch.weights[i] > 0.0 {
                    off[i] = stretch.sums[i] / stretch.weights[i] - means[i];
                }
            }
            let weight = stretch.weights[QUEUE] / total / (full.len() as f64 - 1.0);
            for i in 0..3 {
                for j in 0..3 {
                    covariance[i][j] += weight * off[i] * off[j];
                }
            }
        }
        Some((covariance, full.len() as f64))
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::simulated::{Program, Run, Times, at, rng};

    /// Samples a run, looking at `looked` random threads each time.
    fn sampled(run: &Run, per_s: f64, looked: usize, seed: u64) -> LockSamples {
        let mut rng = rng(seed ^ 0xA5);
        let mut samples = LockSamples::default();
        let mut threads: Vec<u32> = (0..run.waits.len() as u32).collect();
        for time in run.instants(per_s, seed) {
            for i in 0..looked {
                threads.swap(i, rng.random_range(i..run.waits.len()));
            }
            let weight = run.waits.len() as f64 / looked as f64;
            let seen = threads[..looked].iter().filter(|&&thread| run.waiting(thread, time));
            let queue = seen.count() as f64 * weight;
            let held = at(&run.holds, time).is_some();
            samples.add(
                time as u64,
                Sample {
                    held: Some(held),
                    queue: Some(queue),
                    waking: None,
                    waiter: weight,
                    time: 1.0,
                    late: false,
                },
                1,
            );
        }
        samples
    }

    /// Runs of `runs` whose held share, and whose queue, lie in their intervals.
    fn covered(program: Program, per_s: f64, looked: usize, runs: u64) -> (u64, u64) {
        let (mut held, mut queue) = (0, 0);
        for seed in 0..runs {
            let run = program.run(10.0, seed);
            let samples = sampled(&run, per_s, looked, seed + 1000);
            held += u64::from(samples.held().known().unwrap().holds(run.held()));
            queue += u64::from(samples.queue().known().unwrap().holds(run.queue()));
        }
        (held, queue)
    }

    #[test]
    fn intervals_hold_the_figures_of_the_run() {
        let crowded = Program {
            threads: 8,
            hold: 2e-3,
            think: 8e-3,
            hold_times: Times::Exponential,
            think_times: Times::Exponential,
            hand_off: 0.0,
        };
        let programs = [
            (crowded, 8),
            (crowded, 3),
            (crowded, 1),
            (Program { threads: 64, think: 60e-3, ..crowded }, 5),
            (Program { threads: 2, hold: 0.2e-3, hold_times: Times::Fixed, ..crowded }, 2),
            (Program { threads: 3, hold: 0.5e-3, think: 50e-3, ..crowded }, 2),
            (Program { threads: 16, hold: 10e-3, hold_times: Times::Fixed, ..crowded }, 4),
        ];
        for (program, looked) in programs {
            for per_s in [150.0, 1000.0] {
                let (held, queue) = covered(program, per_s, looked, 200);
                let of = format!("of 200 at {per_s}/s: {program:?}");
                assert!((180..=200).contains(&held), "held in {held} {of}");
                assert!((180..=200).contains(&queue), "queue in {queue} {of}");
            }
        }
    }

    /// Looks at a lock that is known from the first look on that sees a waiter.
    fn found_late(
        per_s: f64,
        seconds: f64,
        seed: u64,
        see: impl Fn(f64) -> (bool, f64),
    ) -> LockSamples {
        let mut rng = rng(seed);
        let (mut own, mut all) = (LockSamples::default(), LockSamples::default());
        let mut found = None;
        for span in 0..(seconds * per_s) as u32 {
            let time = (f64::from(span) + rng.random::<f64>()) / per_s;
            let (held, queue) = see(time);
            found = found.or((queue > 0.0).then_some(time));
            let look = Sample {
                held: None,
                queue: Some(0.0),
                waking: None,
                waiter: 1.0,
                time: 1.0 / per_s,
                late: false,
            };
            all.add(time as u64, look, 1);
            if found.is_some() {
                own.add(time as u64, Sample { held: Some(held), queue: Some(queue), ..look }, 1);
            }
        }
        own.among(&all, found.unwrap_or(0.0), seconds)
    }

    #[test]
    fn locks_that_are_found_when_threads_wait_are_not_overrated() {
        // Each 1.1 s a crowd comes for 0.4 s, in which one look in five shows a waiter. The last of
        // the crowd holds the lock for 0.1 s.
        let (cycle, crowd, last) = (1.1, 0.4, 0.1);
        let (mut inside, mut off, mut naive) = (0, 0.0, 0.0);
        for seed in 0..200 {
            let start = cycle * seed as f64 / 200.0;
            let held = |time: f64| (time + start) % cycle < crowd + last;
            let crowded = |time: f64| (time + start) % cycle < crowd && time * 1e5 % 5.0 < 1.0;
            let queue = |time: f64| if crowded(time) { 15.0 } else { 0.0 };
            let samples = found_late(1000.0, 10.0, seed, |time| (held(time), queue(time)));
            let truth = (0..100_000).filter(|at| held(f64::from(*at) * 1e-4)).count() as f64 / 1e5;
            let read = samples.held().known().unwrap();
            inside += u64::from(read.holds(truth));
            off += (read.value - truth) / 200.0;
            naive += (samples.figure(HELD).known().unwrap().value - truth) / 200.0;
        }
        assert!(naive > 0.008, "the looks with its word alone are off by {naive}");
        assert!(off.abs() < 0.003, "{off}");
        assert!(inside >= 190, "{inside} of 200");
    }

    #[test]
    fn locks_that_are_seldom_waited_for_are_right_about_the_time_before() {
        let rare = Program {
            threads: 3,
            hold: 1e-3,
            think: 50e-3,
            hold_times: Times::Exponential,
            think_times: Times::Exponential,
            hand_off: 0.0,
        };
        let (mut inside, mut runs) = (0, 0);
        for seed in 0..200 {
            let run = rare.run(10.0, seed);
            let queue = |time: f64| (0..3).filter(|&id| run.waiting(id, time)).count() as f64;
            let see = |time: f64| (at(&run.holds, time).is_some(), queue(time));
            let samples = found_late(100.0, 10.0, seed, see);
            let Some(read) = samples.held().known() else { continue };
            runs += 1;
            inside += u64::from(read.holds(run.held()));
        }
        assert!(runs > 150 && inside * 100 >= runs * 94, "{inside} of {runs}");
    }

    #[test]
    fn samples_count_by_the_time_that_they_stand_for() {
        let program = Program {
            threads: 4,
            hold: 2e-3,
            think: 4e-3,
            hold_times: Times::Exponential,
            think_times: Times::Exponential,
            hand_off: 0.0,
        };
        let (mut held, mut queue) = (0, 0);
        for seed in 0..200 {
            // The lock is busy in the first half only, and the sampler slow in the second.
            let run = program.run(5.0, seed);
            let mut samples = LockSamples::default();
            let mut sample = |time: f64, busy: bool, weight: f64| {
                let waiting = (0..4).filter(|&id| busy && run.waiting(id, time)).count();
                let sample = Sample {
                    held: Some(busy && at(&run.holds, time).is_some()),
                    queue: Some(waiting as f64),
                    waking: None,
                    waiter: 1.0,
                    time: weight,
                    late: false,
                };
                samples.add(time as u64 + if busy { 0 } else { 5 }, sample, 1);
            };
            run.instants(1000.0, seed).into_iter().for_each(|time| sample(time, true, 1e-3));
            run.instants(200.0, seed + 1).into_iter().for_each(|time| sample(time, false, 5e-3));
            held += u32::from(samples.held().known().unwrap().holds(run.held() / 2.0));
            queue += u32::from(samples.queue().known().unwrap().holds(run.queue() / 2.0));
        }
        // The numbers of instants in both halves vary by chance, which widens the truth a little.
        assert!(held >= 170 && queue >= 170, "held in {held}, queue in {queue} of 200");
    }

    #[test]
    fn a_sample_for_many_instants_tells_no_more_than_one() {
        let (mut each, mut many) = (LockSamples::default(), LockSamples::default());
        for tick in 0..1000 {
            let sample = Sample {
                held: Some(tick % 3 == 0),
                queue: Some(f64::from(tick % 2)),
                waking: None,
                waiter: 1.0,
                time: 1.0,
                late: false,
            };
            each.add(0, sample, 1);
            many.add(0, Sample { time: 7.0, ..sample }, 1);
        }
        assert_eq!(each.held(), many.held());
        let (Figure::Known(one), Figure::Known(other)) = (each.queue(), many.queue()) else {
            panic!()
        };
        assert!((one.low - other.low).abs() < 1e-12 && (one.high - other.high).abs() < 1e-12);
        let mut batch = LockSamples::default();
        let idle = Sample {
            held: Some(false),
            queue: Some(0.0),
            waking: None,
            waiter: 1.0,
            time: 1.0,
            late: false,
        };
        batch.add(0, idle, 1000);
        assert!((0.002..0.005).contains(&batch.queue().known().unwrap().high));
    }

    /// A sampler that finds no CPU while a holder computes, this often, and gets one afterwards.
    fn late_samples(run: &Run, kept_waiting: f64, seed: u64) -> LockSamples {
        let mut rng = rng(seed ^ 0x5A);
        let mut samples = LockSamples::default();
        for instant in run.instants(1000.0, seed) {
            let mut time = instant;
            let mut late = false;
            if let Some(hold) = at(&run.holds, instant)
                && rng.random::<f64>() < kept_waiting
            {
                time = hold.end + 1e-6;
                late = true;
            }
            let held = at(&run.holds, time).is_some();
            let waiting = (0..run.waits.len() as u32).filter(|&id| run.waiting(id, time)).count();
            samples.add(
                time as u64,
                Sample {
                    held: Some(held),
                    queue: Some(waiting as f64),
                    waking: None,
                    waiter: 1.0,
                    time: 1.0,
                    late,
                },
                1,
            );
        }
        samples
    }

    #[test]
    fn late_samples_widen_the_interval_or_withhold_the_figure() {
        let program = Program {
            threads: 8,
            hold: 1e-3,
            think: 10e-3,
            hold_times: Times::Fixed,
            think_times: Times::Exponential,
            // While a waiter is being woken the lock is free.
            hand_off: 0.1e-3,
        };
        let (mut held, mut queue) = (0, 0);
        for seed in 0..100 {
            let run = program.run(10.0, seed);
            let samples = late_samples(&run, 0.05, seed);
            held += u32::from(samples.held().known().unwrap().holds(run.held()));
            queue += u32::from(samples.queue().known().unwrap().holds(run.queue()));
            let many = late_samples(&run, 0.5, seed);
            assert!(matches!(many.held(), Figure::Withheld(bias) if bias > MAX_BIAS));
            assert_eq!(many.means(), None);
        }
        assert!(held >= 90 && queue >= 90, "held in {held}, queue in {queue} of 100");
    }

    #[test]
    fn samples_without_waiters_need_not_be_added_one_by_one() {
        let (mut each, mut some) = (LockSamples::default(), LockSamples::default());
        let mut all = LockSamples::default();
        for tick in 0..20_000u32 {
            let second = tick / 200;
            let nobody = Sample {
                held: None,
                queue: Some(0.0),
                waking: Some(0.0),
                waiter: 2.0,
                time: f64::from(tick % 3 + 1),
                late: tick % 11 == 0,
            };
            let mut of_second = LockSamples::default();
            of_second.add(second.into(), nobody, 1);
            all.extend(&of_second);
            // Used for some seconds, as a sample of seven shows.
            if (30..50).contains(&second) && tick % 7 == 0 {
                let queue = Some(f64::from(tick % 3));
                let sample = Sample { held: Some(tick % 2 == 0), queue, ..nobody };
                each.add(second.into(), sample, 1);
                some.add(second.into(), sample, 1);
            } else {
                each.add(second.into(), nobody, 1);
            }
        }
        let some = some.among(&all, 0.0, 100.0);
        assert_eq!(some.held(), each.held());
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        let [one, other] = [&some, &each].map(|samples| samples.queue().known().unwrap());
        assert!(near(one.value, other.value) && near(one.low, other.low), "{one:?} {other:?}");
        let [one, other] = [&some, &each].map(|samples| samples.means().unwrap());
        let parts = |means: Means| means.covariance.into_iter().flatten().chain([means.factor]);
        assert!(parts(one).zip(parts(other)).all(|(one, other)| near(one, other)));
    }

    #[test]
    fn stretches_are_bounded() {
        let mut samples = LockSamples::default();
        let sample = Sample {
            held: Some(true),
            queue: Some(1.0),
            waking: None,
            waiter: 1.0,
            time: 1.0,
            late: false,
        };
        for second in (0..100_000).step_by(7) {
            samples.add(second, sample, 10);
        }
        assert!(samples.stretches.len() <= MAX_STRETCHES);
        let kept: f64 = samples.stretches.iter().map(|stretch| stretch.weights[HELD]).sum();
        assert_eq!(kept, samples.on_time.weights[HELD]);
        assert_eq!(samples.held().known().unwrap().value, 1.0);
        samples.add(u64::MAX, sample, 1);
        assert!(samples.stretches.len() <= MAX_STRETCHES);
    }

    #[test]
    fn means_follow_the_variance_between_stretches() {
        let mut steady = LockSamples::default();
        let mut phases = LockSamples::default();
        for second in 0..10 {
            for tick in 0..1000 {
                let sample = |held: bool| Sample {
                    held: Some(held),
                    queue: Some(f64::from(u8::from(held))),
                    waking: None,
                    waiter: 1.0,
                    time: 1.0,
                    late: false,
                };
                steady.add(second, sample(tick % 2 == 0), 1);
                phases.add(second, sample(second % 2 == 0), 1);
            }
        }
        let (steady, phases) = (steady.means().unwrap(), phases.means().unwrap());
        assert!((steady.values[0] - phases.values[0]).abs() < 1e-9);
        assert!(phases.covariance[0][0] > 100.0 * steady.covariance[0][0]);
        assert!(phases.factor > Z);
    }
}
