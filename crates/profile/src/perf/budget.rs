//! Limit on the CPU time that records cost the followed threads.

/// Measured cost in nanoseconds of a record to the followed thread; see the documentation of
/// [`super`].
pub(super) const SWITCH_RECORD_NS: u64 = 260;
pub(super) const SWITCH_RECORD_WITH_SAMPLES_NS: u64 = 460;
pub(super) const SAMPLE_NS: u64 = 25_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct SwitchBudget {
    debt_ns: f64,
    cost_ns: u64,
    at: u64,
}

impl SwitchBudget {
    pub(super) fn new(now: u64) -> SwitchBudget {
        SwitchBudget { debt_ns: 0.0, cost_ns: 0, at: now }
    }

    /// Returns `true` if records may be on from now on. `on` is `true` if they are on now, and
    /// `cost_ns` is the cost of all records so far. Records pause once their cost exceeds the
    /// allowed share of one CPU by more than one second of that share. They resume when the excess
    /// is paid off.
    pub(super) fn allows(&mut self, on: bool, share: f64, cost_ns: u64, now: u64) -> bool {
        let share_of_a_second = share * 1e9;
        let earned = share * now.saturating_sub(self.at) as f64;
        let spent = cost_ns.saturating_sub(self.cost_ns) as f64;
        self.debt_ns = (self.debt_ns + spent - earned).max(-share_of_a_second);
        (self.at, self.cost_ns) = (now, cost_ns);
        self.debt_ns <= 0.0 || on && self.debt_ns <= share_of_a_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn debts_pause_records_until_they_are_paid() {
        let mut budget = SwitchBudget::new(0);
        let mut allows = |on, cost_ns, now| budget.allows(on, 0.01, cost_ns, now);
        assert!(allows(true, 15_000_000, SECOND));
        assert!(!allows(true, 31_000_000, SECOND + SECOND / 2));
        assert!(!allows(false, 31_000_000, 2 * SECOND));
        assert!(!allows(false, 31_000_000, 3 * SECOND));
        assert!(allows(false, 31_000_000, 4 * SECOND));
    }

    #[test]
    fn little_is_saved_up() {
        let mut budget = SwitchBudget::new(0);
        assert!(budget.allows(true, 0.01, 0, 100 * SECOND));
        assert!(!budget.allows(true, 0.01, 40_000_000, 101 * SECOND));
    }
}
