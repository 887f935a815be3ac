//! Unwinds stacks frame by frame.

use super::registers::Registers;
use super::rules::Rules;
use super::search::Effort;
use super::step::{Input, Position, Step, follows_call};
use super::{Frame, MAX_FRAMES, Stack, StackBytes};
use crate::image::{AddressSpace, Images, Place};

/// Unwinds stacks of any number of processes. Caches recently used unwind rules, and the unwind
/// tables of up to 64 files.
#[derive(Debug)]
pub struct Unwinder {
    rules: Rules,
}

impl Default for Unwinder {
    fn default() -> Unwinder {
        Unwinder::new()
    }
}

impl Unwinder {
    /// Creates an unwinder with empty caches.
    pub fn new() -> Unwinder {
        Unwinder { rules: Rules::new() }
    }

    /// Unwinds a stack into `result`, reusing its memory.
    pub fn unwind(
        &mut self,
        space: &AddressSpace,
        images: &Images,
        registers: Registers,
        stack: StackBytes<'_>,
        result: &mut Stack,
    ) {
        result.frames.clear();
        result.cut = true;
        result.copy_ended = false;
        let input = Input { space, images, stack };
        let mut position = Position { registers, returns: false };
        let mut inferred = false;
        let mut effort = Effort::new();
        while result.frames.len() < MAX_FRAMES {
            let address = position.registers.program_counter();
            let place = space.place(address);
            if place == Place::NotCode {
                return;
            }
            let site = self.rules.site_at(&input, &position);
            if !follows_call(&site, &position) {
                return;
            }
            result.frames.push(Frame {
                address,
                is_return_address: position.returns,
                place,
                frame_address: position.registers.stack_pointer(),
                inferred,
            });
            position = match self.rules.step(&input, &position, &site) {
                Step::Caller(caller) => caller,
                Step::Start => {
                    result.cut = false;
                    return;
                }
                Step::Lacks(lack) => {
                    match self.rules.infer(&input, &position, &site, lack, &mut effort) {
                        Some(found) => {
                            inferred |= found.inferred;
                            found.caller
                        }
                        None => {
                            result.copy_ended = true;
                            return;
                        }
                    }
                }
                Step::BeyondCopy => {
                    result.copy_ended = true;
                    return;
                }
                Step::Broken => return,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::process::Mapping;

    fn own_code() -> Vec<Mapping> {
        let maps = fs::read("/proc/self/maps").unwrap();
        let mappings = maps.split(|&byte| byte == b'\n').filter_map(Mapping::parse);
        mappings.filter(|mapping| mapping.executable).collect()
    }

    #[derive(Clone, Debug)]
    enum Word {
        Any(u64),
        /// Address on the stack, by its offset.
        Stack(u64),
        /// Address of code, by mapping and offset.
        Code(usize, u64),
        /// Address after bytes that look like a call.
        Caller(usize),
    }

    fn word() -> impl Strategy<Value = Word> {
        // `prop_oneof!` would seed a generator for each word, which takes longer than the rest of
        // the test.
        (0..4, any::<usize>(), any::<u64>()).prop_map(|(kind, at, value)| match kind {
            0 => Word::Any(value),
            1 => Word::Stack(value % 2048 * 8),
            2 => Word::Code(at, value),
            _ => Word::Caller(at),
        })
    }

    #[test]
    fn hostile_stacks_are_survived() {
        const BASES: &[u64] = &[0x7ffc_0000_0000, 0, u64::MAX - 4096];
        // All cases share these, because creating them takes most of the time.
        let mut images = Images::new();
        let mappings = own_code();
        let space = AddressSpace::new(std::process::id(), &mappings, &mut images);
        let callers = callers(&mappings);
        let unwinder = RefCell::new(Unwinder::new());
        proptest!(|(
            words in prop::collection::vec(word(), 1..2048),
            program_counter in word(),
            frame_pointer in prop::option::of(word()),
            base in prop_oneof![3 => prop::sample::select(BASES), 1 => any::<u64>()],
        )| {
            let value = |word: &Word| match *word {
                Word::Any(value) => value,
                Word::Stack(at) => base.wrapping_add(at),
                Word::Code(at, offset) => {
                    let mapping = &mappings[at % mappings.len()];
                    mapping.start + offset % (mapping.end - mapping.start)
                }
                Word::Caller(at) => callers[at % callers.len()],
            };
            let bytes: Vec<u8> = words.iter().flat_map(|word| value(word).to_le_bytes()).collect();
            let mut registers = Registers::new(value(&program_counter), base);
            if let Some(pointer) = &frame_pointer {
                registers = registers.with_frame_pointer(value(pointer));
            }
            let mut stack = Stack::default();
            let bytes = StackBytes { base, bytes: &bytes };
            unwinder.borrow_mut().unwind(&space, &images, registers, bytes, &mut stack);
            prop_assert!(stack.frames.len() <= MAX_FRAMES);
        });
    }

    fn callers(mappings: &[Mapping]) -> Vec<u64> {
        let memory = fs::File::open("/proc/self/mem").unwrap();
        let mut found = vec![mappings[0].start];
        for mapping in mappings {
            let mut code = [0; 1 << 14];
            let length = std::os::unix::fs::FileExt::read_at(&memory, &mut code, mapping.start);
            for at in 5..length.unwrap_or(0) {
                if code[at - 5] == 0xe8 {
                    found.push(mapping.start + at as u64);
                }
            }
        }
        found
    }
}
