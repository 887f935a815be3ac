//! Finds callers of functions that no unwind table covers, such as those of musl.
//!
//! The call before a candidate return address shows where the function begins. The function's
//! instructions, from there to the program counter, show how large its frame is. The return address
//! is accepted if both fit: it follows a call of a function that begins shortly before the program
//! counter (perhaps by way of tail calls), and it lies exactly one frame above the stack pointer.

use super::call::PrecedingCall;
use super::prologue::{self, BareFrame};
use super::rules::{Rule, Rules, Site};
use super::search::{Effort, caller, words};
use super::step::{Input, Position, follows_call};
use super::tail::{Jump, jumps_in, pointer};
use crate::image::{CodeAddress, Image, Place};

/// Maximum size of the frame of a function without unwind table, in words.
const MAX_WORDS: usize = 1024;
/// Maximum size of a function without unwind table, in bytes.
const MAX_CODE: u64 = 4096;
/// Maximum number of bytes that are searched for jumps to other functions, in a function without
/// unwind table.
const MAX_SEARCHED: usize = 256;
/// Maximum number of consecutive jumps.
const MAX_JUMPS: u32 = 3;

impl Rules {
    /// Finds the caller of a function that no unwind table covers.
    pub(super) fn caller_of_bare(
        &mut self,
        input: &Input<'_>,
        position: &Position,
        effort: &mut Effort,
    ) -> Option<Position> {
        let registers = &position.registers;
        let (at, stack_pointer) = (registers.program_counter(), registers.stack_pointer());
        let mut passed = false;
        for slot in words(stack_pointer, &input.stack).take(MAX_WORDS) {
            if !effort.take_word() {
                return None;
            }
            let address = input.stack.word(slot)?;
            if !input.space.is_code(address) {
                continue;
            }
            let mut next = caller(registers, address, slot.checked_add(8)?, None);
            let site = self.site_at(input, &next);
            if !follows_call(&site, &next) {
                continue;
            }
            // The code that starts a thread calls the thread's first function by pointer, so the
            // call does not show the address of that function. That code is the caller unless
            // another return address lies before it.
            if matches!(site.rule, Rule::Start) {
                return (!passed).then_some(next);
            }
            passed = true;
            let Some(called) = target(input, &next, &site) else { continue };
            let frame = self.frame_of(input, called, at, MAX_JUMPS, slot - stack_pointer);
            if let Some(frame) = frame {
                let saved = frame.frame_pointer.and_then(|distance| slot.checked_sub(distance));
                if let Some(saved) = saved.and_then(|saved| input.stack.word(saved)) {
                    next.registers = next.registers.with_frame_pointer(saved);
                }
                return Some(next);
            }
        }
        None
    }

    /// The frame at the instruction `at`, which belongs to the function `called` or to a function
    /// to which `called` jumps; `None` if no such frame has the size `size` at this instruction.
    fn frame_of(
        &mut self,
        input: &Input<'_>,
        called: u64,
        at: u64,
        jumps: u32,
        size: u64,
    ) -> Option<BareFrame> {
        let Place::Image(code) = input.space.place(called) else { return None };
        let image = input.images.get(code.image)?;
        let mut bytes = vec![0; MAX_CODE as usize];
        let length = self.code.read(image, code, &mut bytes);
        bytes.truncate(length);
        let distance = at.wrapping_sub(called);
        if distance < MAX_CODE {
            let frame = prologue::frame_at(&bytes, distance as usize);
            if let Some(frame) = frame.filter(|frame| frame.size == size) {
                return Some(frame);
            }
        }
        bytes.truncate(MAX_SEARCHED);
        let jumps = jumps.checked_sub(1)?;
        let bias = called.wrapping_sub(code.address);
        let near = |target: &u64| at.wrapping_sub(*target) < MAX_CODE && *target != called;
        let targets = jumps_in(&bytes, code.address).filter_map(|jump| match jump {
            Jump::To(target) => Some(bias.wrapping_add(target)),
            Jump::Through(slot) => pointer(input, bias.wrapping_add(slot)),
        });
        let targets: Vec<u64> = targets.filter(near).collect();
        targets.into_iter().find_map(|target| self.frame_of(input, target, at, jumps, size))
    }

    /// Returns `true` if the thread ends as soon as the function called before this return address
    /// returns. Nothing else identifies musl's `clone`.
    pub(super) fn ends_thread(&mut self, image: &Image, code: CodeAddress) -> bool {
        let mut bytes = [0; EXIT.len()];
        self.code.read(image, code, &mut bytes) == EXIT.len() && bytes == EXIT
    }
}

/// `mov %eax, %edi; xor %eax, %eax; mov $60, %al; syscall`.
#[cfg(target_arch = "x86_64")]
const EXIT: [u8; 8] = [0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05];

/// `mov x8, #93; svc #0`.
#[cfg(target_arch = "aarch64")]
const EXIT: [u8; 8] = [0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

/// Address of the function that is called by the instruction just before a return address.
pub(super) fn target(input: &Input<'_>, caller: &Position, site: &Site) -> Option<u64> {
    let address = caller.registers.program_counter();
    let Place::Image(code) = input.space.place(address) else { return None };
    let bias = address.wrapping_sub(code.address);
    match site.call {
        PrecedingCall::Direct(target) => Some(bias.wrapping_add(target)),
        PrecedingCall::Through(slot) => pointer(input, bias.wrapping_add(slot)),
        PrecedingCall::None | PrecedingCall::Indirect | PrecedingCall::Unreadable => None,
    }
}
