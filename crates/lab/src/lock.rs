//! Locks, one a file and one line in the registry each.
//!
//! A lock is a [`RawLock`]: it runs a section of code that excludes all others. What threads do
//! with it is the business of the scenarios in [`contention`](crate::contention), whose loops are
//! compiled anew for each lock, so that around the section there is nothing but the lock itself.
//! The rows `counter-*` hold no lock for the section: they say what counting costs when the section
//! is nothing but a count.

pub(crate) mod raw;

use std::sync::Arc;

use threadtoll_record::NO_LOCK;

use crate::contention::contender::{Contender, contenders};
use crate::error::Unavailable;

pub use raw::RawLock;

/// Declares the files of locks.
macro_rules! locks {
    ($($file:ident),+ $(,)?) => {
        $(mod $file;)+

        fn ours() -> Vec<Lock> {
            let mut all = Vec::new();
            $(all.extend($file::locks());)+
            all
        }
    };
}

// In the order in which they are listed.
locks! {
    std_mutex,
    std_rwlock,
    parking_lot,
    pthread,
    spin,
    ticket,
    mcs,
    sysv_semaphore,
    counter,
}

/// Most locks in a striped set.
pub const MAX_STRIPES: u32 = 1024;
/// Most threads that share a lock.
pub const MAX_THREADS: u32 = 1024;

/// Which waiting thread gets a lock when it is released. The times that this takes are measured,
/// not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantPolicy {
    /// The one that has waited longest; waiting threads sleep.
    InOrder,
    /// The one that has waited longest; waiting threads spin.
    InOrderSpinning,
    /// The first to come; waiting threads may spin for a while, and then sleep.
    Barging,
    /// The first to come; waiting threads spin.
    BargingSpinning,
    /// No thread ever waits.
    NeverWaits,
}

impl GrantPolicy {
    /// Returns `true` if a waiting thread never gives up its CPU.
    pub fn spins(self) -> bool {
        matches!(self, GrantPolicy::InOrderSpinning | GrantPolicy::BargingSpinning)
    }

    /// Returns `true` if no thread overtakes another.
    pub fn in_order(self) -> bool {
        matches!(self, GrantPolicy::InOrder | GrantPolicy::InOrderSpinning)
    }
}

/// Makes the contenders of a striped set of locks, by the number of stripes and of threads.
type MakeContenders =
    dyn Fn(usize, usize) -> Result<Vec<Box<dyn Contender>>, Unavailable> + Send + Sync;

/// A lock, as a registry knows it.
#[derive(Clone)]
pub struct Lock {
    /// Its name on the command line and in files.
    pub name: String,
    /// Its description, in a sentence.
    pub sentence: String,
    /// Which waiting thread gets it.
    pub policy: GrantPolicy,
    /// True if readers share it.
    pub has_readers: bool,
    /// True if it only counts, and cannot be held.
    pub only_counts: bool,
    make: Arc<MakeContenders>,
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Lock {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Lock {
    /// A lock. `make` makes a number of them, with every byte allocated and touched by the calling
    /// thread.
    pub fn new<L: RawLock>(
        name: impl Into<String>,
        policy: GrantPolicy,
        sentence: impl Into<String>,
        make: impl Fn(usize) -> Result<Vec<L>, Unavailable> + Send + Sync + 'static,
    ) -> Self {
        Lock {
            name: name.into(),
            sentence: sentence.into(),
            policy,
            has_readers: false,
            only_counts: false,
            make: Arc::new(move |stripes, threads| Ok(contenders(make(stripes)?, threads))),
        }
    }

    /// This lock, which readers share.
    pub fn with_readers(self) -> Self {
        Lock { has_readers: true, ..self }
    }

    /// This lock, which only counts.
    pub fn that_only_counts(self) -> Self {
        Lock { only_counts: true, ..self }
    }
}

/// Makes locks one by one.
fn each<L>(make: impl Fn() -> L) -> impl Fn(usize) -> Result<Vec<L>, Unavailable> {
    move |count| Ok((0..count).map(|_| make()).collect())
}

/// How a striped lock is written.
pub const STRIPED: &str = "striped/K:LOCK";
/// Its description, in a sentence.
pub const STRIPED_SENTENCE: &str = "K of these locks that share the load, such as striped/8:std-mutex: each acquisition takes one at random";

/// Every lock that can be named: ours first, then those that the caller adds.
#[derive(Clone, Debug)]
pub struct Locks(Arc<[Lock]>);

impl Default for Locks {
    fn default() -> Self {
        Self::with([])
    }
}

/// Why a name is none of a lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no such lock.
    #[error("there is no lock “{0}”")]
    Unknown(String),
    /// The number of stripes makes no sense.
    #[error("a lock is striped into 2 to {MAX_STRIPES}, not {0}")]
    Stripes(String),
    /// It cannot be striped.
    #[error("{0} cannot be striped: each thread or operation is on its own already")]
    Unstriped(String),
}

impl Locks {
    /// Ours and these.
    pub fn with(extra: impl IntoIterator<Item = Lock>) -> Self {
        Locks(ours().into_iter().chain(extra).collect())
    }

    /// All of them, ours first.
    pub fn all(&self) -> impl Iterator<Item = &Lock> + Clone {
        self.0.iter()
    }

    /// The lock of that name.
    pub fn find(&self, name: &str) -> Option<&Lock> {
        self.all().find(|lock| lock.name == name)
    }

