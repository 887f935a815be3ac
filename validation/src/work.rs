//! Work of threads, inside a lock and outside; as `native/work.h`.

use crate::account::now;
use crate::options::fail;
use std::cell::RefCell;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::time::Duration;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A fixed number of instructions.
    Compute,
    /// `thread::sleep`.
    Sleep,
    /// Writes that wait for the disk.
    Fsync,
    /// A `read` that has to wait.
    Read,
}

impl Work {
    /// The kind of this name.
    pub fn named(name: &str) -> Work {
        match name {
            "compute" => Work::Compute,
            "sleep" => Work::Sleep,
            "fsync" => Work::Fsync,
            "read" => Work::Read,
            _ => fail(&format!("no such work: {name}")),
        }
    }

    /// System call in which a thread sleeps that does it.
    pub fn call(self) -> &'static str {
        match self {
            Work::Compute => "-",
            Work::Sleep => "clock_nanosleep",
            Work::Fsync => "fsync",
            Work::Read => "read",
        }
    }

    /// Works for so many nanoseconds.
    pub fn run(self, ns: f64) {
        match self {
            Work::Compute => compute_for(ns),
            Work::Sleep => sleep_for(ns),
            Work::Fsync => write_for(ns),
            Work::Read => read_for(ns),
        }
    }
}

static STEPS_PER_NS: OnceLock<f64> = OnceLock::new();

/// A fixed number of steps, each of which needs the result of the one before.
pub fn compute_steps(steps: u64) {
    let mut value = black_box(1u64);
    for _ in 0..steps {
        value = value.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // SAFETY: no instruction; it only keeps the compiler from joining several steps.
        unsafe { std::arch::asm!("/* {0} */", inout(reg) value, options(nomem, nostack)) };
    }
    black_box(value);
}

/// Measures how fast this machine computes: the best of many tries, because a try that another
/// thread interrupted took longer.
pub fn calibrate() {
    let rates = (0..50).map(|_| {
        let started = now();
        compute_steps(200_000);
        200_000.0 / (now() - started) as f64
    });
    STEPS_PER_NS.set(rates.fold(0.0, f64::max)).expect("calibrated once");
}

/// A fixed amount of work: it takes longer if the thread has to wait for a CPU.
#[inline(never)]
pub fn compute_for(ns: f64) {
    let rate = STEPS_PER_NS.get().expect("calibrated at start");
    compute_steps((ns * rate) as u64);
}

/// Sleeps.
#[inline(never)]
pub fn sleep_for(ns: f64) {
    std::thread::sleep(Duration::from_nanos(ns as u64));
}

/// Writes and waits for the disk until the time is over.
#[inline(never)]
fn write_for(ns: f64) {
    thread_local! {
        static FILE: RefCell<Option<File>> = const { RefCell::new(None) };
    }
    let started = now();
    FILE.with_borrow_mut(|file| {
        let file = file.get_or_insert_with(|| {
            let path = format!("/var/tmp/threadtoll-{}", crate::account::thread_id());
            let file = File::create(&path).expect("/var/tmp can be written to");
            std::fs::remove_file(&path).expect("the file was just created");
            file
        });
        loop {
            file.write_all_at(&[1; 4096], 0).expect("the disk has space");
            file.sync_all().expect("the disk works");
            if (now() - started) as f64 >= ns {
                break;
            }
        }
    });
}

/// Reads from a descriptor that has something to read when the time is over.
#[inline(never)]
fn read_for(ns: f64) {
    thread_local! {
        static TIMER: RefCell<Option<(RawFd, File)>> = const { RefCell::new(None) };
    }
    TIMER.with_borrow_mut(|timer| {
        let (descriptor, file) = timer.get_or_insert_with(|| {
            // SAFETY: the call has no precondition.
            let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
            assert!(timer >= 0, "timerfd_create: {}", std::io::Error::last_os_error());
            // SAFETY: the descriptor is ours alone.
            (timer, unsafe { File::from_raw_fd(timer) })
        });
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value =
            libc::timespec { tv_sec: (ns / 1e9) as i64, tv_nsec: (ns as i64 % 1_000_000_000) | 1 };
        let time = libc::itimerspec { it_interval: zero, it_value: value };
        // SAFETY: `time` is valid, and the old setting is not asked for.
        unsafe { libc::timerfd_settime(*descriptor, 0, &time, std::ptr::null_mut()) };
        file.read_exact(&mut [0; 8]).expect("the timer expires");
    });
}
