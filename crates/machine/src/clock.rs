//! Stamps: readings of the clock inside a measurement.
//!
//! A stamp is a number of ticks. Only the difference between two stamps has a meaning, and only on
//! one machine and within one run.
//!
//! CPUs are *not* promised to agree to within a microsecond: [`Clock::gate`] only knows that the
//! kernel uses the counter as its own clock source. One-way times need a measured bound.

use std::time::SystemTime;

use thiserror::Error;
use threadtoll_record::{ClockFacts, ClockSource};

use crate::counter::{Counter, raw_ns};

/// Reason why this machine has no usable clock.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ClockRefused {
    /// `CLOCK_MONOTONIC_RAW` cannot be read.
    #[error(
        "CLOCK_MONOTONIC_RAW, against which clocks are checked, cannot be read; allow clock_gettime in the sandbox (seccomp)"
    )]
    Unreadable,
    /// The clock does not advance.
    #[error(
        "the clock {} does not advance; choose another with /sys/devices/system/clocksource/clocksource0/current_clocksource", source_name(*.clock)
    )]
    Still {
        /// The clock.
        clock: ClockSource,
    },
    /// A later stamp was smaller than an earlier one.
    #[error(
        "the clock {} went backwards by {by_ns:.0} ns; choose another with /sys/devices/system/clocksource/clocksource0/current_clocksource, or measure on another machine", source_name(*.clock)
    )]
    Backwards {
        /// The clock.
        clock: ClockSource,
        /// The step back, in nanoseconds.
        by_ns: f64,
    },
    /// The steps of the clock are too coarse for hand-offs.
    #[error(
        "the clock {} has steps of {step_ns:.0} ns, too coarse for hand-offs; choose a finer one with /sys/devices/system/clocksource/clocksource0/current_clocksource", source_name(*.clock)
    )]
    Coarse {
        /// The clock.
        clock: ClockSource,
        /// Smallest observed step of the clock, in nanoseconds.
        step_ns: f64,
    },
    /// The clock has changed its rate, or has jumped, since the gate.
    #[error(
        "the clock {} has drifted from CLOCK_MONOTONIC_RAW by {ppm:.0} ppm since the start: the machine was suspended or migrated, or its clock is unsteady; measure again", source_name(*.clock)
    )]
    Drifted {
        /// The clock.
        clock: ClockSource,
        /// Drift in parts per million.
        ppm: f64,
    },
}

fn source_name(source: ClockSource) -> &'static str {
    match source {
        ClockSource::Tsc => "tsc",
        ClockSource::Cntvct => "cntvct",
        ClockSource::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
        ClockSource::Simulated => "simulated",
    }
}

/// Maximum drift from `CLOCK_MONOTONIC_RAW` in parts per million, beyond which a run is rejected.
///
/// The calibration is accurate to a few parts per million, and NTP slews a clock by at most 500. An
/// error of 1% in a figure would be acceptable.
pub const DRIFT_LIMIT_PPM: f64 = 500.0;

/// One moment, on the counter and on `CLOCK_MONOTONIC_RAW`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) ticks: u64,
    pub(crate) raw_ns: u64,
    /// Ticks from just before to just after the reading of `CLOCK_MONOTONIC_RAW`: twice the
    /// uncertainty.
    pub(crate) width_ticks: u64,
}

impl Moment {
    /// Returns the narrowest of 32 readings, so that a short interruption has no effect.
    pub(crate) fn take(counter: Counter) -> Moment {
        let one = || {
            let before = counter.read();
            let raw_ns = raw_ns();
            let width_ticks = counter.read().saturating_sub(before);
            Moment { ticks: before + width_ticks / 2, raw_ns, width_ticks }
        };
        (0..31).fold(one(), |best, _| {
            let next = one();
            if next.width_ticks < best.width_ticks { next } else { best }
        })
    }
}

/// A clock that passed the gate.
///
/// ```
/// use threadtoll_machine::Clock;
///
/// let (clock, facts) = Clock::gate()?;
/// let before = clock.stamp();
/// let after = clock.stamp();
/// println!("{} ns, to the nearest {} ns", clock.ns(after - before), facts.step_ns);
/// # Ok::<(), threadtoll_machine::ClockRefused>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    counter: Counter,
    tick_ns: f64,
    /// Picoseconds per tick, as a fixed-point number with 32 fractional bits.
    tick_ps_fixed: u64,
    /// True if the gate found that `rdtscp` reports the CPU.
    aux_names_cpu: bool,
    origin: Moment,
}

impl Clock {
    pub(crate) fn new(
        counter: Counter,
        tick_ns: f64,
        aux_names_cpu: bool,
        origin: Moment,
    ) -> Clock {
        let tick_ps_fixed = (tick_ns * 1e3 * (1u64 << 32) as f64).round() as u64;
        Clock { counter, tick_ns, tick_ps_fixed, aux_names_cpu, origin }
    }

    /// The current time in ticks, ordered among other instructions as `counter.rs` describes.
    #[inline(always)]
    pub fn stamp(&self) -> u64 {
        self.counter.read()
    }

