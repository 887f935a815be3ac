//! The command as its users meet it: what goes in, what comes out, which code it ends with, and
//! what becomes of files.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod bad_input;
mod confined;
mod contention;
mod fold;
mod hostile;
mod interrupted;
mod lines;
mod listing;
mod order;
mod predict;
mod program;
mod queue;
mod real;
mod simulated;
mod synthetic;
mod terminal;
