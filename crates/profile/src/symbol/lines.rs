//! Source lines and inlined functions, from DWARF.

use std::sync::Arc;

use gimli::{Dwarf, EndianArcSlice, LittleEndian};

use super::Function;
use crate::image::Image;

/// Larger debug information is not read.
const MAX_BYTES: u64 = 192 << 20;
/// Functions at one address.
const MAX_INLINED: usize = 64;

pub(super) type Bytes = EndianArcSlice<LittleEndian>;

pub(super) struct Lines {
    context: addr2line::Context<Bytes>,
    size: u64,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lines").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Lines {
    pub(super) fn read(image: &Image) -> Option<Lines> {
        let (dwarf, size) = read_dwarf(image)?;
        Some(Lines { context: addr2line::Context::from_dwarf(dwarf).ok()?, size })
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Functions at an address, innermost first. Names may be empty.
    pub(super) fn find(&self, address: u64) -> Vec<Function> {
        let mut functions = Vec::new();
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else {
            return functions;
        };
        while let Ok(Some(frame)) = frames.next() {
            if functions.len() == MAX_INLINED {
                break;
            }
            let name = frame.function.as_ref().and_then(|function| function.demangle().ok());
            let location = frame.location.as_ref();
            functions.push(Function {
                name: name.map(|name| name.into_owned()).unwrap_or_default(),
                file: location.and_then(|location| location.file).map(str::to_owned),
                line: location.and_then(|location| location.line).filter(|&line| line > 0),
                inlined: true,
            });
        }
        if let Some(outermost) = functions.last_mut() {
            outermost.inlined = false;
        }
        functions
    }
}

/// Debug information of a file, and its size. `None` without any, or if it is too large.
pub(super) fn read_dwarf(image: &Image) -> Option<(Dwarf<Bytes>, u64)> {
    image.section(".debug_info")?;
    let mut size = 0;
    let dwarf = Dwarf::load(|id| {
        let section = image.section(id.name()).filter(|_| is_read(id));
        let bytes = match section {
            Some(section) => image.contents(section, MAX_BYTES - size).ok_or(TooLarge)?,
            None => Vec::new(),
        };
        size += bytes.len() as u64;
        Ok::<_, TooLarge>(EndianArcSlice::new(Arc::from(bytes), LittleEndian))
    });
    Some((dwarf.ok()?, size))
}

struct TooLarge;

/// Locations of variables in registers are of no use here.
fn is_read(id: gimli::SectionId) -> bool {
    use gimli::SectionId::{DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro, DebugTypes};
    !matches!(id, DebugLoc | DebugLocLists | DebugMacinfo | DebugMacro | DebugTypes)
}
