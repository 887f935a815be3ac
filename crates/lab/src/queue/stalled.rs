//! A sender that is stalled in the middle of a send call, again and again, as by a scheduler that
//! takes its CPU.
//!
//! ```text
//!   sleeps ─▶ sends back to back ─ ─ ─ ─ signal ▶ sleeps in its handler ─▶ goes on, no more sends
//!                └── a timer: some µs ───┘        └────── a stall ──────┘
//! ```
//!
//! A timer signal interrupts the sends at a random instruction, where a tick of the scheduler
//! could, and the handler sleeps. So any queue can be stalled, in each place of its calls as often
//! as that takes time. An instruction that takes long is interrupted more often than others, and
//! the signal then comes after it: that of a scheduler too.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_machine::clock::Clock;

use crate::crew::{Log, Part, Shift};
use crate::error::Unavailable;

use super::Source;
use super::paced::{AHEAD_NS, END};
use super::stream::with;

/// Least and most time from arming the timer to the signal: long enough for the sends to begin.
const TIMER_NS: [u64; 2] = [4_000, 16_000];
/// Most messages before a stall, in case the timer is late.
pub(super) const MOST_SENT: usize = 4096;

/// The sender, with a log of its stalls: when each began and ended, and the number of all messages.
pub(super) struct Stalled<S> {
    source: Option<S>,
    first: u64,
    length_ns: u64,
    timer: Option<Timer>,
    block_ns: f64,
    rng: Xoshiro256PlusPlus,
    began: Vec<u64>,
    ended: Vec<u64>,
}

impl<S> Stalled<S> {
    /// A sender whose first message has this number.
    pub(super) fn new(source: S, first: u64, length_ns: u64) -> Self {
        Stalled {
            source: Some(source),
            first,
            length_ns,
            timer: None,
            block_ns: 0.0,
            rng: Xoshiro256PlusPlus::seed_from_u64(0),
            began: Vec::new(),
            ended: Vec::new(),
        }
    }
}

/// Most stalls of a block: the time between two is half a stall at least.
pub(super) fn most_stalls(block_ns: f64, length_ns: u64) -> usize {
    (block_ns / (1.5 * length_ns as f64)) as usize + 2
}

impl<S: Source> Part for Stalled<S> {
    fn enter(&mut self) {
        with(&mut self.source, Source::enter);
        // `check` has just created one. Without, there are no stalls.
        self.timer = Timer::new().ok();
    }

    fn prepare(&mut self, shift: Shift, clock: &Clock) {
        let most = most_stalls(shift.length_ns, self.length_ns);
        (self.began, self.ended) = (Vec::with_capacity(most), Vec::with_capacity(most));
        self.block_ns = shift.length_ns;
        self.rng = Xoshiro256PlusPlus::seed_from_u64(shift.seed);
        STALL.with(|stall| {
            stall.clock.set(Some(*clock));
            stall.length_ns.store(self.length_ns, Ordering::Relaxed);
        });
    }

    fn work(&mut self, clock: &Clock) -> Log {
        let Stalled { source, first, length_ns, timer, block_ns, rng, began, ended } = self;
        let until = clock.stamp() + clock.ticks(AHEAD_NS + *block_ns);
        let mut number = *first;
        with(source, |source| {
            while let Some(timer) = timer
                && began.len() < began.capacity()
            {
                let pause_ns = rng.random_range(*length_ns / 2..*length_ns * 3 / 2);
                std::thread::sleep(Duration::from_nanos(pause_ns));
                if clock.stamp() >= until {
                    break;
                }
                let stalled = STALL.with(|stall| {
                    stall.arm();
                    if !timer.start(rng.random_range(TIMER_NS[0]..TIMER_NS[1])) {
                        return stall.disarm();
                    }
                    for _ in 0..MOST_SENT {
                        source.send(number);
                        number += 1;
                        if stall.is_over() {
                            break;
                        }
                    }
                    stall.disarm()
                });
                if let Some([from, to]) = stalled {
                    began.push(from);
                    ended.push(to);
                }
            }
            source.send(END);
        });
        Log {
            times: vec![std::mem::take(began), std::mem::take(ended)],
            numbers: vec![number - *first],
            wrong: 0,
        }
    }
}

/// State that a thread and its signal handler share. Atomics, because one interrupts the other;
/// relaxed, because both are one thread.
struct Stall {
    armed: AtomicBool,
    length_ns: AtomicU64,
    began: AtomicU64,
    ended: AtomicU64,
    clock: Cell<Option<Clock>>,
}

thread_local! {
    /// Without a destructor or an initialisation at run time, so that a handler may use it.
    static STALL: Stall = const {
        Stall {
            armed: AtomicBool::new(false),
            length_ns: AtomicU64::new(0),
            began: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            clock: Cell::new(None),
        }
    };
}

impl Stall {
    fn arm(&self) {
        self.ended.store(0, Ordering::Relaxed);
        self.armed.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed) != 0
    }

    /// Begin and end of the stall, if there was one. A later signal stalls nothing.
    fn disarm(&self) -> Option<[u64; 2]> {
        self.armed.store(false, Ordering::Relaxed);
        let ended = self.ended.load(Ordering::Relaxed);
        (ended != 0).then(|| [self.began.load(Ordering::Relaxed), ended])
    }
}

