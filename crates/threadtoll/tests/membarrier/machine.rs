//! A machine whose threads perform instructions out of order, and a search of all its reachable
//! states.
//!
//! A thread has a window of instructions that were fetched but not retired. Any of them may be
//! *performed* (a load reads the single shared memory, a store writes it) before an earlier one,
//! unless the [`Hardware`] forbids it. Loads past an undecided branch are speculative; executions
//! with a wrong guess are discarded.
//!
//! - [`Hardware::Tso`] lets only loads overtake stores, as x86 does: a store that was not performed
//!   is in the store buffer, and a load finds it there. Read-modify-writes are full barriers.
//! - [`Hardware::Weak`] lets everything overtake everything, except for accesses to the same place,
//!   acquire, release and fences. A read-modify-write reads first and writes later; in between no
//!   other thread writes there, but other accesses may pass as far as its ordering lets them.
//!   Memory is one for all threads, as on Arm and RISC-V; POWER is not covered.
//!
//! `membarrier(2)` asks every other thread for a full barrier, which that thread executes between
//! any two of its instructions: everything before has been performed, nothing after. The call
//! returns when all have done so. A nap guarantees less: when it ends, other threads have performed
//! the accesses that were in their windows when it began, and all earlier ones. Comparing a futex
//! and falling asleep is one step. A sleeper may wake for no reason at any moment, but the protocol
//! must not rely on it.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type Place = u8;
pub(crate) type Register = u8;
pub(crate) type Label = u16;

/// Ordering of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
}

impl Order {
    fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel)
    }

    fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    Store(Place, u8, Order),
    Load(Register, Place, Order),
    /// `place = place & and | or`, the old value into the register.
    Update(Register, Place, u8, u8, Order),
    /// If the place has the second register's value: `place = place & and | or`, and 1 into the
    /// first register; otherwise 0.
    Swap(Register, Place, Register, u8, u8, Order),
    Fence,
    Membarrier,
    /// Sleeps until the stores of others have become visible.
    Nap,
    /// Sleeps if the place has the register's value with these bits set.
    FutexWait(Place, Register, u8),
    FutexWake(Place),
    /// Jumps if any of these bits is set in the register.
    IfAny(Register, u8, Label),
    /// Jumps if the register is at least this.
    IfAtLeast(Register, u8, Label),
    Goto(Label),
    At(Label),
    /// Asserts that the register has this value.
    Assert(Register, u8),
}

use Instruction::*;

impl Instruction {
    fn place(self) -> Option<Place> {
        match self {
            Store(place, ..) | Load(_, place, _) | Update(_, place, ..) | Swap(_, place, ..) => {
                Some(place)
            }
            _ => None,
        }
    }

    fn writes(self) -> Option<Register> {
        match self {
            Load(register, ..) | Update(register, ..) | Swap(register, ..) => Some(register),
            _ => None,
        }
    }

    fn reads(self) -> Option<Register> {
        match self {
            Swap(_, _, register, ..)
            | FutexWait(_, register, _)
            | IfAny(register, ..)
            | IfAtLeast(register, ..)
            | Assert(register, _) => Some(register),
            _ => None,
        }
    }

    fn acquires(self) -> bool {
        matches!(
            self,
            Load(_, _, order) | Update(_, _, _, _, order) | Swap(.., order) if order.acquires()
        )
    }

    fn releases(self) -> bool {
        matches!(
            self,
            Store(_, _, order) | Update(_, _, _, _, order) | Swap(.., order) if order.releases()
        )
    }

    /// Nothing is reordered across it.
    fn is_wall(self) -> bool {
        matches!(self, Fence | Membarrier | Nap | FutexWait(..) | FutexWake(_) | Assert(..))
    }

    /// Reads and writes a place in one.
    fn is_update(self) -> bool {
        matches!(self, Update(..) | Swap(..))
    }

    fn is_branch(self) -> bool {
        matches!(self, IfAny(..) | IfAtLeast(..))
    }

