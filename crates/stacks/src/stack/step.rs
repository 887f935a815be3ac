//! One unwinding step, from a frame's registers to its caller's.

use super::StackBytes;
use super::call::PrecedingCall;
use super::registers::{PROGRAM_COUNTER, Registers, STACK_POINTER};
use super::rules::{Cfa, Function, NoValue, Program, Rule, Rules, Saved, Site};
use crate::image::{AddressSpace, Images};

/// Bits of an address. On AArch64, the higher bits of a return address may contain its signature.
const ADDRESS_BITS: u64 = (1 << 48) - 1;

#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) space: &'a AddressSpace,
    pub(super) images: &'a Images,
    pub(super) stack: StackBytes<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) registers: Registers,
    /// True if the program counter is a return address.
    pub(super) returns: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// No table covers the function.
    Rule,
    /// The rule needs a register that no frame saved.
    Register(u16),
}

pub(super) enum Step {
    Caller(Position),
    /// The frame is the outermost one, with which the thread started.
    Start,
    /// Information is missing that may be inferred.
    Lacks(Lack),
    /// The step needs a part of the stack that was not copied.
    BeyondCopy,
    /// The values are implausible.
    Broken,
}

impl Rules {
    pub(super) fn site_at(&mut self, input: &Input<'_>, position: &Position) -> Site {
        let address = position.registers.program_counter();
        self.site(input.space, input.images, address, position.returns)
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
        let run = |program: Program, initial| self.evaluate(program, initial, registers, stack);
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
        // The stack pointer must rise with each step, with these exceptions: on AArch64, a leaf
        // function saves nothing; the stub of `vfork` keeps its return address in a register; and a
        // signal handler may run on a stack of its own.
        let in_register = |&(number, saved): &(u16, Saved)| {
            number == function.return_column && matches!(saved, Saved::InRegister(_))
        };
        let saves_nothing =
            function.return_column != PROGRAM_COUNTER || function.saved.iter().any(in_register);
        let leaf = saves_nothing && !position.returns;
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
                        // A function's last instructions may have popped the register already,
                        // which the tables do not show.
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

/// Returns `false` for a return address that does not follow a call, unless the kernel set it up
/// for a signal handler.
pub(super) fn follows_call(site: &Site, position: &Position) -> bool {
    let signal = matches!(&site.rule, Rule::Function(function) if function.signal);
    !position.returns || signal || site.call != PrecedingCall::None
}
