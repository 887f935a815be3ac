//! Intervals, and random numbers.

/// Random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence that the seed determines.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// In (0, 1].
    pub fn share(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Exponentially distributed.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -self.share().ln() * mean
    }

    /// One of these.
    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[(self.bits() % all.len() as u64) as usize]
    }
}

/// Most that a value counts in a clipped mean, as a multiple of the median.
const CLIP: f64 = 1.5;

/// Mean in which each value counts at most 1.5 times the median. `None` without values.
pub fn clipped_mean(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let most = CLIP * values.get(values.len() / 2)?;
    Some(values.iter().map(|value| value.min(most)).sum::<f64>() / values.len() as f64)
}

/// Median, and the 95% interval of the median that order statistics give (sign test). `None` with
/// fewer than 6 values, which bound nothing.
pub fn median(values: &[f64]) -> Option<(f64, [f64; 2])> {
    let n = values.len();
    if n < 6 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The largest rank below which a fair coin's heads fall with at most 2.5%.
    let mut probability = 0.5f64.powi(n as i32);
    let (mut below, mut rank) = (probability, 0);
    while below <= 0.025 {
        rank += 1;
        probability *= (n - rank + 1) as f64 / rank as f64;
        below += probability;
    }
    let middle = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
    Some((middle, [sorted[rank - 1], sorted[n - rank]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_six_lies_between_the_ends() {
        // 2 / 2^6 = 3.1% is outside: the interval of six values is all of them.
        let (middle, ends) = median(&[3.0, 1.0, 2.0, 6.0, 5.0, 4.0]).unwrap();
        assert_eq!((middle, ends), (3.5, [1.0, 6.0]));
        assert_eq!(median(&[1.0; 5]), None);
    }

    #[test]
    fn a_value_far_out_counts_like_one_nearby() {
        assert_eq!(
            clipped_mean(vec![4.0, 2.0, 1_000.0, 3.0, 4.0]),
            Some((4.0 + 2.0 + 6.0 + 3.0 + 4.0) / 5.0)
        );
        assert_eq!(clipped_mean(Vec::new()), None);
    }

    #[test]
    fn the_median_of_21_is_bounded_by_the_sixth_from_each_end() {
        let values: Vec<f64> = (1..=21).map(f64::from).collect();
        assert_eq!(median(&values), Some((11.0, [6.0, 16.0])));
    }
}
