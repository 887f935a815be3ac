//! Observations at an address.

use crate::futex::{FutexWait, Operation};

use super::window::Window;

/// Bytes before a futex word at which the families look: CPython's global lock begins furthest
/// away.
pub const BYTES_BEFORE: u64 = 80;
/// Bytes to be read around a futex word whose primitive is not certain yet.
pub const BYTES: usize = 144;

const MAX_WAITS: usize = 16;
const MAX_WAITERS: usize = 16;
const MAX_VALUES: usize = 16;
const MAX_WINDOWS: usize = 8;

/// Functions by which stacks are compared.
const CALLERS: usize = 4;

/// Readings of a word after which values that it has not taken are none of its own.
const OFTEN: u32 = 64;

/// A sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// In a system call.
    Futex(FutexWait),
    /// On the thread's own word, which says that the thread waits for the object at this address.
    Parked {
        /// See [`Parked`](super::Parked).
        token: u64,
    },
}

impl Wait {
    /// The wait in a system call, if it is such.
    pub(crate) fn futex(&self) -> Option<&FutexWait> {
        match self {
            Wait::Futex(wait) => Some(wait),
            Wait::Parked { .. } => None,
        }
    }
}

/// A function on a waiter's stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Demangled name, if there are symbols.
    pub function: Option<String>,
    /// Path of the file that contains its code.
    pub module: String,
}

/// Facts about the whole program.
pub struct Context<'a> {
    /// `true` for the tids of the program's threads, as the program itself knows them: in a
    /// container they differ from those outside.
    pub is_thread: &'a dyn Fn(u32) -> bool,
    /// The program was built by Go.
    pub go: bool,
    /// The program has a Java virtual machine in it.
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

/// A window, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Snapshot {
    address: u64,
    length: usize,
    bytes: [u8; BYTES],
}

