//! The ELF files that a program has mapped, held open so that they outlive it.
//!
//! A file is found by its path under `/proc/PID/root`, or, once deleted or replaced, as
//! `/proc/PID/exe`, by `/proc/PID/map_files`, or in the program's memory. Files are read with
//! `pread` and never mapped: a file that shrinks would end the profiler with `SIGBUS`. Nothing
//! that a file says is believed: sizes are bounded, and what makes no sense is left out.
//!
//! 32-bit files are not read.

mod elf;
mod source;
mod space;

use std::collections::HashMap;
use std::sync::Arc;

use elf::Elf;
pub(crate) use elf::Section;
use source::Source;
pub use space::{AddressSpace, Place};

/// Images that are kept at most; those of programs that map more stay unnamed.
const MAX_IMAGES: usize = 4096;

/// An image, for as long as its [`Images`] live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageId(u32);

impl ImageId {
    /// Position among the images, counted from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An address in the words of the ELF file that contains it: the same in every process that maps
/// the file, wherever it lies there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeAddress {
    /// The ELF file.
    pub image: ImageId,
    /// Virtual address, as the file's headers count.
    pub address: u64,
}

/// An ELF file.
#[derive(Debug)]
pub struct Image {
    name: String,
    source: Source,
    elf: Elf,
    /// Process that mapped the file first: its root directory has the separate debug information.
    pid: u32,
}

/// Identity of a file among those of all processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    File { device: u64, inode: u64, size: u64 },
    BuildId(Vec<u8>),
}

/// The ELF files of all programs that are looked at.
#[derive(Debug, Default)]
pub struct Images {
    images: Vec<Arc<Image>>,
    by_key: HashMap<Key, ImageId>,
}

impl Images {
    /// No images.
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

    /// Returns true if there is no image.
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

    /// Build id that the linker gave the file.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.elf.build_id.as_deref()
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

    /// Contents of a section, uncompressed; nothing if they exceed `most` bytes.
    pub(crate) fn contents(&self, section: &Section, most: u64) -> Option<Vec<u8>> {
        section.contents(&self.source, most)
    }

    /// Copies bytes of a section, which must not be compressed; returns their number.
    pub(crate) fn contents_at(&self, section: &Section, at: u64, buffer: &mut [u8]) -> usize {
        section.read_at(&self.source, at, buffer)
    }

    /// Exception handler frames and their index, where the program headers say they are: sections
    /// may be stripped.
    pub(crate) fn unwind_tables(&self, most: u64) -> elf::UnwindTables {
        self.elf.unwind_tables(&self.source, most)
    }

    /// Copies what the file has from a virtual address on; returns true if that is anything. Bytes
    /// that belong to no segment stay as they are.
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

    /// Opens the separate debug information of a file, by its build id.
    pub(crate) fn open_debug_file(&self) -> Option<Image> {
        let id = self.elf.build_id.as_ref().filter(|id| id.len() >= 2)?;
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = format!("usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..]);
        let roots = [format!("/proc/{}/root/", self.pid), "/".to_owned()];
        roots.iter().find_map(|root| {
            let source = Source::open(format!("{root}{path}").as_ref())?;
            let elf = Elf::read(&source)?;
            (elf.build_id == self.elf.build_id).then(|| Image {
                name: self.name.clone(),
                source,
                elf,
                pid: self.pid,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
