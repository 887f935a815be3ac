//! Statistics: averages, quantiles of distributions, intervals, and clusters of measured times.
//!
//! Pure functions of numbers. The crate knows nothing about cells, locks or files.
//!
//! | item | contents |
//! |---|---|
//! | [`mean`], [`median`], [`upper_median`] | averages |
//! | [`Z95`], [`normal`], [`student`] | quantiles of the normal distribution and of Student's t |
//! | [`interval`] | estimates from samples, with 95% score intervals |
//! | [`resample`] | 95% intervals of figures of blocks, by resampling the blocks |
//! | [`regimes`] | states of a machine, as clusters of a reference's times |

mod average;
mod distribution;
pub mod interval;
mod regime;
pub mod resample;

pub use average::{mean, median, upper_median};
pub use distribution::{Z95, normal, student};
pub use regime::regimes;
