//! The cost of sleeping on this machine, whether waits at this queue are shorter than that, and
//! whether both ends share their only CPU.
//!
//! All of it is statistics that steer how long to spin; nothing is ordered by it, so it uses plain
//! atomics and no model checker looks at it.

#![allow(clippy::disallowed_types)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant as Clock};

use super::pause::calibrate_pause;
use crate::sync::{self, Instant};

/// Assumed until something was learned: what a wake-up takes on many machines.
const FIRST_GUESS_NS: u32 = 10_000;
/// Sleeping is never taken to cost more: what takes longer waited for a CPU, and to spin meanwhile
/// would make others wait for theirs.
const MAX_NS: u32 = 20_000;
const MIN_NS: u32 = 1_000;

/// Cost of sleeping, over all queues of the process: the tenth percentile of the samples, so that a
/// busy machine, on which woken threads wait for a CPU, does not inflate it.
static SLEEP_COSTS_NS: AtomicU32 = AtomicU32::new(FIRST_GUESS_NS);

fn learn(sample_ns: u64) {
    // Two threads that learn at once lose a sample between them.
    SLEEP_COSTS_NS.store(learned(SLEEP_COSTS_NS.load(Relaxed), sample_ns), Relaxed);
}

/// A tenth of the samples below is balanced by nine tenths above.
fn learned(old_ns: u32, sample_ns: u64) -> u32 {
    let step = old_ns / 64 + 1;
    let new = if sample_ns < old_ns.into() { old_ns - step } else { old_ns + step / 9 + 1 };
    new.clamp(MIN_NS, MAX_NS)
}

fn now_ns() -> u64 {
    static START: OnceLock<Clock> = OnceLock::new();
    START.get_or_init(Clock::now).elapsed().as_nanos() as u64 + 1
}

/// What the two sides of a queue tell each other about their waits.
#[derive(Debug)]
pub(crate) struct WaitStats {
    /// When a sleeper was last woken; 0 once that has been read.
    woken_at_ns: AtomicU64,
    /// For each side which of its last eight waits were shorter than sleeping costs, a bit each.
    short_waits: [AtomicU8; 2],
    /// For each side the only CPU on which it may run, plus 1; 0 if there are several, or nobody
    /// knows.
    only_cpu_of: [AtomicU32; 2],
    /// How often each side has looked after its CPUs.
    affinity_checks: [AtomicU32; 2],
    /// Whether anybody here makes use of what is learned.
    learns: bool,
}

/// A wait that sleeps, as far as it is worth learning from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleep {
    began_ns: u64,
    fell_asleep_ns: u64,
}

impl WaitStats {
    /// For ends that wait like this.
    pub(crate) fn new<W: super::Wait>() -> Self {
        calibrate_pause();
        WaitStats {
            woken_at_ns: AtomicU64::new(0),
            // A queue is not known to be slow before it was.
            short_waits: [AtomicU8::new(u8::MAX), AtomicU8::new(u8::MAX)],
            only_cpu_of: [AtomicU32::new(0), AtomicU32::new(0)],
            affinity_checks: [AtomicU32::new(0), AtomicU32::new(0)],
            learns: W::LEARNS,
        }
    }

    /// Whether both sides are known to be bound to the same single CPU.
    #[inline(always)]
    pub(super) fn on_one_cpu(&self) -> bool {
        let only = self.only_cpu_of[0].load(Relaxed);
        only != 0 && only == self.only_cpu_of[1].load(Relaxed)
    }

    /// Until when this side should spin: for as long as sleeping costs, if most of its last waits
    /// were over by then. Otherwise `None`.
    pub(super) fn spin_deadline(&self, side: usize) -> Option<Instant> {
        if self.refresh_affinity(side) || !self.spinning_pays(side) {
            return None;
        }
        Instant::now().checked_add(Duration::from_nanos(SLEEP_COSTS_NS.load(Relaxed).into()))
    }

    fn spinning_pays(&self, side: usize) -> bool {
        self.short_waits[side].load(Relaxed).count_ones() > 4
    }

    /// A wait of this side was, or would have been, over before sleeping paid.
    pub(super) fn record_wait(&self, side: usize, short: bool) {
        // Only this side stores it. If several threads are on it, a wait may be lost.
        let last = self.short_waits[side].load(Relaxed);
        self.short_waits[side].store(last << 1 | u8::from(short), Relaxed);
    }

