//! Locks, one a file and one line in the registry each.
//!
//! A lock is a `RawLock`: it runs a section of code that excludes all others. What threads do with
//! it is the business of the scenarios in [`contention`](crate::contention), whose loops are
//! compiled anew for each lock, so that around the section there is nothing but the lock itself.
//! The rows `counter-*` hold no lock for the section: they say what counting costs when the section
//! is nothing but a count.

mod counter;
mod mcs;
mod parking_lot;
mod pthread;
mod spin;
mod std_mutex;
mod std_rwlock;
mod sysv_semaphore;
mod ticket;

use std::sync::Arc;

use threadtoll_record::NO_LOCK;

use crate::cache_padded::CachePadded;
use crate::contention::contender::{Contender, contenders};
use crate::mechanism::Unavailable;

/// The most locks that one is striped into.
pub const MAX_STRIPES: u32 = 1024;
/// The most threads that take one.
pub const MAX_THREADS: u32 = 1024;

/// Something that lets one thread at a time run a section of code.
pub(crate) trait RawLock: Send + Sync + Sized + 'static {
    /// What a thread needs to take it beside the lock itself.
    type Seat: Send + 'static;

    /// Makes so many of them, with every byte allocated and touched by the calling thread.
    fn make(count: usize) -> Result<Vec<Self>, Unavailable>;

    /// What one thread needs.
    fn seat(&self) -> Self::Seat;

    /// Runs the section while no other thread runs one.
    fn hold<R>(&self, seat: &mut Self::Seat, section: impl FnOnce() -> R) -> R;

    /// Runs the section while no other thread runs one that it [holds](Self::hold); where the lock
    /// knows readers, others may run theirs.
    fn share<R>(&self, seat: &mut Self::Seat, section: impl FnOnce() -> R) -> R {
        self.hold(seat, section)
    }
}

/// Who gets a lock that is let go of. What the figures of each are is measured, not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantPolicy {
    /// Who has waited longest; waiting threads sleep.
    InOrder,
    /// Who has waited longest; waiting threads spin.
    InOrderSpinning,
    /// Whoever comes first; waiting threads may spin for a while, and then sleep.
    Barging,
    /// Whoever comes first; waiting threads spin.
    BargingSpinning,
    /// There is nothing to hand over.
    Nothing,
}

impl GrantPolicy {
    /// Whether a waiting thread never lets go of its CPU.
    pub fn spins(self) -> bool {
        matches!(self, GrantPolicy::InOrderSpinning | GrantPolicy::BargingSpinning)
    }

    /// Whether nobody overtakes.
    pub fn in_order(self) -> bool {
        matches!(self, GrantPolicy::InOrder | GrantPolicy::InOrderSpinning)
    }
}

/// Makes what each of so many threads takes so many of the same lock by: stripes first, then
/// threads.
type Make = fn(u32, usize) -> Result<Vec<Box<dyn Contender>>, Unavailable>;

