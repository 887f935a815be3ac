//! Limit on the CPU time that perf events cost the followed threads.

/// CPU time in nanoseconds that perf events cost a thread each time it gets or leaves a CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SwitchCosts {
    /// Cost of the record.
    pub(super) record_ns: f64,
    /// Cost of the timer for samples, which the kernel sets or cancels.
    pub(super) timer_ns: f64,
}

impl SwitchCosts {
    /// The highest costs that were measured; see the documentation of [`super`].
    pub(super) const HIGHEST: SwitchCosts = SwitchCosts { record_ns: 1_100.0, timer_ns: 1_400.0 };

    /// Half of the lowest costs that were measured. Lower ones are noise.
    const LOWEST: SwitchCosts = SwitchCosts { record_ns: 130.0, timer_ns: 100.0 };

    pub(super) fn at_least_the_lowest(self) -> SwitchCosts {
        let SwitchCosts { record_ns, timer_ns } = SwitchCosts::LOWEST;
        SwitchCosts {
            record_ns: self.record_ns.max(record_ns),
            timer_ns: self.timer_ns.max(timer_ns),
        }
    }
}

/// Part of the allowed share that records may take. Timers may take the rest: they only show what
/// running threads do, whereas most causes of waiting rest on records.
const FOR_RECORDS: f64 = 0.85;

/// Decides when switch records and samples are on. Samples are on only while records are, because
/// the records count the switches that the timers cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct SwitchBudget {
    costs: SwitchCosts,
    switches: u64,
    records: Debt,
    timers: Debt,
}

impl SwitchBudget {
    pub(super) fn new(now: u64) -> SwitchBudget {
        let none = Debt { ns: 0.0, at: now };
        SwitchBudget { costs: SwitchCosts::HIGHEST, switches: 0, records: none, timers: none }
    }

    /// Forgets all debts, which were computed with other costs.
    pub(super) fn begin_anew(&mut self, costs: SwitchCosts) {
        self.costs = costs;
        (self.records.ns, self.timers.ns) = (0.0, 0.0);
    }

    /// Returns which of records and samples may be on from now on. `on` tells which are on now, and
    /// were since the last call; `switches` is the number of records so far, and `toggling_ns` the
    /// CPU time spent on turning each on and off since the last call. `share` is a share of one
    /// CPU.
    pub(super) fn allows(
        &mut self,
        on: [bool; 2],
        share: f64,
        switches: u64,
        toggling_ns: [u64; 2],
        now: u64,
    ) -> [bool; 2] {
        let new = switches.saturating_sub(self.switches) as f64;
        self.switches = switches;
        let timers = if on[1] { new * self.costs.timer_ns } else { 0.0 } + toggling_ns[1] as f64;
        let records = new * self.costs.record_ns + toggling_ns[0] as f64;
        let records = self.records.allows(on[0], FOR_RECORDS * share, records, now);
        let timers = self.timers.allows(on[1], (1.0 - FOR_RECORDS) * share, timers, now);
        [records, records && timers]
    }
}

#[derive(Clone, Copy, Debug)]
struct Debt {
    ns: f64,
    at: u64,
}

impl Debt {
    /// Events pause once their cost exceeds the allowed share of one CPU by more than one second of
    /// that share. They resume when the excess is paid off.
    fn allows(&mut self, on: bool, share: f64, spent_ns: f64, now: u64) -> bool {
        let share_of_a_second = share * 1e9;
        let earned = share * now.saturating_sub(self.at) as f64;
        self.ns = (self.ns + spent_ns - earned).max(-share_of_a_second);
        self.at = now;
        self.ns <= 0.0 || on && self.ns <= share_of_a_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn debts_pause_events_until_they_are_paid() {
        let mut debt = Debt { ns: 0.0, at: 0 };
        let mut allows = |on, spent_ns, now| debt.allows(on, 0.01, spent_ns, now);
        assert!(allows(true, 15e6, SECOND));
        assert!(!allows(true, 16e6, SECOND + SECOND / 2));
        assert!(!allows(false, 0.0, 2 * SECOND));
        assert!(!allows(false, 0.0, 3 * SECOND));
        assert!(allows(false, 0.0, 4 * SECOND));
    }

    #[test]
    fn little_is_saved_up() {
        let mut debt = Debt { ns: 0.0, at: 0 };
        assert!(debt.allows(true, 0.01, 0.0, 100 * SECOND));
        assert!(!debt.allows(true, 0.01, 40e6, 101 * SECOND));
    }

    #[test]
    fn timers_pause_first_if_they_cost_more_and_never_run_without_records() {
        let mut budget = SwitchBudget::new(0);
        budget.begin_anew(SwitchCosts { record_ns: 500.0, timer_ns: 1_000.0 });
        let mut switches = 0;
        let mut allows = |on, new, now| {
            switches += new;
            budget.allows(on, 0.01, switches, [0; 2], now)
        };
        assert_eq!(allows([true, true], 2_000, SECOND), [true, true]);
        assert_eq!(allows([true, true], 4_000, 2 * SECOND), [true, false]);
        assert_eq!(allows([true, false], 12_000, 3 * SECOND), [true, false]);
        assert_eq!(allows([true, false], 60_000, 4 * SECOND), [false, false]);
        assert_eq!(allows([false, false], 0, 7 * SECOND), [true, true]);
    }
}
