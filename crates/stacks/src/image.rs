//! The ELF files that programs have mapped, held open so that they stay readable after a program
//! has ended.
//!
//! A file is found by its path under `/proc/PID/root`. If it was deleted or replaced, it is found
//! as `/proc/PID/exe`, in `/proc/PID/map_files`, or in the program's memory. Files are read with
//! `pread` and not mapped, because a mapped file that shrinks would kill the profiler with
//! `SIGBUS`. File contents are not trusted: sizes are bounded, and malformed parts are skipped.
//!
//! 32-bit files are not read.

mod bytes;
mod elf;
mod source;
mod space;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use bytes::Bytes;
pub(crate) use elf::Section;
use elf::{Elf, FilePart};
use source::Source;
pub use space::{AddressSpace, Place, SharedPlace};

/// Maximum number of images. Functions in further files are not named.
const MAX_IMAGES: usize = 4096;

const MAX_DEBUG_LINK: usize = 256;

/// Id of an image within one [`Images`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageId(u32);

impl ImageId {
    /// Index of the image, starting at 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A virtual address in an ELF file, equal in all processes that map the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeAddress {
    /// The ELF file.
    pub image: ImageId,
    /// Virtual address according to the file's headers.
    pub address: u64,
}

/// An ELF file.
#[derive(Debug)]
pub struct Image {
    name: String,
    source: Source,
    elf: Elf,
    /// First process found to have mapped the file. Separate debug information is looked up in the
    /// root directory of that process.
    pid: u32,
}

/// `.eh_frame` and its index, each with its virtual address.
#[derive(Debug, Default)]
pub(crate) struct UnwindTables {
    pub(crate) frames: Option<(u64, Bytes)>,
    pub(crate) index: Option<(u64, Bytes)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    File { device: u64, inode: u64, size: u64 },
    BuildId(Vec<u8>),
}

/// The ELF files of all observed programs.
#[derive(Debug, Default)]
pub struct Images {
    images: Vec<Arc<Image>>,
    by_key: HashMap<Key, ImageId>,
}

impl Images {
    /// Creates a collection without images.
    pub fn new() -> Images {
        Images::default()
    }

    /// The image with this id.
    pub fn get(&self, id: ImageId) -> Option<&Arc<Image>> {
        self.images.get(id.index())
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// Returns `true` if there is no image.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    fn open(&mut self, pid: u32, name: String, source: Source) -> Option<ImageId> {
        let file_key = source.identity().map(|(device, inode)| Key::File {
            device,
            inode,
            size: source.len(),
        });
        if let Some(id) = file_key.as_ref().and_then(|key| self.by_key.get(key)) {
            return Some(*id);
        }
        let elf = Elf::read(&source)?;
        let build_key = elf.build_id.clone().map(Key::BuildId);
        let id = match build_key.as_ref().and_then(|key| self.by_key.get(key)) {
            Some(id) => *id,
            None if self.images.len() < MAX_IMAGES => {
                let id = ImageId(self.images.len() as u32);
                self.images.push(Arc::new(Image { name, source, elf, pid }));
                id
            }
            None => return None,
        };
        for key in [file_key, build_key].into_iter().flatten() {
            self.by_key.insert(key, id);
        }
        Some(id)
    }
}