    /// The current time in ticks, and the CPU on which it was read; ordered like [`Clock::stamp`].
    ///
    /// With the time-stamp counter, one instruction reads both. Otherwise, the thread may migrate
    /// between the two readings, and the CPU is `u32::MAX` if the kernel does not report it.
    #[inline(always)]
    pub fn stamp_cpu(&self) -> (u64, u32) {
        self.counter.read_with_cpu(self.aux_names_cpu)
    }

    /// Converts a difference of stamps to nanoseconds.
    #[inline(always)]
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.tick_ns
    }

    /// Converts a difference of stamps to picoseconds, rounded down; `u64::MAX` (213 days) if it is
    /// too large.
    #[inline(always)]
    pub fn ps(&self, ticks: u64) -> u64 {
        u64::try_from((u128::from(ticks) * u128::from(self.tick_ps_fixed)) >> 32)
            .unwrap_or(u64::MAX)
    }

    /// Number of ticks in `ns` nanoseconds, rounded up.
    #[inline]
    pub fn ticks(&self, ns: f64) -> u64 {
        (ns / self.tick_ns).ceil() as u64
    }

    /// Source of the stamps.
    pub fn source(&self) -> ClockSource {
        self.counter.source()
    }

    /// Drift from `CLOCK_MONOTONIC_RAW` since the gate, in parts per million, beyond the
    /// uncertainty of the readings.
    ///
    /// # Errors
    ///
    /// [`ClockRefused::Drifted`] above [`DRIFT_LIMIT_PPM`]: discard the figures measured since the
    /// gate.
    pub fn recheck(&self, facts: &ClockFacts) -> Result<f64, ClockRefused> {
        let ppm = drift_ppm(self.origin, Moment::take(self.counter), facts.tick_ns.get());
        if ppm > DRIFT_LIMIT_PPM {
            return Err(ClockRefused::Drifted { clock: facts.source, ppm });
        }
        Ok(ppm)
    }
}

/// Drift of the counter from `CLOCK_MONOTONIC_RAW` between two moments, in parts per million.
fn drift_ppm(from: Moment, to: Moment, tick_ns: f64) -> f64 {
    // Signed, so that a counter that was reset appears to have gone backwards.
    let counted = (to.ticks as f64 - from.ticks as f64) * tick_ns;
    let passed = to.raw_ns as f64 - from.raw_ns as f64;
    let uncertain = (from.width_ticks + to.width_ticks) as f64 / 2.0 * tick_ns;
    if passed <= 0.0 {
        return if (counted - passed).abs() <= uncertain { 0.0 } else { f64::INFINITY };
    }
    ((counted - passed).abs() - uncertain).max(0.0) / passed * 1e6
}

/// Wall-clock time in nanoseconds since the Unix epoch; for dates in files, not for measuring.
pub fn unix_ns() -> i128 {
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(tick_ns: f64) -> Clock {
        Clock::new(Counter::Raw, tick_ns, false, Moment { ticks: 0, raw_ns: 0, width_ticks: 0 })
    }

    #[test]
    fn differences_convert_without_overflow() {
        let two_gigahertz_and_a_half = clock(0.4);
        assert_eq!(two_gigahertz_and_a_half.ps(0), 0);
        assert!((two_gigahertz_and_a_half.ps(5).abs_diff(2_000)) <= 1);
        assert!(
            two_gigahertz_and_a_half.ps(150_000_000_000).abs_diff(60_000_000_000_000) < 100_000
        );
        assert_eq!(clock(1.0).ps(u64::MAX), u64::MAX);
        assert_eq!(clock(1.0).ps(1), 1_000);
        assert!((clock(41.666).ns(3) - 124.998).abs() < 1e-9);
        assert_eq!(clock(0.4).ticks(1.0), 3);
    }

    #[test]
    fn drift_is_what_the_uncertainty_does_not_explain() {
        let at = |ticks, raw_ns, width_ticks| Moment { ticks, raw_ns, width_ticks };
        let start = at(1_000, 5_000, 20);
        assert_eq!(drift_ppm(start, at(2_000, 5_500, 20), 0.5), 0.0);
        assert_eq!(
            drift_ppm(start, at(2_010, 5_500, 20), 0.5),
            0.0,
            "within the width of the readings"
        );
        let second = at(1_000 + 2_002_000_000, 5_000 + 1_000_000_000, 20);
        assert!((drift_ppm(start, second, 0.5) - 1_000.0).abs() < 0.1);
        assert!(
            drift_ppm(start, at(0, 1_000_005_000, 20), 0.5) > 900_000.0,
            "a counter that was reset"
        );
        assert!(
            drift_ppm(start, at(1_000_000, 5_000, 20), 0.5).is_infinite(),
            "time stood still meanwhile"
        );
    }

    #[test]
    fn refusals_say_what_to_do() {
        let coarse =
            ClockRefused::Coarse { clock: ClockSource::MonotonicRaw, step_ns: 4_000_000.0 };
        assert_eq!(
            coarse.to_string(),
            "the clock CLOCK_MONOTONIC_RAW has steps of 4000000 ns, too coarse for hand-offs; choose a finer one \
             with /sys/devices/system/clocksource/clocksource0/current_clocksource"
        );
    }

    #[test]
    fn the_date_is_after_this_was_written() {
        assert!(unix_ns() > 1_750_000_000_000_000_000);
    }
}
