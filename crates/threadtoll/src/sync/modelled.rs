//! What the model checkers see instead.
//!
//! - Threads that sleep on a futex queue behind a lock that all futexes share, like a bucket of the
//!   kernel's table. They wake in the order in which they came.
//! - `membarrier(2)` acts on other threads, which no checker can model: a full fence on both sides
//!   stands for it. The code for kernels without it ([`Kernel::Lacks`]) is checked as it is.
//! - Time does not pass, except that a sleep with a limit may end at any moment, and then the limit
//!   has passed, even if the thread was woken at that moment.
//! - Freed memory stays a ruin until the next execution, so that any later access is reported
//!   ([`Life`]).
//!
//! A model says with [`begin`] what is broken on purpose, see `mutate!`.

#[cfg(threadtoll_loom)]
use loom as checker;
#[cfg(all(threadtoll_shuttle, not(threadtoll_loom)))]
use shuttle as checker;

pub(crate) use checker::sync::Arc;
pub(crate) use checker::sync::atomic::{AtomicUsize, Ordering, fence};
pub(crate) use checker::thread::yield_now;

use checker::sync::{Condvar, Mutex};
use std::cell::{Cell, RefCell};
use std::ops::{Add, Deref};
use std::time::Duration;

#[cfg(threadtoll_loom)]
pub(crate) use loom::cell::UnsafeCell;

/// Shuttle runs one thread at a time and has no cells of its own.
#[cfg(all(threadtoll_shuttle, not(threadtoll_loom)))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(all(threadtoll_shuttle, not(threadtoll_loom)))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, body: impl FnOnce(*const T) -> R) -> R {
        body(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, body: impl FnOnce(*mut T) -> R) -> R {
        body(self.0.get())
    }
}

/// What the kernel has to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// `membarrier(2)`.
    Orders,
    /// No such call: senders fence.
    Lacks,
    /// No such call any more, since the queue was made: nobody may sleep for long.
    Refuses,
}

// A checker runs all threads of a model on the thread that asked for it, so these belong to a
// model, not to one of its threads.
thread_local! {
    static KERNEL: Cell<Kernel> = const { Cell::new(Kernel::Orders) };
    static BROKEN: RefCell<String> = const { RefCell::new(String::new()) };
    static CLOCK: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static BOXED: Cell<usize> = const { Cell::new(0) };
    static RUINS: RefCell<Vec<Ruin>> = const { RefCell::new(Vec::new()) };
}

/// An execution of a model begins, in which `broken` is broken on purpose.
#[cfg(test)]
pub(crate) fn begin(kernel: Kernel, broken: &str) {
    KERNEL.set(kernel);
    BROKEN.with_borrow_mut(|name| broken.clone_into(name));
    CLOCK.set(Duration::ZERO);
    BOXED.set(0);
    RUINS.take();
}

/// Whether this is broken on purpose.
pub(crate) fn broken(name: &str) -> bool {
    BROKEN.with_borrow(|broken| broken == name)
}

/// What it is when nothing is broken is told in `real.rs`.
macro_rules! mutate {
    ($name:ident, $ordering:ident) => {
        if crate::sync::broken(stringify!($name)) {
            crate::sync::Ordering::Relaxed
        } else {
            crate::sync::Ordering::$ordering
        }
    };
    ($name:ident, $shipped:expr => $broken:expr) => {
        if crate::sync::broken(stringify!($name)) { $broken } else { $shipped }
    };
}
pub(crate) use mutate;

/// Memory that was given back.
struct Ruin {
    place: *mut (),
    size: usize,
    clear: fn(*mut ()),
}

impl Ruin {
    fn covers(&self, address: usize) -> bool {
        (self.place.addr()..self.place.addr() + self.size).contains(&address)
    }
}

impl Drop for Ruin {
    fn drop(&mut self) {
        (self.clear)(self.place);
    }
}

/// Moves a value to a place of its own.
pub(crate) fn boxed<T>(value: T) -> *mut T {
    BOXED.set(BOXED.get() + 1);
    Box::into_raw(Box::new(value))
}

/// Frees what came from [`boxed`], but not before the next execution.
///
/// # Safety
///
/// As for [`Box::from_raw`].
pub(crate) unsafe fn free_boxed<T>(place: *mut T) {
    fn clear<T>(place: *mut ()) {
        // SAFETY: came from a box, says the caller of `free_boxed`, and this is called once.
        drop(unsafe { Box::from_raw(place.cast::<T>()) });
    }
    BOXED.set(BOXED.get() - 1);
    RUINS.with_borrow_mut(|ruins| {
        ruins.push(Ruin { place: place.cast(), size: size_of::<T>(), clear: clear::<T> })
    });
}

/// How many values are in boxes.
#[cfg(test)]
pub(crate) fn boxes() -> usize {
    BOXED.get()
}

/// True while memory is alive. Every access and every free goes through it, so that the checker
/// sees an access that is not ordered before the free.
#[derive(Debug)]
pub(crate) struct Life(UnsafeCell<bool>);

impl Life {
    pub(crate) fn new() -> Self {
        Life(UnsafeCell::new(true))
    }

    pub(crate) fn assert(&self) {
        // SAFETY: the checker sees to it that nobody ends it meanwhile.
        let alive = self.0.with(|alive| unsafe { *alive });
        assert!(alive, "this memory was given back");
    }

