//! Stacks of programs that know their own call chains.
//!
//! The test that needs compilers for C and C++ runs in `ci/long/profile-stacks.sh`.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod cost;
mod named;
mod observe;
mod own;
mod programs;
