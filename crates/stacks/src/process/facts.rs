//! Facts about any thread on the machine, from `/proc/TID/status` (proc_pid_status(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::CWD;

use super::activity::Activity;
use super::files::{self, ShortPath};

/// Maximum number of bytes that are read; the file may list thousands of the user's groups.
const MAX_STATUS: usize = 64 << 10;

/// With one line per CPU, and a number for each interrupt.
const MAX_STAT: usize = 256 << 10;

const MAX_CALL: usize = 192;

const MAX_ANCESTORS: usize = 64;

/// Facts about a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Name of the thread.
    pub name: OsString,
    /// PID of the thread's process.
    pub process: u32,
    /// PID of the process's parent.
    pub parent: u32,
    /// PID of the process that traces the thread, such as a debugger.
    pub tracer: Option<u32>,
    /// State of the thread.
    pub state: KernelState,
    /// Context switches of the thread so far; `None` if the kernel does not report them.
    pub switches: Option<Switches>,
}

/// Numbers of context switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The thread fell asleep.
    pub voluntary: u64,
    /// The thread lost its CPU or gave it up, but could have gone on.
    pub involuntary: u64,
}

impl Switches {
    /// Number of switches on the whole machine so far, from `/proc/stat`; `None` if it is not
    /// reported.
    pub fn on_machine() -> Option<u64> {
        let path = ShortPath::new(format_args!("/proc/stat"));
        let text = files::read(CWD, &path, MAX_STAT).ok()?;
        let mut lines = text.split(|&byte| byte == b'\n');
        let line = lines.find_map(|line| line.strip_prefix(b"ctxt "))?;
        std::str::from_utf8(line).ok()?.trim().parse().ok()
    }

    /// Number of all switches.
    pub fn all(self) -> u64 {
        self.voluntary.saturating_add(self.involuntary)
    }
}

/// State of a thread, according to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelState {
    /// On a CPU, or waiting for one.
    Running,
    /// Asleep.
    Asleep,
    /// Stopped by a signal.
    Stopped,
    /// Stopped by the process that traces it.
    Traced,
    /// The thread has ended.
    Ended,
}

impl KernelState {
    pub(crate) fn of(letter: u8) -> KernelState {
        match letter {
            b'R' => KernelState::Running,
            b'T' => KernelState::Stopped,
            b't' => KernelState::Traced,
            b'Z' | b'X' | b'x' => KernelState::Ended,
            _ => KernelState::Asleep,
        }
    }

    /// Returns `true` if a signal or a debugger keeps the thread from running.
    pub fn is_stopped(self) -> bool {
        matches!(self, KernelState::Stopped | KernelState::Traced)
    }
}

impl ThreadFacts {
    /// Facts about the thread with this TID, in any process; `None` if there is no such thread, or
    /// if it is hidden.
    pub fn read(tid: u32) -> Option<ThreadFacts> {
        let path = ShortPath::new(format_args!("/proc/{tid}/status"));
        ThreadFacts::parse(&files::read(CWD, &path, MAX_STATUS).ok()?)
    }

    /// Activity of the thread with this TID; `None` if the kernel does not report it.
    pub fn activity_of(tid: u32) -> Option<Activity> {
        let path = ShortPath::new(format_args!("/proc/{tid}/syscall"));
        Activity::parse(&files::read(CWD, &path, MAX_CALL).ok()?)
    }

    /// Returns `true` if the process `pid` is an ancestor of this thread's process.
    pub fn descends_from(&self, pid: u32) -> bool {
        let mut parent = self.parent;
        for _ in 0..MAX_ANCESTORS {
            match parent {
                0 => return false,
                _ if parent == pid => return true,
                _ => {}
            }
            let Some(facts) = ThreadFacts::read(parent) else { return false };
            parent = facts.parent;
        }
        false
    }

    /// The name in the first line cannot forge other lines: the kernel escapes line feeds in it.
    pub(crate) fn parse(text: &[u8]) -> Option<ThreadFacts> {
        let field = |name: &str| {
            let mut lines = text.split(|&byte| byte == b'\n');
            let line = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
            Some(line.trim_ascii())
        };
        let number = |name| std::str::from_utf8(field(name)?).ok()?.parse::<u64>().ok();
        let pid = |name| u32::try_from(number(name)?).ok();
        let [voluntary, involuntary] =
            ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(number);
        Some(ThreadFacts {
            name: OsString::from_vec(field("Name:")?.to_vec()),
            process: pid("Tgid:")?,
            parent: pid("PPid:")?,
            tracer: pid("TracerPid:").filter(|&tracer| tracer != 0),
            state: KernelState::of(*field("State:")?.first()?),
            switches: voluntary
                .zip(involuntary)
                .map(|(voluntary, involuntary)| Switches { voluntary, involuntary }),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn status_is_read() {
        let text =
            b"Name:\tworker 1\nUmask:\t0022\nState:\tt (tracing stop)\nTgid:\t42\nPid:\t43\n\
                     PPid:\t7\nTracerPid:\t99\nGroups:\t0 1 2\nvoluntary_ctxt_switches:\t150\n\
                     nonvoluntary_ctxt_switches:\t7\n";
        let facts = ThreadFacts::parse(text).unwrap();
        let expected = ThreadFacts {
            name: "worker 1".into(),
            process: 42,
            parent: 7,
            tracer: Some(99),
            state: KernelState::Traced,
            switches: Some(Switches { voluntary: 150, involuntary: 7 }),
        };
        assert_eq!(facts, expected);
        assert!(facts.state.is_stopped());
        assert_eq!(ThreadFacts::parse(b"Name:\ta\nTgid:\t1\n"), None);
    }

    #[test]
    fn this_thread_is_no_stranger() {
        let own = std::fs::read_link("/proc/thread-self").unwrap();
        let own: u32 = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let facts = ThreadFacts::read(own).unwrap();
        assert_eq!((facts.process, facts.tracer), (std::process::id(), None));
        assert_eq!(facts.state, KernelState::Running);
        assert!(facts.descends_from(facts.parent) && !facts.descends_from(facts.process));
        assert_eq!(ThreadFacts::read(u32::MAX), None);
        assert!(Switches::on_machine().unwrap() >= facts.switches.unwrap().all());
    }

    proptest! {
        #[test]
        fn any_status_is_read_or_refused(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = ThreadFacts::parse(&text);
        }
    }
}