impl Image {
    /// File name, without its directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Build ID that the linker gave the file.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.elf.build_id.as_deref()
    }

    /// Returns `true` if the file has a section of this name.
    pub fn has_section(&self, name: &str) -> bool {
        self.section(name).is_some()
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.elf.section(name)
    }

    pub(crate) fn section_at(&self, index: u32) -> Option<&Section> {
        self.elf.sections.get(index as usize)
    }

    pub(crate) fn sections(&self) -> &[Section] {
        &self.elf.sections
    }

    /// Bytes of a section. A compressed section is decompressed as a whole; `None` if its
    /// decompressed size exceeds `most` bytes.
    pub(crate) fn bytes(self: &Arc<Image>, section: &Section, most: u64) -> Option<Bytes> {
        match section.file_range() {
            Some((offset, size)) => Some(Bytes::of_file(self, offset, size)),
            None => section.uncompressed(&self.source, most).map(Bytes::resident),
        }
    }

    pub(crate) fn contents_at(&self, section: &Section, at: u64, buffer: &mut [u8]) -> usize {
        section.read_at(&self.source, at, buffer)
    }

    /// Exception handler frames and their index. Finds them without section headers, too, which may
    /// have been stripped.
    pub(crate) fn unwind_tables(self: &Arc<Image>) -> UnwindTables {
        let tables = self.elf.unwind_tables(&self.source);
        let bytes = |part: FilePart| (part.address, Bytes::of_file(self, part.offset, part.size));
        UnwindTables { frames: tables.frames.map(bytes), index: tables.index.map(bytes) }
    }

    /// Returns `true` if any bytes were copied. Parts of `buffer` in no segment are left unchanged.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        let mut any = false;
        let end = address.saturating_add(buffer.len() as u64);
        for segment in &self.elf.segments {
            let first = address.max(segment.address);
            let last = end.min(segment.address.saturating_add(segment.file_size));
            let offset = segment.offset.checked_add(first.wrapping_sub(segment.address));
            if let Some(offset) = offset.filter(|_| first < last) {
                let range = (first - address) as usize..(last - address) as usize;
                any |= self.source.read_at(offset, &mut buffer[range]) > 0;
            }
        }
        any
    }

    /// Opens the separate debug file, found by build ID or by the name in `.gnu_debuglink`. Its
    /// build ID must equal that of this file.
    pub(crate) fn open_debug_file(&self) -> Option<Image> {
        let id = self.elf.build_id.as_ref().filter(|id| id.len() >= 2)?;
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = format!("usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..]);
        let roots = [PathBuf::from(format!("/proc/{}/root", self.pid)), PathBuf::from("/")];
        let by_id = roots.into_iter().map(|root| root.join(&path));
        by_id.chain(self.linked_debug_files()).find_map(|path| {
            let source = Source::open(&path)?;
            let elf = Elf::read(&source)?;
            let other = source.identity() != self.source.identity();
            (other && elf.build_id == self.elf.build_id).then(|| Image {
                name: self.name.clone(),
                source,
                elf,
                pid: self.pid,
            })
        })
    }

    fn linked_debug_files(&self) -> Vec<PathBuf> {
        let found = || {
            let section = self.section(".gnu_debuglink")?;
            let mut bytes = [0; MAX_DEBUG_LINK];
            let length = self.contents_at(section, 0, &mut bytes);
            let name = bytes[..length].split(|&byte| byte == 0).next()?;
            let name = std::str::from_utf8(name).ok()?;
            let plain = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
            let folder = self.source.folder().filter(|_| plain)?;
            let global = PathBuf::from("/usr/lib/debug").join(folder.strip_prefix("/").ok()?);
            Some(vec![folder.join(name), folder.join(".debug").join(name), global.join(name)])
        };
        found().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::process::Mapping;
    use crate::stack::{Registers, Stack, StackBytes, Unwinder};
    use crate::symbol::Symbols;

    fn vdso() -> (u64, Vec<u8>) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
        let (start, rest) = line.split_once('-').unwrap();
        let (end, _) = rest.split_once(' ').unwrap();
        let hex = |digits| u64::from_str_radix(digits, 16).unwrap();
        let (start, end) = (hex(start), hex(end));
        let mut bytes = vec![0; (end - start) as usize];
        let memory = std::fs::File::open("/proc/self/mem").unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&memory, &mut bytes, start).unwrap();
        (start, bytes)
    }

    proptest! {
        #[test]
        fn hostile_files_are_unwound_and_named(
            changes in prop::collection::vec((0usize..1 << 14, any::<u8>()), 0..40),
            counters in prop::collection::vec(0u64..1 << 14, 1..40),
            stack in prop::collection::vec(any::<u64>(), 0..64),
        ) {
            let (_, mut bytes) = vdso();
            let length = bytes.len();
            for (at, value) in changes {
                bytes[at % length] = value;
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("hostile");
            std::fs::write(&path, &bytes).unwrap();
            let metadata = std::fs::metadata(&path).unwrap();
            let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
            let line = format!(
                "100000-{:x} r-xp 00000000 00:00 {inode} {}",
                0x10_0000 + length,
                path.display()
            );
            let mapping = Mapping::parse(line.as_bytes()).unwrap();
            let mut images = Images::new();
            let space = AddressSpace::new(std::process::id(), &[mapping], &mut images);
            let (mut unwinder, mut symbols) = (Unwinder::new(), Symbols::new());
            let words: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut found = Stack::default();
            for counter in counters {
                let registers = Registers::new(0x10_0000 + counter, 0x1000);
                let stack = StackBytes { base: 0x1000, bytes: &words };
                unwinder.unwind(&space, &images, registers, stack, &mut found);
                for frame in &found.frames {
                    prop_assert!(!symbols.describe(&images, frame.instruction()).is_empty());
                }
                if let Some(data) = space.data(0x10_0000 + counter) {
                    symbols.variable(&images, data);
                    let wanted = |_: &str| Some(());
                    let found = symbols.static_variables(&images, data.image, wanted);
                    found.into_iter().flatten().count();
                }
            }
        }
    }

    #[test]
    fn data_belongs_to_the_nearest_code_of_its_file() {
        let (_, bytes) = vdso();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("library");
        std::fs::write(&path, &bytes).unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
        let map = |start: u64, rights: &str| {
            let (end, path) = (start + 0x1000, path.display());
            let line = format!("{start:x}-{end:x} {rights} 00000000 00:00 {inode} {path}");
            Mapping::parse(line.as_bytes()).unwrap()
        };
        let (first, second) = (0x10_0000, 0x90_0000);
        let code = [map(first, "r-xp"), map(second, "r-xp")];
        let data = [map(first - 0x1000, "rw-p"), map(second + 0x1000, "rw-p")];
        let mut images = Images::new();
        let pid = std::process::id();
        let mut open = |mappings: &[Mapping]| AddressSpace::new(pid, mappings, &mut images);
        assert!(open(&data).images().is_empty());
        let space = open(&[code, data].concat());
        let offset = |address, of: u64| {
            let there = |address| space.data(address).map(|data| data.address);
            there(address).zip(there(of)).map(|(data, code)| data.wrapping_sub(code))
        };
        assert_eq!(offset(first - 0x1000, first), Some(0x1000_u64.wrapping_neg()));
        assert_eq!(offset(second + 0x1000, second), Some(0x1000));
    }

    #[test]
    fn a_file_is_opened_once() {
        let mut images = Images::new();
        let mut open = || images.open(1, "x".into(), Source::open("/proc/self/exe".as_ref())?);
        let first = open();
        assert!(first.is_some());
        assert_eq!(first, open());
        assert_eq!(images.len(), 1);
    }
}
