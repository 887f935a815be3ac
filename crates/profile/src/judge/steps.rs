//! How much less a mean errs than independent samples would let it.
//!
//! Of times drawn one from each of many equal spans, a mean errs by what the figure varies within a
//! span only (stratified sampling: W. G. Cochran, *Sampling Techniques*, 3rd ed., 5.3). Half the
//! mean square of the steps from each sample to the next shows how much it varies over a distance
//! of one span on average, and of the steps to the next but one over two (J. von Neumann et al.,
//! *The mean square successive difference*, Ann. Math. Statist. 12, 1941). Two times within one
//! span are a third of it apart on average: a line through both leads there. A variation that grows
//! ever more slowly with distance, as that of states that come and go does, lies below the line.

/// Sums over the samples of one figure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Steps {
    samples: f64,
    sum: f64,
    squares: f64,
    /// Pairs of samples that are one and two looks apart, but for those of two zeros that were
    /// left out, and the sums of their squared differences.
    pairs: [f64; 2],
    steps: [f64; 2],
    zeros: f64,
    /// Number of the last look, and what it and the one before it showed.
    look: u64,
    last: [Option<f64>; 2],
}

impl Steps {
    /// Adds what a look showed. Those left out in between are no part of the sample.
    pub(super) fn add(&mut self, look: u64, value: f64) {
        if look != self.look.saturating_add(1) {
            self.last = [None; 2];
        }
        self.look = look;
        self.samples += 1.0;
        self.sum += value;
        self.squares += value * value;
        self.step(value);
    }

    /// Adds what a look showed. Those left out in between showed zero, and are added by
    /// [`add_zeros`](Self::add_zeros).
    pub(super) fn add_after_zeros(&mut self, look: u64, value: f64) {
        let zeros = look.saturating_sub(self.look).saturating_sub(1);
        for _ in 0..zeros.min(2) {
            self.step(0.0);
        }
        self.look = look.saturating_sub(1);
        self.add(look, value);
    }

    fn step(&mut self, value: f64) {
        for (i, last) in self.last.into_iter().enumerate() {
            if let Some(last) = last {
                self.pairs[i] += 1.0;
                self.steps[i] += (value - last).powi(2);
            }
        }
        self.last = [Some(value), self.last[0]];
    }

    /// Adds looks that showed zero.
    pub(super) fn add_zeros(&mut self, looks: f64) {
        self.samples += looks;
        self.zeros += looks;
    }

    /// Variance of the mean as a share of that of the mean of independent samples.
    pub(super) fn share_of_variance(&self) -> f64 {
        let variance = (self.squares - self.sum * self.sum / self.samples) / self.samples;
        // Where zeros were left out, all looks are neighbours.
        let pairs = self.pairs.map(|pairs| if self.zeros > 0.0 { self.samples } else { pairs });
        if pairs[1] < 1.0 || variance <= 0.0 {
            return 1.0;
        }
        let one = self.steps[0] / 2.0 / pairs[0];
        let two = self.steps[1] / 2.0 / pairs[1];
        let within = (one - 2.0 / 3.0 * (two - one)).clamp(one / 3.0, one);
        // Samples whose neighbours were left out at random count as independent.
        let neighbours = (pairs[0] / (self.samples - 1.0)).min(1.0);
        let share = neighbours * within / variance + 1.0 - neighbours;
        share.clamp(1.0 / self.samples, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(values: impl IntoIterator<Item = f64>) -> f64 {
        let mut steps = Steps::default();
        for (look, value) in (1..).zip(values) {
            steps.add(look, value);
        }
        steps.share_of_variance()
    }

    #[test]
    fn what_changes_seldom_is_known_better() {
        // Nine changes, each anywhere within a span: one sixth is the variance within it.
        let slow = share((0..1000).map(|look| f64::from(look / 100 % 2)));
        assert!((slow / (9.0 / 6.0 / 250.0) - 1.0).abs() < 0.01, "{slow}");
        assert_eq!(share((0..1000).map(|look| f64::from(look % 2))), 1.0);
        assert_eq!(share([1.0; 1000]), 1.0);
        assert_eq!(share([]), 1.0);
    }

    #[test]
    fn samples_without_neighbours_count_as_independent() {
        let mut some = Steps::default();
        for look in (0..1000).filter(|look| look % 10 < 3) {
            some.add(look, f64::from(u8::from(look < 500)));
        }
        assert!((0.3..0.4).contains(&some.share_of_variance()));
    }

    #[test]
    fn zeros_may_be_left_out() {
        let values = [0.0, 3.0, 2.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 1.0, 1.0, 1.0];
        let (mut all, mut some) = (Steps::default(), Steps::default());
        for (look, &value) in (1..).zip(values.iter().cycle().take(1200)) {
            all.add(look, value);
            if value != 0.0 {
                some.add_after_zeros(look, value);
            }
        }
        some.add_zeros(600.0);
        let (all, some) = (all.share_of_variance(), some.share_of_variance());
        assert!((all - some).abs() < 0.01 * all, "{all} {some}");
    }

    #[test]
    fn hostile_numbers_of_looks_are_survived() {
        let mut steps = Steps::default();
        for look in [u64::MAX, 0, 5, 5, 3, u64::MAX - 1, u64::MAX] {
            steps.add(look, 1.0);
            steps.add_after_zeros(look, 0.5);
        }
        assert!((0.0..=1.0).contains(&steps.share_of_variance()));
    }
}