    pub(crate) fn end(&self) {
        self.assert();
        // SAFETY: the checker sees to it that nobody else is here.
        self.0.with_mut(|alive| unsafe { *alive = false });
    }
}

/// An atomic that notices when it is used in a box that was given back.
macro_rules! watched {
    ($name:ident $(<$t:ident>)?, $content:ty) => {
        #[derive(Debug)]
        pub(crate) struct $name$(<$t>)?(checker::sync::atomic::$name$(<$t>)?);

        impl$(<$t>)? $name$(<$t>)? {
            pub(crate) fn new(value: $content) -> Self {
                $name(checker::sync::atomic::$name::new(value))
            }
        }

        impl$(<$t>)? Deref for $name$(<$t>)? {
            type Target = checker::sync::atomic::$name$(<$t>)?;

            fn deref(&self) -> &Self::Target {
                let here = std::ptr::from_ref(self).addr();
                let ruined = RUINS.with_borrow(|ruins| ruins.iter().any(|ruin| ruin.covers(here)));
                assert!(!ruined, "this memory was given back");
                &self.0
            }
        }
    };
}
watched!(AtomicU64, u64);
watched!(AtomicPtr<T>, *mut T);

/// A word with a place to sleep at.
#[derive(Debug)]
pub(crate) struct AtomicU32 {
    word: checker::sync::atomic::AtomicU32,
    pub(crate) life: Life,
}

impl AtomicU32 {
    pub(crate) fn new(value: u32) -> Self {
        AtomicU32 { word: checker::sync::atomic::AtomicU32::new(value), life: Life::new() }
    }
}

impl Deref for AtomicU32 {
    type Target = checker::sync::atomic::AtomicU32;

    fn deref(&self) -> &Self::Target {
        self.life.assert();
        &self.word
    }
}

/// A thread that sleeps for no longer than this looks again soon; a longer limit is somebody's
/// deadline.
const NAP: Duration = Duration::from_millis(1);

struct Bucket {
    queue: Mutex<Queue>,
    woken: Condvar,
}

/// Those who sleep, each with the address of its word and a number of its own.
#[derive(Default)]
struct Queue {
    asleep: Vec<(usize, usize)>,
    next: usize,
}

checker::lazy_static! {
    static ref BUCKET: Bucket = Bucket { queue: Mutex::new(Queue::default()), woken: Condvar::new() };
}

pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> bool {
    if let Some(timeout) = timeout {
        if timeout <= NAP {
            // Another one will follow: others must come to run, or this goes on for ever.
            yield_now();
            return false;
        }
    }
    let Ok(mut queue) = BUCKET.queue.lock() else { return false };
    // The kernel compares under the lock of the bucket; the lock orders this load after the waker's
    // store.
    if word.load(Ordering::Relaxed) != expected {
        return false;
    }
    let me = (std::ptr::from_ref(word).addr(), queue.next);
    queue.next += 1;
    queue.asleep.push(me);
    if let Some(timeout) = timeout {
        // The checker tries all that others may do in between, so the limit passes at any moment.
        drop(queue);
        let Ok(mut queue) = BUCKET.queue.lock() else { return false };
        let woken = !queue.asleep.contains(&me);
        queue.asleep.retain(|sleeper| *sleeper != me);
        CLOCK.set(CLOCK.get() + timeout);
        return woken;
    }
    while queue.asleep.contains(&me) {
        let Ok(woken) = BUCKET.woken.wait(queue) else { return false };
        queue = woken;
    }
    true
}

pub(crate) fn futex_wake(word: &AtomicU32, most: u32) -> u32 {
    let word = std::ptr::from_ref(word).addr();
    let Ok(mut queue) = BUCKET.queue.lock() else { return 0 };
    let mut woken = 0;
    queue.asleep.retain(|sleeper| {
        let wakes = sleeper.0 == word && woken < most;
        woken += u32::from(wakes);
        !wakes
    });
    drop(queue);
    BUCKET.woken.notify_all();
    woken
}

pub(crate) fn nap(_: Duration) {
    yield_now();
}

pub(crate) fn light_barrier() {
    if KERNEL.get() == Kernel::Orders {
        fence(Ordering::SeqCst);
    }
}

pub(crate) fn heavy_barrier() -> bool {
    if KERNEL.get() == Kernel::Refuses {
        return false;
    }
    fence(Ordering::SeqCst);
    true
}

pub(crate) fn senders_must_fence() -> bool {
    KERNEL.get() == Kernel::Lacks
}

pub(crate) fn spin_loop() {
    yield_now();
}

pub(crate) fn prefetch_to_write<T>(_: *const T) {}

pub(crate) fn only_cpu() -> Option<u32> {
    None
}

pub(crate) fn process() -> u32 {
    0
}

pub(crate) fn is_other_process(_: u32) -> bool {
    false
}

/// Nothing forks in a model.
#[derive(Debug)]
pub(crate) struct WipeOnFork<T>(T);

impl<T> WipeOnFork<T> {
    pub(crate) fn new(value: T) -> Self {
        WipeOnFork(value)
    }
}

impl<T> Deref for WipeOnFork<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// What the model's clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Self {
        Instant(CLOCK.get())
    }

    pub(crate) fn checked_add(self, by: Duration) -> Option<Self> {
        Some(Instant(self.0 + by))
    }

    pub(crate) fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, by: Duration) -> Instant {
        Instant(self.0 + by)
    }
}
