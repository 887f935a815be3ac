//! Finds the file that a process has mapped at an address.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::source::{Source, read_fully};
use super::{CodeAddress, Image, ImageId, Images};
use crate::process::Mapping;

/// Maximum size in bytes of a file that is copied from memory because the file itself is gone.
const MAX_COPIED: u64 = 32 << 20;

const MAX_FILES: usize = 4096;

/// The address space of a process: its code and its mapped files, by address.
#[derive(Debug)]
pub struct AddressSpace {
    regions: Vec<Region>,
    memory: Option<File>,
}

#[derive(Clone, Debug)]
struct Region {
    start: u64,
    end: u64,
    executable: bool,
    /// The image and its bias: an address in this process minus the corresponding address in the
    /// file.
    image: Option<(ImageId, u64)>,
    /// Start of the region in shared memory; `None` if the memory is private.
    shared: Option<SharedPlace>,
}

/// A location in shared memory, independent of the address at which a process maps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedPlace {
    /// Device of the file: major and minor number.
    pub device: (u32, u32),
    /// Inode of the file.
    pub inode: u64,
    /// Offset in the file.
    pub offset: u64,
}

/// Kind of memory at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Code in an ELF file.
    Image(CodeAddress),
    /// Code outside all ELF files, generated at run time.
    Generated,
    /// Memory that is not executable, or an unmapped address.
    NotCode,
}

impl AddressSpace {
    /// Opens the files that a process has mapped. A mapping that overlaps an earlier one is left
    /// out.
    pub fn new(pid: u32, mappings: &[Mapping], images: &mut Images) -> AddressSpace {
        let memory = File::open(format!("/proc/{pid}/mem")).ok();
        let mut regions: Vec<Region> = Vec::with_capacity(mappings.len());
        let mut sorted: Vec<&Mapping> = mappings.iter().collect();
        sorted.sort_by_key(|mapping| mapping.start);
        let opened = open_code(pid, &sorted, memory.as_ref(), images);
        let mut data: Vec<(usize, ImageId)> = Vec::new();
        for mapping in &sorted {
            let follows = regions.last().is_none_or(|last| last.end <= mapping.start);
            if !follows || mapping.start >= mapping.end {
                continue;
            }
            let image = opened.get(&file(mapping)).copied().flatten();
            // Only mappings of code determine a bias: segments share pages, so a mapping without
            // code could belong to several segments.
            let code = image.filter(|_| mapping.executable).and_then(|id| images.get(id));
            let bias = code.and_then(|image| bias(image, mapping));
            let (start, end, executable) = (mapping.start, mapping.end, mapping.executable);
            let shared = mapping.shared.then_some(SharedPlace {
                device: mapping.device,
                inode: mapping.inode,
                offset: mapping.offset,
            });
            regions.push(Region { start, end, executable, image: image.zip(bias), shared });
            data.extend(image.filter(|_| !executable).map(|image| (regions.len() - 1, image)));
        }
        let mut code: HashMap<ImageId, Vec<(u64, u64)>> = HashMap::new();
        for region in &regions {
            if let Some((image, bias)) = region.image {
                code.entry(image).or_default().push((region.start, bias));
            }
        }
        for (at, image) in data {
            let start = regions[at].start;
            let bias = code.get(&image).and_then(|biases| nearest(biases, start));
            regions[at].image = bias.map(|bias| (image, bias));
        }
        AddressSpace { regions, memory }
    }

    /// Finds the kind of memory at an address.
    pub fn place(&self, address: u64) -> Place {
        match self.region(address) {
            Some(Region { executable: true, image: Some((image, bias)), .. }) => {
                let address = address.wrapping_sub(*bias);
                Place::Image(CodeAddress { image: *image, address })
            }
            Some(Region { executable: true, image: None, .. }) => Place::Generated,
            _ => Place::NotCode,
        }
    }

