//! Predicts the cost of a lock to the threads that share it.
//!
//! Every lock is a queue: threads *think* (work without the lock), *wait*, *hold* the lock, and
//! think again. From mean or measured hold and think times, the models derive the speed-up, the
//! queue and the wait for any number of threads. [`predict()`] answers with the model that fits the
//! question; [`choose`] gives the reason.
//!
//! | module | the model | exact for |
//! |---|---|---|
//! | [`bounds`] | asymptotes and the knee | fixed times; an upper bound for all |
//! | [`amdahl`] | Amdahl's law | nothing here: a lower bound |
//! | [`repairman`] | M/M/1//N | exponential hold times |
//! | [`takacs`] | M/G/1//N | exponential think times |
//! | [`mva`] | mean value analysis | several locks with exponential hold times |
//! | [`cores`] | repairman with few cores | exponential times |
//! | [`simulate`] | discrete events | everything, within its interval |
//! | [`usl`] | a fitted curve | what it was fitted to |
//!
//! These threads come back, so the number of them bounds the queue. [`pool`] predicts pools of
//! servers at which callers arrive from outside, by [`erlang`]'s formulas, M/D/1, and a simulation.
//! [`overload`] predicts a lock at which more callers arrive than it can serve, for a while.
//!
//! [`queue_trace`] is not a model: it reconstructs a queue from the times that threads recorded.
//!
//! All functions are pure. Times are nanoseconds, and throughputs are per second, unless a name
//! says otherwise. A value out of range yields a [`ModelError`]; nothing panics.

pub mod amdahl;
mod bisect;
pub mod bounds;
pub mod choose;
pub mod cores;
pub mod erlang;
mod error;
mod load;
mod md1;
pub mod mva;
pub mod overload;
mod performance;
mod poisson;
pub mod pool;
mod prediction;
pub mod queue_trace;
mod random;
mod recommend;
pub mod repairman;
mod shape;
pub mod simulate;
pub mod takacs;
pub mod usl;
mod what_if;
mod workload;

pub use error::{MAX_LOCKS, MAX_NS, MAX_SERVERS, MAX_THREADS, MIN_NS, ModelError};
pub use load::Load;
pub use performance::Performance;
pub use pool::Pool;
pub use prediction::{Prediction, Row, effort, predict};
pub use recommend::recommended_threads;
pub use shape::Shape;
pub use simulate::{HandOff, Policy};
pub use what_if::{Change, WhatIf, what_if};
pub use workload::Workload;
