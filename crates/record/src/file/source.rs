//! Opens a regular file of lines, plain or compressed with gzip.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use rustix::fs::OFlags;

/// Magic number of gzip (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Maximum decompression ratio. Raw files expand about threefold, folded ones at most twentyfold; a
/// larger ratio indicates a decompression bomb.
const MAX_TIMES: u64 = 200;
/// Decompressed size, in bytes, up to which the ratio is not limited.
const MAX_SMALL_FILE: u64 = 16 << 20;

pub(super) struct Source {
    file: File,
    pub(super) lines: Box<dyn BufRead>,
    /// True if the file is compressed. No run can continue in such a file.
    pub(super) packed: bool,
}

impl Source {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = regular(path)?;
        let mut plain = BufReader::new(file.try_clone()?);
        let packed = plain.fill_buf()?.starts_with(&GZIP);
        let lines: Box<dyn BufRead> = if packed {
            let length = file.metadata()?.len();
            Box::new(BufReader::new(Unpacked {
                packed: MultiGzDecoder::new(plain),
                left: MAX_SMALL_FILE.max(length.saturating_mul(MAX_TIMES)),
            }))
        } else {
            Box::new(plain)
        };
        Ok(Source { file, lines, packed })
    }

    /// Size of the file on disk, in bytes.
    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

/// Opens a regular file. Other files are refused: a named pipe, for example, would block until it
/// has a writer.
pub(super) fn regular(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// Decompressed contents. Reading fails beyond a limit.
struct Unpacked {
    packed: MultiGzDecoder<BufReader<File>>,
    left: u64,
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.packed.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidData => {
                io::Error::new(error.kind(), "its compressed data is damaged or cut off")
            }
            _ => error,
        })?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it unpacks to more than {MAX_TIMES} times its size"),
            )
        })?;
        Ok(read)
    }
}
