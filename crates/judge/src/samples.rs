//! Samples of one lock, summed up as they arrive, and the figures derived from them.
//!
//! Held share, queue and hand-offs are averages over samples at random times, one drawn from each
//! of many equal spans. Their intervals are computed as for independent times, which makes them too
//! wide for any figure that stays constant for longer than a span. A sample may show only a random
//! subset of the threads; each waiter in it then represents several.
//!
//! The rate of samples may change over a run, to stay within a budget, and one sample may stand for
//! several instants that passed while the sampler had no CPU. So each sample is weighted by the
//! time that it stands for, but counts as only one observation.
//!
//! # Late samples
//!
//! A sampler that had to wait for a CPU sees the lock some time after the intended instant, and not
//! at a random one: a holder that computes occupies the CPU, and the sampler gets it when the
//! holder releases the lock. So late samples underestimate, and dropping them would drop more
//! instants at which the lock was held than others. The instants were fixed beforehand, so samples
//! on time are unbiased for their instants, and only those of the late samples are uncertain. While
//! a sampler waits, the lock changes by one hold and one waiter at most, in the direction opposite
//! to the bias of late samples: that bounds each figure. A figure whose bounds are further apart
//! than [`MAX_BIAS`] is withheld.
//!
//! # Before the lock is known
//!
//! Most locks become known when a thread is first seen waiting for them. Before that, no thread was
//! seen waiting and the word was not read, so the sampled part of the run is biased: it begins when
//! threads wait. The time before is therefore estimated from later runs of samples that saw no
//! thread waiting, with an error as large as the differences between those runs.

mod late;
mod moments;
mod stretches;
#[cfg(test)]
mod tests;

use threadtoll_stats::interval::Estimate;
use threadtoll_stats::{Z95, student};

use crate::sample::LockSample;
use crate::unwaited::Unwaited;
pub use late::MAX_BIAS;
use moments::{HELD, Moments, QUEUE, WAKING};
use stretches::{Stretch, Stretches};

/// Samples of one lock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockSamples {
    on_time: Moments,
    late: Moments,
    stretches: Stretches,
    unwaited: Unwaited,
    /// Share of the run, and number of seconds, before the word was first read.
    unknown: f64,
    unknown_s: f64,
}

/// A figure, as far as the samples allow one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// No sample shows it.
    Unknown,
    /// Late samples leave it uncertain by this much.
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

/// Held share, queue and threads being woken, with the covariance of what another stretch of the
/// program would have shown.
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
    pub fn add(&mut self, second: u64, sample: LockSample, times: u64) {
        self.add_figures(second, sample, times);
        self.unwaited.add(&sample, times);
    }

    /// Adds a sample whose queue may be on time even though the rest of the sample is late.
    pub fn add_with_queue(&mut self, second: u64, sample: LockSample, queue_late: bool) {
        if sample.late == queue_late {
            self.add(second, sample, 1);
            return;
        }
        self.add_figures(second, LockSample { queue: None, ..sample }, 1);
        let queue = LockSample { held: None, waking: None, late: queue_late, ..sample };
        self.add_figures(second, queue, 1);
        self.unwaited.add(&sample, 1);
    }

    fn add_figures(&mut self, second: u64, sample: LockSample, times: u64) {
        let figures = [sample.held.map(f64::from), sample.queue, sample.waking];
        let times = times as f64;
        let moments = if sample.late { &mut self.late } else { &mut self.on_time };
        moments.add(figures, sample, times);
        let stretch = self.stretches.at(second);
        for (i, figure) in figures.iter().enumerate() {
            if let Some(figure) = figure {
                stretch.weights[i] += sample.time * times;
                stretch.sums[i] += figure * sample.time * times;
            }
        }
    }

    /// Adds samples of a lock for which nobody waits, without its word.
    pub fn extend(&mut self, more: &LockSamples) {
        self.on_time = self.on_time.merged(&more.on_time);
        self.late = self.late.merged(&more.late);
        self.stretches.extend(&more.stretches, Stretch::add);
    }

    /// Completes these samples of a lock from `all` samples of the process: at those missing here,
    /// nobody waited for the lock, and its word was not read. For the first `unknown_s` of `run_s`
    /// seconds, the lock was not yet known.
    pub fn among(&self, all: &LockSamples, unknown_s: f64, run_s: f64) -> LockSamples {
        let unknown = if run_s > 0.0 { (unknown_s / run_s).min(1.0) } else { 0.0 };
        let mut samples = LockSamples { unknown, unknown_s, ..self.clone() };
        samples.on_time.take_thread_samples(&all.on_time);
        samples.late.take_thread_samples(&all.late);
        for stretch in &mut samples.stretches.all {
            (stretch.weights[QUEUE], stretch.weights[WAKING]) = (0.0, 0.0);
        }
        samples.stretches.extend(&all.stretches, |stretch, all| {
            stretch.weights[QUEUE] += all.weights[QUEUE];
            stretch.weights[WAKING] += all.weights[WAKING];
        });
        samples
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

    /// Mean number of threads being woken while nobody holds the lock; zero if they cannot be
    /// distinguished from running ones.
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

    /// The means for predictions; `None` if the held share or the queue is unknown.
    pub fn means(&self) -> Option<Means> {
        let (held, queue) = (self.held().known()?, self.queue().known()?);
        let values = [held.value, queue.value, self.waking().value];
        let all = self.on_time.merged(&self.late);
        let mut covariance = all.covariance();
        // A queue that no sample showed is uncertain all the same.
        let unseen = |estimate: Estimate| ((estimate.high - estimate.low) / (2.0 * Z95)).powi(2);
        for (i, estimate) in [(HELD, held), (QUEUE, queue), (WAKING, self.waking())] {
            covariance[i][i] = covariance[i][i].max(unseen(estimate));
        }
        let mut factor = Z95;
        if let Some((between, stretches)) = self.stretches.between(values) {
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
            factor = student(0.025, stretches - 1.0);
        }
        Some(Means { values, covariance, factor })
    }
}
