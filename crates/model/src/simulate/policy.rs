//! Policies that decide which thread gets a released lock, and the time until that thread runs.

use crate::ModelError;
use crate::error::time;

/// Order in which waiting threads get a lock, and their way of waiting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The lock is handed to the thread that has waited longest.
    Fifo,
    /// The lock is released, and the thread that has waited longest is woken. Until it runs, any
    /// other thread may take the lock; the woken thread then waits again, behind the others.
    Barging,
    /// Like [`Barging`](Self::Barging), but a thread spins first, unless another thread is parked.
    /// The mutexes of Rust's standard library and of parking_lot do this.
    SpinThenPark {
        /// Time for which the thread spins, in nanoseconds.
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

/// Costs of a wake-up, which depend on the idle time of the woken thread's CPU. They are the
/// hand-off time (until the woken thread runs), and the time that the waking thread spends.
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
    hand_off: Curve,
    wake_cost: Curve,
}

impl HandOff {
    /// A hand-off that always takes `ns` nanoseconds, and costs the waking thread nothing.
    ///
    /// # Errors
    ///
    /// If `ns` is not a valid time.
    pub fn fixed(ns: f64) -> Result<Self, ModelError> {
        Self::curve(&[(0.0, ns)])
    }

    /// A free hand-off.
    pub fn free() -> Self {
        Self { hand_off: Curve::zero(), wake_cost: Curve::zero() }
    }

    /// A hand-off from measured pairs of idle time and hand-off time, in nanoseconds. Between the
    /// points, the hand-off time is interpolated linearly in the logarithm of the idle time. Beyond
    /// the outermost points, it is constant.
    ///
    /// # Errors
    ///
    /// If there is no point, or a time is not valid.
    pub fn curve(points: &[(f64, f64)]) -> Result<Self, ModelError> {
        Ok(Self { hand_off: Curve::new("hand-off", points)?, wake_cost: Curve::zero() })
    }

    /// Adds a cost to the waking thread, which spends it after it has released the lock. `points`
    /// are measured pairs of idle time and cost, in nanoseconds, interpolated like hand-off times.
    ///
    /// # Errors
    ///
    /// If there is no point, or a time is not valid.
    pub fn with_wake_cost(self, points: &[(f64, f64)]) -> Result<Self, ModelError> {
        Ok(Self { wake_cost: Curve::new("cost of a wake-up", points)?, ..self })
    }

    /// Hand-off time in nanoseconds, if the CPU was idle for `idle_ns`.
    pub fn after(&self, idle_ns: f64) -> f64 {
        self.hand_off.at(idle_ns)
    }

    /// Cost to the waking thread in nanoseconds, if the CPU was idle for `idle_ns`.
    pub fn wake_cost(&self, idle_ns: f64) -> f64 {
        self.wake_cost.at(idle_ns)
    }

    /// Returns `true` if a wake-up costs neither thread any time.
    pub fn is_free(&self) -> bool {
        self.hand_off.times().chain(self.wake_cost.times()).all(|time| time == 0.0)
    }

    /// Shortest hand-off time, in nanoseconds.
    pub fn shortest_ns(&self) -> f64 {
        self.hand_off.times().fold(f64::INFINITY, f64::min)
    }
}

/// A time that depends on the idle time of a CPU.
#[derive(Clone, Debug, PartialEq)]
struct Curve {
    /// Pairs of idle time and resulting time, sorted by idle time; never empty.
    points: Vec<(f64, f64)>,
}

impl Curve {
    fn zero() -> Self {
        Self { points: vec![(0.0, 0.0)] }
    }

    fn new(what: &'static str, points: &[(f64, f64)]) -> Result<Self, ModelError> {
        if points.is_empty() {
            return Err(ModelError::TooFew {
                what: "points of the hand-off curve",
                least: 1,
                given: 0,
            });
        }
        let mut points = points
            .iter()
            .map(|&(idle, ns)| Ok((time("idle time", idle)?, time(what, ns)?)))
            .collect::<Result<Vec<_>, _>>()?;
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Ok(Self { points })
    }

    fn times(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|&(_, time)| time)
    }

    fn at(&self, idle_ns: f64) -> f64 {
        let next = self.points.partition_point(|&(idle, _)| idle <= idle_ns);
        let (Some(&below), Some(&above)) =
            (self.points.get(next.wrapping_sub(1)), self.points.get(next))
        else {
            return self.points[next.saturating_sub(1)].1;
        };
        // Zero has no logarithm. From a point at zero, the interpolation is linear in the idle
        // time.
        let share = if below.0 > 0.0 {
            (idle_ns / below.0).ln() / (above.0 / below.0).ln()
        } else {
            idle_ns / above.0
        };
        below.1 + share * (above.1 - below.1)
    }
}
