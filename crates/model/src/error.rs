//! What no model accepts, and the checks that say so.

/// The longest mean or single time that is accepted, in nanoseconds: about thirty years.
pub const MAX_NS: f64 = 1e18;

/// The shortest time above zero that is accepted, in nanoseconds.
///
/// Between these limits no ratio of two times over- or underflows.
pub const MIN_NS: f64 = 1e-9;

/// The most threads that a model is asked about.
pub const MAX_THREADS: u32 = 10_000_000;

/// The most locks, stripes, cores or stations.
pub const MAX_LOCKS: u32 = 10_000_000;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A time is negative, not a number, or so small or large that ratios would lose their meaning.
    #[error("the {what} must be 0 or between {MIN_NS:e} and {MAX_NS:e} ns, not {value}")]
    Time {
        /// Which time.
        what: &'static str,
        /// What it was, in nanoseconds.
        value: f64,
    },
    /// Hold and think time are both zero: a thread that does nothing has no speed.
    #[error("hold time and think time are both zero: there is nothing to predict")]
    NoTime,
    /// A number of something is zero or beyond its limit.
    #[error("the number of {what} must be from 1 to {most}, not {value}")]
    Number {
        /// Of what.
        what: &'static str,
        /// What it was.
        value: u64,
        /// The largest that is accepted.
        most: u64,
    },
    /// A figure that is no time is not a number, or lies outside its range.
    #[error("the {what} must be {range}, not {value}")]
    Figure {
        /// Which figure.
        what: &'static str,
        /// What it was.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// Too few measured values.
    #[error("{what}: at least {least} needed, {given} given")]
    TooFew {
        /// Of what.
        what: &'static str,
        /// How many are needed.
        least: usize,
        /// How many were given.
        given: usize,
    },
}

/// The time itself, if a model can use it.
pub(crate) fn time(what: &'static str, value: f64) -> Result<f64, ModelError> {
    // Adding zero turns −0 into 0, whose quotients have the other sign.
    if value == 0.0 || (MIN_NS..=MAX_NS).contains(&value) {
        Ok(value + 0.0)
    } else {
        Err(ModelError::Time { what, value })
    }
}

/// The share itself, if it is one.
pub(crate) fn share(what: &'static str, value: f64) -> Result<f64, ModelError> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(ModelError::Figure { what, value, range: "from 0 to 1" })
    }
}

/// The number itself, if it is from one to `most`.
pub(crate) fn number(what: &'static str, value: u32, most: u32) -> Result<u32, ModelError> {
    if (1..=most).contains(&value) {
        Ok(value)
    } else {
        Err(ModelError::Number { what, value: value.into(), most: most.into() })
    }
}

/// The number of threads itself, if it is one that models are asked about.
pub(crate) fn threads(value: u32) -> Result<u32, ModelError> {
    number("threads", value, MAX_THREADS)
}
