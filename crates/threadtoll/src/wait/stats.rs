//! Statistics that determine how long to spin: the cost of sleeping on this machine; which of the
//! recent waits at this queue were shorter than that; and whether both ends are pinned to the same
//! CPU.
//!
//! These statistics order no other memory access, so they use plain atomics that no model checker
//! sees.

#![allow(clippy::disallowed_types)]

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant as Clock};

use super::Wait;
use super::pause::calibrate_pause;
use crate::sync::{self, Instant};

/// Initial estimate of the cost of sleeping: that of a typical wake-up.
const FIRST_GUESS_NS: u32 = 10_000;
/// Highest estimate of the cost of sleeping. A sleep that costs more includes a wait for a CPU, and
/// spinning would keep that CPU from other threads.
const MAX_NS: u32 = 20_000;
const MIN_NS: u32 = 1_000;
/// Set in the time of a wake-up until the first thread that it has woken learns from it.
const UNREAD: u64 = 1;

/// Cost of sleeping, over all queues of the process: the tenth percentile of the samples, which is
/// not inflated by woken threads that wait for a CPU.
static SLEEP_COSTS_NS: AtomicU32 = AtomicU32::new(FIRST_GUESS_NS);

/// Estimated cost of sleeping.
pub(super) fn sleep_cost() -> Duration {
    Duration::from_nanos(SLEEP_COSTS_NS.load(Relaxed).into())
}

fn learn(sample_ns: u64) {
    // If two threads store at the same time, a sample is lost.
    SLEEP_COSTS_NS.store(learned(SLEEP_COSTS_NS.load(Relaxed), sample_ns), Relaxed);
}

/// Returns the new estimate. An estimate is stable if a tenth of the samples is below it.
fn learned(old_ns: u32, sample_ns: u64) -> u32 {
    let step = old_ns / 64 + 1;
    let new = if sample_ns < old_ns.into() { old_ns - step } else { old_ns + step / 9 + 1 };
    new.clamp(MIN_NS, MAX_NS)
}

/// The [`Wait`] of a queue's two sides, and statistics of their waits.
#[derive(Debug)]
pub(crate) struct WaitStats {
    /// Time at which the queue was created; all other times count from it. A clock shared by all
    /// queues would have to be initialised once, under a lock, which a thread could hold while
    /// another one forks.
    made_at: Clock,
    /// Time of the last wake-up, with [`UNREAD`] until a sleeper has read it.
    woken_at_ns: AtomicU64,
    /// For each side, one bit for each of its last eight waits, which is set if the wait was
    /// shorter than a sleep.
    short_waits: [AtomicU8; 2],
    /// For each side, the only CPU on which it may run, plus 1; 0 if it may run on several, or if
    /// that is unknown.
    only_cpu_of: [AtomicU32; 2],
    /// For each side, number of calls of [`WaitStats::refresh_affinity`].
    affinity_checks: [AtomicU32; 2],
    /// The wait of both sides. Only [`Wait::Adaptive`] uses these statistics.
    pub(super) wait: Wait,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sleep {
    began_ns: u64,
    fell_asleep_ns: u64,
}

impl WaitStats {
    pub(crate) fn new(wait: Wait) -> Self {
        calibrate_pause();
        WaitStats {
            made_at: Clock::now(),
            woken_at_ns: AtomicU64::new(0),
            // Waits count as short until long ones have been recorded.
            short_waits: [AtomicU8::new(u8::MAX), AtomicU8::new(u8::MAX)],
            only_cpu_of: [AtomicU32::new(0), AtomicU32::new(0)],
            affinity_checks: [AtomicU32::new(0), AtomicU32::new(0)],
            wait,
        }
    }

    fn learns(&self) -> bool {
        self.wait == Wait::Adaptive
    }

    /// Time since the queue was created; at least 1.
    fn now_ns(&self) -> u64 {
        self.made_at.elapsed().as_nanos() as u64 + 1
    }

    /// Returns `true` if both sides are known to be pinned to the same CPU.
    #[inline(always)]
    pub(super) fn on_one_cpu(&self) -> bool {
        let only = self.only_cpu_of[0].load(Relaxed);
        only != 0 && only == self.only_cpu_of[1].load(Relaxed)
    }

    /// Time until which this side should spin; `None` if both sides are pinned to the same CPU, or
    /// if most of this side's last waits took longer than a sleep costs.
    pub(super) fn spin_deadline(&self, side: usize) -> Option<Instant> {
        if self.refresh_affinity(side) || !self.spinning_pays(side) {
            return None;
        }
        Instant::now().checked_add(sleep_cost())
    }

    fn spinning_pays(&self, side: usize) -> bool {
        self.short_waits[side].load(Relaxed).count_ones() > 4
    }

