//! Policies that decide who gets a released lock, and the time until that thread runs.

use crate::ModelError;
use crate::error::time;

/// Treatment of threads that find a lock held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The lock is handed to the thread that has waited longest.
    Fifo,
    /// The lock is released and the thread that has waited longest is woken. Until it runs any
    /// other thread may take the lock; the woken thread then waits again, behind the others.
    Barging,
    /// As [`Barging`](Self::Barging), but a thread spins first, unless another is parked. (As in
    /// the mutexes of Rust's standard library and of parking_lot.)
    SpinThenPark {
        /// Time for which it spins, in nanoseconds.
        spin_ns: f64,
        /// Time from the release until a spinning thread has the lock, in nanoseconds.
        takeover_ns: f64,
    },
}

impl Policy {
    pub(crate) fn check(self) -> Result<Self, ModelError> {
        if let Self::SpinThenPark { spin_ns, takeover_ns } = self {
            time("spin time", spin_ns)?;
            time("takeover time", takeover_ns)?;
        }
        Ok(self)
    }
}

/// Time from waking a thread until it runs, by the idle time of its CPU.
///
/// ```
/// use threadtoll_model::HandOff;
///
/// let measured = HandOff::curve(&[(1e3, 5e3), (1e5, 15e3)])?;
/// assert_eq!(measured.after(1e4), 10e3);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HandOff {
    /// Pairs of idle time and hand-off time, ordered by idle time; never empty.
    points: Vec<(f64, f64)>,
}

impl HandOff {
    /// A constant, in nanoseconds.
    ///
    /// # Errors
    ///
    /// If it is not a valid time.
    pub fn fixed(ns: f64) -> Result<Self, ModelError> {
        Ok(Self { points: vec![(0.0, time("hand-off", ns)?)] })
    }

    /// A free hand-off.
    pub fn free() -> Self {
        Self { points: vec![(0.0, 0.0)] }
    }

    /// Measured pairs of idle time and hand-off time, in nanoseconds; interpolated along the
    /// logarithm of the idle time, and constant beyond the outermost points.
    ///
    /// # Errors
    ///
    /// If there is no point, or a time is not valid.
    pub fn curve(points: &[(f64, f64)]) -> Result<Self, ModelError> {
        if points.is_empty() {
            return Err(ModelError::TooFew {
                what: "points of the hand-off curve",
                least: 1,
                given: 0,
            });
        }
        let mut points = points
            .iter()
            .map(|&(idle, hand_off)| Ok((time("idle time", idle)?, time("hand-off", hand_off)?)))
            .collect::<Result<Vec<_>, _>>()?;
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Ok(Self { points })
    }

    /// Hand-off time in nanoseconds after the CPU was idle for `idle_ns`.
    pub fn after(&self, idle_ns: f64) -> f64 {
        let next = self.points.partition_point(|&(idle, _)| idle <= idle_ns);
        let (Some(&below), Some(&above)) =
            (self.points.get(next.wrapping_sub(1)), self.points.get(next))
        else {
            return self.points[next.saturating_sub(1)].1;
        };
        // A point at zero has no logarithm: interpolate linearly.
        let share = if below.0 > 0.0 {
            (idle_ns / below.0).ln() / (above.0 / below.0).ln()
        } else {
            idle_ns / above.0
        };
        below.1 + share * (above.1 - below.1)
    }

    /// Longest hand-off time, in nanoseconds.
    pub fn longest_ns(&self) -> f64 {
        self.points.iter().fold(0.0, |longest, &(_, hand_off)| hand_off.max(longest))
    }

    /// Shortest hand-off time, in nanoseconds.
    pub fn shortest_ns(&self) -> f64 {
        self.points.iter().fold(f64::INFINITY, |shortest, &(_, hand_off)| hand_off.min(shortest))
    }
}
