//! Stacks that were seen, by number, and the waits and locks that they show.

use std::time::Instant;

use threadtoll_judge::places;
use threadtoll_primitive::FunctionName;
use threadtoll_primitive::function::{Part, part};
use threadtoll_stacks::StackTable;
use threadtoll_stacks::image::{CodeAddress, Place};
use threadtoll_stacks::process::Process;
use threadtoll_stacks::stack::{Frame, Registers, Stack, StackBytes};
use threadtoll_stacks::symbol::Variable;

use crate::primitive::spinning::{spins_at_argument, spins_for_a_lock};
use crate::primitive::waiting::{Waiting, WaitingFrame};
use crate::primitive::{Caller, is_runtime_file};

/// Maximum number of frames of a waiter's stack that are searched for the object of the wait.
const CALLERS: usize = 12;

#[derive(Debug, Default)]
pub(crate) struct Stacks {
    pub(crate) table: StackTable,
    told: Vec<Told>,
    /// Time until which names include inlined functions, for which debug information is read.
    pub(crate) inlined_until: Option<Instant>,
}

#[derive(Debug)]
struct Told {
    places: Vec<places::Place>,
    /// `None` if not examined yet.
    spins: Option<Spins>,
    /// True if threads spin in an unnamed loop of the innermost function; `None` if not examined
    /// yet.
    spins_in_loop: Option<bool>,
}

/// Whether a running thread spins for a lock, according to its innermost functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spins {
    No,
    ForALock,
    /// For the lock whose address is in the register of the first argument.
    AtArgument,
}

impl Told {
    fn of(stack: &Stack) -> Told {
        let outermost = stack.frames.last().map_or(0, |frame| frame.frame_address);
        let place = |frame: &Frame| places::Place {
            return_address: frame.address,
            frame: outermost.wrapping_sub(frame.frame_address),
        };
        // The places of a stack that was cut off would be counted from the wrong frame.
        let frames = stack.frames.iter().filter(|_| !stack.cut);
        Told { places: frames.map(place).collect(), spins: None, spins_in_loop: None }
    }
}

impl Stacks {
    pub(crate) fn number(
        &mut self,
        process: u32,
        of: &Process,
        registers: Registers,
        stack: StackBytes<'_>,
    ) -> Option<u32> {
        let number = self.table.number(process, of, registers, stack)?;
        while let Some(new) = self.table.stack(self.told.len() as u32) {
            self.told.push(Told::of(new));
        }
        Some(number)
    }

    pub(crate) fn places(&self, number: u32) -> &[places::Place] {
        self.told.get(number as usize).map_or(&[], |told| &told.places)
    }

    pub(crate) fn callers(&mut self, number: u32) -> Vec<Caller> {
        let mut places = self.instructions(number);
        places.truncate(CALLERS);
        let table = &mut self.table;
        let caller = |place| Caller {
            function: table.function_at(place).map(|name| name.to_string()),
            module: match place {
                Place::Image(CodeAddress { image, .. }) => {
                    table.image(image).map_or_else(String::new, |image| image.name().to_owned())
                }
                _ => String::new(),
            },
        };
        places.into_iter().map(caller).collect()
    }

    /// Returns `true` if a running thread with this stack spins for a lock. Functions of the
    /// runtime may have been called by the one that spins, such as `sched_yield`.
    pub(crate) fn spins(&mut self, number: u32) -> bool {
        self.spins_how(number) != Spins::No
    }

    /// Returns `true` if a running thread with this stack spins for the lock whose address is in
    /// the register of the first argument. A thread that tries to take the lock for the first time
    /// does not spin yet.
    pub(crate) fn spins_at_argument(&mut self, number: u32) -> bool {
        self.spins_how(number) == Spins::AtArgument
    }

    fn spins_how(&mut self, number: u32) -> Spins {
        if let Some(spins) = self.told.get(number as usize).and_then(|told| told.spins) {
            return spins;
        }
        let mut spins = Spins::No;
        for (nth, place) in self.instructions(number).into_iter().enumerate() {
            if nth > 0 && !self.is_in_runtime(place) {
                break;
            }
            let Some(name) = self.table.function_at(place) else { continue };
            if nth == 0 && spins_at_argument(&name) {
                if !self.table.is_before_spin_loop(place) {
                    spins = Spins::AtArgument;
                }
                break;
            }
            if spins_for_a_lock(&name) {
                spins = Spins::ForALock;
                break;
            }
        }
        if let Some(told) = self.told.get_mut(number as usize) {
            told.spins = Some(spins);
        }
        spins
    }

    /// Returns `true` if a running thread with this stack spins in the program's own code until
    /// another thread changes a word. The loop may yield the CPU.
    pub(crate) fn spins_in_loop(&mut self, number: u32) -> bool {
        if self.locks(number) {
            return false;
        }
        let yields = self.innermost(number).is_some_and(|name| name.ends_with("sched_yield"));
        let innermost = self.instructions(number).first().copied();
        let Some(told) = self.told.get_mut(number as usize) else { return false };
        let table = &self.table;
        let spins = || yields || innermost.is_some_and(|it| table.is_spin_loop(it));
        *told.spins_in_loop.get_or_insert_with(spins)
    }

    pub(crate) fn names(&mut self, number: u32) -> (Vec<String>, u32) {
        let mut names = Vec::new();
        for place in self.instructions(number) {
            names.extend(self.functions(place));
        }
        let frames = self.table.stack(number).map_or(&[][..], |stack| &stack.frames);
        let inferred = frames.iter().filter(|frame| frame.inferred).count();
        (names, inferred as u32)
    }

