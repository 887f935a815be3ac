//! Bytes of a file, in the form that `gimli` reads, with only a few pages in memory at a time.
//!
//! Debug information may be larger than the profiler's memory limit, and little of it is needed. If
//! a file has shrunk, reading beyond its new end fails.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use gimli::{Error, LittleEndian, Reader, ReaderOffsetId};

use super::Image;

const PAGE: u64 = 1 << 13;
/// Maximum number of cached pages of one section: 128 KB.
const MAX_PAGES: usize = 16;

type Page = Arc<[u8]>;

#[derive(Clone)]
pub(crate) struct Bytes {
    contents: Arc<Contents>,
    start: u64,
    end: u64,
    /// The page that was read last, which begins at `page_start`.
    page: Page,
    page_start: u64,
}

#[derive(Debug)]
struct Contents {
    image: Option<Arc<Image>>,
    /// Position in the file where the bytes begin.
    offset: u64,
    pages: Mutex<HashMap<u64, Page>>,
}

impl fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}..{}", self.start, self.end)
    }
}

impl Contents {
    fn page(&self, start: u64) -> Page {
        let Some(image) = &self.image else { return Arc::default() };
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = pages.get(&start) {
            return page.clone();
        }
        let mut bytes = vec![0; PAGE as usize];
        let offset = self.offset.saturating_add(start);
        let length = image.source.read_at(offset, &mut bytes);
        bytes.truncate(length);
        let page: Page = bytes.into();
        if pages.len() >= MAX_PAGES {
            pages.clear();
        }
        pages.insert(start, page.clone());
        page
    }
}

impl Bytes {
    pub(crate) fn of_file(image: &Arc<Image>, offset: u64, size: u64) -> Bytes {
        let image = Some(image.clone());
        let contents = Contents { image, offset, pages: Mutex::default() };
        let end = size.min(usize::MAX as u64);
        Bytes { contents: contents.into(), start: 0, end, page: Arc::default(), page_start: 0 }
    }

    pub(crate) fn resident(bytes: Vec<u8>) -> Bytes {
        let contents = Contents { image: None, offset: 0, pages: Mutex::default() };
        let end = bytes.len() as u64;
        Bytes { contents: contents.into(), start: 0, end, page: bytes.into(), page_start: 0 }
    }

    /// Number of bytes held in memory permanently; 0 if pages are read on demand.
    pub(crate) fn resident_size(&self) -> u64 {
        if self.contents.image.is_some() { 0 } else { self.page.len() as u64 }
    }

    fn turn_to(&mut self, at: u64) {
        if self.contents.image.is_some() {
            let start = at - at % PAGE;
            self.page = self.contents.page(start);
            self.page_start = start;
        }
    }

    /// The bytes from position `at` to the end of its page; empty beyond the end of the file.
    fn run(&mut self, at: u64) -> &[u8] {
        let within =
            |page: &Page, start: u64| at.checked_sub(start).filter(|&at| at < page.len() as u64);
        if within(&self.page, self.page_start).is_none() {
            self.turn_to(at);
        }
        let most = self.end.saturating_sub(at) as usize;
        match within(&self.page, self.page_start) {
            Some(from) => {
                let run = &self.page[from as usize..];
                &run[..run.len().min(most)]
            }
            None => &[],
        }
    }

    fn ended(&self) -> Error {
        Error::UnexpectedEof(self.offset_id())
    }
}

impl Reader for Bytes {
    type Endian = LittleEndian;
    type Offset = usize;

    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn empty(&mut self) {
        self.end = self.start;
    }

    fn truncate(&mut self, length: usize) -> gimli::Result<()> {
        if length > self.len() {
            return Err(self.ended());
        }
        self.end = self.start + length as u64;
        Ok(())
    }