    /// Reads a name: of a lock, of a striped one, or of none.
    ///
    /// # Errors
    ///
    /// If there is no such lock, or it cannot be striped so.
    pub fn parse(&self, name: &str) -> Result<LockSpec, NameError> {
        if name == NO_LOCK {
            return Ok(LockSpec::NO_LOCK);
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
        let lock = self.find(plain).ok_or_else(|| unknown(plain))?;
        if stripes > 1 && lock.only_counts {
            return Err(NameError::Unstriped(lock.name.clone()));
        }
        Ok(LockSpec { lock: Some(lock.clone()), stripes })
    }
}

/// A lock, or several that share its load.
#[derive(Clone, Debug, PartialEq)]
pub struct LockSpec {
    /// The lock; `None` where threads take none.
    pub lock: Option<Lock>,
    /// Number of locks that share the load.
    pub stripes: u32,
}

impl LockSpec {
    /// The absence of a lock.
    pub(crate) const NO_LOCK: LockSpec = LockSpec { lock: None, stripes: 1 };

    /// These stripes without their locks.
    pub(crate) fn without_lock(&self) -> LockSpec {
        LockSpec { lock: None, ..*self }
    }

    /// Makes a contender for each thread.
    pub(crate) fn contenders(
        &self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Contender>>, Unavailable> {
        let stripes = self.stripes as usize;
        match &self.lock {
            Some(lock) => (lock.make)(stripes, threads),
            None => Ok(contenders((0..stripes).map(|_| NoLock).collect(), threads)),
        }
    }

    /// Which waiting thread gets it.
    pub fn policy(&self) -> GrantPolicy {
        self.lock.as_ref().map_or(GrantPolicy::NeverWaits, |lock| lock.policy)
    }

    /// Returns `true` if readers share it.
    pub fn has_readers(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.has_readers)
    }

    /// Returns `true` if it only counts, and cannot be held.
    pub(crate) fn only_counts(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.only_counts)
    }
}

/// The absence of a lock: what one thread alone pays nothing for.
struct NoLock;

impl RawLock for NoLock {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        section()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};

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
    fn excludes(lock: &LockSpec, threads: u64) {
        const TIMES: u64 = 5_000;
        let Ok(contenders) = lock.contenders(threads as usize) else {
            println!("skipped: this machine does not let us have it");
            return;
        };
        let number = Fragile(UnsafeCell::new(0));
        let inside = AtomicU32::new(0);
        let (number_ref, inside) = (&number, &inside);
        std::thread::scope(|scope| {
            for mut contender in contenders {
                scope.spawn(move || {
                    for time in 0..TIMES {
                        contender.section(false, &mut || {
                            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two at once");
                            // SAFETY: see `Fragile`.
                            let before = unsafe { *number_ref.place() };
                            if time % 64 == 0 {
                                // Somebody else would have time to come in.
                                std::thread::yield_now();
                            }
                            // SAFETY: see `Fragile`.
                            unsafe { *number_ref.place() = before + 1 };
                            inside.fetch_sub(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(number.0.into_inner(), threads * TIMES);
    }

    #[test]
    fn every_lock_excludes() {
        // Another test counts the semaphore sets of this process.
        let _alone = threadtoll_machine::machine_lock().unwrap();
        for lock in Locks::default().all() {
            if lock.policy != GrantPolicy::NeverWaits {
                println!("{lock:?}");
                let threads = if lock.policy.spins() { 2 } else { 4 };
                excludes(&LockSpec { lock: Some(lock.clone()), stripes: 1 }, threads);
            }
        }
    }

    #[test]
    fn readers_share() {
        let locks = Locks::default();
        let with_readers = locks.all().filter(|lock| lock.has_readers);
        assert!(with_readers.clone().count() > 0);
        for lock in with_readers {
            let both = Barrier::new(2);
            let spec = LockSpec { lock: Some(lock.clone()), stripes: 1 };
            std::thread::scope(|scope| {
                for mut contender in spec.contenders(2).unwrap() {
                    // Each waits inside for the other: without sharing, neither would ever leave.
                    let both = &both;
                    scope.spawn(move || {
                        contender.section(true, &mut || {
                            both.wait();
                        })
                    });
                }
            });
        }
    }

    #[test]
    fn names_are_read() {
        let locks = Locks::default();
        for lock in locks.all() {
            let spec = LockSpec { lock: Some(lock.clone()), stripes: 1 };
            assert_eq!(locks.parse(&lock.name), Ok(spec));
            assert!(!lock.sentence.is_empty() && lock.sentence.len() < 100, "{lock:?}");
        }
        assert_eq!(locks.parse("striped/8:mcs").unwrap().stripes, 8);
        assert_eq!(locks.parse(NO_LOCK).unwrap().lock, None);
        for stripes in [
            "striped/0:spin",
            "striped/1:spin",
            "striped/1025:spin",
            "striped/-2:spin",
            "striped/+2:spin",
        ] {
            assert!(matches!(locks.parse(stripes), Err(NameError::Stripes(_))), "{stripes}");
        }
        for unknown in
            ["", "muttex", "striped/2", "striped/2:", "striped/2:striped/2:spin", "striped/2:none"]
        {
            assert!(matches!(locks.parse(unknown), Err(NameError::Unknown(_))), "{unknown}");
        }
        assert_eq!(
            locks.parse("striped/2:counter-atomic"),
            Err(NameError::Unstriped("counter-atomic".into()))
        );
    }
}
