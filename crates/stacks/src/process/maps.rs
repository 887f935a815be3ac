//! Reader of `/proc/PID/maps` (proc_pid_maps(5)).
//!
//! The kernel writes the file page by page, while the process may map and unmap memory. So a list
//! may show different moments.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of mappings that are read; by default the kernel allows 65,530.
pub const MAX_MAPPINGS: usize = 1 << 17;

/// Maximum number of bytes of a line that are read; the rest of a longer line is skipped. Paths
/// have at most 4,096 bytes.
const MAX_LINE: usize = 8 << 10;

/// A mapping in a process's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address of the mapping.
    pub start: u64,
    /// First address after the mapping.
    pub end: u64,
    /// Offset of `start` in the file.
    pub offset: u64,
    /// True if the memory can be read.
    pub readable: bool,
    /// True if the memory can be written.
    pub writable: bool,
    /// True if the memory can be executed.
    pub executable: bool,
    /// True if writing changes the file, or memory that is shared with other processes.
    pub shared: bool,
    /// Device of the file: major and minor number.
    pub device: (u32, u32),
    /// Inode of the file; 0 if none is mapped.
    pub inode: u64,
    /// Path of the file in the process's own root, or a name such as `[heap]` or `[vdso]`.
    pub path: Option<Arc<Path>>,
    /// True if the file was deleted; its path may belong to another file by now.
    pub deleted: bool,
}

impl Mapping {
    /// Returns `true` for addresses within the mapping.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Parses a line: `start-end rwxp offset major:minor inode   path`. `None` if the kernel never
    /// writes such a line.
    pub fn parse(line: &[u8]) -> Option<Mapping> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut text = || std::str::from_utf8(fields.next()?).ok();
        let (start, end) = text()?.split_once('-')?;
        let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
        let rights = text()?.as_bytes();
        let offset = hexadecimal(text()?)?;
        let (major, minor) = text()?.split_once(':')?;
        let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
        let inode = text()?.parse().ok()?;
        let path = fields.next().unwrap_or_default();
        let path = &path[path.iter().take_while(|&&byte| byte == b' ').count()..];
        let [read, write, execute, share] = *rights else { return None };
        if start >= end {
            return None;
        }
        // An existing file whose name ends in ` (deleted)` is treated as deleted.
        let remaining = path.strip_suffix(b" (deleted)").filter(|_| path.starts_with(b"/"));
        let name = unescape(remaining.unwrap_or(path));
        Some(Mapping {
            start,
            end,
            offset,
            readable: read == b'r',
            writable: write == b'w',
            executable: execute == b'x',
            shared: share == b's',
            device,
            inode,
            path: (!name.is_empty()).then(|| Path::new(OsStr::from_bytes(&name)).into()),
            deleted: remaining.is_some(),
        })
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// The kernel escapes line feeds as `\012`, and nothing else.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        match rest.strip_prefix(br"\012") {
            Some(behind) => {
                name.push(b'\n');
                rest = behind;
            }
            None => {
                name.push(byte);
                rest = behind;
            }
        }
    }
    name
}

pub(crate) fn read(file: OwnedFd) -> io::Result<Vec<Mapping>> {
    match parse(BufReader::with_capacity(MAX_LINE, File::from(file))) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(Vec::new()),
        mappings => mappings,
    }
}

fn parse(mut lines: impl BufRead) -> io::Result<Vec<Mapping>> {
    let mut mappings: Vec<Mapping> = Vec::new();
    let mut line = Vec::new();
    while mappings.len() < MAX_MAPPINGS && next_line(&mut lines, &mut line)? {
        if let Some(mut mapping) = Mapping::parse(&line) {
            // Neighbouring mappings usually belong to the same file, so they share one path.
            if let Some(last) = mappings.last()
                && last.path == mapping.path
            {
                mapping.path.clone_from(&last.path);
            }
            mappings.push(mapping);
        }
    }
    mappings.sort_by_key(|mapping| mapping.start);
    Ok(mappings)
}

