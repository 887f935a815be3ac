//! Reasons why a process cannot be observed, and what to do about each.

use std::ffi::OsString;
use std::io;

use thiserror::Error;

/// Reason why a process cannot be observed.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// There is no such process.
    #[error("no process has PID {0}")]
    NotFound(u32),
    /// The number is not a PID but the TID of a thread of another process.
    #[error("{tid} is a thread of process {process}")]
    Thread {
        /// TID of the thread.
        tid: u32,
        /// PID of the process to which the thread belongs.
        process: u32,
    },
    /// The process has ended.
    #[error("process {0} has ended")]
    Ended(u32),
    /// The process is a kernel thread.
    #[error("process {pid} ({}) is a kernel thread, which has no memory to read", name.display())]
    KernelThread {
        /// PID of the kernel thread.
        pid: u32,
        /// Name of the kernel thread.
        name: OsString,
    },
    /// The process is the profiler itself.
    #[error("threadtoll cannot profile itself")]
    Itself,
    /// Permission is missing.
    #[error("not permitted to look at process {pid}: {}", refusal.reason())]
    NotPermitted {
        /// PID of the process.
        pid: u32,
        /// Likely reason for the refusal.
        refusal: Refusal,
    },
    /// The kernel, or a sandbox that takes its place, lacks a facility.
    #[error("this system has no {0}, which a profile needs")]
    Unsupported(&'static str),
    /// Files in `/proc` cannot be read.
    #[error("process {pid} cannot be read: {source}")]
    Unreadable {
        /// PID of the process.
        pid: u32,
        /// Error from the kernel.
        source: io::Error,
    },
}

impl ProcessError {
    /// Advice for the user, in one sentence.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ProcessError::NotFound(_) | ProcessError::Ended(_) => {
                Some("`pgrep -a NAME` lists PIDs")
            }
            ProcessError::Thread { .. } => Some("give the PID of the process"),
            ProcessError::NotPermitted { refusal, .. } => Some(refusal.mend()),
            ProcessError::Unsupported(_) => {
                Some("sandboxes such as gVisor lack it; profile from outside the sandbox")
            }
            ProcessError::KernelThread { .. }
            | ProcessError::Itself
            | ProcessError::Unreadable { .. } => None,
        }
    }
}

/// Likely reason why the kernel refuses access to a process; see ptrace(2), "Ptrace access mode
/// checking".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `/proc` is mounted with `hidepid`.
    Hidden,
    /// The process belongs to this other user.
    OtherUser(u32),
    /// Yama's `ptrace_scope` is 1: only ancestors of a process have access.
    YamaDescendants,
    /// Yama's `ptrace_scope` is 2: access requires a capability.
    YamaPrivileged,
    /// Yama's `ptrace_scope` is 3: nobody has access.
    YamaNobody,
    /// The process has privileges that the profiler lacks, or has made itself undumpable.
    Privileged,
    /// The profiler runs as root, but lacks the capability `CAP_SYS_PTRACE`, as in a container.
    Contained,
    /// A sandbox forbids the profiler to read memory, even the profiler's own.
    Sandboxed,
}

impl Refusal {
    pub(crate) fn diagnose(owner: u32) -> Refusal {
        let user = rustix::process::geteuid().as_raw();
        let yama = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
        Refusal::likely(owner, user, yama.unwrap_or_default().trim())
    }

    fn likely(owner: u32, user: u32, yama: &str) -> Refusal {
        match yama {
            "3" => Refusal::YamaNobody,
            _ if user == 0 => Refusal::Contained,
            _ if owner != user => Refusal::OtherUser(owner),
            "2" => Refusal::YamaPrivileged,
            "1" => Refusal::YamaDescendants,
            _ => Refusal::Privileged,
        }
    }

    fn reason(self) -> String {
        match self {
            Refusal::Hidden => "/proc hides processes of other users".to_owned(),
            Refusal::OtherUser(owner) => format!("it belongs to user {owner}"),
            Refusal::YamaDescendants => {
                "kernel.yama.ptrace_scope is 1, which lets only ancestors of a process look"
                    .to_owned()
            }
            Refusal::YamaPrivileged => {
                "kernel.yama.ptrace_scope is 2, which lets only root look".to_owned()
            }
            Refusal::YamaNobody => {
                "kernel.yama.ptrace_scope is 3, which lets nobody look".to_owned()
            }
            Refusal::Privileged => {
                "it has more privileges than you, or keeps its memory private".to_owned()
            }
            Refusal::Sandboxed => {
                "a sandbox (seccomp) does not let this command call process_vm_readv, even on its \
                 own memory"
                    .to_owned()
            }
            Refusal::Contained => "root lacks the capability CAP_SYS_PTRACE here".to_owned(),
        }
    }

    fn mend(self) -> &'static str {
        match self {
            Refusal::Hidden | Refusal::Privileged => "run the command with sudo",
            Refusal::OtherUser(_) => "run the command with sudo, or as that user",
            Refusal::YamaDescendants => {
                "start the program with `threadtoll profile -- PROGRAM`, or run the command with sudo"
            }
            Refusal::YamaPrivileged => {
                "run the command with sudo, or as root `sysctl kernel.yama.ptrace_scope=1`"
            }
            Refusal::YamaNobody => "to change that, reboot with a lower kernel.yama.ptrace_scope",
            Refusal::Sandboxed => {
                "run it outside the sandbox, or allow process_vm_readv there (`docker run --cap-add SYS_PTRACE`)"
            }
            Refusal::Contained => {
                "give the container the capability (`docker run --cap-add SYS_PTRACE`), or profile from the host"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_their_likely_reason() {
        const ROOT: u32 = 0;
        for (owner, user, yama, refusal) in [
            (1_000, 1_000, "", Refusal::Privileged),
            (1_000, 1_000, "0", Refusal::Privileged),
            (1_000, 1_000, "1", Refusal::YamaDescendants),
            (1_000, 1_000, "2", Refusal::YamaPrivileged),
            (1_000, 1_000, "3", Refusal::YamaNobody),
            (ROOT, 1_000, "0", Refusal::OtherUser(ROOT)),
            (1_001, 1_000, "1", Refusal::OtherUser(1_001)),
            (1_000, ROOT, "1", Refusal::Contained),
            (ROOT, ROOT, "3", Refusal::YamaNobody),
        ] {
            assert_eq!(Refusal::likely(owner, user, yama), refusal);
            assert_explained(refusal);
        }
        assert_explained(Refusal::Sandboxed);
    }

    fn assert_explained(refusal: Refusal) {
        let error = ProcessError::NotPermitted { pid: 42, refusal };
        assert!(error.to_string().starts_with("not permitted to look at process 42: "));
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()));
    }
}
