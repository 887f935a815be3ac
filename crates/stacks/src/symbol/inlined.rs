//! Names of the functions at an address, including inlined ones, from DWARF.
//!
//! Debug information may be many times larger than the profiler's memory limit. Only the address
//! ranges of all units, and the positions of functions in a few units, stay in memory. Everything
//! else is read from the file when a function is looked up.

use std::sync::Arc;

use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, Dwarf, Reader, Unit, UnitOffset,
};

use super::table::demangled;
use crate::image::{Bytes, Image};

/// Maximum size in bytes of compressed debug information, which must be decompressed as a whole.
const MAX_RESIDENT: u64 = 16 << 20;
/// Maximum size of a unit, in bytes; a search of larger units takes too long.
const MAX_UNIT: usize = 8 << 20;
/// Maximum number of address ranges of units: 6 MB.
const MAX_RANGES: usize = 1 << 18;
const MAX_UNITS: usize = 16;
const MAX_FUNCTIONS: usize = 1 << 16;
/// Maximum number of functions at one address.
const MAX_INLINED: usize = 64;
/// Maximum number of references from a call to the entry that contains the function's name.
const MAX_ORIGINS: usize = 8;

type Entry = DebuggingInformationEntry<Bytes>;

#[derive(Debug)]
pub(super) struct Functions {
    dwarf: Dwarf<Bytes>,
    /// Address ranges of units, in ascending order.
    ranges: Vec<UnitRange>,
    /// Offsets of all units, in ascending order.
    offsets: Vec<u32>,
    units: Vec<Known>,
}

#[derive(Clone, Copy, Debug)]
struct UnitRange {
    begin: u64,
    end: u64,
    unit: usize,
}

/// A unit whose functions have been listed.
#[derive(Debug)]
struct Known {
    offset: usize,
    unit: Arc<Unit<Bytes>>,
    functions: Vec<(u64, u64, UnitOffset)>,
}

