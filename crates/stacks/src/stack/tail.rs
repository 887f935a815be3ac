//! Finds tail calls: jumps to another function, which then returns to the caller of the function
//! that jumped.
//!
//! After a tail call, the call before the return address is a call of the function that jumped, not
//! of the running function. To tell such a frame from the remains of an earlier call, the code of
//! the called function is searched for the jump. Bytes inside an instruction may look like a jump,
//! but a false match would have to lead to the very first byte of the running function.

use super::rules::{Rule, Rules};
use super::step::Input;
use crate::image::{CodeAddress, Place};

/// Maximum number of bytes of a function that are searched.
const MAX_CODE: u64 = 16 << 10;
/// Number of bytes that are searched if the function's end is unknown.
const MAX_UNKNOWN: u64 = 256;
/// Maximum number of successive tail calls.
const MAX_JUMPS: u32 = 3;
/// Maximum number of functions that one call of `jumps_on` searches.
const MAX_FUNCTIONS: u32 = 24;
const MAX_ANSWERS: usize = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jump {
    /// An address in the same file.
    To(u64),
    /// The target of the pointer at this address in the same file.
    Through(u64),
}

impl Rules {
    /// Returns `true` if the function at `called` may have jumped to the function at `runs`,
    /// directly or by way of other functions.
    pub(super) fn jumps_on(&mut self, input: &Input<'_>, called: u64, runs: u64) -> bool {
        let (Place::Image(from), Place::Image(to)) =
            (input.space.place(called), input.space.place(runs))
        else {
            return false;
        };
        if let Some(&answer) = self.tail_calls.get(&(from, to)) {
            return answer;
        }
        let mut functions = MAX_FUNCTIONS;
        let answer = self.leads_to(input, called, runs, MAX_JUMPS, &mut functions);
        if self.tail_calls.len() >= MAX_ANSWERS {
            self.tail_calls.clear();
        }
        self.tail_calls.insert((from, to), answer);
        answer
    }

    fn leads_to(
        &mut self,
        input: &Input<'_>,
        from: u64,
        to: u64,
        jumps: u32,
        functions: &mut u32,
    ) -> bool {
        if *functions == 0 {
            return false;
        }
        *functions -= 1;
        let Place::Image(code) = input.space.place(from) else { return false };
        let Some(image) = input.images.get(code.image) else { return false };
        let bias = from.wrapping_sub(code.address);
        let site = self.site(input.space, input.images, from, false);
        let (start, size) = match &site.rule {
            Rule::Function(function) => (function.start, function.length.min(MAX_CODE)),
            Rule::Start | Rule::Unknown => (code.address, MAX_UNKNOWN),
        };
        let mut bytes = vec![0; size as usize];
        let length = self.code.read(image, CodeAddress { address: start, ..code }, &mut bytes);
        let mut further = Vec::new();
        for jump in jumps_in(&bytes[..length], start) {
            let within = |target: u64| target != start && target.wrapping_sub(start) < size;
            let target = match jump {
                Jump::To(target) if within(target) => continue,
                Jump::To(target) => match self.code.linked(image, code, target) {
                    Some(slot) => pointer(input, bias.wrapping_add(slot)),
                    None => Some(bias.wrapping_add(target)),
                },
                Jump::Through(slot) => pointer(input, bias.wrapping_add(slot)),
            };
            let Some(target) = target.filter(|&target| input.space.is_code(target)) else {
                continue;
            };
            if target == to {
                return true;
            }
            if further.len() < MAX_FUNCTIONS as usize && !further.contains(&target) {
                further.push(target);
            }
        }
        if jumps <= 1 {
            return false;
        }
        further.into_iter().any(|next| {
            self.begins_at(input, next) && self.leads_to(input, next, to, jumps - 1, functions)
        })
    }

    fn begins_at(&mut self, input: &Input<'_>, address: u64) -> bool {
        let Place::Image(code) = input.space.place(address) else { return false };
        let site = self.site(input.space, input.images, address, false);
        matches!(&site.rule, Rule::Function(function) if function.start == code.address)
    }
}

pub(super) fn pointer(input: &Input<'_>, slot: u64) -> Option<u64> {
    let mut pointer = [0; 8];
    let read = input.space.read_memory(slot, &mut pointer);
    (read == pointer.len()).then_some(u64::from_le_bytes(pointer))
}

/// All possible jumps in code that begins at `address`: `e9` with a displacement, `ff 25` through a
/// pointer, and conditional jumps, which compilers generate for `if … return f()`.
#[cfg(target_arch = "x86_64")]
pub(super) fn jumps_in(code: &[u8], address: u64) -> impl Iterator<Item = Jump> + '_ {
    code.windows(6).enumerate().filter_map(move |(at, bytes)| {
        let at = address.wrapping_add(at as u64);
        let short = i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        let long = i32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
        match bytes {
            [0xe9, ..] => Some(Jump::To(at.wrapping_add(5).wrapping_add_signed(short.into()))),
            [0x0f, 0x80..=0x8f, ..] => {
                Some(Jump::To(at.wrapping_add(6).wrapping_add_signed(long.into())))
            }
            [0xff, 0x25, ..] => {
                Some(Jump::Through(at.wrapping_add(6).wrapping_add_signed(long.into())))
            }
            _ => None,
        }
    })
}

/// All `b` instructions in code that begins at `address`; their form is that of the call `bl`.
#[cfg(target_arch = "aarch64")]
pub(super) fn jumps_in(code: &[u8], address: u64) -> impl Iterator<Item = Jump> + '_ {
    code.chunks_exact(4).enumerate().filter_map(move |(at, bytes)| {
        let instruction = u32::from_le_bytes(*bytes.first_chunk()?);
        let distance = i64::from((instruction << 6).cast_signed() >> 6) * 4;
        let at = address.wrapping_add(4 * at as u64);
        (instruction >> 26 == 0b00_0101).then(|| Jump::To(at.wrapping_add_signed(distance)))
    })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_found_wherever_they_are() {
        // add $1, (%rdi); jmp 0x2000; nop; je 0x1800; nop; jmp *0x100(%rip)
        let code = [
            0x83, 0x07, 0x01, 0xe9, 0xf8, 0x0f, 0, 0, 0x90, 0x0f, 0x84, 0xf1, 0x07, 0, 0, 0x90,
            0xff, 0x25, 0x00, 0x01, 0, 0,
        ];
        let found: Vec<Jump> = jumps_in(&code, 0x1000).collect();
        assert_eq!(found, [Jump::To(0x2000), Jump::To(0x1800), Jump::Through(0x1116)]);
        assert_eq!(jumps_in(&code[..7], 0x1000).count(), 0);
    }
}
