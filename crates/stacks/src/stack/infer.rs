//! Searches the stack for the values of registers that no frame saved.
//!
//! Candidates are ranked first by the call before the return address (a call of the running
//! function ranks highest), then by how well the rest of the stack unwinds. Among equals, the
//! candidate nearest to the stack pointer wins. The position implied by the function's first
//! instructions is tried first.

use super::bare::target;
use super::call::PrecedingCall;
use super::prologue;
use super::registers::{FRAME_POINTER, Registers};
use super::rules::{Cfa, Function, Rule, Rules, Site};
use super::search::{Effort, caller, words};
use super::step::{Input, Lack, Position, Step, follows_call};
use super::{MAX_FRAMES, StackBytes};
use crate::image::{CodeAddress, Place};

/// Maximum number of words that a call may push as arguments.
const MAX_ARGUMENTS: u64 = 16;

pub(super) struct FoundCaller {
    pub(super) caller: Position,
    pub(super) inferred: bool,
}

/// Evidence for a candidate, compared field by field in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Evidence {
    call: Fit,
    reaches_start: bool,
    sound: bool,
    /// In the outer frames: number of direct calls of the expected function, minus the number of
    /// direct calls of other functions.
    calls_that_fit: isize,
}

/// Match between a call and the function that it must have called (the expected function).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    No,
    /// The code is unreadable, or calls another function, which may have jumped to the expected
    /// one.
    Other,
    /// The call is through a pointer.
    Indirect,
    /// The called function jumps to the expected one.
    Jumps,
    /// The expected function is called.
    Exact,
}

struct Candidate {
    caller: Position,
    evidence: Evidence,
    frames: usize,
}

impl Candidate {
    fn is_believable(&self) -> bool {
        let evidence = &self.evidence;
        let led_on = evidence.sound && (evidence.reaches_start || self.frames >= 2);
        evidence.call >= Fit::Jumps || evidence.call > Fit::No && led_on
    }
}

impl Rules {
    pub(super) fn infer(
        &mut self,
        input: &Input<'_>,
        position: &Position,
        site: &Site,
        lack: Lack,
        effort: &mut Effort,
    ) -> Option<FoundCaller> {
        match (lack, &site.rule) {
            (Lack::Register(FRAME_POINTER), Rule::Function(function)) => {
                self.infer_frame_pointer(input, position, site, function, effort)
            }
            _ => self.infer_caller(input, position, effort),
        }
    }

    fn infer_frame_pointer(
        &mut self,
        input: &Input<'_>,
        position: &Position,
        site: &Site,
        function: &Function,
        effort: &mut Effort,
    ) -> Option<FoundCaller> {
        let stack_pointer = position.registers.stack_pointer();
        let try_at = |rules: &mut Rules, value: u64, effort: &mut Effort| {
            let registers = position.registers.with_frame_pointer(value);
            let with = Position { registers, ..*position };
            match rules.step(input, &with, site) {
                Step::Caller(caller) => {
                    rules.candidate(input, position, Some(function), caller, effort)
                }
                _ => None,
            }
        };
        if let Some(distance) = self.prologue(input, position, function) {
            for argument in 0..=MAX_ARGUMENTS {
                let value = stack_pointer.checked_add(distance)?.checked_add(8 * argument)?;
                if !plausible_frame(input, function, value) {
                    continue;
                }
                let candidate = try_at(self, value, effort);
                let candidate = candidate.filter(|found| found.evidence.call > Fit::Other);
                if let Some(candidate) = candidate.filter(Candidate::is_believable) {
                    return Some(FoundCaller { caller: candidate.caller, inferred: true });
                }
            }
        }
        let mut best: Option<Candidate> = None;
        for value in words(stack_pointer, &input.stack) {
            if !effort.take_word() {
                break;
            }
            if !plausible_frame(input, function, value) {
                continue;
            }
            if let Some(candidate) = try_at(self, value, effort) {
                let certain = candidate.evidence.call >= Fit::Jumps
                    && candidate.evidence.reaches_start
                    && candidate.evidence.calls_that_fit > 0;
                keep_better(&mut best, candidate);
                if certain {
                    break;
                }
            }
        }
        let caller = best.filter(Candidate::is_believable)?.caller;
        Some(FoundCaller { caller, inferred: true })
    }

