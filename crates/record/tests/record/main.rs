//! What a file of results promises: its schemas, its reader, its writer, and how blocks become
//! records.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod contention;
mod fixture;
mod fold;
mod folded;
mod read;
mod schemas;
mod write;