    /// The function that caused the wait: the innermost function outside the runtime and its locks.
    /// If there is none, the runtime's innermost function that does not belong to a lock.
    pub(crate) fn caller(&mut self, number: u32) -> Option<String> {
        let (mut of_library, mut innermost) = (None, None);
        for place in self.instructions(number) {
            let of_runtime = self.is_in_runtime(place);
            for name in self.functions(place) {
                match part(&name) {
                    Part::Program if !of_runtime => return Some(name),
                    Part::Lock | Part::Wait | Part::Start => _ = innermost.get_or_insert(name),
                    _ => _ = of_library.get_or_insert(name),
                }
            }
        }
        of_library.or(innermost)
    }

    /// Plain names of the functions on a stack, innermost first, each with its part of the code.
    /// Functions in the runtime's files never count as the program's own.
    pub(crate) fn parts(&mut self, number: u32) -> Vec<(String, Part)> {
        let mut parts = Vec::new();
        for place in self.instructions(number) {
            let of_runtime = self.is_in_runtime(place);
            for name in self.functions(place) {
                let name = FunctionName::parse(&name);
                let part = match name.part() {
                    Part::Program if of_runtime => Part::Library,
                    part => part,
                };
                parts.push((name.path().to_owned(), part));
            }
        }
        parts
    }

    pub(crate) fn innermost(&mut self, number: u32) -> Option<String> {
        self.innermost_function(number).map(|name| name.path().to_owned())
    }

    fn innermost_function(&mut self, number: u32) -> Option<FunctionName> {
        let place = self.table.stack(number)?.frames.first()?.instruction();
        self.table.function_at(place).map(|name| FunctionName::parse(&name))
    }

    pub(crate) fn locks(&mut self, number: u32) -> bool {
        let innermost = self.innermost_function(number);
        innermost.is_some_and(|name| name.part() == Part::Lock) || self.spins(number)
    }

    /// The runtime's function that takes an internal lock, if a thread with this stack waits for
    /// such a lock.
    pub(crate) fn taker_in_runtime(&mut self, number: u32) -> Option<String> {
        for place in self.instructions(number) {
            let of_runtime = self.is_in_runtime(place);
            let name = self.table.function_at(place).map(|name| FunctionName::parse(&name));
            match name {
                _ if !of_runtime => return None,
                Some(name) if matches!(name.part(), Part::Lock | Part::Wait) => {}
                Some(name) => return Some(name.path().to_owned()),
                None => {}
            }
        }
        None
    }

    /// The variable at an address of a process. The flag is `true` if the variable belongs to the
    /// runtime.
    pub(crate) fn variable(&mut self, process: u32, address: u64) -> Option<(Variable, bool)> {
        let (variable, image) = self.table.variable(process, address)?;
        let image = self.table.image(image);
        Some((variable, image.is_some_and(|image| is_runtime_file(image.name()))))
    }

    pub(crate) fn waiting(&mut self, number: u32) -> Waiting {
        let mut frames = Vec::new();
        for place in self.instructions(number) {
            let in_runtime = self.is_in_runtime(place);
            let names = self.functions(place);
            frames.extend(names.into_iter().map(|function| WaitingFrame { function, in_runtime }));
        }
        Waiting::of(&frames)
    }

    /// Functions of the program on a stack, each with its return address. The return address
    /// distinguishes closures of the same name.
    pub(crate) fn program_functions(&mut self, number: u32) -> Vec<(String, u64)> {
        let frames = self.table.stack(number).map_or(&[][..], |stack| &stack.frames);
        let returns: Vec<u64> = frames.iter().skip(1).map(|frame| frame.address).collect();
        let mut found = Vec::new();
        for (place, to) in self.instructions(number).into_iter().zip(returns) {
            let of_runtime = self.is_in_runtime(place);
            let name = self.table.name(place);
            if !of_runtime && part(&name) == Part::Program {
                found.push((name, to));
            }
        }
        found
    }

    /// Names of the program's functions on a stack, innermost first, without functions that only
    /// wait.
    pub(crate) fn own_functions(&mut self, number: u32) -> Vec<String> {
        let mut own = Vec::new();
        for place in self.instructions(number) {
            if !self.is_in_runtime(place) {
                own.extend(self.functions(place));
            }
        }
        own.retain(|name| part(name) == Part::Program);
        own.dedup();
        let waiting = self.waiting(number).function;
        let first = waiting.and_then(|waiting| own.iter().position(|name| *name == waiting));
        own.split_off(first.unwrap_or(0))
    }

    fn instructions(&self, number: u32) -> Vec<Place> {
        let frames = self.table.stack(number).map_or(&[][..], |stack| &stack.frames);
        frames.iter().map(Frame::instruction).collect()
    }

    /// Names of the functions at an address, innermost first. Until `inlined_until`, inlined
    /// functions are included, except in the runtime, whose debug information is large.
    fn functions(&mut self, place: Place) -> Vec<String> {
        let in_time = self.inlined_until.is_some_and(|until| Instant::now() < until);
        match in_time && !self.is_in_runtime(place) {
            true => self.table.describe(place).to_vec(),
            false => vec![self.table.name(place)],
        }
    }

    fn is_in_runtime(&self, place: Place) -> bool {
        match place {
            Place::Image(code) => {
                let image = self.table.image(code.image);
                image.is_some_and(|image| is_runtime_file(image.name()))
            }
            Place::Generated | Place::NotCode => true,
        }
    }
}
