//! Numbers of descriptors and CPUs, and amount of memory, that perf events may use.

use threadtoll_stacks::process::descriptors;

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) descriptors: usize,
    pub(super) shared_bytes: usize,
    pub(super) most_ring_bytes: usize,
    pub(super) cpus: usize,
    /// A thread that may use more CPUs than this gets a ring of its own, if possible.
    pub(super) most_shared_cpus: usize,
    /// Maximum number of CPUs of a program with inherited events. More would slow down the start of
    /// its threads too much.
    pub(super) most_inherited_cpus: usize,
}

impl Limits {
    pub(super) fn of_this_process() -> Limits {
        Limits {
            descriptors: descriptors::for_events(),
            shared_bytes: 16 << 20,
            most_ring_bytes: 256 << 10,
            cpus: configured_cpus(),
            most_shared_cpus: 16,
            most_inherited_cpus: 64,
        }
    }
}

fn configured_cpus() -> usize {
    // SAFETY: `sysconf` takes a number and returns one.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(cpus).unwrap_or(0).max(1)
}
