//! The mutex: the lock together with the data that it protects.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::thread;
use std::time::Duration;

use super::state::State;
use super::word::{Patience, Refused, Terms, Word};
use crate::error::{Full, LockBoundedTimeoutError, LockTimeoutError};
use crate::sync::{Instant, UnsafeCell, constant};

/// A mutex that knows its queue, and bounds it: see the [module](super).
///
/// ```
/// use std::thread;
/// use threadtoll::lock::Mutex;
///
/// static TOTAL: Mutex<u64> = Mutex::new(0);
///
/// thread::scope(|scope| {
///     for number in 1..=4 {
///         scope.spawn(move || *TOTAL.lock() += number);
///     }
/// });
/// assert_eq!(*TOTAL.lock(), 10);
/// assert_eq!(TOTAL.queue_len(), 0);
/// ```
pub struct Mutex<T: ?Sized> {
    word: Word,
    is_fair: bool,
    poisons: bool,
    value: UnsafeCell<T>,
}

// SAFETY: sharing the mutex gives each thread that locks it exclusive access to the value in turn,
// as if the value was sent to it. The word is made of atomics.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    constant! {
        /// Creates an unlocked mutex whose lock goes to whoever comes first, a waiter or not.
        ///
        /// Waiters are woken in the order in which they fell asleep. One that is woken after a
        /// millisecond or more and finds that another thread was quicker, or that has slept in
        /// vain 64 times, is served next.
        pub fn new(value: T) -> Self {
            let value = UnsafeCell::new(value);
            Mutex { word: Word::new(), is_fair: false, poisons: false, value }
        }
    }

    constant! {
        /// Creates an unlocked mutex whose lock is handed to the thread that has waited longest.
        ///
        /// Waits vary less than with [`Mutex::new`], but the lock is taken less often: while it is
        /// on its way to a thread that has to wake up, nobody else can take it.
        ///
        /// ```
        /// use threadtoll::lock::Mutex;
        ///
        /// static TURN: Mutex<u64> = Mutex::fair(0);
        /// *TURN.lock() += 1;
        /// assert_eq!(*TURN.lock(), 1);
        /// ```
        pub fn fair(value: T) -> Self {
            let value = UnsafeCell::new(value);
            Mutex { word: Word::new(), is_fair: true, poisons: false, value }
        }
    }

    constant! {
        /// Makes the mutex poison itself if a thread panics while it holds the lock.
        ///
        /// Every later attempt to lock it panics, since the value may be inconsistent, until
        /// [`clear_poison`](Mutex::clear_poison).
        ///
        /// ```
        /// use std::thread;
        /// use threadtoll::lock::Mutex;
        ///
        /// static BALANCE: Mutex<i64> = Mutex::new(100).poisoning();
        ///
        /// let transfer = thread::spawn(|| {
        ///     let mut balance = BALANCE.lock();
        ///     *balance -= 30;
        ///     panic!("the other account does not exist");
        /// });
        /// assert!(transfer.join().is_err());
        /// assert!(BALANCE.is_poisoned());
        /// ```
        pub fn poisoning(mut self) -> Self {
            self.poisons = true;
            self
        }
    }

    /// Returns the value, also if the mutex is poisoned.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks, and waits for the lock if it is taken.
    ///
    /// A thread that already holds the lock waits for ever.
    ///
    /// # Panics
    ///
    /// If the mutex is [poisoned](Mutex::poisoning).
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let mut seen = match self.word.take_idle() {
            Ok(()) => return self.guard(),
            Err(seen) => seen,
        };
        // Without a bound or a deadline, the first attempt succeeds.
        loop {
            match self.wait(seen, usize::MAX, None) {
                Ok(guard) => return guard,
                Err(_) => seen = self.word.state(),
            }
        }
    }

    /// Locks if the lock is free, whoever waits for it; never waits. Otherwise returns `None`.
    ///
    /// # Panics
    ///
    /// If the mutex is [poisoned](Mutex::poisoning).
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.word.take_idle() {
            Ok(()) => Some(self.guard()),
            Err(seen) => self.word.take_free(seen).ok().map(|()| self.checked_guard()),
        }
    }

    /// Locks, and waits for the lock for at most `timeout`.
    ///
    /// The lock may be acquired a little late, because a thread to which the lock was handed keeps
    /// it.
    ///
    /// # Errors
    ///
    /// If the lock was not acquired in time.
    ///
    /// # Panics
    ///
    /// If the mutex is [poisoned](Mutex::poisoning).
    #[inline]
    #[track_caller]
    pub fn lock_timeout(&self, timeout: Duration) -> Result<MutexGuard<'_, T>, LockTimeoutError> {
        match self.word.take_idle() {
            Ok(()) => Ok(self.guard()),
            Err(seen) => self
                .wait(seen, usize::MAX, Instant::now().checked_add(timeout))
                .map_err(|_| LockTimeoutError),
        }
    }

    /// Locks, and waits for the lock until `deadline`: see [`Mutex::lock_timeout`].
    ///
    /// # Errors
    ///
    /// If the lock was not acquired in time.
    ///
    /// # Panics
    ///
    /// If the mutex is [poisoned](Mutex::poisoning).
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    #[inline]
    #[track_caller]
    pub fn lock_deadline(&self, deadline: Instant) -> Result<MutexGuard<'_, T>, LockTimeoutError> {
        match self.word.take_idle() {
            Ok(()) => Ok(self.guard()),
            Err(seen) => self.wait(seen, usize::MAX, Some(deadline)).map_err(|_| LockTimeoutError),
        }
    }

    /// Locks, and waits for the lock unless `bound` threads wait already.
    ///
    /// If all threads lock by this method with one bound, never do more than `bound` threads wait,
    /// not even for a moment. With a bound of 0, the thread never waits.
    ///
    /// ```
    /// use threadtoll::error::Full;
    /// use threadtoll::lock::Mutex;
    ///
    /// let mutex = Mutex::new(());
    /// let guard = mutex.lock_bounded(0).unwrap();
    /// assert_eq!(mutex.lock_bounded(0).unwrap_err(), Full { queue: 0 });
    /// # drop(guard);
    /// ```
    ///
    /// # Errors
    ///
    /// [`Full`] with the number of waiting threads if that is `bound` or more.
    ///
    /// # Panics
    ///
    /// If the mutex is [poisoned](Mutex::poisoning).
    #[inline]
    #[track_caller]
    pub fn lock_bounded(&self, bound: usize) -> Result<MutexGuard<'_, T>, Full> {
        match self.word.take_idle() {
            Ok(()) => Ok(self.guard()),
            Err(seen) => self.wait(seen, bound, None).map_err(|refused| match refused {
                Refused::Full(queue) => Full { queue: queue as usize },
                // Without a deadline, nothing times out.
                Refused::TimedOut => Full { queue: self.queue_len() },
            }),
        }
    }

    /// Locks, and waits for the lock for at most `timeout`, unless `bound` threads wait already.
    ///
    /// # Errors
    ///
    /// [`LockBoundedTimeoutError::Full`] with the number of waiting threads if that is `bound` or
    /// more; [`LockBoundedTimeoutError::Timeout`] if the lock was not acquired in time.
    ///
    /// # Panics
    ///
    /// If the mutex is [poisoned](Mutex::poisoning).
    #[inline]
    #[track_caller]
    pub fn lock_bounded_timeout(
        &self,
        bound: usize,
        timeout: Duration,
    ) -> Result<MutexGuard<'_, T>, LockBoundedTimeoutError> {
        match self.word.take_idle() {
            Ok(()) => Ok(self.guard()),
            Err(seen) => {
                let waited = self.wait(seen, bound, Instant::now().checked_add(timeout));
                waited.map_err(|refused| match refused {
                    Refused::Full(queue) => LockBoundedTimeoutError::Full { queue: queue as usize },
                    Refused::TimedOut => LockBoundedTimeoutError::Timeout,
                })
            }
        }
    }

    /// Number of threads that wait for the lock at this moment, asleep or spinning. The holder does
    /// not count; a thread to which the lock was handed counts until it has noticed.
    ///
    /// Exact, and costs one load of the word that is locked.
    ///
    /// ```
    /// use threadtoll::lock::Mutex;
    ///
    /// let mutex = Mutex::new(7);
    /// let guard = mutex.lock();
    /// // The queue that this thread left behind it.
    /// assert_eq!(mutex.queue_len(), 0);
    /// # drop(guard);
    /// ```
    #[inline]
    pub fn queue_len(&self) -> usize {
        self.word.state().waiters() as usize
    }

    /// Returns `true` if the mutex [poisons](Mutex::poisoning) and a thread has panicked while it
    /// held the lock.
    pub fn is_poisoned(&self) -> bool {
        self.word.state().is_poisoned()
    }

    /// Makes a poisoned mutex usable again, for a value that was repaired or was consistent all
    /// along.
    pub fn clear_poison(&self) {
        self.word.unpoison();
    }

    /// Returns the value without locking, since no other thread can have a reference to the mutex.
    /// Also works if the mutex is poisoned.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: the exclusive borrow of the mutex lasts as long as the returned one.
        self.value.with_mut(|value| unsafe { &mut *value })
    }

    #[cold]
    #[track_caller]
    fn wait(
        &self,
        seen: State,
        bound: usize,
        deadline: Option<Instant>,
    ) -> Result<MutexGuard<'_, T>, Refused> {
        let patience = if self.is_fair { Patience::IN_ORDER } else { Patience::USUAL };
        let bound = u32::try_from(bound).unwrap_or(u32::MAX);
        self.word.lock(seen, Terms { bound, deadline, patience })?;
        Ok(self.checked_guard())
    }

    /// The guard of the thread that has just taken the lock, which may be poisoned.
    #[track_caller]
    fn checked_guard(&self) -> MutexGuard<'_, T> {
        let guard = self.guard();
        if self.is_poisoned() {
            drop(guard);
            panic!("the mutex is poisoned: another thread panicked while it held the lock");
        }
        guard
    }

    /// The guard of the thread that has just taken the lock.
    #[inline(always)]
    fn guard(&self) -> MutexGuard<'_, T> {
        let was_panicking = self.poisons && thread::panicking();
        MutexGuard { mutex: self, was_panicking, _stays_on_its_thread: PhantomData }
    }

    #[inline(always)]
    fn unlock(&self, was_panicking: bool, fair: bool) {
        if self.poisons && !was_panicking && thread::panicking() {
            self.word.poison();
        }
        self.word.unlock(fair);
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = f.debug_struct("Mutex");
        match self.word.take_free(self.word.state()) {
            Ok(()) => parts.field("value", &&*self.guard()),
            Err(_) => parts.field("value", &format_args!("<locked>")),
        };
        parts
            .field("queue_len", &self.queue_len())
            .field("is_poisoned", &self.is_poisoned())
            .finish_non_exhaustive()
    }
}