/// A lock: what the registry knows of it.
#[derive(Clone, Copy)]
pub struct Lock {
    /// Its name on the command line and in files.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub sentence: &'static str,
    /// Who gets it when it is let go of.
    pub handing: GrantPolicy,
    /// Whether readers share it.
    pub shares: bool,
    /// Whether it only counts: it can be held for no longer than that.
    pub counts: bool,
    make: Make,
    #[cfg(test)]
    trial: tests::Trial,
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Lock {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Lock {
    const fn new<L: RawLock>(
        name: &'static str,
        handing: GrantPolicy,
        sentence: &'static str,
    ) -> Self {
        Lock {
            name,
            sentence,
            handing,
            shares: false,
            counts: false,
            make: contenders::<L>,
            #[cfg(test)]
            trial: tests::Trial::of::<L>(),
        }
    }

    const fn with_readers(self) -> Self {
        Lock { shares: true, ..self }
    }

    const fn that_counts(self) -> Self {
        Lock { counts: true, ..self }
    }
}

/// Every lock, in the order of the contract.
#[rustfmt::skip]
pub const ALL: &[Lock] = &[
    Lock::new::<std_mutex::StdMutex>("std-mutex", GrantPolicy::Barging, "std::sync::Mutex: spins briefly, then sleeps on a futex"),
    Lock::new::<std_rwlock::StdRwLock>("std-rwlock", GrantPolicy::Barging, "std::sync::RwLock: readers share it").with_readers(),
    Lock::new::<parking_lot::ParkingLot>("parking-lot", GrantPolicy::Barging, "parking_lot::Mutex: spins and yields, then parks; fair now and then"),
    Lock::new::<parking_lot::Fair>("parking-lot-fair", GrantPolicy::InOrder, "parking_lot::Mutex, always handed to who has waited longest"),
    Lock::new::<parking_lot::Readers>("parking-lot-rwlock", GrantPolicy::Barging, "parking_lot::RwLock: readers share it").with_readers(),
    Lock::new::<pthread::Pthread>("pthread", GrantPolicy::Barging, "the C library's plain mutex: sleeps at once"),
    Lock::new::<pthread::Adaptive>("pthread-adaptive", GrantPolicy::Barging, "the C library's mutex that spins before it sleeps, where it has one"),
    Lock::new::<spin::Spin>("spin", GrantPolicy::BargingSpinning, "test-and-test-and-set: never sleeps, and serves who comes first"),
    Lock::new::<ticket::Ticket>("ticket", GrantPolicy::InOrderSpinning, "a ticket lock: never sleeps, and serves in order"),
    Lock::new::<mcs::Mcs>("mcs", GrantPolicy::InOrderSpinning, "the queue lock of Mellor-Crummey and Scott: each thread spins on a line of its own"),
    Lock::new::<sysv_semaphore::SysVSemaphore>("sysv-semaphore", GrantPolicy::InOrder, "a System V semaphore: a kernel lock, every operation a system call"),
    Lock::new::<counter::Locked>("counter-locked", GrantPolicy::Barging, "no lock but a count: a number behind a std::sync::Mutex").that_counts(),
    Lock::new::<counter::Atomic>("counter-atomic", GrantPolicy::Nothing, "no lock but a count: an atomic number that all threads add to").that_counts(),
    Lock::new::<counter::Sharded>("counter-sharded", GrantPolicy::Nothing, "no lock but a count: a number for each thread, summed at the end").that_counts(),
];

/// How a striped lock is written.
pub const STRIPED: &str = "striped/K:LOCK";
/// What that is, in a sentence.
pub const STRIPED_SENTENCE: &str = "K of these locks that share the load, such as striped/8:std-mutex: each acquisition takes one at random";

/// A lock, or several that share its load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LockSpec {
    /// The lock; nothing where a thread takes none.
    pub lock: Option<&'static Lock>,
    /// How many of them.
    pub stripes: u32,
}

/// Why a name is none of a lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no such lock.
    #[error("there is no lock “{0}”")]
    Unknown(String),
    /// It is striped into no sensible number.
    #[error("a lock is striped into 2 to {MAX_STRIPES}, not {0}")]
    Stripes(String),
    /// It cannot be striped.
    #[error("{0} cannot be striped: each thread or operation is on its own already")]
    Unstriped(&'static str),
}

impl LockSpec {
    /// The same places to meet, and nothing to take there.
    pub(crate) fn without(self) -> LockSpec {
        LockSpec { lock: None, ..self }
    }

    /// Reads a name: of a lock, of one that is striped, or of none.
    ///
    /// # Errors
    ///
    /// If there is no such lock, or it cannot be striped so.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        if name == NO_LOCK {
            return Ok(LockSpec { lock: None, stripes: 1 });
        }
        let unknown = |name: &str| NameError::Unknown(name.to_string());
        let (stripes, plain) = match name.strip_prefix("striped/") {
            None => (1, name),
            Some(rest) => {
                let (count, plain) = rest.split_once(':').ok_or_else(|| unknown(name))?;
                let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
                let stripes =
                    count.parse().ok().filter(|k| digits && (2..=MAX_STRIPES).contains(k));
                (stripes.ok_or_else(|| NameError::Stripes(count.to_string()))?, plain)
            }
        };
        let lock = ALL.iter().find(|lock| lock.name == plain).ok_or_else(|| unknown(plain))?;
        if stripes > 1 && lock.counts {
            return Err(NameError::Unstriped(lock.name));
        }
        Ok(LockSpec { lock: Some(lock), stripes })
    }

    /// Makes what each of so many threads takes it by.
    pub(crate) fn contenders(self, threads: usize) -> Result<Vec<Box<dyn Contender>>, Unavailable> {
        match self.lock {
            Some(lock) => (lock.make)(self.stripes, threads),
            None => contenders::<NoLock>(self.stripes, threads),
        }
    }

    /// Who gets it when it is let go of.
    pub fn handing(self) -> GrantPolicy {
        self.lock.map_or(GrantPolicy::Nothing, |lock| lock.handing)
    }
}