/// Reads at most [`MAX_LINE`] bytes of the next line; `false` at the end of the file.
fn next_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let available = lines.fill_buf()?;
        if available.is_empty() {
            return Ok(any);
        }
        any = true;
        let feed = available.iter().position(|&byte| byte == b'\n');
        let end = feed.unwrap_or(available.len());
        let room = MAX_LINE - line.len();
        line.extend_from_slice(&available[..end.min(room)]);
        lines.consume(end + usize::from(feed.is_some()));
        if feed.is_some() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = b"7f5c80021000-7f5c80022000 r-xp 0001f000 fd:01 270641     /usr/lib/libc.so.6\n";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.start, mapping.end), (0x7f5c_8002_1000, 0x7f5c_8002_2000));
        assert_eq!((mapping.offset, mapping.device, mapping.inode), (0x1f000, (0xfd, 1), 270_641));
        assert!(mapping.readable && !mapping.writable && mapping.executable && !mapping.shared);
        assert_eq!(mapping.path.as_deref(), Some(Path::new("/usr/lib/libc.so.6")));
        assert!(mapping.contains(mapping.start) && !mapping.contains(mapping.end));

        let anonymous =
            Mapping::parse(b"7f5c80022000-7f5c80023000 rw-s 00000000 00:00 0 ").unwrap();
        assert_eq!(anonymous.path, None);
        assert!(anonymous.shared);
        let heap = b"5555-6666 rw-p 00000000 00:00 0                          [heap]";
        assert_eq!(Mapping::parse(heap).unwrap().path.as_deref(), Some(Path::new("[heap]")));
    }

    #[test]
    fn paths_may_contain_anything() {
        let path = |text: &str| {
            let line = format!("1000-2000 r-xp 00000000 08:01 5 {:20}{text}", "");
            let mapping = Mapping::parse(line.as_bytes()).unwrap();
            (mapping.path.unwrap().to_str().unwrap().to_owned(), mapping.deleted)
        };
        assert_eq!(path("/a b  c"), ("/a b  c".to_owned(), false));
        assert_eq!(path("/tmp/x (deleted)"), ("/tmp/x".to_owned(), true));
        assert_eq!(path(r"/a\012b\040"), ("/a\nb\\040".to_owned(), false));
        assert_eq!(path("[anon:x (deleted)]"), ("[anon:x (deleted)]".to_owned(), false));
    }

    #[test]
    fn other_lines_are_skipped_and_long_ones_cut() {
        for line in
            ["", "1000", "2000-1000 r--p 0 0:0 0", "1000-2000 r-p 0 0:0 0", "g-h r--p 0 0:0 0"]
        {
            assert_eq!(Mapping::parse(line.as_bytes()), None, "{line}");
        }
        let long = "x".repeat(3 * MAX_LINE);
        let text = format!("nonsense\n3000-4000 r--p 0 0:0 7 /{long}\n1000-2000 rw-p 0 0:0 0\n");
        for capacity in [1, 7, 100_000] {
            let mappings = parse(BufReader::with_capacity(capacity, text.as_bytes())).unwrap();
            assert_eq!(mappings.len(), 2);
            assert_eq!((mappings[0].start, mappings[1].start), (0x1000, 0x3000));
            assert!(mappings[1].path.as_ref().unwrap().as_os_str().len() < MAX_LINE);
        }
    }

    #[test]
    fn neighbours_share_their_path() {
        let text = "1000-2000 r--p 0 0:0 7 /a\n2000-3000 r-xp 0 0:0 7 /a\n";
        let mappings = parse(text.as_bytes()).unwrap();
        let [first, second] = &mappings[..] else { panic!() };
        assert!(Arc::ptr_eq(first.path.as_ref().unwrap(), second.path.as_ref().unwrap()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b' '), any::<u8>()], 0..500),
            capacity in 1usize..64,
        ) {
            let _ = parse(BufReader::with_capacity(capacity, &text[..])).unwrap();
        }

        #[test]
        fn any_mapping_is_read(
            start: u64, length in 1u64..u64::MAX, offset: u64, major: u32, minor: u32, inode: u64,
            path in "(/[^\n\\\\]{0,40})?",
        ) {
            let end = start.saturating_add(length);
            prop_assume!(start < end);
            let line = format!(
                "{start:x}-{end:x} rwxp {offset:08x} {major:02x}:{minor:02x} {inode}    {path}"
            );
            let mapping = Mapping::parse(line.as_bytes()).unwrap();
            prop_assert_eq!((mapping.start, mapping.end), (start, end));
            prop_assert_eq!((mapping.offset, mapping.device), (offset, (major, minor)));
            prop_assert_eq!(mapping.inode, inode);
            let name = mapping.path.map(|path| path.to_str().unwrap().to_owned());
            let suffix = if mapping.deleted { " (deleted)" } else { "" };
            prop_assert_eq!(name.unwrap_or_default() + suffix, path);
        }
    }
}