    fn offset_from(&self, base: &Bytes) -> usize {
        self.start.wrapping_sub(base.start) as usize
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.start)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let inside = (self.start..=self.end).contains(&id.0);
        inside.then(|| (id.0 - self.start) as usize)
    }

    fn find(&self, byte: u8) -> gimli::Result<usize> {
        let mut reader = self.clone();
        let mut at = self.start;
        while at < self.end {
            let run = reader.run(at);
            if run.is_empty() {
                break;
            }
            if let Some(found) = run.iter().position(|&other| other == byte) {
                return Ok((at - self.start) as usize + found);
            }
            at += run.len() as u64;
        }
        Err(self.ended())
    }

    #[inline]
    fn skip(&mut self, length: usize) -> gimli::Result<()> {
        if length > self.len() {
            return Err(self.ended());
        }
        self.start += length as u64;
        Ok(())
    }

    fn split(&mut self, length: usize) -> gimli::Result<Bytes> {
        let mut first = self.clone();
        first.truncate(length)?;
        self.start += length as u64;
        Ok(first)
    }

    fn to_slice(&self) -> gimli::Result<Cow<'_, [u8]>> {
        let mut reader = self.clone();
        let mut bytes = Vec::new();
        while (bytes.len()) < self.len() {
            let run = reader.run(self.start + bytes.len() as u64);
            if run.is_empty() {
                return Err(self.ended());
            }
            bytes.extend_from_slice(run);
        }
        Ok(bytes.into())
    }

    fn to_string(&self) -> gimli::Result<Cow<'_, str>> {
        match String::from_utf8(self.to_slice()?.into_owned()) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(Error::BadUtf8),
        }
    }

    fn to_string_lossy(&self) -> gimli::Result<Cow<'_, str>> {
        Ok(String::from_utf8_lossy(&self.to_slice()?).into_owned().into())
    }

    #[inline]
    fn read_slice(&mut self, buffer: &mut [u8]) -> gimli::Result<()> {
        if buffer.len() > self.len() {
            return Err(self.ended());
        }
        let mut done = 0;
        while done < buffer.len() {
            let run = self.run(self.start + done as u64);
            let more = run.len().min(buffer.len() - done);
            if more == 0 {
                return Err(self.ended());
            }
            buffer[done..done + more].copy_from_slice(&run[..more]);
            done += more;
        }
        self.start += done as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::image::{Elf, Source};

    fn image(bytes: Vec<u8>) -> Arc<Image> {
        let source = Source::from_bytes(bytes);
        let (name, elf, pid) = (String::new(), Elf::default(), 0);
        Arc::new(Image { name, source, elf, pid })
    }

    proptest! {
        #[test]
        fn pages_make_no_difference(
            length in 0usize..5 * PAGE as usize,
            offset in 0u64..100,
            steps in prop::collection::vec((0usize..3 * PAGE as usize, 0u8..5), 1..30),
        ) {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + at / 251) as u8).collect();
            let size = (length as u64).saturating_sub(offset);
            let file = image(bytes.clone());
            let mut paged = Bytes::of_file(&file, offset, size);
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            let mut plain = gimli::EndianSlice::new(rest, LittleEndian);
            for (length, step) in steps {
                match step {
                    0 => prop_assert_eq!(paged.skip(length).is_ok(), plain.skip(length).is_ok()),
                    1 => prop_assert_eq!(paged.read_u8().ok(), plain.read_u8().ok()),
                    2 => prop_assert_eq!(paged.read_u64().ok(), plain.read_u64().ok()),
                    3 => prop_assert_eq!(paged.find(length as u8).ok(), Reader::find(&plain, length as u8).ok()),
                    _ => {
                        let (one, other) = (paged.split(length), Reader::split(&mut plain, length));
                        let one = one.and_then(|part| part.to_slice().map(Cow::into_owned));
                        let other = other.map(|part| part.slice().to_vec());
                        prop_assert_eq!(one.ok(), other.ok());
                    }
                }
                prop_assert_eq!(Reader::len(&paged), Reader::len(&plain));
            }
        }
    }

    #[test]
    fn a_file_that_has_shrunk_has_ended() {
        let mut bytes = Bytes::of_file(&image(vec![1; 100]), 50, 1000);
        assert_eq!(bytes.read_u64().unwrap(), 0x0101_0101_0101_0101);
        assert!(bytes.find(0).is_err());
        assert!(bytes.to_slice().is_err());
        assert!(bytes.skip(500).is_ok());
        assert!(bytes.read_u8().is_err());
    }
}
