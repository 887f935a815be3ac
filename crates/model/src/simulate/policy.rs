//! Who gets a lock that is let go of, and how long it takes until she runs.

use crate::ModelError;
use crate::error::time;

/// What a lock does with threads that find it held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The lock is handed to the thread that has waited longest; nobody overtakes.
    Fifo,
    /// The lock is let go of and the thread that has waited longest is woken; until it runs,
    /// whoever comes by takes the lock, and the woken one waits again, behind the others.
    Barging,
    /// As [`Barging`](Self::Barging), but a thread first looks at the lock for a while, unless
    /// somebody sleeps for it already. (So do the mutexes of Rust's standard library and of
    /// parking_lot.)
    SpinThenPark {
        /// For how long it looks, in nanoseconds.
        spin_ns: f64,
        /// From the moment the lock is let go of until a thread that looks at it has it, in
        /// nanoseconds.
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

/// How long it takes from waking a thread until it runs, by how long its CPU has idled.
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
    /// Idle time and hand-off time, in order of the former; never empty.
    points: Vec<(f64, f64)>,
}

impl HandOff {
    /// Always this long, in nanoseconds.
    ///
    /// # Errors
    ///
    /// If it is no time.
    pub fn fixed(ns: f64) -> Result<Self, ModelError> {
        Ok(Self { points: vec![(0.0, time("hand-off", ns)?)] })
    }

    /// Free.
    pub fn free() -> Self {
        Self { points: vec![(0.0, 0.0)] }
    }

    /// Measured pairs of idle time and hand-off time, both in nanoseconds. Between two points it is
    /// read along the logarithm of the idle time, beyond them it stays as it is at the outermost.
    ///
    /// # Errors
    ///
    /// If there is no point, or a figure is no time.
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

    /// Hand-off time in nanoseconds after the CPU has idled for `idle_ns`.
    pub fn after(&self, idle_ns: f64) -> f64 {
        let next = self.points.partition_point(|&(idle, _)| idle <= idle_ns);
        let (Some(&below), Some(&above)) =
            (self.points.get(next.wrapping_sub(1)), self.points.get(next))
        else {
            return self.points[next.saturating_sub(1)].1;
        };
        // A point at zero has no logarithm: from there the curve is straight.
        let share = if below.0 > 0.0 {
            (idle_ns / below.0).ln() / (above.0 / below.0).ln()
        } else {
            idle_ns / above.0
        };
        below.1 + share * (above.1 - below.1)
    }

    /// The longest, in nanoseconds.
    pub fn longest_ns(&self) -> f64 {
        self.points.iter().fold(0.0, |longest, &(_, hand_off)| hand_off.max(longest))
    }

    /// The shortest, in nanoseconds.
    pub fn shortest_ns(&self) -> f64 {
        self.points.iter().fold(f64::INFINITY, |shortest, &(_, hand_off)| hand_off.min(shortest))
    }
}