    /// Returns `true` if the branch is taken when its register has this value.
    fn takes(self, value: u8) -> bool {
        match self {
            IfAny(_, bits, _) => value & bits != 0,
            IfAtLeast(_, least, _) => value >= least,
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hardware {
    Tso,
    Weak,
}

/// Progress of an instruction in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Fetched,
    /// A branch that was guessed, with the guess.
    Guessed(bool),
    /// Begun and not complete: an update that has read, a membarrier or nap that waits, a sleeper.
    Half(u8),
    Performed(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Entry {
    at: u8,
    stage: Stage,
}

const REGISTERS: usize = 4;
pub(crate) const PLACES: usize = 6;
/// Most instructions in a window.
const WINDOW: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Thread {
    window: Vec<Entry>,
    next: u8,
    registers: [u8; REGISTERS],
    /// Threads whose membarrier waits for this thread.
    asked_by: u8,
    /// Number of entries at the front of the window that are performed before the other's nap ends.
    due: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    memory: [u8; PLACES],
    /// The thread that has read a place and is about to write it, plus 1.
    locked: [u8; PLACES],
    threads: Vec<Thread>,
}

/// Result of a search.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The end can be reached from every reachable state, without a spurious wake-up.
    Sound { states: usize },
    /// The end cannot be reached from this state.
    Lost { states: usize, trace: Vec<String> },
    /// A register did not have the value that was asserted.
    Wrong { states: usize, trace: Vec<String> },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Sound { states } => write!(f, "sound in all {states} states"),
            Verdict::Lost { states, trace } => {
                write!(
                    f,
                    "somebody waits for ever, found among {states} states:\n  {}",
                    trace.join("\n  ")
                )
            }
            Verdict::Wrong { states, trace } => {
                write!(f, "a wrong value, found among {states} states:\n  {}", trace.join("\n  "))
            }
        }
    }
}

/// Description of a step, for the report.
#[derive(Clone, Copy)]
struct Event {
    thread: usize,
    what: &'static str,
    instruction: Instruction,
    value: u8,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { thread, what, instruction, value } = self;
        write!(f, "thread {thread}: {what} {instruction:?}")?;
        match instruction {
            Load(..) | Update(..) | Swap(..) | Assert(..) => write!(f, ": {value}"),
            _ => Ok(()),
        }
    }
}

/// A step that a state allows.
struct Step {
    event: Event,
    next: State,
    /// True if the step may never happen.
    idle: bool,
}

pub(crate) struct Machine {
    hardware: Hardware,
    programs: Vec<Vec<Instruction>>,
    /// Initial memory.
    memory: [u8; PLACES],
    /// True if sleeps have a limit, so that every sleeper wakes.
    naps: bool,
}

impl Machine {
    pub(crate) fn new(hardware: Hardware, programs: Vec<Vec<Instruction>>, naps: bool) -> Self {
        Machine { hardware, programs, memory: [0; PLACES], naps }
    }

    /// Sets the initial value of a place.
    pub(crate) fn beginning_with(mut self, place: Place, value: u8) -> Self {
        self.memory[place as usize] = value;
        self
    }

    fn target(&self, thread: usize, label: Label) -> u8 {
        let at = self.programs[thread].iter().position(|i| *i == At(label));
        at.unwrap_or_else(|| panic!("no label {label}")) as u8
    }

    fn instruction(&self, thread: usize, at: u8) -> Instruction {
        self.programs[thread][at as usize]
    }

    /// Returns `true` if the earlier instruction must be performed before the later one.
    fn ordered(&self, earlier: Instruction, later: Instruction) -> bool {
        if earlier.is_wall() || later.is_wall() {
            return true;
        }
        if earlier.is_branch() {
            // Nothing visible to others is speculative.
            return matches!(later, Store(..)) || later.is_update();
        }
        if later.is_branch() {
            return false;
        }
        // A load may see an earlier store of its own thread before others do. All other accesses to
        // one place stay in order.
        let forwarded = matches!((earlier, later), (Store(..), Load(..)));
        if earlier.place() == later.place() && !forwarded {
            return true;
        }
        match self.hardware {
            Hardware::Tso => !forwarded,
            Hardware::Weak => earlier.acquires() || later.releases(),
        }
    }

