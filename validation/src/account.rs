//! The account that a program keeps of its own locks; `native/account.h` describes it.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// An acquisition; the file of a thread is an array of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// When the lock was asked for; 0 if [`REACQUIRED`].
    pub asked: u64,
    /// When it was acquired; 0 while the thread waits.
    pub acquired: u64,
    /// Just before it was released; 0 while the thread holds it.
    pub released: u64,
    /// CPU time used in between, if the program records it.
    pub cpu: u64,
    /// Identity of the lock.
    pub lock: u32,
    /// [`EXCLUSIVE`], [`SHARED`] or [`REACQUIRED`].
    pub mode: u32,
}

/// Mode of an acquisition that excludes all others.
pub const EXCLUSIVE: u32 = 0;
/// Mode of an acquisition by a reader.
pub const SHARED: u32 = 1;
/// Mode of an acquisition that a condition variable made.
pub const REACQUIRED: u32 = 2;

/// Length of a thread's file, which is sparse.
pub const LOG_BYTES: usize = 64 << 20;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();
static RECORD_CPU: AtomicBool = AtomicBool::new(false);
static STOPPING: AtomicBool = AtomicBool::new(false);

/// True once threads are to finish.
pub fn stopping() -> bool {
    STOPPING.load(Ordering::Relaxed)
}

/// Time of a clock, in nanoseconds.
pub fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
pub fn now() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Identity of the calling thread.
pub fn thread_id() -> i32 {
    // SAFETY: the call has no precondition.
    unsafe { libc::gettid() }
}

struct Log {
    next: *mut Record,
    end: *mut Record,
}

thread_local! {
    static LOG: Cell<Option<Log>> = const { Cell::new(None) };
}

fn open_log(folder: &std::path::Path) -> Log {
    let path = folder.join(thread_id().to_string());
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .and_then(|file| file.set_len(LOG_BYTES as u64).map(|()| file))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses the address, so nothing is replaced.
    let log = unsafe {
        libc::mmap(ptr::null_mut(), LOG_BYTES, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(log, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    let next = log.cast::<Record>();
    Log { next, end: next.wrapping_add(LOG_BYTES / size_of::<Record>()) }
}

/// A record that is being written.
#[derive(Debug)]
pub struct Entry(*mut Record);

impl Entry {
    fn begin(lock: u32, mode: u32) -> Entry {
        let Some(folder) = FOLDER.get() else {
            return Entry(ptr::null_mut());
        };
        let mut log = LOG.take().unwrap_or_else(|| open_log(folder));
        let entry = Entry(log.next);
        log.next = log.next.wrapping_add(1);
        assert!(log.next <= log.end, "the account is full");
        LOG.set(Some(log));
        entry.write(|record| (record.lock, record.mode) = (lock, mode));
        entry
    }

    fn write(&self, change: impl FnOnce(&mut Record)) {
        // SAFETY: null, or a record in the mapping, which only this thread writes and which stays.
        if let Some(record) = unsafe { self.0.as_mut() } {
            change(record);
        }
    }

    /// Begins a record before the lock is asked for.
    pub fn ask(lock: u32, mode: u32) -> Entry {
        let entry = Entry::begin(lock, mode);
        entry.write(|record| record.asked = now());
        entry
    }

    /// Begins a record after a wait on a condition variable has returned.
    pub fn reacquired(lock: u32) -> Entry {
        let entry = Entry::begin(lock, REACQUIRED);
        entry.got();
        entry
    }

    /// The lock has been acquired. Returns the time.
    pub fn got(&self) -> u64 {
        if RECORD_CPU.load(Ordering::Relaxed) {
            let cpu = clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
            self.write(|record| record.cpu = cpu.wrapping_neg());
        }
        let at = now();
        self.write(|record| record.acquired = at);
        at
    }

    /// The lock is about to be released. Returns the time.
    pub fn leave(&self) -> u64 {
        if RECORD_CPU.load(Ordering::Relaxed) {
            let cpu = clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
            self.write(|record| record.cpu = record.cpu.wrapping_add(cpu));
        }
        let at = now();
        self.write(|record| record.released = at);
        at
    }
}

/// A second count, kept under the lock: the time that nobody holds it.
#[derive(Debug, Default)]
pub struct Gaps {
    first: u64,
    last: u64,
    free: u64,
}

impl Gaps {
    /// No time yet.
    pub const fn new() -> Gaps {
        Gaps { first: 0, last: 0, free: 0 }
    }

    /// The lock was acquired.
    pub fn close(&mut self, acquired: u64) {
        if self.last == 0 {
            self.first = acquired;
        } else {
            self.free += acquired - self.last;
        }
    }

    /// The lock is released.
    pub fn open(&mut self, released: u64) {
        self.last = released;
    }

    /// Prints the line `free`.
    pub fn print(&self, lock: u32) {
        println!("free {lock} {} {} {}", self.first, self.last, self.free);
    }
}

/// Call before any thread starts. Without a folder no account is kept.
pub fn start(folder: Option<PathBuf>, record_cpu: bool) {
    if let Some(folder) = folder {
        FOLDER.set(folder).expect("an account is started once");
    }
    RECORD_CPU.store(record_cpu, Ordering::Relaxed);
    let set = sigterm();
    // SAFETY: `set` is initialised, and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut()) };
    // SAFETY: the option takes a signal.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
}

fn sigterm() -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: `set` is writable.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised by the line above.
    let mut set = unsafe { set.assume_init() };
    // SAFETY: `set` is initialised.
    unsafe { libc::sigaddset(&mut set, libc::SIGTERM) };
    set
}

/// Prints `ready`, waits for SIGTERM, and tells all threads to finish.
pub fn run_until_told() {
    println!("ready");
    let set = sigterm();
    let mut signal = 0;
    // SAFETY: `set` is initialised and `signal` writable.
    unsafe { libc::sigwait(&set, &mut signal) };
    STOPPING.store(true, Ordering::Relaxed);
}
