//! The mutex through its public interface: every operation against a plain model, storms of
//! threads, and unlucky circumstances.

#![allow(clippy::expect_used, reason = "a test that cannot set its stage has failed")]

mod asleep;
mod misfortune;
mod model;
mod order;
#[cfg(feature = "lock_api")]
mod raw;
mod storm;
