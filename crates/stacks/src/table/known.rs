//! Stacks that were seen before, and shortcuts for recognising them without unwinding.
//!
//! A thread that sleeps where it slept before most likely has the same stack as before, and threads
//! that do the same work have similar stacks. Both are recognised by the return addresses that the
//! copy contains. Any other stack is unwound, and then recognised by its return addresses and the
//! distances between its frames.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use crate::stack::{Frame, Stack, StackBytes};

const MAX_STACKS: usize = 20_000;

/// Maximum number of remembered positions (stack pointer and program counter).
const MAX_POSITIONS: usize = 20_000;

/// Maximum number of known stacks with the same program counter that are compared with a new one.
const ALIKE: usize = 4;

#[derive(Debug, Default)]
pub(super) struct KnownStacks {
    stacks: Vec<Stack>,
    by_contents: HashMap<u64, u32>,
    /// Last stack seen at each position.
    by_position: HashMap<StackKey, u32>,
    /// The last few stacks of each process and program counter.
    by_code: HashMap<(u32, u64), Vec<u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StackKey {
    pub(super) process: u32,
    pub(super) stack_pointer: u64,
    pub(super) program_counter: u64,
}

impl KnownStacks {
    pub(super) fn get(&self, number: u32) -> Option<&Stack> {
        self.stacks.get(number as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Number of a known stack that equals this one: the last stack at this position, or another
    /// thread's.
    pub(super) fn find(&mut self, position: StackKey, stack: StackBytes<'_>) -> Option<u32> {
        if let Some(&number) = self.by_position.get(&position)
            && has_frames(position, stack, &self.stacks[number as usize].frames)
        {
            return Some(number);
        }
        let number = self.like_another(position, stack)?;
        self.remember(position, number);
        Some(number)
    }

    /// A known stack of another thread with the same return addresses at the same distances from
    /// the stack pointer.
    fn like_another(&self, position: StackKey, stack: StackBytes<'_>) -> Option<u32> {
        let numbers = self.by_code.get(&(position.process, position.program_counter))?;
        numbers.iter().copied().find(|&number| {
            let known = &self.stacks[number as usize];
            let outermost = known.frames.last().map_or(u64::MAX, |frame| frame.frame_address);
            let innermost = known.frames.first().map_or(0, |frame| frame.frame_address);
            let whole = outermost.wrapping_sub(innermost) <= stack.bytes.len() as u64;
            !known.cut && whole && has_frames(position, stack, &known.frames)
        })
    }

    pub(super) fn remember(&mut self, position: StackKey, number: u32) {
        if self.by_position.len() >= MAX_POSITIONS {
            self.by_position.clear();
            self.by_code.clear();
        }
        self.by_position.insert(position, number);
        let code = (position.process, position.program_counter);
        let alike = self.by_code.entry(code).or_default();
        if !alike.contains(&number) {
            alike.truncate(ALIKE - 1);
            alike.insert(0, number);
        }
    }

    /// Returns the number of a stack, after adding it if it is new. `None` if there are too many
    /// stacks.
    pub(super) fn keep(&mut self, process: u32, stack: &Stack) -> Option<u32> {
        let outermost = stack.frames.last().map_or(0, |frame| frame.frame_address);
        let mut hasher = DefaultHasher::new();
        (process, stack.cut).hash(&mut hasher);
        // Relative frame addresses let threads in the same call chain share a number.
        for frame in &stack.frames {
            (frame.address, outermost.wrapping_sub(frame.frame_address)).hash(&mut hasher);
        }
        let contents = hasher.finish();
        if let Some(&number) = self.by_contents.get(&contents) {
            return Some(number);
        }
        if self.stacks.len() >= MAX_STACKS {
            return None;
        }
        let number = self.stacks.len() as u32;
        self.stacks.push(stack.clone());
        self.by_contents.insert(contents, number);
        Some(number)
    }
}

/// Returns `true` if a copy of a stack contains the return addresses of `frames`, at the same
/// distances from the stack pointer. `frames` may belong to another thread.
#[cfg(target_arch = "x86_64")]
fn has_frames(position: StackKey, stack: StackBytes<'_>, frames: &[Frame]) -> bool {
    let innermost = frames.first().map_or(0, |frame| frame.frame_address);
    let away = position.stack_pointer.wrapping_sub(innermost);
    let slot = |frame: &Frame| frame.frame_address.wrapping_add(away).wrapping_sub(8);
    let returned = |frame: &Frame| stack.word(slot(frame)) == Some(frame.address);
    // Frames beyond the copy are not compared: the known stack was read as a whole.
    let beyond = |frame: &Frame| slot(frame) >= stack.end().saturating_sub(7);
    let near = frames.iter().skip(1).take_while(|frame| !beyond(frame));
    near.clone().next().is_some() && { near }.all(returned)
}

/// On other architectures, a function may store its return address anywhere in its frame.
#[cfg(not(target_arch = "x86_64"))]
fn has_frames(_: StackKey, _: StackBytes<'_>, _: &[Frame]) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::image::Place;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_thread_that_does_the_same_as_another_has_its_stack() {
        let frame = |address, frame_address| Frame {
            address,
            is_return_address: frame_address > 0x1000,
            place: Place::NotCode,
            frame_address,
            inferred: false,
        };
        let stack = Stack {
            frames: vec![frame(7, 0x1000), frame(8, 0x1018), frame(9, 0x1040)],
            cut: false,
            copy_ended: false,
        };
        let mut known = KnownStacks::default();
        let at = |stack_pointer| StackKey { process: 0, stack_pointer, program_counter: 7 };
        let number = known.keep(0, &stack).unwrap();
        known.remember(at(0x1000), number);

        let mut words = [0u64; 12];
        (words[2], words[7]) = (8, 9);
        let copy = |words: [u64; 12]| words.map(u64::to_le_bytes).concat();
        let find = |known: &KnownStacks, position: StackKey, bytes: &[u8]| {
            known.like_another(position, StackBytes { base: position.stack_pointer, bytes })
        };
        assert_eq!(find(&known, at(0x5000), &copy(words)), Some(number));
        let elsewhere = StackKey { program_counter: 6, ..at(0x5000) };
        assert_eq!(find(&known, elsewhere, &copy(words)), None);
        assert_eq!(find(&known, StackKey { process: 1, ..at(0x5000) }, &copy(words)), None);
        // A copy that is too short, and another return address.
        assert_eq!(find(&known, at(0x5000), &copy(words)[..40]), None);
        words[7] = 10;
        assert_eq!(find(&known, at(0x5000), &copy(words)), None);
    }
}