    /// Records a wait of this side. `short` means that spinning would have been cheaper than
    /// sleeping.
    pub(super) fn record_wait(&self, side: usize, short: bool) {
        // If several threads of this side store at the same time, a wait is lost.
        let last = self.short_waits[side].load(Relaxed);
        self.short_waits[side].store(last << 1 | u8::from(short), Relaxed);
    }

    /// Reads this side's CPU affinity again in every 64th call, because the affinity may change at
    /// any time. Returns [`WaitStats::on_one_cpu`].
    pub(super) fn refresh_affinity(&self, side: usize) -> bool {
        if self.learns() && self.affinity_checks[side].fetch_add(1, Relaxed).is_multiple_of(64) {
            self.only_cpu_of[side].store(only_cpu(), Relaxed);
        }
        self.on_one_cpu()
    }

    /// Records that this side wakes the other side.
    pub(super) fn record_wake(&self, side: usize) {
        if self.learns() {
            self.refresh_affinity(side);
            self.woken_at_ns.store(self.now_ns() | UNREAD, Relaxed);
        }
    }

    pub(super) fn begin_sleep(&self) -> Option<Sleep> {
        self.learns().then(|| Sleep { began_ns: self.now_ns(), fell_asleep_ns: 0 })
    }

    /// Records that the last poll has made the sleep unnecessary.
    pub(super) fn cancel_sleep(&self, side: usize) {
        if self.learns() {
            self.record_wait(side, true);
        }
    }

    /// Records the time at which only the system call is left to do.
    pub(super) fn fell_asleep(&self, sleep: Option<Sleep>) -> Option<Sleep> {
        sleep.map(|sleep| Sleep { fell_asleep_ns: self.now_ns(), ..sleep })
    }

    /// Records the end of a sleep, by a wake-up or by a timeout.
    pub(super) fn end_sleep(&self, side: usize, sleep: Option<Sleep>) {
        let Some(Sleep { began_ns, fell_asleep_ns }) = sleep else { return };
        // Several threads of this side may have been woken at once.
        let marked = self.woken_at_ns.fetch_and(!UNREAD, Relaxed);
        let woken_at = marked | UNREAD;
        let costs = u64::from(SLEEP_COSTS_NS.load(Relaxed));
        self.record_wait(side, woken_at >= began_ns && woken_at - began_ns < costs);
        if marked & UNREAD != 0 && woken_at >= fell_asleep_ns {
            // The thread was really asleep when it was woken.
            learn(self.now_ns().saturating_sub(woken_at) + (fell_asleep_ns - began_ns));
        }
    }
}

fn only_cpu() -> u32 {
    sync::only_cpu().map_or(0, |cpu| cpu.saturating_add(1))
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_does_not_raise_the_cost_of_sleeping() {
        let mut costs = FIRST_GUESS_NS;
        // One wake-up in five is fast, the others wait for a CPU.
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
        let stats = WaitStats::new(Wait::Adaptive);
        assert!(stats.spinning_pays(0), "waits count as short at first");
        (0..4).for_each(|_| stats.record_wait(0, false));
        assert!(!stats.spinning_pays(0));
        assert!(stats.spin_deadline(0).is_none());
        assert!(stats.spinning_pays(1), "the other side has waited for nothing");
        // Waits that are always too long for spinning do not make this side spin again.
        (0..100).for_each(|_| stats.end_sleep(0, stats.fell_asleep(stats.begin_sleep())));
        assert!(!stats.spinning_pays(0));
        // Five short waits out of eight make it spin again, even if it sleeps through them. The
        // times are made up, because this thread could lose its CPU between two real ones.
        for _ in 0..5 {
            assert!(!stats.spinning_pays(0));
            stats.record_wake(1);
            stats.end_sleep(0, Some(ended_at_once(&stats)));
        }
        assert!(stats.spinning_pays(0));
    }

    fn ended_at_once(stats: &WaitStats) -> Sleep {
        Sleep { began_ns: stats.woken_at_ns.load(Relaxed), fell_asleep_ns: u64::MAX }
    }

    #[test]
    fn a_wait_is_short_for_all_that_are_woken_at_once() {
        let stats = WaitStats::new(Wait::Adaptive);
        (0..8).for_each(|_| stats.record_wait(0, false));
        stats.record_wake(1);
        let at_once = ended_at_once(&stats);
        (0..5).for_each(|_| stats.end_sleep(0, Some(at_once)));
        assert!(stats.spinning_pays(0));
        // A wake-up before a sleep does not shorten it.
        let later = Sleep { began_ns: at_once.began_ns + 2, ..at_once };
        (0..8).for_each(|_| stats.end_sleep(0, Some(later)));
        assert!(!stats.spinning_pays(0));
    }

    #[test]
    fn a_wait_that_does_not_learn_reads_no_clock() {
        assert!(WaitStats::new(Wait::Park).begin_sleep().is_none());
    }
}