    /// Finds a caller without an unwind rule: by a known frame pointer, or anywhere on the stack.
    fn infer_caller(
        &mut self,
        input: &Input<'_>,
        position: &Position,
        effort: &mut Effort,
    ) -> Option<FoundCaller> {
        let registers = &position.registers;
        let stack_pointer = registers.stack_pointer();
        if let Some(frame) = registers.get(FRAME_POINTER).filter(|&fp| fp >= stack_pointer) {
            let caller = caller_of_frame(registers, &input.stack, frame);
            if let Some(caller) = caller
                && self.candidate(input, position, None, caller, effort).is_some()
            {
                return Some(FoundCaller { caller, inferred: false });
            }
        }
        if let Some(caller) = self.caller_of_bare(input, position, effort) {
            return Some(FoundCaller { caller, inferred: true });
        }
        let mut best: Option<Candidate> = None;
        for address in words(stack_pointer, &input.stack) {
            if !effort.take_word() {
                break;
            }
            let framed = caller_of_frame(registers, &input.stack, address);
            let frameless = caller_without_frame(registers, &input.stack, address);
            for caller in [frameless, framed].into_iter().flatten() {
                if input.space.is_code(caller.registers.program_counter())
                    && let Some(candidate) = self.candidate(input, position, None, caller, effort)
                {
                    keep_better(&mut best, candidate);
                }
            }
            if best.as_ref().is_some_and(|best| best.evidence.reaches_start) {
                break;
            }
        }
        let caller = best.filter(Candidate::is_believable)?.caller;
        Some(FoundCaller { caller, inferred: true })
    }

    fn caller_by_prologue(
        &mut self,
        input: &Input<'_>,
        position: &Position,
        site: &Site,
    ) -> Option<Position> {
        let Rule::Function(function) = &site.rule else { return None };
        let distance = self.prologue(input, position, function)?;
        let value = position.registers.stack_pointer().checked_add(distance)?;
        if !plausible_frame(input, function, value) {
            return None;
        }
        let registers = position.registers.with_frame_pointer(value);
        match self.step(input, &Position { registers, ..*position }, site) {
            Step::Caller(caller) => Some(caller),
            _ => None,
        }
    }

    fn prologue(
        &mut self,
        input: &Input<'_>,
        position: &Position,
        function: &Function,
    ) -> Option<u64> {
        let place = input.space.place(position.registers.program_counter());
        let Place::Image(code) = place else { return None };
        let image = input.images.get(code.image)?;
        let mut bytes = [0; prologue::LENGTH];
        let start = CodeAddress { address: function.start, ..code };
        let length = self.code.read(image, start, &mut bytes);
        prologue::frame_pointer_distance(&bytes[..length])
    }

