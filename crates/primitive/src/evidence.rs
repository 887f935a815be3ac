//! Evidence of the kind of wait target at an address.

use crate::futex::{FutexWait, Operation};

use super::window::Window;

/// Number of bytes to read before a futex word. CPython's global interpreter lock begins the
/// furthest before its futex word.
pub const BYTES_BEFORE: u64 = 80;
/// Number of bytes to read around a futex word whose primitive is not certain yet.
pub const BYTES: usize = 144;

const MAX_WAITS: usize = 16;
const MAX_WAITERS: usize = 16;
const MAX_VALUES: usize = 16;
const MAX_WINDOWS: usize = 8;

/// Stacks count as equal if this many innermost functions are equal.
const CALLERS: usize = 4;

/// After this number of readings, a word is assumed to have shown all of its values.
const OFTEN: u32 = 64;

/// A thread's wait for a wait target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Asleep in a futex system call.
    Futex(FutexWait),
    /// Asleep on the thread's own word. The memory around that word names the wait target of this
    /// evidence.
    Parked {
        /// See [`Parked`](super::Parked).
        token: u64,
    },
    /// On a CPU, in a function that spins until it has the lock at this address.
    Spinning,
}

impl Wait {
    pub(crate) fn futex(&self) -> Option<&FutexWait> {
        match self {
            Wait::Futex(wait) => Some(wait),
            Wait::Parked { .. } | Wait::Spinning => None,
        }
    }
}

/// A function on a waiter's stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Demangled name, if there are symbols.
    pub function: Option<String>,
    /// Path of the file that contains the function's code.
    pub module: String,
}

/// Facts about the whole program.
pub struct Context<'a> {
    /// Returns `true` for the TID of a thread of the program, in the program's PID namespace.
    pub is_thread: &'a dyn Fn(u32) -> bool,
    /// True if the program was built by Go.
    pub go: bool,
    /// True if the program contains a Java virtual machine.
    pub jvm: bool,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("go", &self.go)
            .field("jvm", &self.jvm)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Snapshot {
    address: u64,
    length: usize,
    bytes: [u8; BYTES],
}

impl Snapshot {
    /// `None` if the window is empty or longer than [`BYTES`].
    fn of(window: &Window<'_>) -> Option<Snapshot> {
        let length = window.bytes.len();
        let mut bytes = [0; BYTES];
        bytes.get_mut(..length)?.copy_from_slice(window.bytes);
        (length != 0).then_some(Snapshot { address: window.address, length, bytes })
    }

    fn window(&self) -> Window<'_> {
        Window { address: self.address, bytes: &self.bytes[..self.length] }
    }
}

/// Evidence gathered at an address. Its size is bounded, however long a program is observed.
#[derive(Clone, Debug)]
pub struct Evidence {
    address: u64,
    waits: Vec<Wait>,
    waiters: Vec<u32>,
    last_waiter: Option<u32>,
    shared: bool,
    /// True if all threads that ever waited have often waited at the same time.
    all_wait: bool,
    unjudged: bool,
    readings: u32,
    values: Vec<u32>,
    more_values: bool,
    last: Option<u32>,
    fell: bool,
    rose_again: bool,
    windows: Vec<Snapshot>,
    next_window: usize,
    callers: Vec<Caller>,
    /// True if the last two stacks began with the same functions.
    callers_agree: bool,
}

impl Evidence {
    /// Empty evidence for the address of a futex word, or of a wait target of parked threads.
    pub fn new(address: u64) -> Evidence {
        Evidence {
            address,
            waits: Vec::new(),
            waiters: Vec::new(),
            last_waiter: None,
            shared: false,
            all_wait: false,
            unjudged: false,
            readings: 0,
            values: Vec::new(),
            more_values: false,
            last: None,
            fell: false,
            rose_again: false,
            windows: Vec::new(),
            next_window: 0,
            callers: Vec::new(),
            callers_agree: false,
        }
    }

    /// Address and number of the bytes to read after a thread was seen asleep.
    pub fn window(&self) -> (u64, usize) {
        (self.address.saturating_sub(BYTES_BEFORE), BYTES)
    }

    /// Adds a thread that was seen waiting. Returns `true` if this is new evidence.
    pub fn saw_wait(&mut self, tid: u32, wait: Wait) -> bool {
        let mut news = std::mem::take(&mut self.unjudged);
        if !self.waits.contains(&wait) {
            news = self.waits.len() < MAX_WAITS;
            if news {
                self.waits.push(wait);
            }
        }
        let known = self.waiters.contains(&tid);
        if known && self.last_waiter != Some(tid) {
            news |= !self.shared;
            self.shared = true;
        }
        if !known {
            self.waiters.truncate(MAX_WAITERS - 1);
            self.waiters.insert(0, tid);
            news = true;
        }
        self.last_waiter = Some(tid);
        news
    }