    /// This side is about to wait for long: it checks its CPU affinity now and then, since that may
    /// change at any time.
    pub(super) fn refresh_affinity(&self, side: usize) -> bool {
        if self.learns && self.affinity_checks[side].fetch_add(1, Relaxed).is_multiple_of(64) {
            self.only_cpu_of[side].store(only_cpu(), Relaxed);
        }
        self.on_one_cpu()
    }

    /// The other side is being woken by this one.
    pub(super) fn record_wake(&self, side: usize) {
        if self.learns {
            self.refresh_affinity(side);
            self.woken_at_ns.store(now_ns(), Relaxed);
        }
    }

    /// This side goes to sleep.
    pub(super) fn begin_sleep(&self) -> Option<Sleep> {
        self.learns.then(|| Sleep { began_ns: now_ns(), fell_asleep_ns: 0 })
    }

    /// It found what it waits for on the way there.
    pub(super) fn cancel_sleep(&self, side: usize) {
        if self.learns {
            self.record_wait(side, true);
        }
    }

    /// It has done what there is to do before.
    pub(super) fn fell_asleep(&self, sleep: Option<Sleep>) -> Option<Sleep> {
        sleep.map(|sleep| Sleep { fell_asleep_ns: now_ns(), ..sleep })
    }

    /// This side has been woken, or is awake because its time is over.
    pub(super) fn end_sleep(&self, side: usize, sleep: Option<Sleep>) {
        let Some(Sleep { began_ns, fell_asleep_ns }) = sleep else { return };
        let woken_at = self.woken_at_ns.swap(0, Relaxed);
        let costs = u64::from(SLEEP_COSTS_NS.load(Relaxed));
        self.record_wait(side, woken_at != 0 && woken_at.saturating_sub(began_ns) < costs);
        if woken_at != 0 && woken_at >= fell_asleep_ns {
            // Woken out of a sleep, and not on the way there.
            learn(now_ns().saturating_sub(woken_at) + (fell_asleep_ns - began_ns));
        }
    }
}

fn only_cpu() -> u32 {
    sync::only_cpu().map_or(0, |cpu| cpu.saturating_add(1))
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests {
    use super::super::{Adaptive, Park};
    use super::*;

    #[test]
    fn a_busy_machine_does_not_make_sleep_seem_dear() {
        let mut costs = FIRST_GUESS_NS;
        // Every fifth wake-up is as fast as ever, the others wait for a CPU.
        for round in 0..10_000u32 {
            costs = learned(costs, if round.is_multiple_of(5) { 6_000 } else { 5_000_000 });
        }
        assert!((5_500..7_000).contains(&costs), "{costs}");
        for _ in 0..100_000 {
            costs = learned(costs, 5_000_000);
        }
        assert_eq!(costs, MAX_NS);
    }

    #[test]
    fn a_queue_at_which_waits_are_long_is_not_spun_at() {
        let stats = WaitStats::new::<Adaptive>();
        assert!(stats.spinning_pays(0), "nothing is known of it");
        (0..4).for_each(|_| stats.record_wait(0, false));
        assert!(!stats.spinning_pays(0));
        assert!(stats.spin_deadline(0).is_none());
        assert!(stats.spinning_pays(1), "the other side has waited for nothing");
        // Evenly spaced messages that come too late for spinning never bring it back.
        (0..100).for_each(|_| stats.end_sleep(0, stats.fell_asleep(stats.begin_sleep())));
        assert!(!stats.spinning_pays(0));
        // Five in eight that come soon do, though this side sleeps. How soon is not left to a
        // clock: this thread may lose its CPU in between.
        let at_once = Sleep { began_ns: u64::MAX, fell_asleep_ns: u64::MAX };
        for _ in 0..5 {
            assert!(!stats.spinning_pays(0));
            stats.record_wake(1);
            stats.end_sleep(0, Some(at_once));
        }
        assert!(stats.spinning_pays(0));
    }

    #[test]
    fn who_does_not_learn_reads_no_clock() {
        assert!(WaitStats::new::<Park>().begin_sleep().is_none());
    }
}
