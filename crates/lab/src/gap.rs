//! Time that vanished from a spinning end: what a spinning observer on its CPU sees.

use threadtoll_record::upper_median;

/// A stretch that took this much longer than the median one had a gap in it. Shorter ones cannot be
/// told from an exchange that the caches delayed.
const GAP_PS: u64 = 10_000_000;

/// The time in picoseconds by which stretches exceeded the median, of those that did so by a gap.
pub(crate) fn vanished_ps(stretches: &[u64]) -> u64 {
    let median = upper_median(&mut stretches.to_vec(), u64::cmp).unwrap_or(0);
    stretches
        .iter()
        .map(|stretch| stretch.saturating_sub(median))
        .filter(|excess| *excess >= GAP_PS)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_excess_beyond_a_gap_counts() {
        let mut stretches = vec![5_000_000; 100];
        assert_eq!(vanished_ps(&stretches), 0);
        stretches[3] += GAP_PS - 1;
        assert_eq!(vanished_ps(&stretches), 0);
        stretches[7] += 40_000_000;
        assert_eq!(vanished_ps(&stretches), 40_000_000);
        assert_eq!(vanished_ps(&[]), 0);
    }
}