    /// Notes that all threads that ever waited have often waited at the same time. Then no lock
    /// explains the waits, because one of the threads would hold it. The next wait counts as new
    /// evidence.
    pub fn saw_all_wait(&mut self) {
        self.unjudged |= !self.all_wait;
        self.all_wait = true;
    }

    /// Adds a value that was read from the word. Returns `true` if this is new evidence.
    pub fn saw_value(&mut self, value: u32) -> bool {
        let fell = self.last.is_some_and(|last| value < last);
        let rose_again = self.fell && self.last.is_some_and(|last| value > last);
        self.readings = self.readings.saturating_add(1);
        let mut news = fell && !self.fell || rose_again && !self.rose_again;
        news |= self.readings == OFTEN;
        self.fell |= fell;
        self.rose_again |= rose_again;
        self.last = Some(value);
        if !self.values.contains(&value) {
            if self.values.len() < MAX_VALUES {
                self.values.push(value);
                news = true;
            } else {
                self.more_values = true;
            }
        }
        news
    }

    /// Adds bytes that were read just after a thread was seen asleep: all of
    /// [`window`](Self::window), or a part. Returns `true` if this is new evidence.
    pub fn saw_window(&mut self, window: &Window<'_>) -> bool {
        let value = window.u32(self.address);
        let news = value.is_some_and(|value| self.saw_value(value));
        let Some(snapshot) = Snapshot::of(window) else { return news };
        if self.windows.contains(&snapshot) {
            return news;
        }
        if self.windows.len() < MAX_WINDOWS {
            self.windows.push(snapshot);
        } else if let Some(oldest) = self.windows.get_mut(self.next_window) {
            *oldest = snapshot;
            self.next_window = (self.next_window + 1) % MAX_WINDOWS;
        }
        true
    }

    /// Adds the functions on a waiter's stack, innermost first, from the one that made the system
    /// call.
    ///
    /// A single stack proves nothing: the thread may have begun another wait before the stack was
    /// read.
    pub fn saw_callers(&mut self, callers: Vec<Caller>) {
        let first = |callers: &[Caller]| callers[..callers.len().min(CALLERS)].to_vec();
        self.callers_agree = !callers.is_empty() && first(&callers) == first(&self.callers);
        self.callers = callers;
    }

