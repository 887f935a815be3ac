//! Reads 64-bit little-endian ELF files, see elf(5), without trusting their contents.

use std::io::Read;

use super::source::Source;

const MAX_SEGMENTS: usize = 256;
const MAX_SECTIONS: usize = 65_535;
const MAX_NAMES: u64 = 1 << 22;
const MAX_NOTES: u64 = 1 << 16;

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const SHT_NOBITS: u32 = 8;
const SHF_WRITE: u64 = 1;
const SHF_TLS: u64 = 1 << 10;
const SHF_COMPRESSED: u64 = 1 << 11;
const ELFCOMPRESS_ZLIB: u32 = 1;
const NT_GNU_BUILD_ID: u32 = 3;
const EXECUTABLE: u32 = 1;
const EH_PE_PCREL_SDATA4: u8 = 0x1b;

#[derive(Debug, Default)]
pub(super) struct Elf {
    pub(super) segments: Vec<Segment>,
    pub(super) sections: Vec<Section>,
    pub(super) build_id: Option<Vec<u8>>,
    frame_index: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) file_size: u64,
    pub(super) executable: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// Index of a related section; for a symbol table, the section with the names.
    pub(crate) link: u32,
    offset: u64,
    kind: u32,
    flags: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilePart {
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnwindParts {
    pub(super) frames: Option<FilePart>,
    pub(super) index: Option<FilePart>,
}

impl Elf {
    pub(super) fn read(source: &Source) -> Option<Elf> {
        let header = source.read(0, 64, 64)?;
        let ident_ok = header.starts_with(b"\x7fELF\x02\x01");
        if !ident_ok {
            return None;
        }
        let mut elf = Elf::default();
        elf.read_segments(source, &header);
        elf.read_sections(source, &header);
        Some(elf)
    }

    fn read_segments(&mut self, source: &Source, header: &[u8]) -> Option<()> {
        let (offset, size, count) = (u64_at(header, 32)?, u16_at(header, 54)?, u16_at(header, 56)?);
        let table = table(source, offset, size.into(), 56, usize::from(count).min(MAX_SEGMENTS))?;
        for entry in table.chunks_exact(size.into()) {
            let (kind, flags) = (u32_at(entry, 0)?, u32_at(entry, 4)?);
            let (offset, address) = (u64_at(entry, 8)?, u64_at(entry, 16)?);
            let file_size = u64_at(entry, 32)?;
            let executable = flags & EXECUTABLE != 0;
            match kind {
                PT_LOAD => {
                    self.segments.push(Segment { offset, address, file_size, executable });
                }
                PT_GNU_EH_FRAME => self.frame_index = Some((address, file_size)),
                PT_NOTE if self.build_id.is_none() => {
                    let notes = source.read(offset, file_size, MAX_NOTES);
                    self.build_id = notes.and_then(|notes| build_id(&notes));
                }
                _ => {}
            }
        }
        Some(())
    }

    fn read_sections(&mut self, source: &Source, header: &[u8]) -> Option<()> {
        let (offset, size, count) = (u64_at(header, 40)?, u16_at(header, 58)?, u16_at(header, 60)?);
        let names = usize::from(u16_at(header, 62)?);
        let table = table(source, offset, size.into(), 64, usize::from(count).min(MAX_SECTIONS))?;
        let entries = || table.chunks_exact(size.into());
        let names = entries().nth(names)?;
        let names = source.read(u64_at(names, 24)?, u64_at(names, 32)?, MAX_NAMES)?;
        for entry in entries() {
            let name = string_at(&names, u32_at(entry, 0)? as usize).unwrap_or_default();
            self.sections.push(Section {
                name: String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned(),
                kind: u32_at(entry, 4)?,
                flags: u64_at(entry, 8)?,
                address: u64_at(entry, 16)?,
                offset: u64_at(entry, 24)?,
                size: u64_at(entry, 32)?,
                link: u32_at(entry, 40)?,
            });
        }
        Some(())
    }

    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    pub(super) fn unwind_tables(&self, source: &Source) -> UnwindParts {
        let index = self.frame_index.and_then(|(address, size)| {
            Some(FilePart { address, offset: self.file_offset(address)?, size })
        });
        let section = self.section(".eh_frame").and_then(|section| {
            let (offset, size) = section.file_range()?;
            Some(FilePart { address: section.address, offset, size })
        });
        let frames = section.or_else(|| self.frames_of(source, index?));
        UnwindParts { frames, index }
    }

    /// Finds `.eh_frame` in a file without section headers. The index contains its start address;
    /// its end is taken to be the end of the segment.
    fn frames_of(&self, source: &Source, index: FilePart) -> Option<FilePart> {
        let head = source.read(index.offset, 8, 8)?;
        if *head.get(1)? != EH_PE_PCREL_SDATA4 {
            return None;
        }
        let relative = i64::from(u32_at(&head, 4)?.cast_signed());
        let address = index.address.checked_add(4)?.checked_add_signed(relative)?;
        let segment = self.segments.iter().find(|segment| segment.contains(address))?;
        let size = segment.file_size - (address - segment.address);
        Some(FilePart { address, offset: self.file_offset(address)?, size })
    }

    fn file_offset(&self, address: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.contains(address))?;
        segment.offset.checked_add(address - segment.address)
    }
}

