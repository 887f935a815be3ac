//! The lock for `lock_api`, whose types add what this crate's mutex does not have.

use std::time::{Duration, Instant};

use lock_api::GuardNoSend;

use super::state::State;
use super::word::{Patience, Refused, Terms, Word};
use crate::error::Full;

/// The lock of [`Mutex`](super::Mutex) for [`lock_api`], in four bytes. Feature `lock_api`.
///
/// `lock_api` adds guards of parts of the value and guards that own an `Arc`.
///
/// ```
/// use lock_api::MutexGuard;
/// use threadtoll::lock::RawMutex;
///
/// let pair: lock_api::Mutex<RawMutex, (u64, String)> = lock_api::Mutex::new((1, String::new()));
/// let mut name = MutexGuard::map(pair.lock(), |pair| &mut pair.1);
/// name.push_str("toll");
/// # drop(name);
/// // SAFETY: nothing is locked or unlocked by hand.
/// assert_eq!(unsafe { pair.raw() }.queue_len(), 0);
/// ```
pub type RawMutex = RawLock<false>;

/// The lock of a fair mutex ([`Mutex::fair`](super::Mutex::fair)) for [`lock_api`], in four bytes.
/// Feature `lock_api`.
pub type RawFairMutex = RawLock<true>;

/// [`RawMutex`] or [`RawFairMutex`].
///
/// A guard stays on its thread:
///
/// ```compile_fail,E0277
/// let mutex = lock_api::Mutex::<threadtoll::lock::RawMutex, u64>::new(1);
/// let guard = mutex.lock();
/// std::thread::scope(|scope| { scope.spawn(move || drop(guard)); });
/// ```
#[derive(Debug)]
pub struct RawLock<const FAIR: bool>(Word);

impl<const FAIR: bool> RawLock<FAIR> {
    /// Number of threads that wait for the lock: see [`Mutex::queue_len`](super::Mutex::queue_len).
    #[inline]
    pub fn queue_len(&self) -> usize {
        self.0.state().waiters() as usize
    }

    /// Locks unless `bound` threads wait already: see
    /// [`Mutex::lock_bounded`](super::Mutex::lock_bounded).
    ///
    /// The result is what [`lock_api::Mutex::make_guard_unchecked`] needs.
    ///
    /// # Errors
    ///
    /// [`Full`] with the number of waiting threads if that is `bound` or more.
    pub fn lock_bounded(&self, bound: usize) -> Result<GuardNoSend, Full> {
        match self.lock_within(bound, || None) {
            Ok(()) => Ok(GuardNoSend::new()),
            Err(Refused::Full(queue)) => Err(Full { queue: queue as usize }),
            // Without a deadline, nothing times out.
            Err(Refused::TimedOut) => Err(Full { queue: self.queue_len() }),
        }
    }

    #[inline]
    fn lock_within(
        &self,
        bound: usize,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<(), Refused> {
        let Err(seen) = self.0.take_idle() else { return Ok(()) };
        let patience = if FAIR { Patience::IN_ORDER } else { Patience::USUAL };
        let bound = u32::try_from(bound).unwrap_or(u32::MAX);
        self.0.lock(seen, Terms { bound, deadline: deadline(), patience })
    }
}

// SAFETY: the word lets one thread at a time take the lock, with acquire, and unlocks with release.
unsafe impl<const FAIR: bool> lock_api::RawMutex for RawLock<FAIR> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait wants a constant")]
    const INIT: Self = RawLock(Word::new());

    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        // Without a bound or a deadline, the first attempt succeeds.
        while self.lock_within(usize::MAX, || None).is_err() {}
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.0.take_free(State::FREE).ok().map(|()| GuardNoSend::new())
    }

    #[inline]
    unsafe fn unlock(&self, _: GuardNoSend) {
        self.0.unlock(FAIR);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.state().is_locked()
    }
}

// SAFETY: as above.
unsafe impl<const FAIR: bool> lock_api::RawMutexFair for RawLock<FAIR> {
    #[inline]
    unsafe fn unlock_fair(&self, _: GuardNoSend) {
        self.0.unlock(true);
    }

    #[inline]
    unsafe fn bump(&self, guard: &mut GuardNoSend) {
        if self.queue_len() > 0 {
            self.0.unlock(true);
            *guard = lock_api::RawMutex::lock(self);
        }
    }
}

// SAFETY: as above. A thread that gives up has not taken the lock.
unsafe impl<const FAIR: bool> lock_api::RawMutexTimed for RawLock<FAIR> {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        let deadline = || Instant::now().checked_add(timeout);
        self.lock_within(usize::MAX, deadline).ok().map(|()| GuardNoSend::new())
    }

    #[inline]
    fn try_lock_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.lock_within(usize::MAX, || Some(timeout)).ok().map(|()| GuardNoSend::new())
    }
}
