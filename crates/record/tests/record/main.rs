//! The promises of result files: schemas, reader, writer, and the folding of blocks into records.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod comparison;
mod contention;
mod fixture;
mod fold;
mod folded;
mod overload;
mod profile;
mod read;
mod schemas;
mod strikes;
mod timelines;
mod write;
