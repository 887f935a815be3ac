//! Threads that take turns at a simulated lock. Acquisitions are simulated one by one, first come,
//! first served.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_model::queue_trace::{self, Acquisition, Excerpt};
use threadtoll_record::limits::TIMELINE;
use threadtoll_record::{LockSubject, Spread};

/// Number of cycles that each thread completes before the excerpt begins.
const WARM_UP: u64 = 5;

pub(super) struct Turns<'a> {
    pub(super) subject: &'a LockSubject,
    /// Number of locks. Each acquisition takes one of them.
    pub(super) locks: usize,
    /// False if no thread ever waits.
    pub(super) waits: bool,
    /// Time of an acquisition and release without a wait.
    pub(super) pair_ns: f64,
    pub(super) handoff_ns: f64,
    /// Factor by which the machine is slower than usual.
    pub(super) slowed: f64,
}

impl Turns<'_> {
    /// Returns the first acquisitions of a block that lasts `block_ns`; `None` if there is only one
    /// thread.
    pub(super) fn excerpt(&self, block_ns: u64, rng: &mut Xoshiro256PlusPlus) -> Option<Excerpt> {
        let subject = self.subject;
        let threads = subject.threads as usize;
        if threads < 2 {
            return None;
        }
        let (from, tasks) = match subject.tasks {
            Some(tasks) => (0, tasks as usize),
            None => (WARM_UP.saturating_mul(subject.cycle_ns()), usize::MAX),
        };
        let until = from.saturating_add(block_ns);
        let most = tasks.min(2 * (TIMELINE + WARM_UP as usize * threads));
        let mut free_at = vec![0; self.locks.max(1)];
        let mut idle_at = vec![0; threads];
        let mut requests: Vec<u64> = (0..threads)
            .map(|_| if from > 0 { self.length(subject.think_ns, rng) } else { 0 })
            .collect();
        let mut acquisitions = vec![Vec::new(); threads];
        for _ in 0..most {
            let Some(thread) = (0..threads).min_by_key(|thread| requests[*thread]) else { break };
            let requested_at = requests[thread];
            if requested_at >= until {
                break;
            }
            let lock = rng.random_range(0..free_at.len());
            let acquired_at = if self.waits && free_at[lock] > requested_at {
                free_at[lock].saturating_add((self.handoff_ns * self.slowed) as u64)
            } else {
                requested_at
            };
            let released_at = acquired_at.saturating_add(self.length(subject.hold_ns, rng));
            free_at[lock] = released_at;
            acquisitions[thread].push(Acquisition {
                idle_at: idle_at[thread],
                requested_at,
                acquired_at,
                released_at,
                ..Acquisition::default()
            });
            idle_at[thread] = released_at.saturating_add((self.pair_ns * self.slowed) as u64);
            requests[thread] = idle_at[thread].saturating_add(self.length(subject.think_ns, rng));
        }
        // Acquisitions after the earliest pending request are unknown.
        let until = requests.into_iter().fold(until, u64::min);
        queue_trace::excerpt(&acquisitions, from, until, TIMELINE)
    }

    fn length(&self, mean_ns: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let factor = match self.subject.spread {
            Spread::Fixed => 1.0,
            Spread::Exponential => -(1.0 - rng.random::<f64>()).ln(),
        };
        (mean_ns as f64 * factor * self.slowed) as u64
    }
}