    /// Finds the file that contains an address of data or code. Zero-initialised data has no bytes
    /// in the file; it directly follows the file's last mapping.
    pub fn data(&self, address: u64) -> Option<CodeAddress> {
        let at = self.regions.partition_point(|region| region.end <= address);
        let region = self.regions.get(at).filter(|region| region.start <= address)?;
        let (image, bias) = match region.image {
            Some(found) => found,
            None => {
                let before = self.regions.get(at.checked_sub(1)?)?;
                before.image.filter(|_| !region.executable && before.end == region.start)?
            }
        };
        Some(CodeAddress { image, address: address.wrapping_sub(bias) })
    }

    /// Location of an address in shared memory, equal in all processes that share the memory.
    pub fn shared_place(&self, address: u64) -> Option<SharedPlace> {
        let region = self.region(address)?;
        let place = region.shared?;
        Some(SharedPlace { offset: place.offset + (address - region.start), ..place })
    }

    /// Address at which this process has mapped a place in a file; `None` if it has not mapped it.
    pub fn address_of(&self, place: CodeAddress) -> Option<u64> {
        let biases = self.regions.iter().filter_map(|region| region.image);
        let (_, bias) = { biases }.find(|(image, _)| *image == place.image)?;
        let address = place.address.wrapping_add(bias);
        (self.data(address) == Some(place)).then_some(address)
    }

    /// Images of this process, without duplicates.
    pub fn images(&self) -> Vec<ImageId> {
        let mut images: Vec<_> =
            self.regions.iter().filter_map(|region| Some(region.image?.0)).collect();
        images.sort_unstable();
        images.dedup();
        images
    }

    pub(crate) fn is_code(&self, address: u64) -> bool {
        self.region(address).is_some_and(|region| region.executable)
    }

    /// Closes `/proc/PID/mem`; after that, the process's memory cannot be read.
    pub(crate) fn close_memory(&mut self) {
        self.memory = None;
    }

    pub(crate) fn read_memory(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.memory.as_ref().map_or(0, |memory| read_fully(memory, address, buffer))
    }

    fn region(&self, address: u64) -> Option<&Region> {
        let at = self.regions.partition_point(|region| region.end <= address);
        self.regions.get(at).filter(|region| region.start <= address)
    }
}

/// Bias of the code that starts nearest to an address. `code` contains start addresses and biases,
/// in ascending order.
fn nearest(code: &[(u64, u64)], address: u64) -> Option<u64> {
    let behind = code.partition_point(|&(start, _)| start < address);
    let near = &code[behind.saturating_sub(1)..code.len().min(behind + 1)];
    let nearest = near.iter().min_by_key(|(start, _)| start.abs_diff(address));
    nearest.map(|&(_, bias)| bias)
}

/// Device, inode and path of a mapped file.
type MappedFile<'a> = ((u32, u32), u64, Option<&'a Path>);

fn file(mapping: &Mapping) -> MappedFile<'_> {
    (mapping.device, mapping.inode, mapping.path.as_deref())
}

/// Opens the files whose code is mapped. A file of which only data is mapped is left out, because
/// its bias is unknown.
fn open_code<'a>(
    pid: u32,
    mappings: &[&'a Mapping],
    memory: Option<&File>,
    images: &mut Images,
) -> HashMap<MappedFile<'a>, Option<ImageId>> {
    let mut opened = HashMap::new();
    for &mapping in mappings {
        let known = !mapping.executable || opened.contains_key(&file(mapping));
        if !known && may_be_elf(mapping) && opened.len() < MAX_FILES {
            opened.insert(file(mapping), open(pid, mapping, mappings, memory, images));
        }
    }
    opened
}

fn may_be_elf(mapping: &Mapping) -> bool {
    mapping.inode != 0 || is_vdso(mapping)
}

fn is_vdso(mapping: &Mapping) -> bool {
    mapping.path.as_deref() == Some(Path::new("[vdso]"))
}

