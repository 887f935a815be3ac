/// Maximum valid time, in nanoseconds: about thirty years.
pub const MAX_NS: f64 = 1e18;

/// Minimum valid time above zero, in nanoseconds. Ratios of valid times neither overflow nor
/// underflow.
pub const MIN_NS: f64 = 1e-9;

/// Maximum valid number of threads.
pub const MAX_THREADS: u32 = 10_000_000;

/// Maximum valid number of locks, stripes, cores or stations.
pub const MAX_LOCKS: u32 = 10_000_000;

/// Maximum valid number of servers of a pool, and of places to wait for them.
pub const MAX_SERVERS: u32 = 1_000_000;

/// Reason why a model has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A time is negative, NaN, or so small or large that ratios would lose precision.
    #[error("the {what} must be 0 or between {MIN_NS:e} and {MAX_NS:e} ns, not {value}")]
    Time {
        /// Name of the time.
        what: &'static str,
        /// The value given, in nanoseconds.
        value: f64,
    },
    /// Hold and think time are both zero.
    #[error("hold time and think time are both zero: there is nothing to predict")]
    NoTime,
    /// A number is zero, or beyond its limit.
    #[error("the number of {what} must be from 1 to {most}, not {value}")]
    Number {
        /// Name of the counted things.
        what: &'static str,
        /// The value given.
        value: u64,
        /// Maximum valid value.
        most: u64,
    },
    /// A figure other than a time is NaN or outside its range.
    #[error("the {what} must be {range}, not {value}")]
    Figure {
        /// Name of the figure.
        what: &'static str,
        /// The value given.
        value: f64,
        /// Valid range.
        range: &'static str,
    },
    /// Too few measured values.
    #[error("{what}: at least {least} are needed, but {given} are given")]
    TooFew {
        /// Name of the counted things.
        what: &'static str,
        /// Number needed.
        least: usize,
        /// Number given.
        given: usize,
    },
}

pub(crate) fn time(what: &'static str, value: f64) -> Result<f64, ModelError> {
    // Adding zero turns −0 into 0: dividing by −0 would yield an infinity with the wrong sign.
    if value == 0.0 || (MIN_NS..=MAX_NS).contains(&value) {
        Ok(value + 0.0)
    } else {
        Err(ModelError::Time { what, value })
    }
}

pub(crate) fn share(what: &'static str, value: f64) -> Result<f64, ModelError> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(ModelError::Figure { what, value, range: "from 0 to 1" })
    }
}

pub(crate) fn number(what: &'static str, value: u32, most: u32) -> Result<u32, ModelError> {
    if (1..=most).contains(&value) {
        Ok(value)
    } else {
        Err(ModelError::Number { what, value: value.into(), most: most.into() })
    }
}

pub(crate) fn threads(value: u32) -> Result<u32, ModelError> {
    number("threads", value, MAX_THREADS)
}
