//! Profiles a running program from outside: the locks for which its threads wait, the holders of
//! these locks, and the activities of the holders.
//!
//! The program is never stopped, traced or written to. At random times, fixed beforehand, the
//! sampler takes a *sample*: it reads the words of all known locks and the system calls in which
//! threads sleep. Everything else is derived from these samples.
//!
//! The profiler does not promise to see everything: a wait without a known reason is reported as
//! unknown, and figures that the samples do not support are `None`.
//!
//! | module | contents |
//! |---|---|
//! | [`account`] | shares, queues and their intervals, folded from samples |
//! | [`occupation`] | activities of threads, judged by their system calls |
//! | [`sample`] | taking samples: their times, their contents, and their budget |
//! | [`perf`] | switches and samples of threads, reported by the kernel |

pub mod account;
mod circumstances;
mod clock;
mod compose;
mod holder;
mod lookups;
pub mod occupation;
pub mod perf;
mod profiler;
pub mod sample;
mod stacks;
mod static_locks;
mod tally;
mod watched;

pub use profiler::{Options, Profiler};
use threadtoll_primitive::{self as primitive, futex};
