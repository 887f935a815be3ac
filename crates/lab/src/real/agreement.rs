//! Bounds on the disagreement of two CPUs' clocks.
//!
//! A message leaves at `t0` on the first clock, arrives at `t1` on the second, and is back at `t2`
//! on the first. A message cannot travel back in time, so the second clock is ahead of the first by
//! at most `t1 - t0` and behind it by at most `t2 - t1`. The minima over many exchanges bound the
//! disagreement from both sides. NTP (RFC 5905) reasons likewise, but assumes symmetric delays.

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Layout, Pause, Placement};

use crate::LabError;
use crate::mechanism::{Settings, atomic};
use crate::wrap::Unwrapped;

use super::pair::pair;
use super::passes::{Pass, Watch};
use crate::budget::PATIENCE;

const EXCHANGES: u64 = 20_000;
const WARM_UP_NS: f64 = 100_000.0;
/// Time limit for all exchanges together. Only slow exchanges reach it.
const MAX_NS: f64 = 20e6;

pub(super) fn bound_ns(clock: &Clock, first: u32, second: u32) -> Result<f64, LabError> {
    let mechanism = atomic::store::<Unwrapped>();
    let settings = Settings { payload_bytes: 8, layout: Layout::Own, pause: Pause::Off };
    let make = mechanism.maker(settings);
    let cpus = [vec![first], vec![second]];
    let mut pair = pair(clock, &mechanism.name, make, Placement::Pinned, cpus, PATIENCE)?;
    let pass = Pass {
        warm_up: clock.ticks(WARM_UP_NS),
        stretches: EXCHANGES,
        per_stretch: 1,
        length: clock.ticks(MAX_NS),
        watch: Watch::OneWay,
    };
    let report = pair.run(pass, PATIENCE)?;
    let mut ahead = i64::MAX;
    let mut behind = i64::MAX;
    for (round, arrival) in report.lead.times.windows(2).zip(&report.follow.times) {
        ahead = ahead.min(arrival.wrapping_sub(round[0]) as i64);
        behind = behind.min(round[1].wrapping_sub(*arrival) as i64);
    }
    Ok(clock.ns(bound(ahead, behind)))
}

/// Returns the largest disagreement that both bounds allow. A negative bound proves that the clocks
/// disagree by at least the bound's absolute value.
fn bound(ahead: i64, behind: i64) -> u64 {
    ahead.unsigned_abs().max(behind.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_disagree_widen_the_bound() {
        // A message takes 40 ticks each way. The second clock agrees with the first, is 100 ticks
        // ahead, or is 100 ticks behind.
        assert_eq!(bound(40, 40), 40);
        assert_eq!(bound(140, -60), 140);
        assert_eq!(bound(-60, 140), 140);
    }
}