    /// Collects evidence for a candidate by unwinding the rest of the stack. `None` if the
    /// candidate's program counter is not a return address.
    fn candidate(
        &mut self,
        input: &Input<'_>,
        position: &Position,
        function: Option<&Function>,
        caller: Position,
        effort: &mut Effort,
    ) -> Option<Candidate> {
        if !input.space.is_code(caller.registers.program_counter()) {
            return None;
        }
        let mut site = self.site_at(input, &caller);
        if !follows_call(&site, &caller) {
            return None;
        }
        let called = function.map(|function| function.start);
        let mut evidence = Evidence {
            call: self.fit(input, position, called, &caller, &site),
            reaches_start: false,
            sound: true,
            calls_that_fit: 0,
        };
        let mut frames = 0;
        let mut at = caller;
        while frames < MAX_FRAMES && effort.take_step() {
            let next = match self.step(input, &at, &site) {
                Step::Caller(next) => next,
                Step::Start => {
                    evidence.reaches_start = true;
                    break;
                }
                Step::Lacks(Lack::Rule) => match self.caller_of_bare(input, &at, effort) {
                    Some(next) => next,
                    None => break,
                },
                Step::Lacks(Lack::Register(FRAME_POINTER)) => {
                    match self.caller_by_prologue(input, &at, &site) {
                        Some(next) => next,
                        None => break,
                    }
                }
                Step::Lacks(_) | Step::BeyondCopy => break,
                Step::Broken => {
                    evidence.sound = false;
                    break;
                }
            };
            let next_site = self.site_at(input, &next);
            if !input.space.is_code(next.registers.program_counter())
                || !follows_call(&next_site, &next)
            {
                evidence.sound = false;
                break;
            }
            let called = match &site.rule {
                Rule::Function(function) => Some(function.start),
                _ => None,
            };
            match self.fit(input, &at, called, &next, &next_site) {
                Fit::Exact | Fit::Jumps => evidence.calls_that_fit += 1,
                Fit::Other => evidence.calls_that_fit -= 1,
                _ => {}
            }
            (at, site) = (next, next_site);
            frames += 1;
        }
        Some(Candidate { caller, evidence, frames })
    }

    fn fit(
        &mut self,
        input: &Input<'_>,
        callee: &Position,
        called: Option<u64>,
        caller: &Position,
        site: &Site,
    ) -> Fit {
        let target = match site.call {
            PrecedingCall::None => return Fit::No,
            PrecedingCall::Unreadable => return Fit::Other,
            PrecedingCall::Indirect => return Fit::Indirect,
            PrecedingCall::Direct(_) | PrecedingCall::Through(_) => target(input, caller, site),
        };
        let address = callee.registers.program_counter();
        let bias = match input.space.place(address) {
            Place::Image(code) => Some(address.wrapping_sub(code.address)),
            _ => None,
        };
        let start = bias.zip(called).map(|(bias, start)| bias.wrapping_add(start));
        match (target, start) {
            (None, _) => Fit::Indirect,
            (Some(target), Some(start)) if target == start => Fit::Exact,
            (Some(target), Some(start)) if self.jumps_on(input, target, start) => Fit::Jumps,
            _ => Fit::Other,
        }
    }
}

fn keep_better(best: &mut Option<Candidate>, candidate: Candidate) {
    if best.as_ref().is_none_or(|best| candidate.evidence > best.evidence) {
        *best = Some(candidate);
    }
}

/// Quick check of a frame pointer: returns `true` if it leads to a return address in code.
fn plausible_frame(input: &Input<'_>, function: &Function, value: u64) -> bool {
    let cfa = match function.cfa {
        Cfa::Register(_, offset) => Some(value.wrapping_add_signed(offset)),
        Cfa::Loaded(_, offset) => input.stack.word(value.wrapping_add_signed(offset)),
        Cfa::Expression(_) => return true,
    };
    let Some(cfa) = cfa else { return false };
    let column = function.saved.iter().find(|(number, _)| *number == function.return_column);
    match column {
        Some((_, super::rules::Saved::At(offset))) => input
            .stack
            .word(cfa.wrapping_add_signed(*offset))
            .is_some_and(|address| input.space.is_code(address)),
        _ => true,
    }
}

fn caller_of_frame(registers: &Registers, stack: &StackBytes<'_>, frame: u64) -> Option<Position> {
    let saved = stack.word(frame)?;
    let address = stack.word(frame.checked_add(8)?)?;
    Some(caller(registers, address, frame.checked_add(16)?, Some(saved)))
}

#[cfg(target_arch = "x86_64")]
fn caller_without_frame(
    registers: &Registers,
    stack: &StackBytes<'_>,
    at: u64,
) -> Option<Position> {
    Some(caller(registers, stack.word(at)?, at.checked_add(8)?, None))
}

/// On AArch64, each return address is stored next to a frame pointer, so no such caller exists.
#[cfg(target_arch = "aarch64")]
fn caller_without_frame(_: &Registers, _: &StackBytes<'_>, _: u64) -> Option<Position> {
    None
}
