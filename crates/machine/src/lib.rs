//! Describes the computer under measurement.
//!
//! | module | contents |
//! |---|---|
//! | [`clock`] | stamps, their resolution and cost |
//! | [`topology`] | cores, caches and nodes that CPUs share |
//! | [`place`] | affinity and scheduling policy of threads |
//! | [`disturbance`], [`mod@judge`] | counters of a block, and the causes that disturbed it |
//! | [`ThrottleCounter`] | throttling by CPU quotas |
//! | `noise` | interruptions of idle CPUs |
//! | [`mod@inspect`], [`mod@grade`] | description and grade of this machine |
//! | [`IdleProbe`] | idle states of a CPU |
//! | [`lock`] | lock that lets only one measurement run at a time |
//!
//! Reads only what Linux shows without privileges or configuration. A fact that Linux hides (in a
//! container, under seccomp) is `None`, never guessed. Only an untrustworthy clock is an error.

mod cgroup;
pub mod clock;
mod counter;
mod cpulist;
pub mod disturbance;
mod facts;
mod gate;
pub mod grade;
mod idle;
mod idle_time;
pub mod inspect;
pub mod judge;
pub mod lock;
mod noise;
pub mod place;
mod sysfs;
pub mod topology;

pub use cgroup::{ThrottleCounter, Throttled};
pub use clock::{Clock, ClockRefused, unix_ns};
pub use disturbance::{SystemCounters, SystemProbe, ThreadCounters, ThreadProbe, account};
pub use grade::{Findings, THRESHOLDS, grade};
pub use idle::{IdleCounters, IdleProbe};
pub use idle_time::IdleTimes;
pub use inspect::{InspectOptions, inspect};
pub use judge::{Baseline, Observed, judge};
pub use lock::{MachineLock, machine_lock, try_machine_lock};
pub use place::{PlaceError, allowed_cpus, current_cpu, pin_to, set_idle_priority};
pub use topology::{Level, Topology, synthetic};
