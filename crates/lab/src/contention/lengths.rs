use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_record::Spread;

/// Number of steps drawn for a thread, which repeats them in a cycle.
pub(crate) const STEPS: usize = 2048;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// Think time in units of work.
    pub(crate) think: u64,
    /// Hold time in units of work.
    pub(crate) hold: u64,
    pub(crate) stripe: u32,
    pub(crate) reads: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeDistributions {
    /// Distribution of the hold times, then of the think times.
    pub(crate) spread: [Spread; 2],
    /// Mean hold time in units of work.
    pub(crate) hold: f64,
    pub(crate) think: f64,
    pub(crate) stripes: u32,
    pub(crate) read_share: f64,
}

impl TimeDistributions {
    /// The times are the quantiles of their distribution, in random order, so their sum is exact to
    /// within a unit. Fractions of a unit carry over to the next time, because rounding would shift
    /// the mean of short times.
    pub(crate) fn draw(&self, seed: u64) -> Vec<Step> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let holds = stretches(self.spread[0], self.hold, &mut rng);
        let thinks = stretches(self.spread[1], self.think, &mut rng);
        holds
            .into_iter()
            .zip(thinks)
            .map(|(hold, think)| Step {
                think,
                hold,
                stripe: if self.stripes > 1 { rng.random_range(0..self.stripes) } else { 0 },
                reads: self.read_share > 0.0 && rng.random::<f64>() < self.read_share,
            })
            .collect()
    }
}

/// Quantiles of a distribution with this mean; their average is exactly the mean.
pub(crate) fn quantiles(spread: Spread, mean: f64, count: usize) -> Vec<f64> {
    match spread {
        Spread::Fixed => vec![mean; count],
        Spread::Exponential => {
            let middle = |at: usize| -mean * (1.0 - (at as f64 + 0.5) / count as f64).ln();
            let all: Vec<f64> = (0..count).map(middle).collect();
            // The middle quantile of a slice of the distribution differs from the mean of the
            // slice, so the values are rescaled.
            let found = all.iter().sum::<f64>() / count as f64;
            if found > 0.0 { all.iter().map(|value| value * mean / found).collect() } else { all }
        }
    }
}

fn stretches(spread: Spread, mean: f64, rng: &mut impl Rng) -> Vec<u64> {
    let mut exact = quantiles(spread, mean, STEPS);
    exact.shuffle(rng);
    let mut carried = rng.random::<f64>();
    exact
        .into_iter()
        .map(|length| {
            carried += length;
            let whole = carried.floor();
            carried -= whole;
            whole as u64
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_kept_however_short_the_stretches() {
        for spread in [Spread::Fixed, Spread::Exponential] {
            for mean in [0.0, 0.2, 1.5, 700.0, 1e7] {
                let lengths = TimeDistributions {
                    spread: [spread; 2],
                    hold: mean,
                    think: 2.0 * mean,
                    stripes: 4,
                    read_share: 0.25,
                };
                let steps = lengths.draw(7);
                let count = steps.len() as f64;
                let found = steps.iter().map(|step| step.hold as f64).sum::<f64>() / count;
                assert!((found - mean).abs() <= 1.0 / count, "{spread:?} {mean}: {found}");
                let found = steps.iter().map(|step| step.think as f64).sum::<f64>() / count;
                assert!((found - 2.0 * mean).abs() <= 1.0 / count, "{spread:?} {mean}: {found}");
                assert!(steps.iter().all(|step| step.stripe < 4));
                assert_ne!(steps, lengths.draw(8), "each thread has its own");
            }
        }
    }

    #[test]
    fn exponential_lengths_vary_as_much_as_their_mean() {
        let all = quantiles(Spread::Exponential, 100.0, STEPS);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let variance =
            all.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / all.len() as f64;
        assert!(
            (mean - 100.0).abs() < 1e-6 && (variance.sqrt() / mean - 1.0).abs() < 0.02,
            "{mean} {variance}"
        );
    }
}