    /// The value of a register for the instruction at this index of the window, if known.
    fn value(&self, thread: usize, state: &Thread, index: usize, register: Register) -> Option<u8> {
        for entry in state.window[..index].iter().rev() {
            let instruction = self.instruction(thread, entry.at);
            if instruction.writes() == Some(register) {
                return match entry.stage {
                    Stage::Performed(value) => Some(value),
                    // An update's register is known before it has written.
                    Stage::Half(_) if matches!(instruction, Swap(..)) => Some(1),
                    Stage::Half(value) => Some(value),
                    _ => None,
                };
            }
        }
        Some(state.registers[register as usize])
    }

    /// Retires, resolves and fetches as far as there is no choice. Returns `false` if a guess was
    /// wrong.
    fn settle(&self, thread: usize, state: &mut Thread) -> bool {
        loop {
            let mut changed = false;
            for index in 0..state.window.len() {
                let Entry { at, stage } = state.window[index];
                let Stage::Guessed(guess) = stage else { continue };
                let branch = self.instruction(thread, at);
                let Some(register) = branch.reads() else { continue };
                if let Some(value) = self.value(thread, state, index, register) {
                    if branch.takes(value) != guess {
                        return false;
                    }
                    state.window[index].stage = Stage::Performed(0);
                    changed = true;
                }
            }
            // The time at which a fence that waits for nothing is performed makes no difference.
            if let Some(first) = state.window.first_mut()
                && self.programs[thread][first.at as usize] == Fence
            {
                first.stage = Stage::Performed(0);
            }
            while let Some(&Entry { at, stage: Stage::Performed(value) }) = state.window.first() {
                if let Some(register) = self.instruction(thread, at).writes() {
                    state.registers[register as usize] = value;
                }
                state.window.remove(0);
                state.due = state.due.saturating_sub(1);
                changed = true;
            }
            changed |= self.fetch(thread, state);
            if !changed {
                return true;
            }
        }
    }

    /// Fetches the next instruction, if it is known.
    fn fetch(&self, thread: usize, state: &mut Thread) -> bool {
        if usize::from(state.next) == self.programs[thread].len() || state.window.len() == WINDOW {
            return false;
        }
        if state.window.last().is_some_and(|last| self.instruction(thread, last.at).is_wall()) {
            return false;
        }
        let at = state.next;
        match self.instruction(thread, at) {
            Goto(label) => state.next = self.target(thread, label),
            At(_) => state.next += 1,
            branch @ (IfAny(register, _, label) | IfAtLeast(register, _, label)) => {
                let Some(value) = self.value(thread, state, state.window.len(), register) else {
                    return false;
                };
                state.next = if branch.takes(value) { self.target(thread, label) } else { at + 1 };
            }
            _ => {
                state.window.push(Entry { at, stage: Stage::Fetched });
                state.next += 1;
            }
        }
        true
    }

    /// Returns `true` if loads may overtake the load that sets this register.
    fn may_be_overtaken(&self, thread: usize, state: &Thread, register: Register) -> bool {
        let mut window = state.window.iter().rev().map(|entry| self.instruction(thread, entry.at));
        self.hardware == Hardware::Weak
            && window.find(|i| i.writes() == Some(register)).is_some_and(|i| !i.acquires())
    }

    /// Returns `true` if all performed entries come before all others.
    fn is_between_instructions(state: &Thread) -> bool {
        // Performed entries at the front have been retired.
        state.window.iter().enumerate().all(|(index, entry)| match entry.stage {
            Stage::Fetched | Stage::Guessed(_) => true,
            Stage::Performed(_) => false,
            // A thread that waits for a membarrier or sleeps answers from the kernel; a thread with
            // half an update does not answer.
            Stage::Half(_) => index == 0,
        })
    }

    /// Number of entries up to the last performed one.
    fn performed(state: &Thread) -> u8 {
        let is_done = |entry: &Entry| matches!(entry.stage, Stage::Performed(_) | Stage::Half(_));
        state.window.iter().rposition(is_done).map_or(0, |last| last as u8 + 1)
    }

    fn steps(&self, state: &State) -> Vec<Step> {
        let mut steps = Vec::new();
        for thread in 0..state.threads.len() {
            self.steps_of(state, thread, &mut steps);
        }
        steps
    }

