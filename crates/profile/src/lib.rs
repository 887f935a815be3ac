//! Profiles a running program from outside: which locks its threads wait for, who holds them, and
//! what the holders do.
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
//! | [`occupation`] | what a thread spends its time on |
//! | [`sample`] | taking samples: at which times, of what, within which budget |
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
