//! Measures the cost of hand-offs between threads.
//!
//! [`mechanism`] contains the mechanisms, [`queue`] the queues and their scenarios, [`lock`] the
//! locks, and [`contention`] the scenarios of locks. A [`Registry`] lists them all. [`plan`]
//! chooses cells (a mechanism, queue or lock with its placement and load) and arranges them in
//! groups. [`run()`] measures a plan on a [`backend::Backend`]: the [`real`] machine or a
//! [`simulated`] one. It interleaves blocks (short measurements) of a group's cells, and folds each
//! complete group into records (results).

pub mod backend;
mod block;
mod budget;
mod cache_padded;
pub mod contention;
mod error;
mod exchange;
pub mod foreign;
pub mod lock;
pub mod mechanism;
pub mod plan;
mod polling;
mod process;
mod program;
mod program_file;
pub mod queue;
mod raw_lock;
pub mod real;
mod registry;
mod rows;
mod run;
pub mod samples;
pub mod simulated;
mod stalls;
mod stream;
mod thread_group;
mod touched;
pub mod twin;
mod wrap;

pub use budget::PATIENCE;
pub use error::{LabError, Unavailable};
pub use registry::Registry;
pub use rows::{Row, Rows};
pub use run::{
    Launch, Launcher, Observer, Outcome, Peers, Share, Step, Take, Task, measure_share, run,
    serve_share,
};
