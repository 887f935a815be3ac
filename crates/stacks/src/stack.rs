//! Unwinds call stacks of other processes, from registers and a copy of the stack.
//!
//! Unwind rules come from the exception handler frames of each ELF file (`.eh_frame`, DWARF 5
//! section 6.4), read by `gimli`. Files without such frames are unwound by frame pointers.
//!
//! Of a sleeping thread, only the program counter and the stack pointer are known, and glibc's lock
//! and sleep functions save no frame pointer. If a rule needs a register that no frame saved,
//! [`Unwinder`] searches the stack for a return address that fits. Such an address follows a call
//! of the running function, lies at the distance that the function's first instructions imply, and
//! allows the rest of the stack to be unwound to the thread's start. Frames found in this way, and
//! all frames outside them, are marked as inferred.
//!
//! `ci/long/profile-stacks.sh` compares 5,488 stacks of 28 builds in C, C++ and Rust (gcc 12 and
//! rustc 1.95 on x86-64, glibc 2.36) with the call chains that the programs recorded. All stacks
//! were right and complete; between 12% and 74% of a build's stacks needed an inferred frame.
//! Unwinding 21 to 24 frames took 5 to 8 µs in a build without optimisation. Unwinding took 27 µs
//! where functions align their stacks or use `alloca`, and do not save the registers that are
//! unknown in a sleeping thread.
//!
//! The stack may change while it is copied. Unwinding ends at a return address that does not follow
//! a call, and the stack is marked as cut.

mod bare;
mod call;
mod infer;
mod prologue;
mod registers;
mod rules;
mod search;
mod step;
mod tail;
mod unwinder;

pub use registers::Registers;
pub use unwinder::Unwinder;

use crate::image::Place;

/// Maximum number of frames of a stack.
pub const MAX_FRAMES: usize = 256;

/// A copy of a thread's stack.
#[derive(Clone, Copy, Debug)]
pub struct StackBytes<'a> {
    /// Address of the first byte.
    pub base: u64,
    /// Contents of the stack, from `base` on.
    pub bytes: &'a [u8],
}

impl StackBytes<'_> {
    /// Reads a word; `None` if the copy does not contain the address.
    pub fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.base)?).ok()?;
        Some(u64::from_le_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    pub(crate) fn end(&self) -> u64 {
        self.base.saturating_add(self.bytes.len() as u64)
    }
}

/// A call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Frames, innermost first.
    pub frames: Vec<Frame>,
    /// True if unwinding did not reach the thread's start, so outer frames are missing.
    pub cut: bool,
    /// True if a longer copy of the stack may show more frames.
    pub copy_ended: bool,
}

/// A function call on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Program counter in the innermost frame; return address in the others.
    pub address: u64,
    /// True if `address` is a return address. The function and line are then those of the byte
    /// before it.
    pub is_return_address: bool,
    /// Place of the code at `address`.
    pub place: Place,
    /// Stack pointer in this frame, as it will be once the frame's current call returns.
    pub frame_address: u64,
    /// True if this frame, or any inner frame, was inferred.
    pub inferred: bool,
}

impl Frame {
    /// Place of the current instruction: for a return address, the call before it.
    pub fn instruction(&self) -> Place {
        match self.place {
            Place::Image(mut code) if self.is_return_address => {
                code.address = code.address.wrapping_sub(1);
                Place::Image(code)
            }
            place => place,
        }
    }
}