/// The absence of a lock: what one thread alone pays nothing for.
struct NoLock;

impl RawLock for NoLock {
    type Seat = ();

    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        Ok((0..count).map(|_| NoLock).collect())
    }

    fn seat(&self) {}

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        section()
    }
}

/// The locks that all threads share.
pub(crate) fn shared<L: RawLock>(stripes: u32) -> Result<Arc<[CachePadded<L>]>, Unavailable> {
    Ok(L::make(stripes as usize)?.into_iter().map(CachePadded).collect())
}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Barrier};

    use super::*;

    /// A number that only the lock keeps whole.
    struct Fragile(UnsafeCell<u64>);
    // SAFETY: the tests reach it only in sections that a lock is to keep apart; that is what they
    // are about.
    unsafe impl Sync for Fragile {}

    impl Fragile {
        fn place(&self) -> *mut u64 {
            self.0.get()
        }
    }

    /// As many threads as named: more than there are CPUs would only spin where waiting threads
    /// never sleep.
    fn excludes<L: RawLock>(threads: u64) {
        const TIMES: u64 = 5_000;
        let Ok(locks) = shared::<L>(1) else {
            println!("skipped: this machine does not let us have it");
            return;
        };
        let number = Fragile(UnsafeCell::new(0));
        let inside = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut seat = locks[0].0.seat();
                    for time in 0..TIMES {
                        locks[0].0.hold(&mut seat, || {
                            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two at once");
                            // SAFETY: see `Fragile`.
                            let before = unsafe { *number.place() };
                            if time % 64 == 0 {
                                // Somebody else would have time to come in.
                                std::thread::yield_now();
                            }
                            // SAFETY: see `Fragile`.
                            unsafe { *number.place() = before + 1 };
                            inside.fetch_sub(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(number.0.into_inner(), threads * TIMES);
    }

    fn shares<L: RawLock>() {
        let locks = shared::<L>(1).unwrap();
        let both = Arc::new(Barrier::new(2));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                // Each waits inside for the other: without sharing, nobody would ever come out.
                scope.spawn(|| locks[0].0.share(&mut locks[0].0.seat(), || both.wait()));
            }
        });
    }

    /// The checks of a lock's own type.
    #[derive(Clone, Copy)]
    pub(super) struct Trial {
        excludes: fn(u64),
        shares: fn(),
    }

    impl Trial {
        pub(super) const fn of<L: RawLock>() -> Self {
            Trial { excludes: excludes::<L>, shares: shares::<L> }
        }
    }

    #[test]
    fn every_lock_excludes() {
        // Another test counts the semaphore sets of this process.
        let _alone = threadtoll_machine::machine_lock().unwrap();
        for lock in ALL.iter().filter(|lock| lock.handing != GrantPolicy::Nothing) {
            println!("{lock:?}");
            (lock.trial.excludes)(if lock.handing.spins() { 2 } else { 4 });
        }
    }

    #[test]
    fn readers_share() {
        let shared = ALL.iter().filter(|lock| lock.shares);
        assert!(shared.clone().count() > 0);
        shared.for_each(|lock| (lock.trial.shares)());
    }

    #[test]
    fn names_are_read() {
        for lock in ALL {
            assert_eq!(LockSpec::parse(lock.name), Ok(LockSpec { lock: Some(lock), stripes: 1 }));
            assert!(!lock.sentence.is_empty() && lock.sentence.len() < 100, "{lock:?}");
        }
        assert_eq!(LockSpec::parse("striped/8:mcs").unwrap().stripes, 8);
        assert_eq!(LockSpec::parse(NO_LOCK).unwrap().lock, None);
        for stripes in [
            "striped/0:spin",
            "striped/1:spin",
            "striped/1025:spin",
            "striped/-2:spin",
            "striped/+2:spin",
        ] {
            assert!(matches!(LockSpec::parse(stripes), Err(NameError::Stripes(_))), "{stripes}");
        }
        for unknown in
            ["", "muttex", "striped/2", "striped/2:", "striped/2:striped/2:spin", "striped/2:none"]
        {
            assert!(matches!(LockSpec::parse(unknown), Err(NameError::Unknown(_))), "{unknown}");
        }
        assert_eq!(
            LockSpec::parse("striped/2:counter-atomic"),
            Err(NameError::Unstriped("counter-atomic"))
        );
    }
}
