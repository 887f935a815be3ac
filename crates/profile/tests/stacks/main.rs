//! Stacks of programs that know their own call chains.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod observe;
mod own;
