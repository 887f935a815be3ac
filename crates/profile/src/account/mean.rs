//! Means over the time of a run, estimated from samples taken at random times.
//!
//! The sampling rate changes during a run, to stay within the CPU budget. In a period of constant
//! rate (a stretch), samples are treated as independent and uniform in time: the mean of their
//! values estimates the mean over that stretch, with the usual variance. Stretches are combined by
//! weighting each with its length (stratified sampling). The resulting interval is for the mean of
//! *this run*; the means of other runs may differ by more.

/// Number of samples in a stretch.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleCount {
    samples: u32,
    w: f64,
    w2: f64,
}

impl SampleCount {
    /// Counts a sample that stands for `times` scheduled samples: itself, and those missed since
    /// the previous sample.
    pub fn add(&mut self, times: u32) {
        self.samples += 1;
        self.w += f64::from(times);
        self.w2 += f64::from(times) * f64::from(times);
    }

    /// Returns `true` if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Fraction of the scheduled samples behind `all` that these samples stand for.
    pub fn share_of(&self, all: &SampleCount) -> f64 {
        if all.w > 0.0 { self.w / all.w } else { 0.0 }
    }

    fn extend(&mut self, other: &SampleCount) {
        self.samples += other.samples;
        self.w += other.w;
        self.w2 += other.w2;
    }
}

/// A period of constant sampling rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stretch {
    length: f64,
    samples: SampleCount,
}

const MIN_SAMPLES: u32 = 8;

/// The stretches over which means are taken.
#[derive(Clone, Debug, Default)]
pub struct Stretches {
    length: f64,
    samples: f64,
    current: Stretch,
}

impl Stretches {
    /// Ends a stretch. `length` may have any unit, if all stretches have the same. Returns `None`
    /// if there are too few samples: the stretch is then merged with the next. Pass a returned
    /// stretch to `Mean::end_stretch` of every mean that has changed since the previous stretch was
    /// returned.
    pub fn end_stretch(&mut self, length: f64, samples: &SampleCount) -> Option<Stretch> {
        self.current.length += length;
        self.current.samples.extend(samples);
        if self.current.samples.samples < MIN_SAMPLES {
            return None;
        }
        let ended = std::mem::take(&mut self.current);
        self.add(&ended);
        Some(ended)
    }

    /// Total length of the stretches.
    pub fn length(&self) -> f64 {
        self.length + self.current.length
    }

    fn add(&mut self, stretch: &Stretch) {
        self.length += stretch.length;
        self.samples += stretch.samples.w * stretch.samples.w / stretch.samples.w2;
    }
}

/// The mean of one quantity, accumulated sample by sample. Values of zero need not be added.
#[derive(Clone, Debug, Default)]
pub struct Mean {
    ended: Sum,
    current: Sums,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Sum of length × mean over the stretches.
    sum: f64,
    /// Sum of length² × variance of a stretch's mean over the stretches.
    variance: f64,
}

/// Sums over samples with value `x` and weight `w`. The weight is the number of scheduled samples
/// that a sample stands for. In the variance, a sample counts as one observation whatever its
/// weight.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    wx: f64,
    w2x: f64,
    w2x2: f64,
}

/// An estimated mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanEstimate {
    /// Estimated mean.
    pub mean: f64,
    /// Standard error of `mean` as an estimate of the mean over this run.
    pub error: f64,
    /// Effective number of independent samples behind the estimate. It is below the actual number
    /// if some samples weigh more than others.
    pub samples: f64,
}

impl Mean {
    /// Adds a sample's value. The sample stands for `times` scheduled samples.
    pub fn add(&mut self, value: f64, times: u32) {
        let weight = f64::from(times);
        let sums = &mut self.current;
        sums.wx += weight * value;
        sums.w2x += weight * weight * value;
        sums.w2x2 += weight * weight * value * value;
    }

    /// Returns `true` if no value other than zero has been added since the last stretch ended.
    pub fn is_unchanged(&self) -> bool {
        self.current.w2x2 == 0.0
    }

    /// Adds the values of a stretch that has ended.
    pub fn end_stretch(&mut self, stretch: &Stretch) {
        if !self.is_unchanged() {
            self.ended.add(&std::mem::take(&mut self.current), stretch);
        }
    }

    /// Estimates the mean over these stretches. Returns `None` if they have no samples.
    pub fn estimate(&self, over: &Stretches) -> Option<MeanEstimate> {
        let (mut all, mut over) = (self.ended, over.clone());
        let rest = over.current;
        if rest.samples.samples > 0 {
            all.add(&self.current, &rest);
            over.add(&rest);
        }
        if over.length == 0.0 {
            return None;
        }
        let mean = all.sum / over.length;
        Some(MeanEstimate { mean, error: all.variance.sqrt() / over.length, samples: over.samples })
    }
}

