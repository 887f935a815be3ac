//! Estimates mean hold times from bursts of reads of a lock's word, some microseconds apart.
//!
//! Bursts start at random times. The mean hold time is the total time for which bursts saw the lock
//! held, divided by the number of releases that they saw. Both are proportional to the lock's own
//! totals, even if a burst is much shorter than a hold. A release goes unseen if the lock is
//! acquired again before the next read, unless the owner changes. So hold times shorter than a few
//! reads are overestimated.
//!
//! A burst keeps its CPU busy. On a single CPU, no holder can run meanwhile, so bursts show
//! nothing.

use threadtoll_stats::Z95;
use threadtoll_stats::interval::Estimate;

/// Mean hold time in nanoseconds below which the observed queue is only a lower bound: waiters may
/// spin, or sleep and be woken, without any sample seeing them.
pub const SHORT_HOLD_NS: f64 = 200_000.0;

/// One read of a lock's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Time in nanoseconds.
    pub at: u64,
    /// True if the lock is held.
    pub held: bool,
    /// The thread that holds the lock, if the word names it.
    pub owner: Option<u32>,
}

/// Sums over the bursts of one lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    held_ns: u64,
    releases: u64,
}

impl Bursts {
    /// Adds a burst. `waited` must be true if a thread waited for the lock both before and after
    /// the burst.
    pub fn add(&mut self, reads: &[Read], waited: bool) {
        // If no owner is named, a waiter may take a released lock unnoticed.
        let blind = waited && reads.iter().any(|read| read.held && read.owner.is_none());
        let mut before: Option<Read> = None;
        for &read in reads {
            if let Some(before) = before.filter(|before| before.held && !blind) {
                let gap = read.at.saturating_sub(before.at);
                let released = !read.held || read.owner != before.owner;
                // On average, a release between two reads happens halfway.
                let held = if released && !read.held { gap / 2 } else { gap };
                self.held_ns = self.held_ns.saturating_add(held);
                self.releases += u64::from(released);
            }
            before = Some(read);
        }
    }

    /// Mean hold time in nanoseconds; `None` if no release was seen.
    pub fn hold_ns(&self) -> Option<Estimate> {
        if self.releases == 0 {
            return None;
        }
        let (held, releases) = (self.held_ns as f64, self.releases as f64);
        // The number of releases has a Poisson distribution; this is the score interval of its
        // mean.
        let middle = releases + Z95 * Z95 / 2.0;
        let reach = Z95 * (releases + Z95 * Z95 / 4.0).sqrt();
        Some(Estimate {
            value: held / releases,
            low: held / (middle + reach),
            high: held / (middle - reach),
        })
    }

    /// Returns `true` if holds are so short that the queue seen is a lower bound.
    pub fn queue_is_lower_bound(&self) -> bool {
        self.hold_ns().is_some_and(|hold| hold.value < SHORT_HOLD_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Program, Run, Times, at};

    const PROGRAM: Program = Program {
        threads: 3,
        hold: 1e-3,
        think: 5e-3,
        hold_times: Times::Exponential,
        think_times: Times::Exponential,
        hand_off: 0.03e-3,
    };

    /// Bursts of 20 reads, 5 µs apart, at random times.
    fn bursts(run: &Run, per_second: f64) -> Bursts {
        let mut bursts = Bursts::default();
        for start in run.instants(per_second, 4) {
            let reads: Vec<Read> = (0..20)
                .map(|index| {
                    let time = start + f64::from(index) * 5e-6;
                    let owner = at(&run.holds, time).map(|hold| hold.thread);
                    Read { at: (time * 1e9) as u64, held: owner.is_some(), owner }
                })
                .collect();
            let waits = |time| (0..run.waits.len() as u32).any(|id| run.waiting(id, time));
            bursts.add(&reads, waits(start) && waits(start + 95e-6));
        }
        bursts
    }

    #[test]
    fn bursts_shorter_than_a_hold_show_its_mean_length() {
        let mut inside = 0;
        for seed in 0..100 {
            let run = PROGRAM.run(10.0, seed);
            let mean = run.holds.iter().map(|hold| hold.end - hold.start).sum::<f64>()
                / run.holds.len() as f64;
            let bursts = bursts(&run, 100.0);
            inside += u32::from(bursts.hold_ns().unwrap().holds(mean * 1e9));
            assert!(!bursts.queue_is_lower_bound());
        }
        assert!(inside >= 88, "{inside} of 100");
    }

    #[test]
    fn a_new_owner_shows_a_release() {
        let held = |at, owner| Read { at, held: true, owner: Some(owner) };
        let free = |at| Read { at, held: false, owner: None };
        let mut bursts = Bursts::default();
        bursts.add(&[held(0, 1), free(10), held(20, 1), free(30), held(40, 2), held(50, 3)], true);
        assert_eq!((bursts.held_ns, bursts.releases), (20, 3));
    }
}