impl Functions {
    pub(super) fn read(image: &Arc<Image>) -> Option<Functions> {
        let dwarf = read_dwarf(image)?;
        let (mut ranges, mut listed) = (Vec::new(), Vec::new());
        let mut headers = dwarf.debug_aranges.headers();
        while let Ok(Some(header)) = headers.next() {
            let unit = header.debug_info_offset().0;
            let mut entries = header.entries();
            let before = ranges.len();
            while let Some(entry) = entries.next().transpose() {
                if let Ok(entry) = entry {
                    add(&mut ranges, entry.range(), unit);
                }
            }
            if ranges.len() > before {
                listed.push(unit);
            }
        }
        listed.sort_unstable();
        let mut offsets = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(DebugInfoOffset(offset)) = header.debug_info_offset() else { continue };
            offsets.push(u32::try_from(offset).ok()?);
            if listed.binary_search(&offset).is_err()
                && let Ok(unit) = dwarf.unit(header)
                && let Ok(mut found) = dwarf.unit_ranges(&unit)
            {
                while let Ok(Some(range)) = found.next() {
                    add(&mut ranges, range, offset);
                }
            }
        }
        ranges.sort_unstable_by_key(|range| (range.begin, range.end));
        Some(Functions { dwarf, ranges, offsets, units: Vec::new() })
    }

    /// Names of the functions at an address, innermost first.
    pub(super) fn find(&mut self, address: u64) -> Vec<String> {
        let after = self.ranges.partition_point(|range| range.begin <= address);
        let before = self.ranges[..after].iter().rev().take(MAX_INLINED);
        let around = before.filter(|range| address < range.end).map(|range| range.unit);
        // Units still list code that the linker dropped, at addresses where there is other code. So
        // several units may seem to contain the address.
        let around: Vec<usize> = around.collect();
        { around }.into_iter().find_map(|unit| self.find_in(unit, address)).unwrap_or_default()
    }

    fn find_in(&mut self, offset: usize, address: u64) -> Option<Vec<String>> {
        let place = self.unit(offset)?;
        let known = &self.units[place];
        let after = known.functions.partition_point(|&(begin, ..)| begin <= address);
        let mut before = known.functions[..after].iter().rev().take(MAX_INLINED);
        let &(.., function) = before.find(|(_, end, _)| address < *end)?;
        let unit = known.unit.clone();
        let calls = self.calls(&unit, function, address).ok()?;
        Some(calls.into_iter().rev().map(|entry| self.name(offset, entry)).collect())
    }

    /// The function at an address and the functions inlined there, outermost first.
    fn calls(
        &self,
        unit: &Unit<Bytes>,
        function: UnitOffset,
        address: u64,
    ) -> gimli::Result<Vec<UnitOffset>> {
        let mut calls = vec![function];
        let mut entries = unit.entries_raw(Some(function))?;
        // Entries deeper than this are skipped: they belong to calls that do not contain the
        // address.
        let mut aside = isize::MAX;
        while !entries.is_empty() && calls.len() < MAX_INLINED {
            let (depth, offset) = (entries.next_depth(), entries.next_offset());
            let Some(kind) = entries.read_abbreviation()? else {
                if entries.next_depth() <= 0 {
                    break;
                }
                continue;
            };
            entries.skip_attributes(kind.attributes())?;
            if depth <= aside {
                aside = isize::MAX;
                let other = match kind.tag() {
                    gimli::DW_TAG_subprogram => depth > 0,
                    gimli::DW_TAG_inlined_subroutine => {
                        let inside = self.contains(unit, &unit.entry(offset)?, address);
                        if inside {
                            calls.push(offset);
                        }
                        !inside
                    }
                    _ => false,
                };
                if other && kind.has_children() {
                    aside = depth;
                }
            }
            if entries.next_depth() <= 0 {
                break;
            }
        }
        Ok(calls)
    }

    fn contains(&self, unit: &Unit<Bytes>, entry: &Entry, address: u64) -> bool {
        let Ok(mut ranges) = self.dwarf.die_ranges(unit, entry) else { return false };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&address) {
                return true;
            }
        }
        false
    }

    /// Name of a function; empty if it has none.
    fn name(&mut self, unit: usize, entry: UnitOffset) -> String {
        let (mut unit, mut entry) = (unit, entry);
        let mut plain = None;
        for _ in 0..MAX_ORIGINS {
            let Some(place) = self.unit(unit) else { break };
            let of = self.units[place].unit.clone();
            let Ok(found) = of.entry(entry) else { break };
            let text = |name| {
                let text = self.dwarf.attr_string(&of, found.attr_value(name)?).ok()?;
                Some(text.to_string_lossy().ok()?.into_owned())
            };
            let linked = text(gimli::DW_AT_linkage_name);
            if let Some(linked) = linked.or_else(|| text(gimli::DW_AT_MIPS_linkage_name)) {
                return demangled(&linked);
            }
            plain = plain.or_else(|| text(gimli::DW_AT_name));
            let origin = found.attr_value(gimli::DW_AT_abstract_origin);
            match origin.or_else(|| found.attr_value(gimli::DW_AT_specification)) {
                Some(AttributeValue::UnitRef(next)) => entry = next,
                Some(AttributeValue::DebugInfoRef(DebugInfoOffset(to))) => {
                    let after = self.offsets.partition_point(|&start| start as usize <= to);
                    let Some(&start) = after.checked_sub(1).and_then(|at| self.offsets.get(at))
                    else {
                        break;
                    };
                    (unit, entry) = (start as usize, UnitOffset(to - start as usize));
                }
                _ => break,
            }
        }
        plain.unwrap_or_default()
    }

    /// Index in `self.units` of the unit at an offset. Lists the unit's functions first if
    /// necessary.
    fn unit(&mut self, offset: usize) -> Option<usize> {
        if let Some(place) = self.units.iter().position(|known| known.offset == offset) {
            return Some(place);
        }
        let header = self.dwarf.unit_header(DebugInfoOffset(offset)).ok()?;
        if header.length_including_self() > MAX_UNIT {
            return None;
        }
        let unit = self.dwarf.unit(header).ok()?;
        let mut functions = Vec::new();
        // If an entry is malformed, the functions before it are kept.
        let _ = self.list(&unit, &mut functions);
        functions.sort_unstable_by_key(|&(begin, end, _)| (begin, end));
        if self.units.len() >= MAX_UNITS {
            self.units.remove(0);
        }
        self.units.push(Known { offset, unit: unit.into(), functions });
        Some(self.units.len() - 1)
    }

    fn list(
        &self,
        unit: &Unit<Bytes>,
        functions: &mut Vec<(u64, u64, UnitOffset)>,
    ) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() && functions.len() < MAX_FUNCTIONS {
            let offset = entries.next_offset();
            let Some(kind) = entries.read_abbreviation()? else { continue };
            entries.skip_attributes(kind.attributes())?;
            let has_code = kind.attributes().iter().any(|attribute| {
                matches!(attribute.name(), gimli::DW_AT_low_pc | gimli::DW_AT_ranges)
            });
            if kind.tag() == gimli::DW_TAG_subprogram && has_code {
                let mut ranges = self.dwarf.die_ranges(unit, &unit.entry(offset)?)?;
                while let Some(range) = ranges.next()? {
                    if range.begin < range.end {
                        functions.push((range.begin, range.end, offset));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Adds a range, or extends the last one if the new range follows closely.
fn add(ranges: &mut Vec<UnitRange>, range: gimli::Range, unit: usize) {
    // Code that the linker has dropped begins at address zero.
    if range.begin == 0 || range.begin >= range.end {
        return;
    }
    if let Some(last) = ranges.last_mut()
        && last.unit == unit
        && last.end <= range.begin
        && range.begin - last.end < 16
    {
        last.end = range.end;
    } else if ranges.len() < MAX_RANGES {
        ranges.push(UnitRange { begin: range.begin, end: range.end, unit });
    }
}

/// Debug information of a file; `None` if there is none, or if it is compressed and too large.
pub(super) fn read_dwarf(image: &Arc<Image>) -> Option<Dwarf<Bytes>> {
    image.section(".debug_info")?;
    let mut room = MAX_RESIDENT;
    let dwarf = Dwarf::load(|id| {
        let section = image.section(id.name()).filter(|_| is_read(id));
        let Some(section) = section else { return Ok(Bytes::resident(Vec::new())) };
        let bytes = image.bytes(section, room).ok_or(TooLarge)?;
        room -= bytes.resident_size();
        Ok::<_, TooLarge>(bytes)
    });
    dwarf.ok()
}

struct TooLarge;

/// Returns `false` for sections that are not needed: variable locations, macros and type units.
fn is_read(id: gimli::SectionId) -> bool {
    use gimli::SectionId::{DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro, DebugTypes};
    !matches!(id, DebugLoc | DebugLocLists | DebugMacinfo | DebugMacro | DebugTypes)
}
