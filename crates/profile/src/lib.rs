//! Looks at a running program from outside: which locks its threads wait for, who holds them, and
//! what the holders are doing.
//!
//! The program is never stopped, traced or written to. At random times, fixed beforehand, the
//! sampler reads the words of all known locks and the system calls in which threads sleep;
//! everything else is worked out from those samples.
//!
//! It does not promise to see everything: a wait whose reason is not known is called so, and a
//! figure that the samples do not carry is withheld.
//!
//! | module | contents |
//! |---|---|
//! | [`account`] | shares, queues and their intervals, folded from looks |
//! | [`occupation`] | what a thread spends its time on |
//! | [`sample`] | when to look, at what, and within which budget |
//! | [`perf`] | switches and samples of threads, reported by the kernel |

pub mod account;
mod circumstances;
mod clock;
mod compose;
mod holder;
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