/// Exclusive access to the value of a locked [`Mutex`], which is unlocked when this is dropped.
///
/// If the guard is leaked, the mutex stays locked, even after the thread has ended.
#[must_use = "the mutex is unlocked when the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// True if the thread was panicking already when it locked a mutex that poisons.
    was_panicking: bool,
    /// A guard is not `Send`, so that no task carries it to another thread and holds the lock while
    /// it waits there.
    _stays_on_its_thread: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives access to a shared value only.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T: ?Sized> MutexGuard<'_, T> {
    /// Unlocks, and hands the lock to a thread that waits, if there is one, as [`Mutex::fair`]
    /// always does.
    ///
    /// A function and not a method, which could hide one of the value's.
    ///
    /// ```
    /// use threadtoll::lock::{Mutex, MutexGuard};
    ///
    /// let mutex = Mutex::new(1);
    /// let guard = mutex.lock();
    /// MutexGuard::unlock_fair(guard);
    /// assert!(mutex.try_lock().is_some());
    /// ```
    pub fn unlock_fair(guard: Self) {
        let guard = ManuallyDrop::new(guard);
        guard.mutex.unlock(guard.was_panicking, true);
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.unlock(self.was_panicking, self.mutex.is_fair);
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock as long as the guard lives.
        self.mutex.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        self.mutex.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