    fn steps_of(&self, state: &State, thread: usize, steps: &mut Vec<Step>) {
        let own = &state.threads[thread];
        let mut add = |what, instruction, value, change: &mut dyn FnMut(&mut State)| {
            let mut next = state.clone();
            change(&mut next);
            let settled = (0..next.threads.len()).all(|thread| {
                let mut own = std::mem::take(&mut next.threads[thread]);
                let settled = self.settle(thread, &mut own);
                next.threads[thread] = own;
                settled
            });
            if settled {
                let idle = what == IDLE && !self.naps;
                steps.push(Step { event: Event { thread, what, instruction, value }, next, idle });
            }
        };
        // Answers another thread's membarrier.
        let in_update = own.window.first().is_some_and(|entry| {
            matches!(entry.stage, Stage::Half(_)) && self.instruction(thread, entry.at).is_update()
        });
        if own.asked_by != 0 && !in_update && Self::is_between_instructions(own) {
            add("executes a barrier for the other's", Membarrier, 0, &mut |next| {
                next.threads[thread].asked_by = 0;
            });
        }
        // Guesses the branch at which fetching has stopped. This matters only if a later load may
        // overtake the one that decides the branch.
        let full = own.window.len() == WINDOW
            || own.window.last().is_some_and(|last| self.instruction(thread, last.at).is_wall());
        if !full
            && let Some(&branch @ (IfAny(register, _, label) | IfAtLeast(register, _, label))) =
                self.programs[thread].get(own.next as usize)
            && self.may_be_overtaken(thread, own, register)
        {
            for taken in [false, true] {
                let what =
                    if taken { "guesses that it takes" } else { "guesses that it does not take" };
                add(what, branch, 0, &mut |next| {
                    let own = &mut next.threads[thread];
                    own.window.push(Entry { at: own.next, stage: Stage::Guessed(taken) });
                    own.next = if taken { self.target(thread, label) } else { own.next + 1 };
                });
            }
        }
        for (index, &Entry { at, stage }) in own.window.iter().enumerate() {
            if matches!(stage, Stage::Performed(_) | Stage::Guessed(_)) {
                continue;
            }
            let instruction = self.instruction(thread, at);
            let earlier = &own.window[..index];
            let blocked = earlier.iter().any(|entry| {
                let before = self.instruction(thread, entry.at);
                let done = match entry.stage {
                    Stage::Performed(_) => true,
                    // Accesses ordered by an acquiring update may be performed once it has read,
                    // except to its own place.
                    Stage::Half(_) => {
                        before.is_update()
                            && matches!(instruction, Load(..))
                            && before.place() != instruction.place()
                    }
                    Stage::Fetched | Stage::Guessed(_) => false,
                };
                !done && self.ordered(before, instruction)
            });
            if blocked {
                continue;
            }
            let operand =
                instruction.reads().map(|register| self.value(thread, own, index, register));
            if operand == Some(None) {
                continue;
            }
            let operand = operand.flatten().unwrap_or(0);
            let set = |next: &mut State, stage| next.threads[thread].window[index].stage = stage;
            match (instruction, stage) {
                (Store(place, value, _), _) => {
                    if state.locked[place as usize] == 0 {
                        add("performs", instruction, 0, &mut |next| {
                            next.memory[place as usize] = value;
                            set(next, Stage::Performed(0));
                        });
                    }
                }
                (Load(_, place, _), _) => {
                    let own_store = earlier.iter().rev().find_map(|entry| {
                        match (self.instruction(thread, entry.at), entry.stage) {
                            (Store(other, value, _), Stage::Fetched) if other == place => {
                                Some(value)
                            }
                            _ => None,
                        }
                    });
                    let value = own_store.unwrap_or(state.memory[place as usize]);
                    add("performs", instruction, value, &mut |next| {
                        set(next, Stage::Performed(value));
                    });
                }
                (Update(_, place, and, or, _), Stage::Fetched) => {
                    if state.locked[place as usize] == 0 {
                        let old = state.memory[place as usize];
                        add("reads", instruction, old, &mut |next| match self.hardware {
                            Hardware::Tso => {
                                next.memory[place as usize] = old & and | or;
                                set(next, Stage::Performed(old));
                            }
                            Hardware::Weak => {
                                next.locked[place as usize] = thread as u8 + 1;
                                set(next, Stage::Half(old));
                            }
                        });
                    }
                }
                (Update(_, place, and, or, _), Stage::Half(old)) => {
                    add("writes", instruction, old & and | or, &mut |next| {
                        next.memory[place as usize] = old & and | or;
                        next.locked[place as usize] = 0;
                        set(next, Stage::Performed(old));
                    });
                }
                (Swap(_, place, _, and, or, _), Stage::Fetched) => {
                    if state.locked[place as usize] == 0 {
                        let old = state.memory[place as usize];
                        let swaps = old == operand;
                        let what = if swaps { "finds what it expected in" } else { "fails in" };
                        add(what, instruction, old, &mut |next| match self.hardware {
                            _ if !swaps => set(next, Stage::Performed(0)),
                            Hardware::Tso => {
                                next.memory[place as usize] = old & and | or;
                                set(next, Stage::Performed(1));
                            }
                            Hardware::Weak => {
                                next.locked[place as usize] = thread as u8 + 1;
                                set(next, Stage::Half(old));
                            }
                        });
                    }
                }
                (Swap(_, place, _, and, or, _), Stage::Half(old)) => {
                    add("writes", instruction, old & and | or, &mut |next| {
                        next.memory[place as usize] = old & and | or;
                        next.locked[place as usize] = 0;
                        set(next, Stage::Performed(1));
                    });
                }
                (Nap, Stage::Fetched) => {
                    add("begins", instruction, 0, &mut |next| {
                        for (other, state) in next.threads.iter_mut().enumerate() {
                            if other != thread {
                                state.due = Self::performed(state);
                            }
                        }
                        set(next, Stage::Half(0));
                    });
                }
                (Nap, _) => {
                    let mut others = state.threads.iter().enumerate();
                    if others.all(|(other, state)| other == thread || state.due == 0) {
                        add("ends", instruction, 0, &mut |next| set(next, Stage::Performed(0)));
                    }
                }
                (Membarrier, Stage::Fetched) => {
                    add("calls", instruction, 0, &mut |next| {
                        for (other, state) in next.threads.iter_mut().enumerate() {
                            if other != thread {
                                state.asked_by |= 1 << thread;
                            }
                        }
                        set(next, Stage::Half(0));
                    });
                }
                (Membarrier, _) => {
                    if state.threads.iter().all(|other| other.asked_by & 1 << thread == 0) {
                        add("returns from", instruction, 0, &mut |next| {
                            set(next, Stage::Performed(0));
                        });
                    }
                }
                (FutexWait(place, _, bits), Stage::Fetched) => {
                    let sleeps = state.memory[place as usize] == operand | bits;
                    let what = if sleeps { "falls asleep in" } else { "finds the word changed in" };
                    let stage = if sleeps { Stage::Half(place) } else { Stage::Performed(0) };
                    add(what, instruction, 0, &mut |next| set(next, stage));
                }
                (FutexWait(..), _) => {
                    add(IDLE, instruction, 0, &mut |next| {
                        set(next, Stage::Performed(0));
                    });
                }
                (FutexWake(place), _) => {
                    add("performs", instruction, 0, &mut |next| {
                        for (other, state) in next.threads.iter_mut().enumerate() {
                            for entry in &mut state.window {
                                let is_wait =
                                    matches!(self.instruction(other, entry.at), FutexWait(..));
                                if is_wait && entry.stage == Stage::Half(place) {
                                    entry.stage = Stage::Performed(0);
                                }
                            }
                        }
                        set(next, Stage::Performed(0));
                    });
                }
                (Assert(_, value), _) => {
                    let what = if operand == value { "performs" } else { WRONG };
                    add(what, instruction, operand, &mut |next| set(next, Stage::Performed(0)));
                }
                (
                    Update(..) | Swap(..) | Fence | IfAny(..) | IfAtLeast(..) | Goto(_) | At(_),
                    _,
                ) => {}
            }
        }
    }

