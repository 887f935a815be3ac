//! Predicts what a lock costs the threads that share it.
//!
//! Every lock is a queue: threads *think* (do what needs no lock), *wait*, *hold* the lock, and
//! think again. From the mean or the measured hold and think times follow speed-up, queue and wait
//! for any number of threads. [`predict()`] answers with whichever model is right for the question
//! ([`choose`] says which, and why); the models themselves are here too:
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
//! [`queue_trace`] is no model: it says from the stamps of threads what their queue was.
//!
//! Pure functions without input or output. Times are nanoseconds, throughputs are per second,
//! unless a name says otherwise. What is out of range is refused with a [`ModelError`]; nothing
//! panics.

pub mod amdahl;
pub mod bounds;
pub mod choose;
pub mod cores;
mod error;
mod exponential;
mod load;
pub mod mva;
mod performance;
mod prediction;
pub mod queue_trace;
mod recommend;
pub mod repairman;
mod shape;
pub mod simulate;
pub mod takacs;
pub mod usl;
mod what_if;
mod workload;

pub use error::{MAX_LOCKS, MAX_NS, MAX_THREADS, MIN_NS, ModelError};
pub use load::Load;
pub use performance::Performance;
pub use prediction::{Prediction, Row, effort, predict};
pub use recommend::recommended_threads;
pub use shape::Shape;
pub use simulate::{HandOff, Policy};
pub use what_if::{Change, WhatIf, what_if};
pub use workload::Workload;
