//! What is planned, and how a plan is measured.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod contention;
mod plan;
mod queue;
mod run;
