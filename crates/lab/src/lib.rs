//! Measures what a hand-off between threads costs.
//!
//! [`mechanism`] holds the ways of handing over, each a file; [`queue`] the queues and what is done
//! with them; [`lock`] the locks, and [`contention`] what is done with those. [`plan`] decides
//! which cells are measured where, in which groups and for how long. [`run()`] measures a plan on a
//! [`rig::Rig`] — the [`real`] machine or a [`simulated`] one — block by block, and folds each
//! group into records when it is complete.

pub mod contention;
mod exchange;
mod gap;
pub mod lock;
pub mod mechanism;
pub mod plan;
pub mod queue;
pub mod real;
pub mod rig;
mod run;
pub mod simulated;

pub use run::{Observer, Outcome, run};
