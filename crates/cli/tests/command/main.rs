//! The command as users see it: input, output, exit codes, and effects on files.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod bad_input;
mod compare;
mod confined;
mod contention;
mod fold;
mod hostile;
mod interrupted;
mod lines;
mod listing;
mod order;
mod peers;
mod pool;
mod predict;
mod profile;
mod program;
mod programs;
mod queue;
mod real;
mod relaunched;
mod repeated;
mod screens;
mod sentences;
mod simulated;
mod strikes;
mod synthetic;
mod terminal;
mod truth;
mod twins;
