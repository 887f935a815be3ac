//! Measures what a hand-off between threads costs.
//!
//! [`mechanism`] holds the ways of handing over, each a file; [`queue`] the queues and what is done
//! with them; [`lock`] the locks, and [`contention`] what is done with those. A [`Registry`] names
//! them, with those that a caller adds. [`plan`] decides which cells are measured where, in which
//! groups and for how long. [`run()`] measures a plan on a
//! [`backend::Backend`] — the [`real`] machine or a [`simulated`] one — block by block, and folds
//! each group into records when it is complete.

pub mod backend;
mod block;
mod budget;
mod cache_padded;
pub mod contention;
mod error;
mod exchange;
pub mod lock;
pub mod mechanism;
pub mod plan;
mod program;
pub mod queue;
pub mod real;
mod registry;
mod run;
pub mod samples;
pub mod simulated;
mod stalls;
mod stream;

pub use error::{LabError, Unavailable};
pub use registry::Registry;
pub use run::{Observer, Outcome, run};
