//! Searches a stack for callers, with limited effort.

use super::StackBytes;
use super::registers::{FRAME_POINTER, PROGRAM_COUNTER, Registers, STACK_POINTER};
use super::step::Position;

const MAX_WORDS: usize = 8192;

/// Remaining effort for one stack, limited so that a hostile stack costs at most a few
/// milliseconds.
pub(super) struct Effort {
    words: usize,
    steps: usize,
}

impl Effort {
    pub(super) fn new() -> Effort {
        Effort { words: 4 * MAX_WORDS, steps: 16 * 1024 }
    }

    pub(super) fn take_word(&mut self) -> bool {
        let left = self.words > 0 && self.steps > 0;
        self.words = self.words.saturating_sub(1);
        left
    }

    pub(super) fn take_step(&mut self) -> bool {
        let left = self.steps > 0;
        self.steps = self.steps.saturating_sub(1);
        left
    }
}

pub(super) fn words(lowest: u64, stack: &StackBytes<'_>) -> impl Iterator<Item = u64> {
    let first = lowest.max(stack.base).next_multiple_of(8);
    (first..stack.end()).step_by(8).take(MAX_WORDS)
}

/// The frame to which `address` returns, given that frame's stack pointer and frame pointer.
pub(super) fn caller(
    registers: &Registers,
    address: u64,
    stack_pointer: u64,
    frame_pointer: Option<u64>,
) -> Position {
    let mut next = *registers;
    next.set(PROGRAM_COUNTER, address);
    next.set(STACK_POINTER, stack_pointer);
    if let Some(value) = frame_pointer {
        next.set(FRAME_POINTER, value);
    }
    next.forget_volatile();
    Position { registers: next, returns: true }
}
