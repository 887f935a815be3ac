use threadtoll_stats::upper_median;

/// Minimum excess over the median that counts as a stall. Smaller ones may come from the caches.
const MIN_STALL_PS: u64 = 10_000_000;

/// Time that a spinning thread lost to other work, in picoseconds.
pub(crate) fn stalled_ps(stretches: &[u64]) -> u64 {
    let median = upper_median(&mut stretches.to_vec(), u64::cmp).unwrap_or(0);
    stretches
        .iter()
        .map(|stretch| stretch.saturating_sub(median))
        .filter(|excess| *excess >= MIN_STALL_PS)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_excess_is_no_stall() {
        let mut stretches = vec![5_000_000; 100];
        assert_eq!(stalled_ps(&stretches), 0);
        stretches[3] += MIN_STALL_PS - 1;
        assert_eq!(stalled_ps(&stretches), 0);
        stretches[7] += 40_000_000;
        assert_eq!(stalled_ps(&stretches), 40_000_000);
        assert_eq!(stalled_ps(&[]), 0);
    }
}
