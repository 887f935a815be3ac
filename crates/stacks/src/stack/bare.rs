//! Finds callers of functions that no unwind table covers, such as musl's.
//!
//! The call before a candidate return address shows where the called function begins. The
//! instructions from there to the program counter show the size of the function's frame. The return
//! address is accepted if the called function begins shortly before the program counter (directly,
//! or after tail calls), and if the return address lies exactly one frame above the stack pointer.

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
/// Maximum number of bytes searched for tail calls in a function without unwind table.
const MAX_SEARCHED: usize = 256;
/// Maximum number of consecutive tail calls.
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
            // call does not show that function's address. The start code is the caller if no other
            // return address came first.
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

    /// Frame of `size` bytes at the instruction `at`, which must be in the function `called` or in
    /// a function to which `called` jumps.
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

    /// Returns `true` if the code at a return address ends the thread. Nothing else identifies
    /// musl's `clone`.
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

/// Address of the function called just before a return address.
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
