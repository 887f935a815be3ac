//! The C library's mutex and condition variables.

use std::cell::UnsafeCell;

use super::Mechanism;
use super::condvar::{self, Monitor};

pub(super) fn mechanisms() -> [Mechanism; 2] {
    condvar::mechanisms::<Pthread>("pthread-condvar", "pthread mutex and condition variable")
}

/// Boxed, because the C library forbids moving a mutex or condition variable after its first use.
/// There is no `Drop`: a statically initialised mutex or condition variable owns nothing.
struct Pthread {
    lock: Box<UnsafeCell<libc::pthread_mutex_t>>,
    conditions: [Box<UnsafeCell<libc::pthread_cond_t>>; 2],
}

// SAFETY: the C library's mutexes and condition variables may be shared by threads, and only the C
// library accesses them.
unsafe impl Send for Pthread {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pthread {}

impl Default for Pthread {
    fn default() -> Self {
        let condition = || Box::new(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER));
        Pthread {
            lock: Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)),
            conditions: [condition(), condition()],
        }
    }
}

struct Held<'a>(&'a Pthread);

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this thread holds the mutex.
        unsafe { libc::pthread_mutex_unlock(self.0.lock.get()) };
    }
}

impl Monitor for Pthread {
    type Guard<'a> = Held<'a>;

    #[inline(always)]
    fn lock(&self) -> Held<'_> {
        // SAFETY: the mutex is initialised and does not move. Locking a default mutex cannot fail
        // if this thread does not hold it.
        unsafe { libc::pthread_mutex_lock(self.lock.get()) };
        Held(self)
    }

    #[inline(always)]
    fn signal(&self, condition: usize) {
        // SAFETY: the condition variable is initialised and does not move.
        unsafe { libc::pthread_cond_signal(self.conditions[condition].get()) };
    }

    #[inline(always)]
    fn wait<'a>(&'a self, condition: usize, guard: Held<'a>) -> Held<'a> {
        // SAFETY: the mutex and the condition variable are initialised and do not move, and this
        // thread holds the mutex.
        unsafe { libc::pthread_cond_wait(self.conditions[condition].get(), self.lock.get()) };
        guard
    }
}
