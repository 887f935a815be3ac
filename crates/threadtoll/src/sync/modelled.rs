//! Substitutes for the kernel and the standard library in models.
//!
//! - All futexes share one lock, like a bucket of the kernel's table. Threads wake in the order in
//!   which they fell asleep.
//! - No checker can model `membarrier(2)`, which acts on other threads. A full fence on both sides
//!   replaces it. The code for kernels without it ([`Kernel::Lacks`]) is checked as it is.
//! - Time does not pass, except that a sleep with a limit may end at any moment. The limit has then
//!   passed, even if the thread was woken at that moment.
//! - Freed memory is kept until the next execution, so that any later access is reported
//!   ([`Life`]).
//!
//! [`begin`] names the part of the code that a model breaks deliberately; see `mutate!`.

#[cfg(threadtoll_loom)]
use loom as checker;
#[cfg(all(threadtoll_shuttle, not(threadtoll_loom)))]
use shuttle as checker;

pub(crate) use checker::sync::Arc;
pub(crate) use checker::sync::atomic::{AtomicUsize, Ordering, fence};
pub(crate) use checker::thread::yield_now;

use checker::sync::{Condvar, Mutex};
use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Add, Deref};
use std::time::Duration;

#[cfg(threadtoll_loom)]
pub(crate) use loom::cell::UnsafeCell;

/// Shuttle runs one thread at a time, and has no type of its own for cells.
#[cfg(all(threadtoll_shuttle, not(threadtoll_loom)))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

#[cfg(all(threadtoll_shuttle, not(threadtoll_loom)))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

#[cfg(all(threadtoll_shuttle, not(threadtoll_loom)))]
impl<T: ?Sized> UnsafeCell<T> {
    pub(crate) fn with<R>(&self, body: impl FnOnce(*const T) -> R) -> R {
        body(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, body: impl FnOnce(*mut T) -> R) -> R {
        body(self.0.get())
    }
}

/// Support for `membarrier(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Orders,
    /// The kernel lacks the call, so senders fence.
    Lacks,
    /// The kernel has refused the call since the queue was created, so sleeps are short.
    Refuses,
    /// Like `Orders`, but whenever a thread goes to sleep, another thread is in the call. The
    /// sleeper's barrier is executed as early as the protocol allows, but the sleeper learns of it
    /// only later.
    Busy,
}

