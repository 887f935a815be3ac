//! Sums up the samples of one lock, and derives figures from them.
//!
//! Held share, queue and hand-offs are averages over samples at random times, one in each of many
//! equal spans. Confidence intervals are computed as for independent times, so they are too wide
//! for any figure that stays constant for longer than a span. A sample may show only a random
//! subset of the threads; each waiter in it then counts as several.
//!
//! The rate of samples may change over a run, to stay within a budget. One sample may stand for
//! several instants that passed while the sampler had no CPU. So each sample is weighted by the
//! time for which it stands, but counts as a single observation.
//!
//! # Late samples
//!
//! A sampler that has to wait for a CPU sees the lock too late, and not at a random instant: a
//! holder that computes occupies the CPU, and the sampler gets the CPU when the holder releases the
//! lock. So late samples show the lock held too rarely. Dropping them would not help, because they
//! stand mostly for instants at which the lock was held.
//!
//! The instants were fixed beforehand, so samples on time are unbiased for their instants, and only
//! the late samples are uncertain. While a sampler waits, the lock changes by at most one hold and
//! one waiter, in the direction opposite to the bias of late samples. This bounds each figure. A
//! figure whose bounds are further apart than [`MAX_BIAS`] is withheld.
//!
//! # Before the lock is known
//!
//! Most locks become known when a thread is first seen waiting for them. Before that, the word was
//! not read. So the sampled part of the run is biased: it begins when threads wait. The time before
//! is estimated from later sequences of samples in which no thread waited. Its error is as large as
//! the differences between those sequences.

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
    /// Share of the run before the word was first read; `unknown_s` is that time in seconds.
    unknown: f64,
    unknown_s: f64,
    /// The queue, if it does not come from these samples.
    given_queue: Option<Estimate>,
}

/// A figure, if the samples support one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// No sample contains the figure.
    Unknown,
    /// Late samples make the figure uncertain by this much.
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

/// Means of held share, queue and woken threads. Their covariance covers the variation over the
/// run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    /// Held share, mean queue, and mean number of threads being woken while nobody holds the lock.
    pub values: [f64; 3],
    /// Covariance of the means.
    pub covariance: [[f64; 3]; 3],
    /// Half-width of a 95% interval, in standard errors.
    pub factor: f64,
}

impl LockSamples {
    /// Adds `times` equal samples, taken in this second of the run.
    pub fn add(&mut self, second: u64, sample: LockSample, times: u64) {
        self.add_figures(second, sample, times);
        self.unwaited.add(&sample, times);
    }

    /// Adds a sample in which the queue may be late although the rest is on time, or the reverse.
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

    /// Adds samples in which nobody waited for the lock, and its word was not read.
    pub fn extend(&mut self, more: &LockSamples) {
        self.on_time = self.on_time.merged(&more.on_time);
        self.late = self.late.merged(&more.late);
        self.stretches.extend(&more.stretches, Stretch::add);
    }

    /// Completes these samples of a lock by the samples of the process (`all`) that are missing
    /// here: in those, nobody waited for the lock, and its word was not read. The lock was unknown
    /// for the first `unknown_s` of `run_s` seconds.
    pub fn among(&self, all: &LockSamples, unknown_s: f64, run_s: f64) -> LockSamples {
        let unknown = share_of_run(unknown_s, run_s);
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

    /// Completes these samples, which do not show who waits, by an estimate of the queue. The lock
    /// was unknown for the first `unknown_s` of `run_s` seconds.
    #[must_use]
    pub fn with_queue(&self, queue: Option<Estimate>, unknown_s: f64, run_s: f64) -> LockSamples {
        let unknown = share_of_run(unknown_s, run_s);
        LockSamples { unknown, unknown_s, given_queue: queue, ..self.clone() }
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
        self.given_queue.map_or_else(|| self.figure(QUEUE), Figure::Known)
    }

    /// Mean number of threads being woken while nobody holds the lock; zero if woken threads cannot
    /// be told from running ones.
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
        // A figure that is zero in all samples is uncertain all the same.
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

fn share_of_run(unknown_s: f64, run_s: f64) -> f64 {
    if run_s > 0.0 { (unknown_s / run_s).min(1.0) } else { 0.0 }
}