impl Sum {
    fn add(&mut self, sums: &Sums, stretch: &Stretch) {
        let Stretch { length, samples } = stretch;
        let mean = sums.wx / samples.w;
        // Weighted squared deviations from the mean, with Bessel's correction.
        let about = sums.w2x2 - 2.0 * mean * sums.w2x + mean * mean * samples.w2;
        let number = f64::from(samples.samples);
        let correction = if number > 1.0 { number / (number - 1.0) } else { 1.0 };
        let variance = correction * about.max(0.0) / (samples.w * samples.w);
        self.sum += length * mean;
        self.variance += length * length * variance;
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[derive(Default)]
    struct Taken {
        mean: Mean,
        stretches: Stretches,
        samples: SampleCount,
    }

    impl Taken {
        fn add(&mut self, value: f64, times: u32) {
            self.samples.add(times);
            self.mean.add(value, times);
        }

        fn end_stretch(&mut self, length: f64) {
            let samples = std::mem::take(&mut self.samples);
            if let Some(ended) = self.stretches.end_stretch(length, &samples) {
                self.mean.end_stretch(&ended);
            }
        }

        fn estimate(&self) -> Option<MeanEstimate> {
            self.mean.estimate(&self.stretches)
        }
    }

    fn holds(random: &mut Xoshiro256PlusPlus, length: f64) -> Vec<(f64, f64)> {
        let (mut holds, mut now) = (Vec::new(), 0.0);
        while now < length {
            let gap = -4e-3 * (1.0 - random.random::<f64>()).ln();
            let hold = 2e-3 + 6e-3 * random.random::<f64>();
            holds.push((now + gap, (now + gap + hold).min(length)));
            now += gap + hold;
        }
        holds.retain(|&(from, until)| from < until);
        holds
    }

    #[test]
    fn intervals_hold_the_share_of_the_run_in_95_of_100() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let (runs, mut within) = (400, 0);
        for _ in 0..runs {
            let holds = holds(&mut random, 4.0);
            let truth = holds.iter().map(|(from, until)| until - from).sum::<f64>() / 4.0;
            let mut mean = Taken::default();
            for (stretch, rate) in [200.0, 500.0, 100.0, 300.0].into_iter().enumerate() {
                let mut now = stretch as f64;
                loop {
                    now -= (1.0 - random.random::<f64>()).ln() / rate;
                    if now >= stretch as f64 + 1.0 {
                        break;
                    }
                    let held = holds.iter().any(|&(from, until)| from <= now && now < until);
                    mean.add(f64::from(u8::from(held)), 1);
                }
                mean.end_stretch(1.0);
            }
            let estimate = mean.estimate().unwrap();
            within += u32::from((estimate.mean - truth).abs() <= 1.96 * estimate.error);
        }
        let share = f64::from(within) / f64::from(runs);
        assert!((0.92..=0.98).contains(&share), "{share}");
    }

    #[test]
    fn stretches_count_by_their_lengths_and_not_by_their_samples() {
        let mut mean = Taken::default();
        for _ in 0..1_000 {
            mean.add(1.0, 1);
        }
        mean.end_stretch(1.0);
        for _ in 0..10 {
            mean.add(0.0, 1);
        }
        mean.end_stretch(3.0);
        assert_eq!(mean.estimate().unwrap().mean, 0.25);
    }

    #[test]
    fn a_sample_that_answers_many_times_tells_no_more_than_one() {
        let (mut single, mut many) = (Taken::default(), Taken::default());
        for sample in 0..100 {
            single.add(f64::from(sample % 2), 1);
            many.add(f64::from(sample % 2), 7);
        }
        single.end_stretch(1.0);
        many.end_stretch(1.0);
        assert_eq!(single.estimate(), many.estimate());
        assert_eq!(many.estimate().unwrap().samples, 100.0);
    }

    #[test]
    fn means_over_stretches_without_anything_need_not_be_told() {
        let mut stretches = Stretches::default();
        let (mut told, mut untold) = (Mean::default(), Mean::default());
        for stretch in 1..8 {
            let mut samples = SampleCount::default();
            for sample in 0..stretch * 3 {
                let times = sample % 2 + 1;
                samples.add(times);
                let value = if stretch == 4 { f64::from(sample % 3) } else { 0.0 };
                [&mut told, &mut untold].into_iter().for_each(|mean| mean.add(value, times));
            }
            let Some(ended) = stretches.end_stretch(1.0, &samples) else { continue };
            told.end_stretch(&ended);
            if !untold.is_unchanged() {
                untold.end_stretch(&ended);
            }
        }
        let estimate = untold.estimate(&stretches).unwrap();
        assert_eq!(told.estimate(&stretches), Some(estimate));
        // In the fourth of seven stretches, the weights and the weighted values both sum to 18.
        assert!((estimate.mean - 18.0 / 18.0 / 7.0).abs() < 1e-12, "{estimate:?}");
    }

    #[test]
    fn a_stretch_of_few_samples_goes_on_into_the_next() {
        let mut mean = Taken::default();
        assert_eq!(mean.estimate(), None);
        mean.add(1.0, 1);
        mean.end_stretch(1.0);
        for _ in 0..10 {
            mean.add(0.0, 1);
        }
        mean.end_stretch(1.0);
        let estimate = mean.estimate().unwrap();
        assert!((estimate.mean - 1.0 / 11.0).abs() < 1e-12, "{estimate:?}");
    }
}
