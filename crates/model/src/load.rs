use crate::ModelError;
use crate::error::time;

/// Mean hold time and mean think time of a thread, in nanoseconds.
///
/// ```
/// use threadtoll_model::Load;
///
/// let load = Load::new(5e6, 95e6)?;
/// assert_eq!(load.hold_share(), 0.05);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    hold_ns: f64,
    think_ns: f64,
}

impl Load {
    /// A load with these mean times in nanoseconds. One of them may be zero.
    ///
    /// # Errors
    ///
    /// If a time is negative, NaN or out of range, or if both are zero.
    pub fn new(hold_ns: f64, think_ns: f64) -> Result<Self, ModelError> {
        let load =
            Self { hold_ns: time("hold time", hold_ns)?, think_ns: time("think time", think_ns)? };
        if load.cycle_ns() == 0.0 {
            return Err(ModelError::NoTime);
        }
        Ok(load)
    }

    /// Mean time for which the lock is held, in nanoseconds.
    pub fn hold_ns(self) -> f64 {
        self.hold_ns
    }

    /// Mean time outside the lock, in nanoseconds.
    pub fn think_ns(self) -> f64 {
        self.think_ns
    }

    /// Hold and think time together, in nanoseconds: the time per task of a thread that never
    /// waits.
    pub fn cycle_ns(self) -> f64 {
        self.hold_ns + self.think_ns
    }

    /// Share of time for which a single thread holds the lock (H), 0 to 1.
    pub fn hold_share(self) -> f64 {
        self.hold_ns / self.cycle_ns()
    }
}
