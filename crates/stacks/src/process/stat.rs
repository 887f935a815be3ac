//! Reader of `/proc/PID/stat` (proc_pid_stat(5)).

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use super::files::{self, ShortPath};

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Maximum length of the line in bytes: 52 numbers and a name.
const MAX_LINE: usize = 2_048;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: OsString,
    /// State as a letter; `Z` or `X` if the process, or at least its main thread, has ended.
    pub(crate) state: u8,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) flags: u64,
    pub(crate) major_faults: u64,
    /// Clock ticks that all threads have spent on a CPU: in user mode, and in the kernel.
    pub(crate) ticks: [u64; 2],
    /// Nice value, from -20 (highest priority) to 19 (lowest).
    pub(crate) nice: i64,
    pub(crate) threads: u64,
    /// Start time, in clock ticks since boot.
    pub(crate) start_time: u64,
    /// Exit status of a process that has ended, as in wait(2); 0 if the kernel hides it from this
    /// user.
    pub(crate) exit_code: i32,
}

impl Stat {
    pub(crate) fn read(directory: impl AsFd, path: &ShortPath) -> Result<Stat, Errno> {
        let line = files::read(directory, path, MAX_LINE)?;
        Stat::parse(&line).ok_or(Errno::SRCH)
    }

    /// Parses a line. The name is in parentheses, and may itself contain parentheses and blanks.
    pub(crate) fn parse(line: &[u8]) -> Option<Stat> {
        let open = line.iter().position(|&byte| byte == b'(')?;
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let name = OsStr::from_bytes(line.get(open + 1..close)?).to_owned();
        let rest = std::str::from_utf8(&line[close + 1..]).ok()?;
        // The manual numbers fields from 1; the name is field 2.
        let mut fields = rest.split_ascii_whitespace().enumerate().map(|(at, text)| (at + 3, text));
        let mut field = |number| fields.find(|&(at, _)| at == number).map(|(_, text)| text);
        Some(Stat {
            name,
            state: *field(3)?.as_bytes().first()?,
            parent: field(4)?.parse().ok()?,
            // 0 if the process group belongs to another PID namespace.
            group: field(5)?.parse().unwrap_or(0),
            session: field(6)?.parse().unwrap_or(0),
            flags: field(9)?.parse().ok()?,
            major_faults: field(12)?.parse().ok()?,
            ticks: [field(14)?.parse().ok()?, field(15)?.parse().ok()?],
            nice: field(19)?.parse().ok()?,
            threads: field(20)?.parse().ok()?,
            start_time: field(22)?.parse().ok()?,
            exit_code: field(52)?.parse().ok()?,
        })
    }

    pub(crate) fn kernel_thread(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }

    /// Returns `true` if the process has ended but has not been reaped. The state alone does not
    /// show this: `Z` may also mean that only the main thread has ended.
    pub(crate) fn ended(&self) -> bool {
        self.first_thread_ended() && self.threads <= 1
    }

    pub(crate) fn first_thread_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REST: &str = "Z 1 42 42 0 -1 4194304 100 0 0 0 5 3 0 0 20 0 7 0 8812 1000 2 \
                        18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 \
                        0 9";

    #[test]
    fn names_may_contain_anything() {
        for name in ["server", "a b", ") S 9 (", "((", "))", "", "a\nb"] {
            let stat = Stat::parse(format!("42 ({name}) {REST}").as_bytes()).unwrap();
            assert_eq!(stat.name, name);
            assert_eq!((stat.state, stat.parent, stat.threads), (b'Z', 1, 7));
            assert_eq!(stat.ticks, [5, 3]);
            assert_eq!((stat.start_time, stat.exit_code), (8_812, 9));
            assert!(!stat.kernel_thread() && !stat.ended());
        }
    }

    #[test]
    fn short_lines_are_refused() {
        let line = format!("42 (a) {REST}");
        for length in 0..line.len() - 1 {
            assert_eq!(Stat::parse(&line.as_bytes()[..length]), None, "{length}");
        }
        // Only the first thread has ended.
        assert!(!Stat::parse(line.as_bytes()).unwrap().ended());
        let alone = line.replace(" 20 0 7 ", " 20 0 1 ");
        assert!(Stat::parse(alone.as_bytes()).unwrap().ended());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(line in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Stat::parse(&line);
        }

        #[test]
        fn any_name_is_kept(name in proptest::collection::vec(any::<u8>(), 0..64)) {
            let line = [b"1 (".as_slice(), &name, b") ", REST.as_bytes()].concat();
            prop_assert_eq!(Stat::parse(&line).unwrap().name, OsStr::from_bytes(&name));
        }
    }
}
