//! Answers to published claims: an interval confirms, refutes, or leaves open.

/// Result of testing a claim against one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClaimStatus {
    Confirmed,
    Refuted,
    /// The interval contains a limit.
    Open,
}

impl ClaimStatus {
    /// Tests a figure that should be at least the first limit and below the second.
    pub(crate) fn of([low, high]: [f64; 2], [least, limit]: [f64; 2]) -> ClaimStatus {
        if low >= least && high < limit {
            ClaimStatus::Confirmed
        } else if high < least || low >= limit {
            ClaimStatus::Refuted
        } else {
            ClaimStatus::Open
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            ClaimStatus::Confirmed => "yes",
            ClaimStatus::Refuted => "no",
            ClaimStatus::Open => "undecided",
        }
    }
}

/// `yes in 7, no in 6`.
pub(crate) fn counts(statuses: &[ClaimStatus]) -> String {
    let counts: Vec<String> = [ClaimStatus::Confirmed, ClaimStatus::Refuted, ClaimStatus::Open]
        .into_iter()
        .map(|status| (status, statuses.iter().filter(|other| **other == status).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(status, count)| format!("{} in {count}", status.label()))
        .collect();
    counts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_confirms_refutes_or_leaves_open() {
        assert_eq!(ClaimStatus::of([1.45, 1.55], [1.4, 1.6]), ClaimStatus::Confirmed);
        assert_eq!(ClaimStatus::of([1.2, 1.39], [1.4, 1.6]), ClaimStatus::Refuted);
        assert_eq!(ClaimStatus::of([1.61, 1.7], [1.4, 1.6]), ClaimStatus::Refuted);
        assert_eq!(ClaimStatus::of([1.3, 1.5], [1.4, 1.6]), ClaimStatus::Open);
        assert_eq!(ClaimStatus::of([0.8, 0.999], [0.0, 1.0]), ClaimStatus::Confirmed);
        assert_eq!(
            ClaimStatus::of([0.8, 1.0], [0.0, 1.0]),
            ClaimStatus::Open,
            "equal to one thread is not worse"
        );
        assert_eq!(ClaimStatus::of([1.0, 1.1], [0.0, 1.0]), ClaimStatus::Refuted);
        assert_eq!(ClaimStatus::of([1.6, 2.0], [1.5, f64::INFINITY]), ClaimStatus::Confirmed);
    }

    #[test]
    fn statuses_are_counted_in_a_fixed_order() {
        let all = [ClaimStatus::Open, ClaimStatus::Confirmed, ClaimStatus::Open];
        assert_eq!(counts(&all), "yes in 1, undecided in 2");
        assert_eq!(counts(&[ClaimStatus::Refuted]), "no in 1");
    }
}