// A checker runs all threads of a model on one thread, so these are shared by the whole model.
thread_local! {
    static KERNEL: Cell<Kernel> = const { Cell::new(Kernel::Orders) };
    static BROKEN: RefCell<String> = const { RefCell::new(String::new()) };
    static CLOCK: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static BOXED: Cell<usize> = const { Cell::new(0) };
    static FREED: RefCell<Vec<FreedBox>> = const { RefCell::new(Vec::new()) };
    /// The address of an atomic, and the number of its uses since `count_looks_at`.
    static COUNTED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Begins an execution of a model in which `broken` is deliberately broken.
#[cfg(test)]
pub(crate) fn begin(kernel: Kernel, broken: &str) {
    KERNEL.set(kernel);
    BROKEN.with_borrow_mut(|name| broken.clone_into(name));
    CLOCK.set(Duration::ZERO);
    BOXED.set(0);
    COUNTED.set((0, 0));
    FREED.take();
}

/// Counts each use of this atomic from now on.
#[cfg(test)]
pub(crate) fn count_looks_at(atomic: &AtomicU64) {
    COUNTED.set((std::ptr::from_ref(atomic).addr(), 0));
}

/// Number of uses since [`count_looks_at`].
#[cfg(test)]
pub(crate) fn looks() -> usize {
    COUNTED.get().1
}

/// Returns `true` if the model breaks the code with this name.
pub(crate) fn broken(name: &str) -> bool {
    BROKEN.with_borrow(|broken| broken == name)
}

/// The macro of `real.rs`, which breaks the code here if the model says so.
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

/// The macro of `real.rs`, which cannot make the function `const` here.
macro_rules! constant {
    ($($function:tt)*) => { $($function)* };
}
pub(crate) use constant;

/// Memory that was freed in this execution, and is kept until the next.
struct FreedBox {
    place: *mut (),
    size: usize,
    clear: fn(*mut ()),
}

impl FreedBox {
    fn covers(&self, address: usize) -> bool {
        (self.place.addr()..self.place.addr() + self.size).contains(&address)
    }
}

impl Drop for FreedBox {
    fn drop(&mut self) {
        (self.clear)(self.place);
    }
}

/// Allocates a value; see [`free_boxed`].
pub(crate) fn boxed<T>(value: T) -> *mut T {
    BOXED.set(BOXED.get() + 1);
    Box::into_raw(Box::new(value))
}

/// Frees what came from [`boxed`], at the beginning of the next execution.
///
/// # Safety
///
/// As for [`Box::from_raw`].
pub(crate) unsafe fn free_boxed<T>(place: *mut T) {
    fn clear<T>(place: *mut ()) {
        // SAFETY: the caller of `free_boxed` promises that it came from a box; called once.
        drop(unsafe { Box::from_raw(place.cast::<T>()) });
    }
    BOXED.set(BOXED.get() - 1);
    FREED.with_borrow_mut(|freed| {
        freed.push(FreedBox { place: place.cast(), size: size_of::<T>(), clear: clear::<T> })
    });
}

/// Number of values that were allocated and not freed.
#[cfg(test)]
pub(crate) fn boxes() -> usize {
    BOXED.get()
}

/// True while memory is alive. Each access reads it and freeing writes it, so that the checker sees
/// an access that is not ordered before the free.
#[derive(Debug)]
pub(crate) struct Life(UnsafeCell<bool>);

// SAFETY: a checker runs all threads of a model on one thread, and reports accesses of two of them
// that could be concurrent.
unsafe impl Sync for Life {}

impl Life {
    pub(crate) fn new() -> Self {
        Life(UnsafeCell::new(true))
    }

    pub(crate) fn assert(&self) {
        // SAFETY: the checker reports a concurrent write.
        let alive = self.0.with(|alive| unsafe { *alive });
        assert!(alive, "this memory was freed");
    }

    pub(crate) fn end(&self) {
        self.assert();
        // SAFETY: the checker reports a concurrent access.
        self.0.with_mut(|alive| unsafe { *alive = false });
    }
}

/// An atomic that panics if it is used in freed memory.
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
                let is_freed = FREED.with_borrow(|freed| freed.iter().any(|memory| memory.covers(here)));
                assert!(!is_freed, "this memory was freed");
                let (counted, looks) = COUNTED.get();
                COUNTED.set((counted, looks + usize::from(counted == here)));
                &self.0
            }
        }
    };
}
watched!(AtomicU64, u64);
watched!(AtomicPtr<T>, *mut T);

/// A word on which threads can sleep.
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

/// Says that nothing uses this word from now on: a later access, or an earlier one that is not
/// ordered before this, is reported.
pub(crate) fn retire(word: &AtomicU32) {
    word.life.end();
}

/// Longest nap. A longer limit is a deadline.
const NAP: Duration = Duration::from_millis(1);

struct Bucket {
    queue: Mutex<Queue>,
    woken: Condvar,
}