/// Sleeps if the interrupted thread has asked for it. Uses what POSIX allows in a handler or what
/// is only a system call: stamps, relaxed atomics, and a sleep that leaves `errno` alone.
extern "C" fn on_signal(_: libc::c_int) {
    STALL.with(|stall| {
        let Some(clock) = stall.clock.get() else { return };
        if !stall.armed.swap(false, Ordering::Relaxed) {
            return;
        }
        stall.began.store(clock.stamp(), Ordering::Relaxed);
        let length_ns = stall.length_ns.load(Ordering::Relaxed);
        let mut left = libc::timespec {
            tv_sec: (length_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (length_ns % 1_000_000_000) as _,
        };
        let rest = &raw mut left;
        loop {
            // SAFETY: both pointers are to one valid `timespec`, which the call reads before it
            // writes the rest to it.
            let failed = unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, rest, rest) };
            if failed != libc::EINTR {
                break;
            }
        }
        stall.ended.store(clock.stamp(), Ordering::Relaxed);
    });
}

/// A signal of this program alone, far from those that libraries choose first.
fn signal() -> libc::c_int {
    libc::SIGRTMAX() - 4
}

/// A timer that sends a signal to the thread that created it.
struct Timer(libc::timer_t);

// SAFETY: a timer is a number of the process, which any thread may start or delete.
unsafe impl Send for Timer {}

/// Checks that a thread can be stalled here.
///
/// # Errors
///
/// If the kernel refuses the signal or the timer.
pub(super) fn check() -> Result<(), Unavailable> {
    Timer::new().map(drop)
}

impl Timer {
    fn new() -> Result<Self, Unavailable> {
        static HANDLED: OnceLock<Option<i32>> = OnceLock::new();
        let handled =
            HANDLED.get_or_init(|| handle().err().map(|error| error.raw_os_error().unwrap_or(0)));
        if let Some(error) = *handled {
            return Err(Unavailable::new("sigaction", io::Error::from_raw_os_error(error)));
        }
        // SAFETY: all zeroes is a valid `sigevent`.
        let mut event = unsafe { MaybeUninit::<libc::sigevent>::zeroed().assume_init() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal();
        // SAFETY: it has no preconditions.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = MaybeUninit::<libc::timer_t>::uninit();
        // SAFETY: both pointers are valid for the call, which initialises the timer if it succeeds.
        let made = unsafe {
            libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr())
        };
        if made != 0 {
            return Err(Unavailable::last("timer_create"));
        }
        // SAFETY: the call has initialised it.
        Ok(Timer(unsafe { timer.assume_init() }))
    }

    /// Sends the signal once, after this time. Returns `false` if the kernel refuses.
    fn start(&self, after_ns: u64) -> bool {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::itimerspec {
            it_interval: zero,
            it_value: libc::timespec { tv_nsec: after_ns as _, ..zero },
        };
        // SAFETY: the timer exists until it is dropped, and the value is valid for the call.
        unsafe { libc::timer_settime(self.0, 0, &value, ptr::null_mut()) == 0 }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer exists, and nothing uses it any more.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Installs the handler, which restarts the system calls that it interrupts.
fn handle() -> io::Result<()> {
    // SAFETY: all zeroes is a valid `sigaction` with an empty mask.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    let handler: extern "C" fn(libc::c_int) = on_signal;
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the action is valid, its handler is async-signal-safe, and the old one is not asked
    // for.
    match unsafe { libc::sigaction(signal(), &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use super::*;

    /// A queue that is nothing but a lock.
    #[derive(Clone, Default)]
    struct Locked(Arc<Mutex<Vec<u64>>>);

    impl Source for Locked {
        fn send(&mut self, message: u64) {
            self.0.lock().unwrap().push(message);
        }
    }

    /// On the real machine: stalls happen within the block, last as long as asked for, and hold a
    /// lock that others wait for.
    #[test]
    fn a_sender_is_stalled_while_it_holds_what_others_wait_for() {
        let (clock, _) = Clock::gate().unwrap();
        let queue = Locked::default();
        let mut sender = Stalled::new(queue.clone(), 1, 2_000_000);
        let shift = Shift { length_ns: 100e6, seed: 3 };
        let stalling = std::thread::spawn(move || {
            sender.enter();
            sender.prepare(shift, &clock);
            sender.work(&clock)
        });
        let mut longest = Duration::ZERO;
        while !stalling.is_finished() {
            let before = Instant::now();
            drop(queue.0.lock().unwrap());
            longest = longest.max(before.elapsed());
            std::thread::sleep(Duration::from_micros(100));
        }
        let log = stalling.join().unwrap();
        let messages = queue.0.lock().unwrap().clone();
        let (end, sent) = messages.split_last().unwrap();
        assert_eq!((*end, sent.len() as u64), (END, log.numbers[0]));
        assert!(sent.iter().copied().eq(1..=sent.len() as u64));
        let [began, ended] = log.times.as_slice() else { panic!("{log:?}") };
        assert!(!began.is_empty() && began.len() == ended.len());
        let lengths = began.iter().zip(ended).map(|(from, to)| clock.ns(to - from));
        assert!(lengths.clone().all(|ns| ns >= 1.99e6), "{:?}", lengths.collect::<Vec<_>>());
        assert!(longest >= Duration::from_millis(1), "{longest:?} of {} stalls", began.len());
    }
}