    /// Returns `true` if there is no evidence yet.
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty() && self.values.is_empty()
    }

    /// Address of the futex word, or of the wait target of parked threads.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// All waits; `None` unless all are futex waits.
    pub(super) fn futex_waits(&self) -> Option<Vec<FutexWait>> {
        if self.waits.is_empty() {
            return None;
        }
        self.waits.iter().map(|wait| wait.futex().copied()).collect()
    }

    /// Tokens of all waits; `None` unless all are waits of parked threads.
    pub(super) fn tokens(&self) -> Option<Vec<u64>> {
        if self.waits.is_empty() {
            return None;
        }
        let token = |wait: &Wait| match *wait {
            Wait::Parked { token } => Some(token),
            Wait::Futex(_) | Wait::Spinning => None,
        };
        self.waits.iter().map(token).collect()
    }

    /// Returns `true` if threads waited, and all of them spun.
    pub(super) fn all_spin(&self) -> bool {
        !self.waits.is_empty() && self.waits.iter().all(|wait| *wait == Wait::Spinning)
    }

    /// All waits; `None` unless each is a futex wait that satisfies `fits`.
    pub(super) fn all_waits(&self, fits: impl Fn(&FutexWait) -> bool) -> Option<Vec<FutexWait>> {
        let waits = self.futex_waits()?;
        waits.iter().all(fits).then_some(waits)
    }

    /// Different values with which threads went to sleep, in ascending order, at most
    /// [`MAX_WAITS`].
    pub(super) fn values_waited_with(&self) -> Vec<u32> {
        let mut values: Vec<u32> =
            self.waits.iter().filter_map(Wait::futex).map(|wait| wait.value).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Returns `true` if values of the word were read, and all of them satisfy `fits`.
    pub(super) fn values_fit(&self, fits: impl Fn(u32) -> bool) -> bool {
        !self.more_values && !self.values.is_empty() && self.values.iter().all(|&value| fits(value))
    }

    /// Different values that were read from the word.
    pub(super) fn values(&self) -> &[u32] {
        &self.values
    }

    /// Returns `true` if the word was read so often that it hardly has other values.
    pub(super) fn often_read(&self) -> bool {
        self.readings >= OFTEN
    }

    /// Returns `true` if the word decreased, so it is not an increasing counter.
    pub(super) fn fell(&self) -> bool {
        self.fell
    }

    /// Returns `true` if the word decreased and increased again, so it is not a counter at all.
    pub(super) fn rose_again(&self) -> bool {
        self.rose_again
    }

    /// Returns `true` if threads waited in turns, so the word belongs to none of them. (A later
    /// thread may take over the word of an ended one, but the ended one never comes back.)
    pub(super) fn shared(&self) -> bool {
        self.shared
    }

    /// Returns `true` if the word changed, and its waiters took turns, as for a lock.
    pub(super) fn contended(&self) -> bool {
        self.rose_again() && self.shared() && !self.all_wait
    }

    /// Windows that were read while a thread was asleep here.
    pub(super) fn windows(&self) -> impl ExactSizeIterator<Item = Window<'_>> {
        self.windows.iter().map(Snapshot::window)
    }

    /// Returns `true` if most windows satisfy `fits` and one of them shows a waiter. In the others,
    /// the waiter may have left before the bytes were read.
    pub(super) fn windows_show(
        &self,
        fits: impl Fn(&Window<'_>) -> bool,
        waited_for: impl Fn(&Window<'_>) -> bool,
    ) -> bool {
        self.windows_fit(&fits) && self.windows().any(|window| fits(&window) && waited_for(&window))
    }

    /// Returns `true` if most windows satisfy `fits`. The others may show a lock between two
    /// stores.
    pub(super) fn windows_fit(&self, fits: impl Fn(&Window<'_>) -> bool) -> bool {
        let fitting = self.windows().filter(|window| fits(window)).count();
        fitting * 4 >= self.windows.len() * 3 && fitting > 0
    }

    pub(super) fn callers(&self) -> &[Caller] {
        &self.callers
    }

    /// Strength of a claim based on the innermost function whose name contains all parts of a
    /// pattern; `None` if there is no such function.
    pub(super) fn named(&self, patterns: &[&[&str]]) -> Option<Strength> {
        self.called_by(|caller| {
            let Some(function) = &caller.function else { return false };
            patterns.iter().any(|parts| parts.iter().all(|part| function.contains(part)))
        })
    }

    /// Returns `true` if the last two stacks show that the thread slept through the C library's
    /// function `syscall`.
    pub(super) fn sleeps_through_syscall(&self) -> bool {
        let innermost = self.callers.first().and_then(|caller| caller.function.as_deref());
        self.callers_agree && innermost == Some("syscall")
    }

    /// Strength of a claim based on the innermost function that satisfies `fits`; `None` if there
    /// is no such function.
    pub(super) fn called_by(&self, fits: impl FnMut(&Caller) -> bool) -> Option<Strength> {
        let depth = self.callers.iter().position(fits)?;
        Some(if self.callers_agree { Strength::named(depth) } else { Strength::named_once(depth) })
    }
}

/// A primitive's claim that an address belongs to one of its wait targets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// Address of the wait target.
    pub(super) address: u64,
    pub(super) strength: Strength,
}

impl Claim {
    pub(super) fn new(address: u64, strength: Strength) -> Claim {
        Claim { address, strength }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Strength(usize);

impl Strength {
    /// The wait target is at least of this kind, though it may be something more specific.
    pub(super) const FALLBACK: Strength = Strength(1);
    /// No evidence contradicts this kind, and few other kinds leave such evidence.
    pub(super) const LIKELY: Strength = Strength(2);
    /// Several fields of the wait target have values that fit.
    pub(super) const CERTAIN: Strength = Strength(2000);
    /// All fields of a larger wait target fit, including a smaller one that alone would be certain.
    pub(super) const CONTAINING: Strength = Strength(2001);

    /// Strength if stacks show a function named after the kind. The closer the function is to the
    /// system call, the stronger the claim.
    pub(super) fn named(depth: usize) -> Strength {
        Strength(usize::MAX - depth.min(1000))
    }

    /// Strength if only one stack shows a function named after the kind. That stack may have been
    /// read too late.
    pub(super) fn named_once(depth: usize) -> Strength {
        Strength(1010 - depth.min(1000))
    }

    pub(super) fn is_certain(self) -> bool {
        self >= Strength::CERTAIN
    }

    pub(super) fn certain_if(certain: bool) -> Strength {
        if certain { Strength::CERTAIN } else { Strength::LIKELY }
    }
}

/// Returns `true` for the two operations that wait until the word changes.
pub(super) fn plain(wait: &FutexWait) -> bool {
    matches!(wait.operation, Operation::Wait | Operation::WaitBitset)
}

/// Returns `true` for waits of glibc 2.31 and later, except for mutexes. Such waits name a clock
/// even without a timeout.
pub(super) fn abstimed(wait: &FutexWait) -> bool {
    wait.operation == Operation::WaitBitset && (wait.timed || wait.realtime)
}
