//! Switches and samples of other threads, reported by the kernel's perf events.
//!
//! Two software events, which need neither privilege (at `kernel.perf_event_paranoid` 2 or less)
//! nor hardware counters: a dummy that reports each time a thread gets a CPU or leaves it, and the
//! CPU clock, which reports registers and stack after each period that a thread spent on a CPU.
//! Time that a thread spends in the kernel yields no samples. See `perf_event_open(2)`.
//!
//! An event may write into the ring buffer of another only if both are of one CPU, and memory for
//! buffers is scarce. There is one ring per CPU, and each thread has one event per kind and CPU
//! that it may use. On machines with many CPUs that is too many descriptors: there a thread has
//! one event per kind and a small ring of its own. Where descriptors or memory do not suffice,
//! threads take turns. A launched program has inherited events, which cost no descriptors.
//!
//! Not promised: a thread whose affinity grows is not seen on its new CPUs until
//! [`Events::refresh`]; threads that a launched program has made by the time that a CPU comes
//! online are not seen there.
//!
//! The threads pay for it. On a virtual machine with two CPUs (Intel Xeon, family 6, model 167,
//! Linux 6.18), the record of a switch cost 0.26 µs of their CPU time, or 0.46 µs where samples are
//! taken too, because the kernel then sets a timer at each switch; a sample 20 to 25 µs, most of it
//! for the timer's interrupt, which costs less outside virtual machines; and the start of a thread
//! that inherits both kinds 18 µs. `cargo bench -p threadtoll-profile --bench event_cost` repeats
//! these measurements. [`Events::keep_within`] pauses switch records that cost too much.

mod attribute;
mod budget;
mod events;
mod limits;
mod records;
mod refused;
mod registers;
mod ring;
mod timeline;

pub(crate) use events::SETTLE_NS;
pub use events::{Events, Following, Options, SampleOptions, Turns};
pub use records::{Direction, Event, Sample};
pub use refused::PerfRefused;
pub use registers::Registers;
pub use timeline::{CpuState, Timeline};
