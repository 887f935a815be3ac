//! Decodes the call before a return address, from cached pages of code.

use std::collections::HashMap;

use crate::image::{AddressSpace, CodeAddress, Image};

const PAGE: usize = 4096;
/// Maximum number of cached pages: 4 MB.
const MAX_PAGES: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrecedingCall {
    /// No call precedes the address, so it is not a return address.
    None,
    /// A call to an address in the same file.
    Direct(u64),
    /// A call through the pointer at this address in the same file, such as a linkage table entry.
    Through(u64),
    /// A call through a register, or through a pointer at an unknown address.
    Indirect,
    /// The code cannot be read.
    Unreadable,
}

#[derive(Debug)]
pub(super) struct CodePages {
    pages: HashMap<CodeAddress, Option<Box<[u8; PAGE]>>>,
}

impl CodePages {
    pub(super) fn new() -> CodePages {
        CodePages { pages: HashMap::new() }
    }

    pub(super) fn read(&mut self, image: &Image, code: CodeAddress, buffer: &mut [u8]) -> usize {
        let mut length = 0;
        while length < buffer.len() {
            let Some(address) = code.address.checked_add(length as u64) else { break };
            let within = (address % PAGE as u64) as usize;
            let key = CodeAddress { address: address - within as u64, ..code };
            let Some(page) = self.page(image, key) else { break };
            let more = (PAGE - within).min(buffer.len() - length);
            buffer[length..length + more].copy_from_slice(&page[within..within + more]);
            length += more;
        }
        length
    }

    fn page(&mut self, image: &Image, key: CodeAddress) -> Option<&[u8; PAGE]> {
        if self.pages.len() >= MAX_PAGES && !self.pages.contains_key(&key) {
            self.pages.clear();
        }
        let page = self.pages.entry(key).or_insert_with(|| {
            let mut bytes = Box::new([0; PAGE]);
            image.read(key.address, &mut *bytes).then_some(bytes)
        });
        page.as_deref()
    }

    /// The call before a return address in a file.
    pub(super) fn call(&mut self, image: &Image, code: CodeAddress) -> PrecedingCall {
        let mut before = [0; LONGEST_CALL];
        let start = code.address.wrapping_sub(LONGEST_CALL as u64);
        if self.read(image, CodeAddress { address: start, ..code }, &mut before) < LONGEST_CALL {
            return PrecedingCall::Unreadable;
        }
        match call_before(&before, code.address) {
            PrecedingCall::Direct(target) if in_linkage_table(image, target) => self
                .linked(image, code, target)
                .map_or(PrecedingCall::Indirect, PrecedingCall::Through),
            call => call,
        }
    }

    /// Address of the pointer through which an entry of the linkage table (PLT) jumps.
    pub(super) fn linked(&mut self, image: &Image, code: CodeAddress, entry: u64) -> Option<u64> {
        if !in_linkage_table(image, entry) {
            return None;
        }
        let mut stub = [0; LINKAGE_STUB];
        let length = self.read(image, CodeAddress { address: entry, ..code }, &mut stub);
        linkage_slot(&stub[..length], entry)
    }

    /// The call before a return address in code that comes from no file.
    pub(super) fn call_in_memory(&self, space: &AddressSpace, address: u64) -> PrecedingCall {
        if !space.is_code(address) {
            return PrecedingCall::None;
        }
        let mut before = [0; LONGEST_CALL];
        let start = address.wrapping_sub(LONGEST_CALL as u64);
        if space.read_memory(start, &mut before) < LONGEST_CALL {
            return PrecedingCall::Unreadable;
        }
        call_before(&before, address)
    }
}

fn in_linkage_table(image: &Image, address: u64) -> bool {
    let tables = image.sections().iter().filter(|section| section.name.starts_with(".plt"));
    { tables }.any(|table| address.wrapping_sub(table.address) < table.size)
}

#[cfg(target_arch = "x86_64")]
const LONGEST_CALL: usize = 8;

/// Decodes a call at the end of the bytes: `e8` with a displacement, or any form of `ff /2`.
#[cfg(target_arch = "x86_64")]
fn call_before(before: &[u8; LONGEST_CALL], address: u64) -> PrecedingCall {
    if before[3] == 0xe8 {
        let distance = i32::from_le_bytes([before[4], before[5], before[6], before[7]]);
        return PrecedingCall::Direct(address.wrapping_add_signed(distance.into()));
    }
    if before[2..4] == [0xff, 0x15] {
        let distance = i32::from_le_bytes([before[4], before[5], before[6], before[7]]);
        return PrecedingCall::Through(address.wrapping_add_signed(distance.into()));
    }
    let indirect = (2..=7).any(|length| {
        let bytes = &before[LONGEST_CALL - length..];
        bytes[0] == 0xff && bytes[1] >> 3 & 7 == 2 && length == 1 + operand_length(&bytes[1..])
    });
    if indirect { PrecedingCall::Indirect } else { PrecedingCall::None }
}

