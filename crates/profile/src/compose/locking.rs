//! CPU time spent on taking and freeing locks: an estimate from samples of running threads, and an
//! upper bound.
//!
//! Samples show only time in user mode. The kernel's time is known only as a total, so the upper
//! bound includes all of it. The upper bound also includes all time in functions of the C library
//! into which a lock is inlined (`random`, `malloc`): these functions may spend all of that time on
//! the lock's cache line.

use std::collections::{HashMap, HashSet};

use threadtoll_judge::gain::Locking;
use threadtoll_stats::interval::share;

use crate::account::ProcessAccount;
use crate::stacks::Stacks;

const MAX_STACKS: usize = 4;

#[derive(Debug)]
pub(super) struct CpuOfLocks {
    /// Number of samples in functions that take or free locks, by stack.
    pub(super) at: HashMap<u32, u64>,
    pub(super) share: Locking,
}

impl CpuOfLocks {
    pub(super) fn of(process: &ProcessAccount, stacks: &mut Stacks) -> CpuOfLocks {
        let takers = takers(process, stacks);
        let (mut at, mut waited, mut at_most) = (HashMap::new(), 0, 0);
        for (&stack, &seen) in &process.ran_at {
            let locks = stacks.locks(stack);
            at.extend(locks.then_some((stack, seen)));
            // This time is a wait, which counts in the queue of the spinlock.
            if stacks.spins_at_argument(stack) {
                waited += seen;
                continue;
            }
            let may_lock = locks || stacks.innermost(stack).is_some_and(|it| takers.contains(&*it));
            at_most += if may_lock { seen } else { 0 };
        }
        let kernel = process.kernel_share();
        let own = 1.0 - kernel.unwrap_or(0.0);
        let samples = at.values().sum::<u64>() - waited;
        let seen = share(samples, process.ran).map_or(0.0, |share| share.value * own);
        let most = share(at_most, process.ran)
            .zip(kernel)
            .map(|(share, kernel)| (kernel + share.high * own).min(1.0));
        CpuOfLocks { at, share: Locking { seen, most: most.unwrap_or(1.0).max(seen) } }
    }
}

fn takers(process: &ProcessAccount, stacks: &mut Stacks) -> HashSet<String> {
    let locks = process.targets.iter().filter(|target| target.is_lock() && target.is_used());
    let waiting_at = locks.flat_map(|lock| lock.waiting_at.keys().take(MAX_STACKS));
    waiting_at.filter_map(|&stack| stacks.taker_in_runtime(stack)).collect()
}
