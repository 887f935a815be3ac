//! Locks, one family per file.
//!
//! A lock is a [`RawLock`]: it runs a section of code under mutual exclusion. The scenarios in
//! [`contention`](crate::contention) decide what threads do with it. The rows `counter-*` are
//! counters instead of locks: they show the cost of counting, for sections that do nothing else.

pub(crate) mod contender;

use std::sync::Arc;

use threadtoll_record::{Build, NO_LOCK};

use crate::error::Unavailable;
use crate::program_file::ProgramFile;
use crate::rows::{Rows, row};
use crate::wrap::{Unwrapped, Wrap};
use contender::{Contender, contenders};

pub use crate::contention::policy::GrantPolicy;
pub use crate::raw_lock::RawLock;

macro_rules! locks {
    ($($file:ident),+ $(,)?) => {
        $(mod $file;)+

        pub(crate) fn wrapped<W: Wrap>() -> Vec<Lock> {
            let mut all = Vec::new();
            $(all.extend($file::locks::<W>());)+
            all
        }
    };
}

// The order in which locks are listed.
locks! {
    std_mutex,
    std_rwlock,
    parking_lot,
    threadtoll,
    pthread,
    spin,
    ticket,
    mcs,
    kernel_eventfd,
    owned,
    counter,
}

/// Maximum number of locks in a striped set.
pub const MAX_STRIPES: u32 = 1024;
/// Maximum number of threads that share a lock.
pub const MAX_THREADS: u32 = 1024;

/// Arguments: number of stripes, number of threads. Returns a contender for each thread.
type MakeContenders =
    dyn Fn(usize, usize) -> Result<Vec<Box<dyn Contender>>, Unavailable> + Send + Sync;

/// A lock, as registered.
#[derive(Clone)]
pub struct Lock {
    /// Name of the lock on the command line and in files.
    pub name: String,
    /// One-sentence description.
    pub sentence: String,
    /// Order in which waiting threads get the lock.
    pub policy: GrantPolicy,
    /// True if several readers can hold the lock at the same time.
    pub has_readers: bool,
    /// True for a counter, which cannot be held.
    pub only_counts: bool,
    /// True if the lock itself refuses threads while too many wait.
    pub has_own_bound: bool,
    /// True if the lock itself tells how many threads wait for it.
    pub counts_waiters: bool,
    /// Build of the lock, if it was not built with this program.
    pub built: Option<Build>,
    make: Arc<MakeContenders>,
    /// Program in another language that measures the lock, instead of our threads.
    elsewhere: Option<ProgramFile>,
}

row!(Lock, wrapped::<Unwrapped>());

/// All known locks.
pub type Locks = Rows<Lock>;

impl Lock {
    /// Creates a lock. `make` creates the given number of instances and touches all their memory,
    /// on the calling thread.
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
            has_own_bound: false,
            counts_waiters: false,
            built: None,
            make: Arc::new(move |stripes, threads| Ok(contenders(make(stripes)?, threads))),
            elsewhere: None,
        }
    }

    /// The policy of a lock in another program is unknown, so the policy that promises least is
    /// assumed.
    pub(crate) fn elsewhere(name: &str, sentence: &str, file: ProgramFile, built: Build) -> Self {
        let never = |_: usize| -> Result<Vec<NoLock>, Unavailable> {
            let error = std::io::Error::other("it runs in a process of its own");
            Err(Unavailable::new("its program", error))
        };
        let lock = Lock::new(name, GrantPolicy::Barging, sentence, never);
        Lock { elsewhere: Some(file), built: Some(built), ..lock }
    }

    /// Returns `true` if a program measures the lock in its own process.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    fn ours<W: Wrap, L: RawLock>(
        name: &str,
        policy: GrantPolicy,
        sentence: &str,
        make: impl Fn(usize) -> Result<Vec<L>, Unavailable> + Send + Sync + 'static,
    ) -> Self {
        let make = move |stripes| Ok(make(stripes)?.into_iter().map(W::lock).collect());
        Lock::new(name, policy, sentence, make)
    }

    /// Marks the lock as one that several readers can hold at the same time.
    pub fn with_readers(self) -> Self {
        Lock { has_readers: true, ..self }
    }

    /// Marks the lock as a counter, which cannot be held.
    pub fn that_only_counts(self) -> Self {
        Lock { only_counts: true, ..self }
    }

    /// Marks the lock as one that implements [`RawLock::hold_bounded`].
    pub fn with_own_bound(self) -> Self {
        Lock { has_own_bound: true, ..self }
    }

    /// Marks the lock as one that implements [`RawLock::queue_len`].
    pub fn that_counts_its_waiters(self) -> Self {
        Lock { counts_waiters: true, ..self }
    }
}