#[cfg(target_arch = "x86_64")]
const LINKAGE_STUB: usize = 16;

/// Address of the pointer through which a linkage table entry jumps: `ff 25` with a displacement,
/// perhaps after `endbr64` and a prefix.
#[cfg(target_arch = "x86_64")]
fn linkage_slot(stub: &[u8], address: u64) -> Option<u64> {
    let at = stub.windows(2).take(6).position(|bytes| bytes == [0xff, 0x25])?;
    let distance = i32::from_le_bytes(*stub.get(at + 2..)?.first_chunk()?);
    Some(address.wrapping_add(at as u64 + 6).wrapping_add_signed(distance.into()))
}

/// Length of the ModRM byte and of the SIB byte and displacement after it.
#[cfg(target_arch = "x86_64")]
pub(super) fn operand_length(bytes: &[u8]) -> usize {
    let mode = bytes[0] >> 6;
    let base = bytes[0] & 7;
    let scaled = mode != 3 && base == 4;
    let no_base = if scaled { bytes.get(1).is_some_and(|sib| sib & 7 == 5) } else { base == 5 };
    let distance = match mode {
        0 if no_base => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    1 + usize::from(scaled) + distance
}

#[cfg(target_arch = "aarch64")]
const LONGEST_CALL: usize = 4;

/// Decodes `bl` and `blr`, with and without authentication.
#[cfg(target_arch = "aarch64")]
fn call_before(before: &[u8; LONGEST_CALL], address: u64) -> PrecedingCall {
    let instruction = u32::from_le_bytes(*before);
    if instruction >> 26 == 0b10_0101 {
        let distance = i64::from((instruction << 6).cast_signed() >> 6) * 4;
        return PrecedingCall::Direct(address.wrapping_sub(4).wrapping_add_signed(distance));
    }
    let register = instruction & !0x3e0;
    let authenticated = instruction & 0xfeff_f800 == 0xd63f_0800;
    match register == 0xd63f_0000 || authenticated {
        true => PrecedingCall::Indirect,
        false => PrecedingCall::None,
    }
}

#[cfg(target_arch = "aarch64")]
const LINKAGE_STUB: usize = 16;

/// Address of the pointer through which a linkage table entry jumps: `adrp x16` and
/// `ldr x17, [x16]`, perhaps after `bti`.
#[cfg(target_arch = "aarch64")]
fn linkage_slot(stub: &[u8], address: u64) -> Option<u64> {
    let word = |at: usize| Some(u32::from_le_bytes(*stub.get(at..)?.first_chunk()?));
    let at = [0, 4]
        .into_iter()
        .find(|&at| word(at).is_some_and(|page| page & 0x9f00_001f == 0x9000_0010))?;
    let (page, load) = (word(at)?, word(at + 4)?);
    if load & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = (page >> 5 & 0x7_ffff) << 2 | page >> 29 & 3;
    let distance = i64::from((pages << 11).cast_signed() >> 11) << 12;
    let base = (address.wrapping_add(at as u64) & !0xfff).wrapping_add_signed(distance);
    Some(base.wrapping_add(u64::from(load >> 10 & 0xfff) * 8))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn calls_are_recognised() {
        let call = |bytes: [u8; 8]| call_before(&bytes, 0x1000);
        assert_eq!(call([0, 0, 0, 0xe8, 0xf0, 0xff, 0xff, 0xff]), PrecedingCall::Direct(0xff0));
        assert_eq!(
            call([0, 0, 0xff, 0x15, 0x10, 0x20, 0x30, 0]),
            PrecedingCall::Through(0x30_3010) // call *0x302010(%rip)
        );
        for bytes in [
            [0, 0, 0, 0, 0, 0, 0xff, 0xd0],          // call *%rax
            [0, 0, 0, 0, 0, 0x41, 0xff, 0xd1],       // call *%r9
            [0, 0, 0, 0, 0, 0xff, 0x50, 0x18],       // call *0x18(%rax)
            [0, 0, 0, 0, 0xff, 0x54, 0x24, 0x08],    // call *8(%rsp)
            [0, 0xff, 0x14, 0xc5, 0, 0x40, 0x40, 0], // call *0x404000(,%rax,8)
        ] {
            assert_eq!(call(bytes), PrecedingCall::Indirect, "{bytes:x?}");
        }
        assert_eq!(call([0x90; 8]), PrecedingCall::None);
        assert_eq!(call([0, 0, 0, 0, 0, 0, 0xff, 0xe0]), PrecedingCall::None); // jmp *%rax
    }

    #[test]
    fn linkage_tables_are_followed() {
        // endbr64; bnd jmp *0x2f75(%rip)
        let stub =
            [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x75, 0x2f, 0, 0, 0x0f, 0x1f, 0, 0, 0];
        assert_eq!(linkage_slot(&stub, 0x1050), Some(0x1050 + 11 + 0x2f75));
        assert_eq!(linkage_slot(&[0x90; 16], 0x1050), None);
    }
}
