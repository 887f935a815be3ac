//! Histogram of the delays of samples: the time from when a sample was due to when it was taken.
//!
//! Times are counted in logarithmic buckets, as in HdrHistogram. A bucket's width is at most 1/32
//! of its lower end, so quantiles take little memory however long the run is.

const BITS: u32 = 5;

/// Histogram of the delays of samples.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    samples: Vec<u64>,
    all: u64,
}

impl Lateness {
    /// Adds a sample that came `ns` nanoseconds late.
    pub fn add(&mut self, ns: u64) {
        let class = class(ns);
        if self.samples.len() <= class {
            self.samples.resize(class + 1, 0);
        }
        self.samples[class] += 1;
        self.all += 1;
    }

    /// Delay in nanoseconds that a fraction `share` of the samples does not exceed. Returns `None`
    /// if there are no samples.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((self.all as f64 * share).ceil() as u64).max(1);
        let mut until = 0;
        let reached = |samples: &u64| {
            until += samples;
            until >= rank
        };
        self.samples.iter().position(reached).map(largest)
    }
}

fn class(ns: u64) -> usize {
    // Below 64 ns, each nanosecond has its own bucket.
    let doublings = ns.checked_ilog2().unwrap_or(0).saturating_sub(BITS);
    (u64::from(doublings << BITS) + (ns >> doublings)) as usize
}

fn largest(class: usize) -> u64 {
    let doublings = (class >> BITS).saturating_sub(1);
    let steps = (class - (doublings << BITS)) as u128 + 1;
    u64::try_from((steps << doublings) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_a_class_as_wide_as_said() {
        for ns in (0..200).chain([1_000_000, 123_456_789_012, u64::MAX - 1, u64::MAX]) {
            let most = largest(class(ns));
            assert!(ns <= most && most - ns <= ns / 32, "{ns}: {most}");
        }
        assert_eq!(class(largest(77)) + 1, class(largest(77) + 1));
    }

    #[test]
    fn the_end_of_a_run_counts_as_much_as_its_beginning() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile(0.99), None);
        (0..1_000_000).for_each(|_| lateness.add(10_000));
        (0..20_000).for_each(|_| lateness.add(5_000_000));
        let near = |share, ns: u64| lateness.quantile(share).unwrap().abs_diff(ns) <= ns / 32;
        assert!(near(0.5, 10_000) && near(0.98, 10_000) && near(0.99, 5_000_000));
    }
}
