//! A program's clock, compared with this process's `CLOCK_MONOTONIC`.

use rustix::time::{ClockId, clock_gettime};
use threadtoll_record::StrikeReason;

use super::talk::Fault;

/// The program's clock may be off by this, beyond the time that its answer took.
const SLACK_NS: i64 = 1_000;
/// The clock that programs have to have.
const RIGHT: &str = "CLOCK_MONOTONIC";

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub(super) fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// One look at both clocks: ours before the request and after the answer, and the program's in
/// between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) before_ns: i64,
    pub(super) own_ns: i64,
    pub(super) after_ns: i64,
}

impl Look {
    /// Least time, with its sign, by which the program's clock is off.
    fn off_ns(&self) -> i64 {
        let ahead = self.own_ns.saturating_sub(self.after_ns.saturating_add(SLACK_NS));
        let behind = self.before_ns.saturating_sub(SLACK_NS).saturating_sub(self.own_ns);
        if ahead > 0 {
            ahead
        } else if behind > 0 {
            -behind
        } else {
            0
        }
    }
}

/// The first look, with which later ones are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClockCheck {
    first: Option<Look>,
}

impl ClockCheck {
    /// Checks that the program's clock is ours: its origin at first, and its rate later.
    pub(super) fn check(&mut self, look: Look) -> Result<(), Fault> {
        let off_ns = look.off_ns();
        let Some(first) = self.first else {
            if off_ns == 0 {
                self.first = Some(look);
                return Ok(());
            }
            let by = time(off_ns.unsigned_abs());
            let which = if off_ns > 0 { "ahead of" } else { "behind" };
            return Err(disagrees(format!("its clock is {by} {which} {RIGHT}")));
        };
        if off_ns == 0 {
            return Ok(());
        }
        let which = if off_ns > 0 { "gained" } else { "lost" };
        let by = time(off_ns.unsigned_abs());
        let passed = time(look.before_ns.abs_diff(first.after_ns));
        Err(disagrees(format!("its clock {which} {by} on {RIGHT} in {passed}")))
    }
}

fn disagrees(clause: String) -> Fault {
    Fault::new(StrikeReason::WrongMessage, clause)
}

fn time(ns: u64) -> String {
    match ns as f64 {
        ns if ns >= 1e9 => format!("{:.1} s", ns / 1e9),
        ns if ns >= 1e6 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.1} µs", ns / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(before_ns: i64, own_ns: i64, after_ns: i64) -> Look {
        Look { before_ns, own_ns, after_ns }
    }

    #[test]
    fn a_clock_has_to_have_our_origin_and_our_rate() {
        let mut check = ClockCheck::default();
        let ahead = check.check(look(1_000_000, 3_000_000_000, 1_200_000)).unwrap_err();
        assert_eq!(ahead.clause, "its clock is 3.0 s ahead of CLOCK_MONOTONIC");
        let behind = check.check(look(5_000_000, 1_000, 5_200_000)).unwrap_err();
        assert_eq!(behind.clause, "its clock is 5.0 ms behind CLOCK_MONOTONIC");
        check.check(look(1_000_000, 1_100_000, 1_200_000)).unwrap();
        check.check(look(2_000_000_000, 2_000_100_000, 2_000_200_000)).unwrap();
        let slow = check.check(look(4_001_200_000, 3_901_200_000, 4_001_300_000)).unwrap_err();
        assert_eq!(slow.clause, "its clock lost 100.0 ms on CLOCK_MONOTONIC in 4.0 s");
        let fast = check.check(look(4_001_200_000, 4_101_301_000, 4_001_300_000)).unwrap_err();
        assert_eq!(fast.clause, "its clock gained 100.0 ms on CLOCK_MONOTONIC in 4.0 s");
        check.check(look(i64::MAX, i64::MAX, i64::MAX)).unwrap();
    }
}