    fn is_over(&self, state: &State) -> bool {
        state.threads.iter().zip(&self.programs).all(|(thread, program)| {
            thread.window.is_empty() && usize::from(thread.next) == program.len()
        })
    }

    /// Visits every reachable state; stops at a failed assertion.
    fn explore(&self) -> Explored {
        let mut first = State {
            memory: self.memory,
            locked: [0; PLACES],
            threads: vec![Thread::default(); self.programs.len()],
        };
        for (thread, own) in first.threads.iter_mut().enumerate() {
            assert!(self.settle(thread, own));
        }
        let mut number: HashMap<State, u32, BuildHasherDefault<Mixed>> = HashMap::default();
        number.insert(first.clone(), 0);
        let mut explored = Explored {
            states: vec![first],
            reached: vec![(0, None)],
            edges: Vec::new(),
            over: Vec::new(),
            wrong: None,
        };
        let mut at = 0;
        while let Some(state) = explored.states.get(at as usize).cloned() {
            if self.is_over(&state) {
                explored.over.push(at);
            }
            for step in self.steps(&state) {
                if step.event.what == WRONG {
                    explored.wrong = Some((at, step.event));
                    return explored;
                }
                let next = *number.entry(step.next).or_insert_with_key(|next| {
                    explored.states.push(next.clone());
                    explored.reached.push((at, Some(step.event)));
                    explored.states.len() as u32 - 1
                });
                if !step.idle {
                    explored.edges.push((next, at));
                }
            }
            at += 1;
        }
        explored
    }

