//! Reasons for which the kernel denies perf events, with advice.

use std::io;

use thiserror::Error;

/// Reason for which a thread cannot be followed.
#[derive(Debug, Error)]
pub enum PerfRefused {
    /// `kernel.perf_event_paranoid` is above 2, as on Debian and Ubuntu.
    #[error(
        "kernel.perf_event_paranoid is {level}, which forbids perf_event_open(2); run `sysctl \
         kernel.perf_event_paranoid=2` as root, or give threadtoll CAP_PERFMON"
    )]
    Paranoid {
        /// Value of the setting.
        level: i32,
    },
    /// A seccomp filter denies the system call, as the default filter of containers does.
    #[error(
        "a seccomp filter forbids perf_event_open(2); run threadtoll outside the container, or \
         allow the call in the container's seccomp profile"
    )]
    Seccomp,
    /// The thread belongs to another user.
    #[error(
        "the kernel does not permit it for this process; run threadtoll as the process's user, or \
         give threadtoll CAP_PERFMON"
    )]
    NotPermitted,
    /// The kernel does not support these events.
    #[error("this kernel or sandbox has no perf events ({0}); Linux 4.3 or newer has them")]
    Unsupported(io::Error),
    /// Too few file descriptors.
    #[error(
        "too few file descriptors: at most {limit} are used for perf events; raise the hard limit \
         (`ulimit -Hn`)"
    )]
    Descriptors {
        /// Number of descriptors that may be used.
        limit: usize,
    },
    /// Too little lockable memory.
    #[error(
        "no more memory may be locked for the buffers of perf events; raise `ulimit -l` or \
         kernel.perf_event_mlock_kb"
    )]
    LockedMemory,
    /// Inherited events, one per CPU, would slow down the start of each thread.
    #[error(
        "on {cpus} CPUs, creating inherited events would take longer than creating the threads; \
         follow each thread instead"
    )]
    ManyCpus {
        /// Number of CPUs that the program may use.
        cpus: usize,
    },
    /// Anything else.
    #[error("perf_event_open(2) failed: {0}")]
    Other(io::Error),
}

impl PerfRefused {
    pub(super) fn of_open(error: io::Error, descriptor_limit: usize) -> PerfRefused {
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => refused_by_whom(),
            Some(libc::EMFILE | libc::ENFILE) => {
                PerfRefused::Descriptors { limit: descriptor_limit }
            }
            Some(
                libc::ENOSYS
                | libc::ENODEV
                | libc::ENOENT
                | libc::EOPNOTSUPP
                | libc::EINVAL
                | libc::E2BIG,
            ) => PerfRefused::Unsupported(error),
            _ => PerfRefused::Other(error),
        }
    }

    /// Returns `true` if descriptors or memory ran out, so that threads can be followed in turn.
    pub(super) fn is_scarcity(&self) -> bool {
        matches!(self, PerfRefused::Descriptors { .. } | PerfRefused::LockedMemory)
    }
}

fn refused_by_whom() -> PerfRefused {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    let status = std::fs::read_to_string("/proc/self/status").ok();
    whom(
        own_event_works(),
        level.and_then(|level| level.trim().parse().ok()),
        status.as_deref().is_some_and(is_filtered),
    )
}

fn whom(own_event_works: bool, paranoid: Option<i32>, filtered: bool) -> PerfRefused {
    match paranoid {
        _ if own_event_works => PerfRefused::NotPermitted,
        Some(level) if level > 2 => PerfRefused::Paranoid { level },
        _ if filtered => PerfRefused::Seccomp,
        _ => PerfRefused::NotPermitted,
    }
}

fn own_event_works() -> bool {
    super::attribute::Attribute::silent().open(0, None).is_ok()
}

/// Parses `/proc/self/status`, where 2 stands for an active seccomp filter.
fn is_filtered(status: &str) -> bool {
    status.lines().filter_map(|line| line.strip_prefix("Seccomp:")).any(|mode| mode.trim() == "2")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_who_refuses_is_named() {
        assert!(matches!(whom(false, Some(4), true), PerfRefused::Paranoid { level: 4 }));
        assert!(matches!(whom(false, Some(2), true), PerfRefused::Seccomp));
        assert!(matches!(whom(false, None, false), PerfRefused::NotPermitted));
        assert!(matches!(whom(true, Some(4), true), PerfRefused::NotPermitted));
        assert!(is_filtered("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
        assert!(!is_filtered("Seccomp:\t0\nSeccomp_filters:\t2\n"));
    }

    #[test]
    fn errors_of_the_kernel_become_sentences() {
        let of = |errno| PerfRefused::of_open(io::Error::from_raw_os_error(errno), 10);
        assert!(matches!(of(libc::EMFILE), PerfRefused::Descriptors { limit: 10 }));
        assert!(of(libc::EMFILE).is_scarcity());
        assert!(matches!(of(libc::ENODEV), PerfRefused::Unsupported(_)));
        assert!(matches!(of(libc::ENOMEM), PerfRefused::Other(_)));
        assert!(!of(libc::ENOMEM).is_scarcity());
    }
}
