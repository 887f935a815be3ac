//! The user registers that the kernel copies into a sample.

#[cfg(target_arch = "x86_64")]
mod layout {
    /// `ax bx cx dx si di bp sp ip`, and `r8` to `r15`.
    pub(crate) const MASK: u64 = 0x1ff | 0xff << 16;
    pub(super) const PROGRAM_COUNTER: usize = 8;
    pub(super) const STACK_POINTER: usize = 7;
    pub(super) const FRAME_POINTER: usize = 6;
    pub(super) const FIRST_ARGUMENT: usize = 5;
}

#[cfg(target_arch = "aarch64")]
mod layout {
    /// `x0` to `x30`, `sp`, `pc`.
    pub(crate) const MASK: u64 = (1 << 33) - 1;
    pub(super) const PROGRAM_COUNTER: usize = 32;
    pub(super) const STACK_POINTER: usize = 31;
    pub(super) const LINK_REGISTER: usize = 30;
    pub(super) const FRAME_POINTER: usize = 29;
    pub(super) const FIRST_ARGUMENT: usize = 0;
}

pub(super) use layout::MASK;
use layout::*;

pub(super) const COUNT: usize = MASK.count_ones() as usize;

/// User registers of a thread, as the kernel copied them. Borrowed, because a copy would make every
/// event as large as the rare ones that have registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserRegisters<'a> {
    bytes: &'a [[u8; 8]; COUNT],
}

impl<'a> UserRegisters<'a> {
    /// Takes the values from the front of `bytes`, in the order of the kernel's `asm/perf_regs.h`,
    /// and returns the remaining bytes. Returns `None` if there are too few.
    pub(super) fn split_from(bytes: &'a [u8]) -> Option<(UserRegisters<'a>, &'a [u8])> {
        let (bytes, rest) = bytes.split_at_checked(8 * COUNT)?;
        let (values, _) = bytes.as_chunks();
        Some((UserRegisters { bytes: values.first_chunk()? }, rest))
    }

    fn value(&self, register: usize) -> u64 {
        u64::from_ne_bytes(self.bytes[register])
    }

    /// Address of the next instruction.
    pub fn program_counter(&self) -> u64 {
        self.value(PROGRAM_COUNTER)
    }

    /// Stack pointer.
    pub fn stack_pointer(&self) -> u64 {
        self.value(STACK_POINTER)
    }

    /// Frame pointer: `rbp` or `x29`. Programs built without frame pointers use this register for
    /// other purposes.
    pub fn frame_pointer(&self) -> u64 {
        self.value(FRAME_POINTER)
    }

    /// Register of a function's first argument: `rdi` or `x0`. Functions may use it for other
    /// purposes.
    pub fn first_argument(&self) -> u64 {
        self.value(FIRST_ARGUMENT)
    }

    /// Link register, which holds the return address until the function calls another one.
    #[cfg(target_arch = "aarch64")]
    pub fn link_register(&self) -> u64 {
        self.value(LINK_REGISTER)
    }
}