    /// Searches all reachable states.
    pub(crate) fn run(&self) -> Verdict {
        self.explore().verdict()
    }

    /// As [`Machine::run`], but also returns all possible contents of the memory at the end.
    pub(crate) fn run_to_memories(&self) -> (Verdict, BTreeSet<[u8; PLACES]>) {
        let explored = self.explore();
        let over = explored.over.iter().map(|&state| explored.states[state as usize].memory);
        let memories = over.collect();
        (explored.verdict(), memories)
    }

    /// All possible final values of the registers of all threads.
    pub(crate) fn outcomes(&self) -> BTreeSet<Vec<u8>> {
        let explored = self.explore();
        let over = explored.over.iter().map(|&state| &explored.states[state as usize]);
        over.map(|state| state.threads.iter().flat_map(|thread| thread.registers).collect())
            .collect()
    }
}

/// A hash of few instructions (that of Firefox): states come from nobody who would collide them.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.chunks(8).for_each(|chunk| {
            let word = chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.write_u64(word);
        });
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

/// The reachable states, by number.
struct Explored {
    states: Vec<State>,
    /// How each was first reached, for the report.
    reached: Vec<(u32, Option<Event>)>,
    /// Each state with a predecessor, for steps that must happen eventually.
    edges: Vec<(u32, u32)>,
    over: Vec<u32>,
    wrong: Option<(u32, Event)>,
}

impl Explored {
    fn verdict(mut self) -> Verdict {
        let states = self.states.len();
        if let Some((before, event)) = self.wrong {
            let mut trace = self.trace(before);
            trace.push(event.to_string());
            return Verdict::Wrong { states, trace };
        }
        // Backwards from the end. States that are not reached this way are lost.
        self.edges.sort_unstable();
        let mut ends = vec![false; states];
        let mut met = self.over.clone();
        while let Some(state) = met.pop() {
            if std::mem::replace(&mut ends[state as usize], true) {
                continue;
            }
            let from = self.edges.partition_point(|&(to, _)| to < state);
            let before = self.edges[from..].iter().take_while(|&&(to, _)| to == state);
            met.extend(before.map(|&(_, from)| from).filter(|&from| !ends[from as usize]));
        }
        // A state with a guess may result from a wrong one; the state without the guess is visited
        // too.
        let lost =
            self.states.iter().zip(ends).position(|(state, ends)| !ends && !state.has_guess());
        match lost {
            None => Verdict::Sound { states },
            Some(lost) => Verdict::Lost { states, trace: self.trace(lost as u32) },
        }
    }

    fn trace(&self, mut state: u32) -> Vec<String> {
        let mut trace = Vec::new();
        while let (before, Some(event)) = &self.reached[state as usize] {
            trace.push(event.to_string());
            state = *before;
        }
        trace.reverse();
        trace
    }
}

impl State {
    fn has_guess(&self) -> bool {
        let mut entries = self.threads.iter().flat_map(|thread| &thread.window);
        entries.any(|entry| matches!(entry.stage, Stage::Guessed(_)))
    }
}

const WRONG: &str = "is wrong in";
const IDLE: &str = "wakes up for no reason from";