#[derive(Default)]
struct Queue {
    asleep: Vec<Sleeper>,
    next: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Sleeper {
    number: usize,
    /// Address of its word.
    address: usize,
    bitset: u32,
}

checker::lazy_static! {
    static ref BUCKET: Bucket = Bucket { queue: Mutex::new(Queue::default()), woken: Condvar::new() };
}

pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> bool {
    futex_wait_bitset(word, expected, u32::MAX, timeout)
}

pub(crate) fn futex_wait_bitset(
    word: &AtomicU32,
    expected: u32,
    bitset: u32,
    timeout: Option<Duration>,
) -> bool {
    if let Some(timeout) = timeout {
        if timeout <= NAP {
            // The thread will nap again, so let others run: otherwise the execution never ends.
            yield_now();
            return false;
        }
    }
    let Ok(mut queue) = BUCKET.queue.lock() else { return false };
    // Relaxed: as in the kernel, the bucket's lock orders this after the waker's store.
    if word.load(Ordering::Relaxed) != expected {
        return false;
    }
    let me = Sleeper { number: queue.next, address: std::ptr::from_ref(word).addr(), bitset };
    queue.next += 1;
    queue.asleep.push(me);
    if let Some(timeout) = timeout {
        // The checker may run the other threads in between, so the limit may pass at any moment.
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
    futex_wake_bitset(word, most, u32::MAX)
}

pub(crate) fn futex_wake_bitset(word: &AtomicU32, most: u32, bitset: u32) -> u32 {
    let word = std::ptr::from_ref(word).addr();
    let Ok(mut queue) = BUCKET.queue.lock() else { return 0 };
    let mut woken = 0;
    queue.asleep.retain(|sleeper| {
        let wakes = sleeper.address == word && sleeper.bitset & bitset != 0 && woken < most;
        woken += u32::from(wakes);
        !wakes
    });
    drop(queue);
    BUCKET.woken.notify_all();
    woken
}

/// All times are the same, so no model depends on them.
pub(crate) fn clock_us() -> u64 {
    0
}

/// A number that no other thread has.
pub(crate) fn this_thread() -> usize {
    let mut hasher = DefaultHasher::new();
    checker::thread::current().id().hash(&mut hasher);
    hasher.finish() as usize
}

/// A thread that can park, unlike loom's own, whose `unpark` also ends other waits.
#[derive(Clone)]
pub(crate) struct Thread(Arc<Token>);

struct Token {
    is_there: Mutex<bool>,
    changed: Condvar,
}

pub(crate) fn current_thread() -> Thread {
    Thread(Arc::new(Token { is_there: Mutex::new(false), changed: Condvar::new() }))
}

/// Sleeps until `unpark_thread` was called for this value, of the current thread.
pub(crate) fn park_thread(thread: &Thread) {
    let Token { is_there, changed } = &*thread.0;
    let Ok(mut token) = is_there.lock() else { return };
    while !std::mem::take(&mut *token) {
        let Ok(woken) = changed.wait(token) else { return };
        token = woken;
    }
}

pub(crate) fn unpark_thread(thread: Thread) {
    let Token { is_there, changed } = &*thread.0;
    let Ok(mut token) = is_there.lock() else { return };
    *token = true;
    drop(token);
    changed.notify_one();
}

pub(crate) fn nap(_: Duration) {
    yield_now();
}

pub(crate) fn light_barrier() {
    if matches!(KERNEL.get(), Kernel::Orders | Kernel::Busy) {
        fence(Ordering::SeqCst);
    }
}

pub(crate) fn request_barrier() -> Result<bool, PendingBarrier> {
    if KERNEL.get() == Kernel::Refuses {
        return Ok(false);
    }
    fence(Ordering::SeqCst);
    if KERNEL.get() == Kernel::Busy { Err(PendingBarrier) } else { Ok(true) }
}

/// A barrier that waits for another thread's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingBarrier;

impl PendingBarrier {
    pub(crate) fn is_done(self) -> bool {
        true
    }

    pub(crate) fn poll(self) -> Option<bool> {
        Some(true)
    }

    pub(crate) fn force(self) -> bool {
        true
    }
}

pub(crate) fn senders_must_fence() -> bool {
    KERNEL.get() == Kernel::Lacks
}

pub(crate) fn spin_loop() {
    yield_now();
}

pub(crate) fn prefetch<T>(_: *const T) {}

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

pub(crate) fn generation() -> u32 {
    0
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

/// A time of the model's clock.
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

/// A descriptor that is readable once it has been written to.
pub(crate) struct EventFd {
    writes: Mutex<u64>,
    written: Condvar,
}

impl EventFd {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(EventFd { writes: Mutex::new(0), written: Condvar::new() })
    }

    pub(crate) fn write(&self) {
        let Ok(mut writes) = self.writes.lock() else { return };
        *writes += 1;
        drop(writes);
        self.written.notify_all();
    }

    pub(crate) fn read(&self) -> u64 {
        self.writes.lock().map_or(0, |mut writes| std::mem::take(&mut *writes))
    }

    #[cfg(test)]
    pub(crate) fn is_readable(&self) -> bool {
        self.writes.lock().is_ok_and(|writes| *writes > 0)
    }

    /// Sleeps until the descriptor is readable.
    #[cfg(test)]
    pub(crate) fn poll(&self) {
        let Ok(mut writes) = self.writes.lock() else { return };
        while *writes == 0 {
            let Ok(written) = self.written.wait(writes) else { return };
            writes = written;
        }
    }
}
