//! This computer, as someone who measures has to see it.
//!
//! | module | its question |
//! |---|---|
//! | [`clock`] | when is now, and how finely can it be told? |
//! | [`topology`] | which CPUs are near each other? |
//! | [`place`] | where does this thread run? |
//! | [`disturbance`], [`mod@judge`] | what happened to a block, and does it spoil it? |
//! | `noise` | how still is a CPU while nothing is asked of it? |
//! | [`mod@inspect`], [`mod@grade`] | is this machine fit to be measured? |
//! | [`lock`] | is anyone else measuring? |
//!
//! Everything is read from where Linux shows it to anyone: no root, no kernel module, no
//! configuration. What the kernel hides (in a container, under seccomp, on one CPU) is absent from
//! the answer and never guessed; only a clock that cannot be trusted is an error.

mod cgroup;
pub mod clock;
mod counter;
mod cpulist;
pub mod disturbance;
mod facts;
mod gate;
pub mod grade;
pub mod inspect;
pub mod judge;
pub mod lock;
mod noise;
pub mod place;
mod sysfs;
pub mod topology;

pub use clock::{Clock, ClockRefused, unix_ns};
pub use disturbance::{SystemCounters, SystemProbe, ThreadCounters, ThreadProbe, account};
pub use grade::{Findings, THRESHOLDS, grade};
pub use inspect::{InspectOptions, inspect};
pub use judge::{Baseline, Observed, judge};
pub use lock::{MachineLock, machine_lock, try_machine_lock};
pub use place::{PlaceError, allowed_cpus, current_cpu, pin_to, set_idle_priority};
pub use topology::{Level, Topology, synthetic};
