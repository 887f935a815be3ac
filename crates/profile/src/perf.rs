//! Context switches and stack samples of other threads, from the kernel's perf events.
//!
//! Two software events are used, which need neither privilege (if `kernel.perf_event_paranoid` is 2
//! or less) nor hardware counters. A dummy event reports each time a thread gets or leaves a CPU.
//! The CPU clock reports registers and stack each time a thread has spent a certain period on a
//! CPU. Time in the kernel yields no samples. See `perf_event_open(2)`.
//!
//! An event may write into another event's ring buffer only if both are on the same CPU, and memory
//! for buffers is scarce. So there is one ring per CPU, and each thread has one event per kind for
//! each CPU that it may use. With many CPUs, that takes too many descriptors: a thread then has one
//! event per kind and a small ring of its own. If descriptors or memory run out, threads are
//! followed in turn. The threads of a launched program inherit its events, which costs no
//! descriptors.
//!
//! Not promised: if a thread's affinity grows, its switches on the new CPUs are missed until
//! [`Events::refresh`]. If a CPU comes online, existing threads of a launched program are never
//! seen on that CPU.
//!
//! The program's threads pay for the events at each switch. On a virtual machine with two CPUs
//! (Intel Xeon, family 6, model 167, Linux 6.18), a switch record cost 0.26 µs of their CPU time.
//! With samples, it cost 0.46 µs, because the kernel then sets a timer at each switch. On another
//! one (AMD EPYC, family 25, model 1, in a slow hour), these were 1.1 µs and 2.5 µs, and events
//! that are off cost 0.6 µs. So [`Events::keep_within`] pauses records and samples that cost too
//! much, and `calibration` measures what they cost. A sample cost 20 to 25 µs, most of it for the
//! timer's interrupt, which costs less outside virtual machines. The start of a thread that
//! inherits both kinds cost 18 µs. `cargo bench -p threadtoll-profile --bench event_cost` repeats
//! these measurements.

mod attribute;
mod budget;
pub(crate) mod calibration;
mod events;
mod limits;
mod records;
mod refused;
mod registers;
mod ring;
mod timeline;

pub(crate) use budget::SwitchCosts;
pub(crate) use events::SETTLE_NS;
pub use events::{EventOptions, Events, Following, SampleOptions, Turns};
pub use records::{Direction, Event, StackSample};
pub use refused::PerfRefused;
pub use registers::UserRegisters;
pub use timeline::{CpuState, Timeline};
