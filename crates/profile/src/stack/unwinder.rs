//! From frame to frame.

use super::call::PrecedingCall;
use super::infer::Lack;
use super::registers::{PROGRAM_COUNTER, Registers, STACK_POINTER};
use super::rules::{Cfa, Function, NoValue, Program, Rule, Rules, Saved, Site};
use super::{Frame, MAX_FRAMES, Stack, StackBytes};
use crate::image::{AddressSpace, Images, Place};

/// On aarch64 the bits above may sign a return address.
const ADDRESS_BITS: u64 = (1 << 48) - 1;

/// Unwinds the stacks of any number of processes. It keeps the rules that it used last, and the
/// unwind tables of all files that it has seen.
#[derive(Debug)]
pub struct Unwinder {
    pub(super) rules: Rules,
}

/// Everything about a stack that stays the same while it is unwound.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) space: &'a AddressSpace,
    pub(super) images: &'a Images,
    pub(super) stack: StackBytes<'a>,
}

/// A frame's registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) registers: Registers,
    /// The program counter is a return address.
    pub(super) returns: bool,
}

pub(super) enum Step {
    Caller(Position),
    /// The thread starts here.
    Start,
    /// Something is missing that can perhaps be inferred.
    Lacks(Lack),
    /// The stack is longer than its copy.
    BeyondCopy,
    /// What was found makes no sense.
    Broken,
}

impl Default for Unwinder {
    fn default() -> Unwinder {
        Unwinder::new()
    }
}

impl Unwinder {
    /// An unwinder that knows no file yet.
    pub fn new() -> Unwinder {
        Unwinder { rules: Rules::new() }
    }

    /// Unwinds a stack into `result`, whose memory is used again.
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
        let mut effort = super::infer::Effort::new();
        while result.frames.len() < MAX_FRAMES {
            let address = position.registers.program_counter();
            let place = space.place(address);
            if place == Place::NotCode {
                return;
            }
            let site = self.site(&input, &position);
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
            position = match self.step(&input, &position, &site) {
                Step::Caller(caller) => caller,
                Step::Start => {
                    result.cut = false;
                    return;
                }
                Step::Lacks(lack) => {
                    match self.infer(&input, &position, &site, lack, &mut effort) {
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

    pub(super) fn site(&mut self, input: &Input<'_>, position: &Position) -> Site {
        let address = position.registers.program_counter();
        self.rules.site(input.space, input.images, address, position.returns)
    }

    pub(super) fn step(&self, input: &Input<'_>, position: &Position, site: &Site) -> Step {
        match &site.rule {
            Rule::Start => Step::Start,
            Rule::Unknown => Step::Lacks(Lack::Rule),
            Rule::Function(function) => self.follow(input, position, function),
        }
    }

    fn follow(&self, input: &Input<'_>, position: &Position, function: &Function) -> Step {
        let registers = &position.registers;
        let stack = &input.stack;
        let run =
            |program: Program, initial| self.rules.evaluate(program, initial, registers, stack);
        let at_register = |number, offset| {
            let value: u64 = registers.get(number).ok_or(NoValue::Needs(number))?;
            stack.word(value.wrapping_add_signed(offset)).ok_or(NoValue::Unreadable)
        };
        let cfa = match function.cfa {
            Cfa::Register(number, offset) => registers
                .get(number)
                .map(|value| value.wrapping_add_signed(offset))
                .ok_or(NoValue::Needs(number)),
            Cfa::Loaded(number, offset) => at_register(number, offset),
            Cfa::Expression(program) => run(program, None),
        };
        let cfa = match cfa {
            Ok(cfa) => cfa,
            Err(NoValue::Needs(number)) => return Step::Lacks(Lack::Register(number)),
            Err(NoValue::Unreadable) => return Step::Broken,
        };
        // A leaf of aarch64 saves nothing. A signal's handler may run on a stack of its own.
        let leaf = function.return_column != PROGRAM_COUNTER && !position.returns;
        let moved = cfa > registers.stack_pointer() || leaf && cfa == registers.stack_pointer();
        if !moved && !function.signal {
            return Step::Broken;
        }
        let mut next = *registers;
        next.set(STACK_POINTER, cfa);
        let mut has_return_address = function.return_column != PROGRAM_COUNTER;
        for &(number, saved) in &function.saved {
            has_return_address |= number == function.return_column;
            let value = match saved {
                Saved::Lost => {
                    next.forget(number);
                    continue;
                }
                Saved::Value(offset) => Ok(cfa.wrapping_add_signed(offset)),
                Saved::At(offset) => {
                    let address = cfa.wrapping_add_signed(offset);
                    match stack.word(address) {
                        Some(word) => Ok(word),
                        // Popped already: the tables leave that out in a function's last
                        // instructions.
                        None if address < registers.stack_pointer() && !position.returns => {
                            continue;
                        }
                        None => return Step::BeyondCopy,
                    }
                }
                Saved::InRegister(other) => registers.get(other).ok_or(NoValue::Needs(other)),
                Saved::ValueExpression(program) => run(program, Some(cfa)),
                Saved::AtRegister(number, offset) => at_register(number, offset),
                Saved::AtExpression(program) => run(program, Some(cfa))
                    .and_then(|address| stack.word(address).ok_or(NoValue::Unreadable)),
            };
            match value {
                Ok(value) => next.set(number, value),
                Err(_) => next.forget(number),
            }
        }
        if !has_return_address {
            return Step::Broken;
        }
        let Some(address) = next.get(function.return_column) else {
            return Step::Lacks(Lack::Register(function.return_column));
        };
        let address = if cfg!(target_arch = "aarch64") { address & ADDRESS_BITS } else { address };
        if address == 0 {
            return Step::Start;
        }
        next.set(PROGRAM_COUNTER, address);
        if !function.signal {
            next.forget_volatile();
        }
        Step::Caller(Position { registers: next, returns: !function.signal })
    }
}

/// A return address follows a call, unless the kernel made it, for a signal's handler.
pub(super) fn follows_call(site: &Site, position: &Position) -> bool {
    let signal = matches!(&site.rule, Rule::Function(function) if function.signal);
    !position.returns || signal || site.call != PrecedingCall::None
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::process::Mapping;

    /// Mappings of this process, of code alone.
    fn own_code() -> Vec<Mapping> {
        let maps = fs::read("/proc/self/maps").unwrap();
        let mappings = maps.split(|&byte| byte == b'\n').filter_map(Mapping::parse);
        mappings.filter(|mapping| mapping.executable).collect()
    }

    #[derive(Clone, Debug)]
    enum Word {
        Any(u64),
        /// An address on the stack.
        Stack(u64),
        /// An address of code: mapping and offset.
        Code(usize, u64),
        /// An address that looks as if it followed a call.
        Caller(usize),
    }

    fn word() -> impl Strategy<Value = Word> {
        prop_oneof![
            any::<u64>().prop_map(Word::Any),
            (0u64..2048).prop_map(|at| Word::Stack(at * 8)),
            (any::<usize>(), any::<u64>()).prop_map(|(at, offset)| Word::Code(at, offset)),
            any::<usize>().prop_map(Word::Caller),
        ]
    }

    #[test]
    fn hostile_stacks_are_survived() {
        const BASES: &[u64] = &[0x7ffc_0000_0000, 0, u64::MAX - 4096];
        // All cases share what takes most of the time.
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

    /// Addresses that look as if they followed a call.
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