impl Segment {
    fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|within| within < self.file_size)
    }
}

impl Section {
    pub(super) fn read_at(&self, source: &Source, at: u64, buffer: &mut [u8]) -> usize {
        let left = self.size.saturating_sub(at).min(buffer.len() as u64) as usize;
        match self.file_range().and_then(|(offset, _)| offset.checked_add(at)) {
            Some(offset) => source.read_at(offset, &mut buffer[..left]),
            None => 0,
        }
    }

    /// Offset and size in the file; `None` if the section is compressed or takes no space in the
    /// file.
    pub(super) fn file_range(&self) -> Option<(u64, u64)> {
        let plain = self.kind != SHT_NOBITS && self.flags & SHF_COMPRESSED == 0;
        plain.then_some((self.offset, self.size))
    }

    /// Returns `true` if the program may change the section at run time.
    pub(crate) fn is_variable(&self) -> bool {
        let constant_soon = self.name.starts_with(".data.rel.ro") || self.name.starts_with(".got");
        self.flags & (SHF_WRITE | SHF_TLS) == SHF_WRITE && !constant_soon
    }

    /// Contents of a compressed section; `None` if they are larger than `most` bytes.
    pub(super) fn uncompressed(&self, source: &Source, most: u64) -> Option<Vec<u8>> {
        if self.kind == SHT_NOBITS || self.flags & SHF_COMPRESSED == 0 {
            return None;
        }
        let bytes = source.read(self.offset, self.size, most)?;
        let (kind, size) = (u32_at(&bytes, 0)?, u64_at(&bytes, 8)?);
        if kind != ELFCOMPRESS_ZLIB || size > most {
            return None;
        }
        let mut contents = Vec::new();
        let decoder = flate2::read::ZlibDecoder::new(bytes.get(24..)?);
        decoder.take(size).read_to_end(&mut contents).ok()?;
        (contents.len() as u64 == size).then_some(contents)
    }
}

fn table(source: &Source, offset: u64, size: u64, least: u64, count: usize) -> Option<Vec<u8>> {
    if size < least || count == 0 {
        return None;
    }
    source.read(offset, size.checked_mul(count as u64)?, 1 << 24)
}

fn build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    loop {
        let (name, size) = (u32_at(notes, 0)? as usize, u32_at(notes, 4)? as usize);
        let kind = u32_at(notes, 8)?;
        let name_end = name.checked_next_multiple_of(4)?.checked_add(12)?;
        let end = name_end.checked_add(size)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..12 + 4) == Some(b"GNU\0") {
            return notes.get(name_end..end).filter(|id| id.len() <= 64).map(<[u8]>::to_vec);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The string at an offset in a table, without its NUL; `None` if it is not terminated.
pub(crate) fn string_at(table: &[u8], at: usize) -> Option<&[u8]> {
    let rest = table.get(at..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn own() -> Vec<u8> {
        let source = Source::open("/proc/self/exe".as_ref()).unwrap();
        source.read(0, 1 << 14, 1 << 14).unwrap()
    }

    #[test]
    fn own_file_is_read() {
        let source = Source::open("/proc/self/exe".as_ref()).unwrap();
        let elf = Elf::read(&source).unwrap();
        assert!(elf.segments.iter().any(|segment| segment.executable));
        let tables = elf.unwind_tables(&source);
        let frames = tables.frames.unwrap();
        assert_eq!(frames.address, elf.section(".eh_frame").unwrap().address);

        let stripped = Elf { sections: Vec::new(), ..elf };
        let longer = stripped.unwind_tables(&source).frames.unwrap();
        assert_eq!((longer.address, longer.offset), (frames.address, frames.offset));
        assert!(longer.size >= frames.size);
    }

    proptest! {
        #[test]
        fn hostile_files_are_survived(
            changes in prop::collection::vec((0usize..1 << 14, any::<u8>()), 0..64),
            head in prop::collection::vec((16usize..64, any::<u8>()), 0..16),
            length in 0usize..1 << 14,
        ) {
            let mut bytes = own();
            for (at, value) in changes.into_iter().chain(head) {
                bytes[at] = value;
            }
            bytes.truncate(length);
            let source = Source::from_bytes(bytes);
            if let Some(elf) = Elf::read(&source) {
                elf.unwind_tables(&source);
                for section in elf.sections.iter().take(50) {
                    section.uncompressed(&source, 1 << 20);
                }
            }
        }
    }
}
