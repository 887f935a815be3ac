//! Pages of this process that can be given back to the kernel without losing anything.
//!
//! These are the pages of code and of constants: mappings of files that nobody may write and of
//! which no page was ever changed. `MADV_DONTNEED` (madvise(2)) removes them from the page table of
//! the process, and the next touch is a page fault that finds them in the page cache. Anonymous
//! memory, such as heaps and stacks, would be lost that way; the kernel takes it back only into
//! swap, which most machines that care for latency do not have.

use std::fs;
use std::path::Path;

/// Mappings whose pages can be given back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodePages {
    /// Begin and end of each.
    mappings: Vec<[usize; 2]>,
}

impl CodePages {
    /// Those of this process; none if the kernel does not show its mappings.
    pub fn of_this_process() -> CodePages {
        let smaps = fs::read_to_string(Path::new("/proc/self/smaps")).unwrap_or_default();
        CodePages { mappings: unchanged(&smaps) }
    }

    /// Total length of the mappings, in bytes.
    pub fn bytes(&self) -> u64 {
        self.mappings.iter().map(|[begin, end]| (end - begin) as u64).sum()
    }

    /// Gives all pages back; returns `false` if the kernel refused one of the mappings.
    pub fn give_back(&self) -> bool {
        self.mappings.iter().fold(true, |all, [begin, end]| {
            // SAFETY: the mapping is of a file, cannot be written, and has no page that differs
            // from that file (`unchanged`): whoever touches it next reads the same bytes again. A
            // mapping that was removed meanwhile is refused; nobody maps other memory there,
            // because no library is loaded or unloaded while threads are measured.
            let refused =
                unsafe { libc::madvise(*begin as *mut _, end - begin, libc::MADV_DONTNEED) };
            all && refused == 0
        })
    }
}

/// The mappings of files in `/proc/PID/smaps` (proc_pid_smaps(5)) that cannot be written and have
/// no page of their own. Relocations and breakpoints are such pages.
fn unchanged(smaps: &str) -> Vec<[usize; 2]> {
    let mut found = Vec::new();
    let mut candidate = None;
    for line in smaps.lines() {
        if let Some(range) = mapping(line) {
            candidate = range;
        } else if let Some(kib) = line.strip_prefix("Anonymous:") {
            found.extend(candidate.take().filter(|_| kib.trim() == "0 kB"));
        }
    }
    found
}

/// `None` if the line does not begin a mapping; its range, if it may qualify.
fn mapping(line: &str) -> Option<Option<[usize; 2]>> {
    let mut fields = line.split_ascii_whitespace();
    let (begin, end) = fields.next()?.split_once('-')?;
    let [begin, end] = [begin, end].map(|text| usize::from_str_radix(text, 16).ok());
    let range = [begin?, end?];
    let access = fields.next()?;
    let file = fields.nth(3).is_some_and(|path| path.starts_with('/'));
    let constant = matches!(access, "r-xp" | "r--p");
    Some((file && constant && range[0] < range[1]).then_some(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
55d0-55e0 r--p 00000000 fe:00 12 /usr/bin/tool
Rss:                  16 kB
Anonymous:             0 kB
55e0-5600 r-xp 00010000 fe:00 12 /usr/bin/tool with spaces
Anonymous:             0 kB
VmFlags: rd ex mr mw me
5600-5610 r--p 00030000 fe:00 12 /usr/bin/tool
Anonymous:             4 kB
5610-5620 rw-p 00040000 fe:00 12 /usr/bin/tool
Anonymous:             0 kB
5620-5630 r--s 00000000 fe:00 13 /shared
Anonymous:             0 kB
7f00-7f10 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
7f10-7f20 r--p 00000000 00:00 0
Anonymous:             0 kB
7f20-7f30 r-xp 00000000 fe:00 14 /lib/cut off";

    #[test]
    fn only_pages_that_are_those_of_a_file_are_given_back() {
        assert_eq!(unchanged(SMAPS), [[0x55d0, 0x55e0], [0x55e0, 0x5600]]);
        assert!(unchanged("").is_empty());
    }

    #[test]
    fn code_runs_on_after_its_pages_were_given_back_and_faults_them_in() {
        let pages = CodePages::of_this_process();
        if pages.bytes() == 0 {
            eprintln!("skipped: the kernel does not show the mappings of this process");
            return;
        }
        let before = crate::ThreadCounters::now().page_faults;
        for round in 0..100 {
            assert!(pages.give_back());
            assert_eq!(format!("{:?}", vec![round; 2]), format!("[{round}, {round}]"));
        }
        assert!(crate::ThreadCounters::now().page_faults >= before + 100);
    }
}
