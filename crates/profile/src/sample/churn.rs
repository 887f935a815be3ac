//! Churn of threads, which limits the age of a list of threads.
//!
//! A sample misses threads that have started since the threads were listed. If threads live for a
//! while, the missing threads do the same kind of work as the threads that have ended, but at an
//! earlier stage. So if threads of a process come and go, a sample either lists them again just
//! before it picks some, or picks some from the threads alive at that time.

/// Maximum share of the threads that may have started since the last listing.
const UNLISTED: f64 = 0.01;

const WITHIN_S: f64 = 1.0;

/// Number of new threads per second above which the threads of a process count as coming and going.
const FEWEST_PER_S: f64 = 0.01;

/// Number of a process's first samples that list its threads anew: until then, it is not known if
/// threads come and go.
const FIRST: u32 = 8;

/// Maximum number of threads that a sample lists. Among more threads, drawing one at random is
/// faster.
pub(super) const MOST_LISTED: usize = 64;

/// Maximum number of threads of which each sample examines all, in a process whose threads come and
/// go. That costs more than reading threads through cached descriptors, but makes the queue exact.
pub(super) const MOST_READ: u32 = 32;

#[derive(Debug, Default)]
pub(super) struct Churn {
    births: u64,
    births_per_s: f64,
    listed_at: u64,
    listings: u32,
}

impl Churn {
    /// Notes a listing of the threads. `births` is the number of births since the first listing.
    pub(super) fn listed(&mut self, births: u64, at: u64) {
        let new = births.saturating_sub(self.births) as f64;
        let kept = (-self.age_s(at) / WITHIN_S).exp();
        self.births_per_s = self.births_per_s * kept + new / WITHIN_S;
        (self.births, self.listed_at) = (births, at);
        self.listings = self.listings.saturating_add(1);
    }

    pub(super) fn is_list_old(&self, threads: usize, at: u64) -> bool {
        let unlisted = self.births_per_s * self.age_s(at);
        self.listings <= FIRST || unlisted > UNLISTED * threads as f64
    }

    /// Returns `true` if threads have started recently, or if that is not known yet.
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
        let (churn, at) = listed(1);
        assert!(churn.is_list_old(8, at + 2_000_000));
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
