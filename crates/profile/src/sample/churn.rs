//! Churn of threads, and how old a list of them may be.
//!
//! A sample misses threads that have begun since the threads were listed. If threads live for a
//! while, the missing ones do the same kind of work as those that have ended, but at an earlier
//! stage. So for processes whose threads come and go, a sample either lists them again just before
//! it picks some, or picks some from the threads alive at that moment.

/// Largest share of the threads that may have begun since they were listed.
const UNLISTED: f64 = 0.01;

/// Time over which births of threads are averaged, in seconds.
const WITHIN_S: f64 = 1.0;

/// Threads of a process are taken to come and go if more than this number begin per second.
const FEWEST_PER_S: f64 = 0.01;

/// Number of a process's first samples that list its threads anew, because it is not yet known
/// whether they come and go.
const FIRST: u32 = 8;

/// Maximum number of threads that a sample lists. If there are more, drawing one at random takes
/// less time.
pub(super) const MOST_LISTED: usize = 64;

/// Maximum number of threads of a churning process for which each sample examines all of them. That
/// costs more than reading threads through cached descriptors, but the queue is then exact, not an
/// estimate.
pub(super) const MOST_READ: u32 = 32;

/// Rate at which threads of a process begin.
#[derive(Debug, Default)]
pub(super) struct Churn {
    births: u64,
    births_per_s: f64,
    listed_at: u64,
    listings: u32,
}

impl Churn {
    /// Notes a listing of the threads, and the number of births since the first listing.
    pub(super) fn listed(&mut self, births: u64, at: u64) {
        let new = births.saturating_sub(self.births) as f64;
        let kept = (-self.age_s(at) / WITHIN_S).exp();
        self.births_per_s = self.births_per_s * kept + new / WITHIN_S;
        (self.births, self.listed_at) = (births, at);
        self.listings = self.listings.saturating_add(1);
    }

    /// Returns `true` if too many of these threads may have begun since they were listed.
    pub(super) fn is_list_old(&self, threads: usize, at: u64) -> bool {
        let unlisted = self.births_per_s * self.age_s(at);
        self.listings <= FIRST || unlisted > UNLISTED * threads as f64
    }

    /// Returns `true` if threads have begun recently, or if that is not known yet.
    pub(super) fn come_and_go(&self) -> bool {
        self.listings <= FIRST || self.births_per_s > FEWEST_PER_S
    }

    fn age_s(&self, at: u64) -> f64 {
        at.saturating_sub(self.listed_at) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists threads every 10 ms for a second, of which this many begin between two listings.
    fn listed(new: u64) -> (Churn, u64) {
        let mut churn = Churn::default();
        let at = |listing: u64| 10_000_000 * listing;
        (1..=100).for_each(|listing| churn.listed(new * (listing - 1), at(listing)));
        (churn, at(100))
    }

    #[test]
    fn threads_that_live_long_are_not_listed_at_each_sample() {
        let (churn, at) = listed(0);
        assert!(!churn.is_list_old(8, at + 1_000_000_000));
    }

    #[test]
    fn threads_that_come_and_go_are_listed_at_each_sample() {
        // Eight threads, of which each lives for 80 ms.
        let (churn, at) = listed(1);
        assert!(churn.is_list_old(8, at + 2_000_000));
        // A thousand of them, which live for 10 s.
        assert!(!churn.is_list_old(1_000, at + 10_000_000));
        assert!(churn.is_list_old(1_000, at + 200_000_000));
    }

    #[test]
    fn threads_are_listed_until_it_is_known_if_they_come_and_go() {
        let mut churn = Churn::default();
        churn.listed(0, 1);
        assert!(churn.is_list_old(8, 2));
    }
}
