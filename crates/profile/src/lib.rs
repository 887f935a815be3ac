//! Looks at a running program from outside: which locks its threads wait for, who holds them, and
//! what the holders are doing.
//!
//! The program is never stopped, traced or written to. At random times, fixed beforehand, the
//! sampler reads the words of all known locks and the system calls in which threads sleep;
//! everything else is worked out from those samples.
//!
//! | module | contents |
//! |---|---|
//! | [`account`] | shares, queues and their intervals, folded from looks |
//! | [`activity`] | what a thread was doing when it was looked at |
//! | [`futex`] | the futex system calls, decoded |
//! | [`sample`] | when to look, at what, and within which budget |
//! | [`process`] | processes, their threads and memory |
//! | [`perf`] | switches and samples of threads, reported by the kernel |
//! | [`primitive`] | the lock, or other object, that a futex word belongs to |
//! | [`image`] | the ELF files that a program has mapped, and the code that it can run |
//! | [`stack`] | call stacks, from registers and a copy of the stack |
//! | [`symbol`] | names of functions, source lines, and static locks |

pub mod account;
pub mod activity;
mod clock;
mod compose;
pub mod futex;
pub mod perf;
pub mod primitive;
pub mod process;
mod profiler;
pub mod sample;
mod stacks;
mod watched;

pub use profiler::{Options, Profiler};
pub mod image;
pub mod stack;
pub mod symbol;
