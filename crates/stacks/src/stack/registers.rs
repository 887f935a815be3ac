//! Registers by their DWARF numbers; some may be unknown.

#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(crate) const FRAME_POINTER: u16 = 6;
    pub(crate) const STACK_POINTER: u16 = 7;
    pub(crate) const PROGRAM_COUNTER: u16 = 16;
    /// rbx, rbp, rsp and r12 to r15.
    pub(crate) const SURVIVE_CALLS: u64 = 0b1111_0000_1100_1000;
}

#[cfg(target_arch = "aarch64")]
mod numbers {
    pub(crate) const FRAME_POINTER: u16 = 29;
    pub(crate) const STACK_POINTER: u16 = 31;
    /// DWARF number of the program counter.
    pub(crate) const PROGRAM_COUNTER: u16 = 32;
    /// x19 to x29, and sp.
    pub(crate) const SURVIVE_CALLS: u64 = 0x7ff << 19 | 1 << 31;
}

pub(crate) use numbers::*;

const COUNT: usize = PROGRAM_COUNTER as usize + 1;

/// Registers of a thread, or of one of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    values: [u64; COUNT],
    known: u64,
}

impl Registers {
    /// Creates a set of registers of which only these two are known.
    #[inline]
    pub fn new(program_counter: u64, stack_pointer: u64) -> Registers {
        let mut registers = Registers { values: [0; COUNT], known: 0 };
        registers.set(PROGRAM_COUNTER, program_counter);
        registers.set(STACK_POINTER, stack_pointer);
        registers
    }

    /// Adds the frame pointer.
    #[must_use]
    pub fn with_frame_pointer(mut self, value: u64) -> Registers {
        self.set(FRAME_POINTER, value);
        self
    }

    /// Sets a register by its DWARF number; ignores numbers above the program counter's.
    pub fn set(&mut self, number: u16, value: u64) {
        if let Some(register) = self.values.get_mut(usize::from(number)) {
            *register = value;
            self.known |= 1 << number;
        }
    }

    /// Program counter.
    #[inline]
    pub fn program_counter(&self) -> u64 {
        self.values[usize::from(PROGRAM_COUNTER)]
    }

    /// Stack pointer.
    #[inline]
    pub fn stack_pointer(&self) -> u64 {
        self.values[usize::from(STACK_POINTER)]
    }

    /// A register by its DWARF number, if it is known.
    pub fn get(&self, number: u16) -> Option<u64> {
        let value = self.values.get(usize::from(number))?;
        (self.known >> number & 1 != 0).then_some(*value)
    }

    pub(super) fn forget(&mut self, number: u16) {
        if usize::from(number) < COUNT {
            self.known &= !(1 << number);
        }
    }

    /// Forgets the registers that a function may change without saving them.
    pub(super) fn forget_volatile(&mut self) {
        self.known &= SURVIVE_CALLS | 1 << PROGRAM_COUNTER;
    }
}