fn each<L>(make: impl Fn() -> L) -> impl Fn(usize) -> Result<Vec<L>, Unavailable> {
    move |count| Ok((0..count).map(|_| make()).collect())
}

/// Syntax of the name of a striped lock.
pub const STRIPED: &str = "striped/K:LOCK";
/// One-sentence description of a striped lock.
pub const STRIPED_SENTENCE: &str = "K locks of this kind share the load, and each acquisition takes one at random; for example striped/8:std-mutex";

/// Error in the name of a lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Unknown lock.
    #[error("no lock is called “{0}”")]
    Unknown(String),
    /// The number of stripes is out of range.
    #[error("a lock can be striped into 2 to {MAX_STRIPES}, not {0}")]
    Stripes(String),
    /// The lock cannot be striped.
    #[error("{0} cannot be striped: it is a counter, or a program of its own measures it")]
    Unstriped(String),
}

impl Locks {
    /// Parses the name of a lock, plain or striped, or [`NO_LOCK`].
    ///
    /// # Errors
    ///
    /// If there is no such lock, or the lock cannot be striped as requested.
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
        if stripes > 1 && (lock.only_counts || lock.is_elsewhere()) {
            return Err(NameError::Unstriped(lock.name.clone()));
        }
        Ok(LockSpec { lock: Some(lock.clone()), stripes })
    }
}

/// A lock, or several instances of the lock (stripes) that share the load.
#[derive(Clone, Debug, PartialEq)]
pub struct LockSpec {
    /// The lock; `None` to run without one.
    pub lock: Option<Lock>,
    /// Number of stripes.
    pub stripes: u32,
}

impl LockSpec {
    pub(crate) const NO_LOCK: LockSpec = LockSpec { lock: None, stripes: 1 };

    pub(crate) fn without_lock(&self) -> LockSpec {
        LockSpec { lock: None, ..*self }
    }

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

    /// Order in which waiting threads get the lock.
    pub fn policy(&self) -> GrantPolicy {
        self.lock.as_ref().map_or(GrantPolicy::NeverWaits, |lock| lock.policy)
    }

    pub(crate) fn elsewhere(&self) -> Option<&ProgramFile> {
        self.lock.as_ref()?.elsewhere.as_ref()
    }

    pub(crate) fn built(&self) -> Option<&Build> {
        self.lock.as_ref()?.built.as_ref()
    }

    /// Returns `true` if several readers can hold the lock at the same time.
    pub fn has_readers(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.has_readers)
    }

    pub(crate) fn only_counts(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.only_counts)
    }

    pub(crate) fn has_own_bound(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.has_own_bound)
    }

    pub(crate) fn counts_waiters(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.counts_waiters)
    }
}

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

    struct Fragile(UnsafeCell<u64>);
    // SAFETY: accessed only in sections that the lock under test is supposed to exclude from each
    // other.
    unsafe impl Sync for Fragile {}

    impl Fragile {
        fn place(&self) -> *mut u64 {
            self.0.get()
        }
    }

    fn excludes(lock: &LockSpec, threads: u64) {
        const TIMES: u64 = 2_000;
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
                                // Gives another thread time to enter.
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
        for lock in Locks::default().all() {
            if lock.policy != GrantPolicy::NeverWaits {
                println!("{lock:?}");
                // With more threads than CPUs, spinning waiters would waste whole time slices.
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
                    // Each thread waits inside its section for the other thread: unless readers
                    // share the lock, the test hangs.
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
