use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use crate::error::Unavailable;

use super::{GrantPolicy, Lock, RawLock, Wrap, each};

pub(super) fn locks<W: Wrap>() -> [Lock; 2] {
    [
        Lock::ours::<W, _>(
            "pthread",
            GrantPolicy::Barging,
            "the C library's plain mutex: sleeps at once",
            each(|| Pthread(Raw::plain())),
        ),
        Lock::ours::<W, _>(
            "pthread-adaptive",
            GrantPolicy::Barging,
            "the C library's mutex that spins before it sleeps, if the library has one",
            Adaptive::make,
        ),
    ]
}

/// Boxed, because the C library forbids moving a mutex after use.
struct Raw(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: the C library's mutexes are made for use from many threads, and only the C library
// accesses them.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

impl Raw {
    fn plain() -> Self {
        Raw(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)))
    }

    fn of_kind(kind: libc::c_int) -> Result<Self, Unavailable> {
        let failed =
            |what: &str, error| Unavailable::new(what, std::io::Error::from_raw_os_error(error));
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        // SAFETY: points to space for uninitialised attributes.
        match unsafe { libc::pthread_mutexattr_init(attributes.as_mut_ptr()) } {
            0 => {}
            error => return Err(failed("pthread_mutexattr_init", error)),
        }
        // SAFETY: the attributes were initialised just above.
        let set = unsafe { libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), kind) };
        let raw = Raw::plain();
        // SAFETY: no other thread has this mutex yet, and the attributes are initialised.
        let made = unsafe { libc::pthread_mutex_init(raw.0.get(), attributes.as_ptr()) };
        // SAFETY: the attributes were initialised above and are not used after this.
        unsafe { libc::pthread_mutexattr_destroy(attributes.as_mut_ptr()) };
        match (set, made) {
            (0, 0) => Ok(raw),
            (0, error) => Err(failed("pthread_mutex_init", error)),
            (error, _) => Err(failed("pthread_mutexattr_settype", error)),
        }
    }

    #[inline(always)]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        // SAFETY: the mutex is initialised and does not move. Locking cannot fail if this thread
        // does not already hold the mutex.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        let done = section();
        // SAFETY: this thread holds the mutex.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        done
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: this value owns the mutex, so no thread holds it or ever will.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

struct Pthread(Raw);

impl RawLock for Pthread {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        self.0.hold(section)
    }
}

/// Value of `PTHREAD_MUTEX_ADAPTIVE_NP` in glibc. Other libraries reject it or give it another
/// meaning.
#[cfg(target_env = "gnu")]
const ADAPTIVE: libc::c_int = 3;

struct Adaptive(Raw);

impl Adaptive {
    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        #[cfg(target_env = "gnu")]
        return (0..count).map(|_| Raw::of_kind(ADAPTIVE).map(Adaptive)).collect();
        #[cfg(not(target_env = "gnu"))]
        Err(Unavailable::new(
            "PTHREAD_MUTEX_ADAPTIVE_NP",
            std::io::Error::other("only glibc has it"),
        ))
    }
}

impl RawLock for Adaptive {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        self.0.hold(section)
    }
}