/// An address in the process minus the corresponding address in the file.
fn bias(image: &Image, mapping: &Mapping) -> Option<u64> {
    const PAGE: u64 = 4096;
    let segment = image.elf.segments.iter().find(|segment| {
        let start = segment.offset & !(PAGE - 1);
        let end = segment.offset.saturating_add(segment.file_size);
        segment.executable && start <= mapping.offset && mapping.offset < end
    })?;
    let address = segment.address.wrapping_sub(segment.offset).wrapping_add(mapping.offset);
    Some(mapping.start.wrapping_sub(address))
}

fn open(
    pid: u32,
    mapping: &Mapping,
    all: &[&Mapping],
    memory: Option<&File>,
    images: &mut Images,
) -> Option<ImageId> {
    let path = mapping.path.as_deref()?;
    let name = path.file_name()?.to_string_lossy().into_owned();
    if is_vdso(mapping) {
        let source = copy(std::slice::from_ref(&mapping), memory?)?;
        return images.open(pid, name, source);
    }
    let same_file =
        |source: &Source| source.identity().is_some_and(|(_, inode)| inode == mapping.inode);
    let relative = path.strip_prefix("/").unwrap_or(path);
    let by_path = || Source::open(&PathBuf::from(format!("/proc/{pid}/root")).join(relative));
    let by_range = || {
        let range = format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end);
        Source::open(range.as_ref())
    };
    let executable = PathBuf::from(format!("/proc/{pid}/exe"));
    let by_executable = || {
        let inode = fs::metadata(&executable).ok()?.ino();
        (inode == mapping.inode).then(|| Source::open(&executable))?
    };
    let from_memory = || {
        let parts: Vec<&Mapping> = all
            .iter()
            .copied()
            .filter(|part| part.inode == mapping.inode && part.path == mapping.path)
            .collect();
        copy(&parts, memory?)
    };
    // Some file systems report one inode in `maps` and another in stat(2). Therefore, if no file
    // with this inode is found, the file at the path is used, unless the mapped file was deleted.
    let source = by_path()
        .filter(same_file)
        .or_else(by_range)
        .or_else(by_executable)
        .or_else(|| if mapping.deleted { from_memory() } else { by_path() })?;
    images.open(pid, name, source)
}

fn copy(parts: &[&Mapping], memory: &File) -> Option<Source> {
    let vdso = parts.first().is_some_and(|part| is_vdso(part));
    let offset = |part: &Mapping| if vdso { 0 } else { part.offset };
    let size = |part: &Mapping| offset(part).checked_add(part.end.checked_sub(part.start)?);
    let length = parts.iter().filter_map(|part| size(part)).filter(|&end| end <= MAX_COPIED).max();
    let mut bytes = vec![0; usize::try_from(length?).ok()?];
    for part in parts.iter().filter(|part| size(part).is_some_and(|end| end <= MAX_COPIED)) {
        let range = offset(part) as usize..size(part)? as usize;
        read_fully(memory, part.start, &mut bytes[range]);
    }
    Some(Source::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_the_same_wherever_it_is_mapped() {
        let mapped = |lines: [&[u8]; 2]| {
            let maps: Vec<Mapping> =
                lines.iter().map(|line| Mapping::parse(line).unwrap()).collect();
            AddressSpace::new(std::process::id(), &maps, &mut Images::default())
        };
        let one = mapped([
            b"1000-3000 rw-s 00000000 00:01 77 /dev/zero (deleted)",
            b"5000-6000 rw-p 00000000 00:00 0 ",
        ]);
        let other = mapped([
            b"8000-9000 rw-s 00001000 00:01 77 /dev/zero (deleted)",
            b"a000-b000 rw-s 00001000 00:01 78 /dev/zero (deleted)",
        ]);
        let place = one.shared_place(0x2010);
        assert_eq!(place.map(|place| place.offset), Some(0x1010));
        assert_eq!(place, other.shared_place(0x8010));
        assert_ne!(place, other.shared_place(0xa010));
        assert_eq!((one.shared_place(0x5000), one.shared_place(0x4000)), (None, None));
    }
}
