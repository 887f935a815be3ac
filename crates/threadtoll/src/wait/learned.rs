//! What sleeping and waking costs on this machine, and whether both ends share their only CPU.
//!
//! All of it is statistics that steer how long to spin; nothing is ordered by it, so it uses plain atomics and no model
//! checker looks at it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant as Clock};

use crate::sync::{self, Instant};

/// Assumed until something was learned: what a wake-up takes on many machines.
const FIRST_GUESS_NS: u32 = 10_000;
/// A wake-up that seems to take longer than this waited for a CPU, not for the wake-up.
const LONGEST_NS: u64 = 100_000;
const SHORTEST_NS: u64 = 1_000;

/// A running mean over all queues of the process.
static SLEEP_COSTS_NS: AtomicU32 = AtomicU32::new(FIRST_GUESS_NS);

/// What going to sleep and being woken costs, as far as is known.
pub(super) fn sleep_costs() -> Duration {
    Duration::from_nanos(SLEEP_COSTS_NS.load(Relaxed).into())
}

fn learn(ns: u64) {
    let sample = ns.clamp(SHORTEST_NS, LONGEST_NS) as i64;
    let old = i64::from(SLEEP_COSTS_NS.load(Relaxed));
    // Two threads that learn at once lose a sample between them.
    SLEEP_COSTS_NS.store((old + (sample - old) / 8) as u32, Relaxed);
}

fn now_ns() -> u64 {
    static START: OnceLock<Clock> = OnceLock::new();
    START.get_or_init(Clock::now).elapsed().as_nanos() as u64 + 1
}

/// What the two sides of a queue tell each other about their waits.
#[derive(Debug)]
pub(crate) struct Meeting {
    /// When a sleeper was last woken; 0 once that has been read.
    woken_at_ns: AtomicU64,
    /// For each side the only CPU on which it may run, plus 1; 0 if there are several, or nobody knows.
    only: [AtomicU32; 2],
    /// How often each side has looked after its CPUs.
    arrivals: [AtomicU32; 2],
    /// Whether anybody here makes use of what is learned.
    learns: bool,
}

impl Meeting {
    /// For ends that wait like this.
    pub(crate) fn new<W: super::Wait>() -> Self {
        Meeting {
            woken_at_ns: AtomicU64::new(0),
            only: [AtomicU32::new(0), AtomicU32::new(0)],
            arrivals: [AtomicU32::new(0), AtomicU32::new(0)],
            learns: W::LEARNS,
        }
    }

    /// Whether both sides are known to be bound to the same single CPU.
    #[inline(always)]
    pub(super) fn on_one_cpu(&self) -> bool {
        let only = self.only[0].load(Relaxed);
        only != 0 && only == self.only[1].load(Relaxed)
    }

    /// The time, if it is of use.
    pub(super) fn now(&self) -> Option<Instant> {
        self.learns.then(Instant::now)
    }

    /// This side is about to wait for long: it looks after its own CPUs now and then, since they may be changed at any time.
    pub(super) fn arrive(&self, side: usize) -> bool {
        if self.learns && self.arrivals[side].fetch_add(1, Relaxed).is_multiple_of(64) {
            self.only[side].store(only_cpu(), Relaxed);
        }
        self.on_one_cpu()
    }

    /// The other side is being woken by this one.
    pub(super) fn waking(&self, side: usize) {
        if self.learns {
            self.arrive(side);
            self.woken_at_ns.store(now_ns(), Relaxed);
        }
    }

    /// This side has been woken, having spent so long on going to sleep.
    pub(super) fn woken(&self, falling_asleep: Option<Duration>) {
        let Some(falling_asleep) = falling_asleep else {
            return;
        };
        let at = self.woken_at_ns.swap(0, Relaxed);
        if at != 0 {
            learn(now_ns().saturating_sub(at) + falling_asleep.as_nanos() as u64);
        }
    }
}

fn only_cpu() -> u32 {
    sync::only_cpu().map_or(0, |cpu| cpu.saturating_add(1))
}
