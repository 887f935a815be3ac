//! The C library's mutex and condition variables.

use std::cell::UnsafeCell;

use super::condvar::{Monitor, ends};
use super::{Class, Ends, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 2] {
    [
        Mechanism::new(
            "pthread-condvar",
            Class::Sleep,
            "pthread mutex and condition variable, signalled while the lock is held",
            make::<false>,
        ),
        Mechanism::new(
            "pthread-condvar-after",
            Class::Sleep,
            "pthread mutex and condition variable, signalled after unlocking",
            make::<true>,
        ),
    ]
}

fn make<const AFTER: bool>(settings: &Settings) -> Result<Ends, Unavailable> {
    Ok(ends::<_, AFTER>(Pthread::new(), settings))
}

/// The objects are boxed, because the C library forbids moving them after use. They need no
/// explicit destruction: with the static initialisers they own nothing.
struct Pthread {
    lock: Box<UnsafeCell<libc::pthread_mutex_t>>,
    conditions: [Box<UnsafeCell<libc::pthread_cond_t>>; 2],
}

// SAFETY: the C library's mutexes and condition variables are made for use from many threads, and
// only the C library accesses them.
unsafe impl Send for Pthread {}
// SAFETY: as above.
unsafe impl Sync for Pthread {}

impl Pthread {
    fn new() -> Self {
        let condition = || Box::new(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER));
        Pthread {
            lock: Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)),
            conditions: [condition(), condition()],
        }
    }

    #[inline(always)]
    fn lock(&self) {
        // SAFETY: an initialised mutex that does not move; locking a default mutex that this thread
        // does not hold cannot fail.
        unsafe { libc::pthread_mutex_lock(self.lock.get()) };
    }

    #[inline(always)]
    fn unlock(&self) {
        // SAFETY: this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.lock.get()) };
    }

    #[inline(always)]
    fn signal(&self, condition: usize) {
        // SAFETY: an initialised condition variable that does not move.
        unsafe { libc::pthread_cond_signal(self.conditions[condition].get()) };
    }
}

impl Monitor for Pthread {
    #[inline(always)]
    fn change(&self, condition: usize, after: bool, change: impl FnOnce()) {
        self.lock();
        change();
        if after {
            self.unlock();
            self.signal(condition);
        } else {
            self.signal(condition);
            self.unlock();
        }
    }

    #[inline(always)]
    fn wait<T>(
        &self,
        condition: usize,
        mut ready: impl FnMut() -> bool,
        take: impl FnOnce() -> T,
    ) -> T {
        self.lock();
        while !ready() {
            // SAFETY: both are initialised and do not move, and this thread holds the mutex.
            unsafe { libc::pthread_cond_wait(self.conditions[condition].get(), self.lock.get()) };
        }
        let taken = take();
        self.unlock();
        taken
    }
}