impl Snapshot {
    /// `None` if there is nothing in it, or more than was asked for.
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

/// Observations at an address. Their size is bounded, however long a program is watched.
#[derive(Clone, Debug)]
pub struct Evidence {
    address: u64,
    waits: Vec<Wait>,
    waiters: Vec<u32>,
    last_waiter: Option<u32>,
    shared: bool,
    readings: u32,
    values: Vec<u32>,
    more_values: bool,
    last: Option<u32>,
    fell: bool,
    rose_again: bool,
    windows: Vec<Snapshot>,
    next_window: usize,
    callers: Vec<Caller>,
    /// Two stacks in a row began with the same functions.
    callers_agree: bool,
}

impl Evidence {
    /// Nothing seen yet at this address: that of a futex word, or of an object for which parked
    /// threads wait.
    pub fn new(address: u64) -> Evidence {
        Evidence {
            address,
            waits: Vec::new(),
            waiters: Vec::new(),
            last_waiter: None,
            shared: false,
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

    /// Address and number of the bytes to be read when a thread was seen asleep.
    pub fn window(&self) -> (u64, usize) {
        (self.address.saturating_sub(BYTES_BEFORE), BYTES)
    }

    /// A thread was seen asleep. Returns `true` if that was news.
    pub fn saw_wait(&mut self, tid: u32, wait: Wait) -> bool {
        let mut news = false;
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

    /// The word was read. Returns `true` if that was news.
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

    /// The bytes that [`window`](Self::window) asks for, or some of them, were read just after a
    /// thread was seen asleep. Returns `true` if that was news.
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

    /// The functions of a waiter's stack became known, the innermost first, beginning with the one
    /// that made the system call.
    ///
    /// One stack proves nothing: its thread may have gone on, to wait elsewhere, before it was read.
    pub fn saw_callers(&mut self, callers: Vec<Caller>) {
        let first = |callers: &[Caller]| callers[..callers.len().min(CALLERS)].to_vec();
        self.callers_agree = !callers.is_empty() && first(&callers) == first(&self.callers);
        self.callers = callers;
    }

    /// `true` if nothing was seen yet.
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty() && self.values.is_empty()
    }

    /// Address at which this was seen.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Waits in the system call, if all were such.
    pub(super) fn futex_waits(&self) -> Option<Vec<FutexWait>> {
        if self.waits.is_empty() {
            return None;
        }
        self.waits.iter().map(|wait| wait.futex().copied()).collect()
    }

    /// Tokens of parked threads, if all waits were such.
    pub(super) fn tokens(&self) -> Option<Vec<u64>> {
        if self.waits.is_empty() {
            return None;
        }
        let token = |wait: &Wait| match *wait {
            Wait::Parked { token } => Some(token),
            Wait::Futex(_) => None,
        };
        self.waits.iter().map(token).collect()
    }

    /// The waits, if each of them is a futex wait that `fits`.
    pub(super) fn all_waits(&self, fits: impl Fn(&FutexWait) -> bool) -> Option<Vec<FutexWait>> {
        let waits = self.futex_waits()?;
        waits.iter().all(fits).then_some(waits)
    }

    /// Values with which threads went to sleep, in order, up to a bound.
    pub(super) fn values_waited_with(&self) -> Vec<u32> {
        let mut values: Vec<u32> =
            self.waits.iter().filter_map(Wait::futex).map(|wait| wait.value).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// `true` if every value that the word took, and there was one, fits.
    pub(super) fn values_fit(&self, fits: impl Fn(u32) -> bool) -> bool {
        !self.more_values && !self.values.is_empty() && self.values.iter().all(|&value| fits(value))
    }

    /// Values that the word took.
    pub(super) fn values(&self) -> &[u32] {
        &self.values
    }

    /// The word was read so often that others than these would have been seen.
    pub(super) fn often_read(&self) -> bool {
        self.readings >= OFTEN
    }

    /// The word's value was seen to become smaller: it is no counter.
    pub(super) fn fell(&self) -> bool {
        self.fell
    }

    /// The value fell and rose again: it does not count down either.
    pub(super) fn rose_again(&self) -> bool {
        self.rose_again
    }

    /// Threads waited by turns. A thread that ended leaves its own word to a later one, and never
    /// comes back to it.
    pub(super) fn shared(&self) -> bool {
        self.shared
    }

    /// Bytes read while a thread was asleep here.
    pub(super) fn windows(&self) -> impl ExactSizeIterator<Item = Window<'_>> {
        self.windows.iter().map(Snapshot::window)
    }

    /// `true` if most windows fit, and one of them shows that somebody waits: a waiter may have
    /// left by the time that the bytes were read.
    pub(super) fn windows_show(
        &self,
        fits: impl Fn(&Window<'_>) -> bool,
        waited_for: impl Fn(&Window<'_>) -> bool,
    ) -> bool {
        self.windows_fit(&fits) && self.windows().any(|window| fits(&window) && waited_for(&window))
    }

    /// `true` if most windows, and there was one, fit: a lock may be caught between two stores.
    pub(super) fn windows_fit(&self, fits: impl Fn(&Window<'_>) -> bool) -> bool {
        let fitting = self.windows().filter(|window| fits(window)).count();
        fitting * 4 >= self.windows.len() * 3 && fitting > 0
    }

    /// Functions of a waiter.
    pub(super) fn callers(&self) -> &[Caller] {
        &self.callers
    }

    /// Strength of a claim by name: that of the innermost function whose name contains all the
    /// parts of one of these patterns.
    pub(super) fn named(&self, patterns: &[&[&str]]) -> Option<Strength> {
        let fits = |caller: &Caller| {
            let Some(function) = &caller.function else { return false };
            patterns.iter().any(|parts| parts.iter().all(|part| function.contains(part)))
        };
        let depth = self.callers.iter().position(fits)?;
        Some(if self.callers_agree { Strength::named(depth) } else { Strength::named_once(depth) })
    }
}

/// A family's claim to an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// Address of the object.
    pub(super) object: u64,
    pub(super) strength: Strength,
}

impl Claim {
    pub(super) fn new(object: u64, strength: Strength) -> Claim {
        Claim { object, strength }
    }
}

/// Strength of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Strength(usize);

impl Strength {
    /// Whatever it is more precisely, it is this at least.
    pub(super) const FALLBACK: Strength = Strength(1);
    /// Nothing speaks against it, and little else waits so.
    pub(super) const LIKELY: Strength = Strength(2);
    /// Several fields of the object fit.
    pub(super) const CERTAIN: Strength = Strength(2000);
    /// A larger object fits, of which a smaller one that is certain is a part.
    pub(super) const CONTAINING: Strength = Strength(2001);

    /// A function of the waiter says so; the nearer to the system call, the stronger.
    pub(super) fn named(depth: usize) -> Strength {
        Strength(usize::MAX - depth.min(1000))
    }

    /// A function of one waiter's stack says so, which may have been read too late.
    pub(super) fn named_once(depth: usize) -> Strength {
        Strength(1010 - depth.min(1000))
    }

    pub(super) fn is_certain(self) -> bool {
        self >= Strength::CERTAIN
    }

    /// `CERTAIN` if so, else `LIKELY`.
    pub(super) fn certain_if(certain: bool) -> Strength {
        if certain { Strength::CERTAIN } else { Strength::LIKELY }
    }
}

/// `true` for the two operations that wait until the word changes.
pub(super) fn plain(wait: &FutexWait) -> bool {
    matches!(wait.operation, Operation::Wait | Operation::WaitBitset)
}

/// `true` for a wait of glibc 2.31 and later that is not a mutex's: it names a clock even without
/// a timeout.
pub(super) fn abstimed(wait: &FutexWait) -> bool {
    wait.operation == Operation::WaitBitset && (wait.timed || wait.realtime)
}
