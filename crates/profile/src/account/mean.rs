//! Means over the time of a run, from looks at random times.
//!
//! The rate of the looks changes over a run as the budget demands. Within a stretch of one rate
//! the looks are independent and uniform in time, so that the mean of what they saw estimates the
//! mean over that stretch, with the usual variance; stretches are added up by their lengths
//! (stratified sampling). The interval that follows is that of *this run's* mean; another run
//! may differ by more.

/// The mean of one quantity, being taken.
#[derive(Clone, Debug, Default)]
pub struct Mean {
    /// Of the stretches that have ended.
    ended: Ended,
    /// Of the stretch that has not.
    current: Stretch,
    /// Looks of stretches that went on into the current one, where only what differs from zero is
    /// added.
    waiting: Looks,
}

/// Number of looks of a stretch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    looks: u32,
    w: f64,
    w2: f64,
}

impl Looks {
    /// Counts a look that answers `times` due times.
    pub fn add(&mut self, times: u32) {
        self.looks += 1;
        self.w += f64::from(times);
        self.w2 += f64::from(times) * f64::from(times);
    }
}

#[derive(Clone, Debug, Default)]
struct Ended {
    length: f64,
    /// Sum of length × mean.
    sum: f64,
    /// Sum of length² × variance of the mean.
    variance: f64,
    looks: f64,
}

/// Sums over looks; a look that answers several due times counts as often (`w`), but tells no more
/// than one.
#[derive(Clone, Debug, Default)]
struct Stretch {
    length: f64,
    looks: u32,
    w: f64,
    wx: f64,
    w2: f64,
    w2x: f64,
    w2x2: f64,
}

/// A mean and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Standard error as an estimate of this run's mean.
    pub error: f64,
    /// Number of independent looks that it rests on; a look that answers several due times
    /// counts as part of one.
    pub looks: f64,
}

/// Fewest looks of a stretch: with fewer it goes on into the next one.
const MIN_LOOKS: u32 = 8;

impl Mean {
    /// Adds what a look saw that answers `times` due times.
    pub fn add(&mut self, value: f64, times: u32) {
        let weight = f64::from(times);
        let stretch = &mut self.current;
        stretch.looks += 1;
        stretch.w += weight;
        stretch.wx += weight * value;
        stretch.w2 += weight * weight;
        stretch.w2x += weight * weight * value;
        stretch.w2x2 += weight * weight * value * value;
    }

    /// Ends a stretch of `length` (in any unit, always the same) during which the rate of looks
    /// was the same.
    pub fn end_stretch(&mut self, length: f64) {
        self.current.length += length;
        if self.current.looks >= MIN_LOOKS {
            self.ended.add(&self.current);
            self.current = Stretch::default();
        }
    }

    /// Ends a stretch in which only what differed from zero was added: `all` counts every look of
    /// the stretch.
    pub fn end_sparse_stretch(&mut self, length: f64, all: &Looks) {
        let Stretch { looks, w, w2, .. } = &mut self.current;
        *looks = self.waiting.looks + all.looks;
        *w = self.waiting.w + all.w;
        *w2 = self.waiting.w2 + all.w2;
        match *looks >= MIN_LOOKS {
            true => self.waiting = Looks::default(),
            false => self.waiting = Looks { looks: *looks, w: *w, w2: *w2 },
        }
        self.end_stretch(length);
    }

    /// The mean so far; `None` without looks.
    pub fn estimate(&self) -> Option<Estimate> {
        let mut all = self.ended.clone();
        if self.current.looks > 0 {
            // A stretch that has not been told its length is as long as its share of the looks.
            let mut rest = self.current.clone();
            if rest.length == 0.0 {
                rest.length = match all.looks > 0.0 {
                    true => all.length * rest.w / all.looks,
                    false => 1.0,
                };
            }
            all.add(&rest);
        }
        if all.length == 0.0 {
            return None;
        }
        let mean = all.sum / all.length;
        Some(Estimate { mean, error: all.variance.sqrt() / all.length, looks: all.looks })
    }
}

impl Ended {
    fn add(&mut self, stretch: &Stretch) {
        let looks = f64::from(stretch.looks);
        let mean = stretch.wx / stretch.w;
        // Weighted squares about the mean, with Bessel's correction.
        let about = stretch.w2x2 - 2.0 * mean * stretch.w2x + mean * mean * stretch.w2;
        let correction = if looks > 1.0 { looks / (looks - 1.0) } else { 1.0 };
        let variance = correction * about.max(0.0) / (stretch.w * stretch.w);
        self.length += stretch.length;
        self.sum += stretch.length * mean;
        self.variance += stretch.length * stretch.length * variance;
        self.looks += stretch.w * stretch.w / stretch.w2;
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// A lock that alternates between held and free, for times that it draws.
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
            let mut mean = Mean::default();
            // The rate differs from stretch to stretch, as does what there is to see.
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
    fn stretches_count_by_their_lengths_and_not_by_their_looks() {
        let mut mean = Mean::default();
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
    fn a_look_that_answers_many_times_tells_no_more_than_one() {
        let (mut single, mut many) = (Mean::default(), Mean::default());
        for look in 0..100 {
            single.add(f64::from(look % 2), 1);
            many.add(f64::from(look % 2), 7);
        }
        single.end_stretch(1.0);
        many.end_stretch(1.0);
        assert_eq!(single.estimate(), many.estimate());
        assert_eq!(many.estimate().unwrap().looks, 100.0);
    }

    #[test]
    fn zeros_need_not_be_added() {
        let (mut dense, mut sparse) = (Mean::default(), Mean::default());
        for stretch in 1..6 {
            let mut looks = Looks::default();
            for look in 0..stretch * 3 {
                let (value, times) = (f64::from(look % 3), look % 2 + 1);
                dense.add(value, times);
                if value != 0.0 {
                    sparse.add(value, times);
                }
                looks.add(times);
            }
            dense.end_stretch(1.0);
            sparse.end_sparse_stretch(1.0, &looks);
        }
        let (dense, sparse) = (dense.estimate().unwrap(), sparse.estimate().unwrap());
        assert!((dense.mean - sparse.mean).abs() < 1e-12);
        assert!((dense.error - sparse.error).abs() < 1e-12);
        assert_eq!(dense.looks, sparse.looks);
    }

    #[test]
    fn a_stretch_of_few_looks_goes_on_into_the_next() {
        let mut mean = Mean::default();
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
