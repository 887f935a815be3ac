//! Waits that are not for a lock, and waits of parked threads, which may be for a lock.

use std::collections::HashMap;

use threadtoll_record::profile::{Address, IdleWait, Role as SiteRole};
use threadtoll_record::{Ratio, Text};
use threadtoll_stats::Z95;

use super::threads::MeanThreads;
use super::{MAX_SITES, One, sites};
use crate::account::WaitTarget;
use crate::primitive::{ParkedFor, Role};
use crate::stacks::Stacks;

impl One<'_> {
    pub(super) fn idle_threads(self, target: &WaitTarget, stacks: &mut Stacks) -> MeanThreads {
        let waiters = MeanThreads::of(self.process.waiters(target));
        if !is_parker(target) {
            return waiters;
        }
        let reasons = Reasons::of(target, stacks);
        waiters.part(reasons.idle + reasons.untold)
    }

    pub(super) fn idle(
        self,
        target: &WaitTarget,
        waiters: MeanThreads,
        stacks: &mut Stacks,
    ) -> IdleWait {
        let (name, name_from) = self.name(target, stacks);
        let name = name.strip_prefix("lock ").unwrap_or(&name);
        IdleWait {
            name: Text::from(name),
            name_from,
            address: Address(target.address),
            threads: target.waiting.len() as u32,
            queue_mean: Ratio::new(waiters.mean),
            queue_mean_interval95: waiters.ratio_interval(),
            queue_max: target.waiters_max,
            sites: sites(SiteRole::Waiter, &target.waiting_at, target.stack_samples, stacks),
        }
    }
}

pub(super) fn is_parker(target: &WaitTarget) -> bool {
    target.identity.role() == Role::Parked
}

/// Merges waits of parked threads by the code that waits. Each thread waits on a word of its own.
pub(super) fn by_place(waits: Vec<IdleWait>) -> Vec<IdleWait> {
    let mut places: HashMap<Text, usize> = HashMap::new();
    let mut groups: Vec<Vec<IdleWait>> = Vec::new();
    for wait in waits {
        let place = *places.entry(wait.name.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(wait),
            None => groups.push(vec![wait]),
        }
    }
    let mut waits: Vec<IdleWait> = groups.into_iter().filter_map(sum).collect();
    waits.sort_by(|one, other| other.queue_mean.get().total_cmp(&one.queue_mean.get()));
    waits
}

fn sum(waits: Vec<IdleWait>) -> Option<IdleWait> {
    let variance: f64 = waits
        .iter()
        .filter_map(|wait| wait.queue_mean_interval95)
        .map(|interval| ((interval.high().get() - interval.low().get()) / 2.0 / Z95).powi(2))
        .sum();
    let mean = waits.iter().map(|wait| wait.queue_mean.get()).sum();
    let all = MeanThreads { mean, variance };
    waits.into_iter().reduce(|mut sum, mut wait| {
        sum.queue_mean = Ratio::new(all.mean);
        sum.queue_mean_interval95 = all.ratio_interval();
        sum.queue_max = sum.queue_max.max(wait.queue_max);
        sum.threads += wait.threads;
        sum.sites.append(&mut wait.sites);
        // Each of the merged lists may have been cut off, so shares cannot be computed.
        for site in &mut sum.sites {
            (site.share, site.interval95) = (None, None);
        }
        sum.sites.sort_by_key(|site| std::cmp::Reverse(site.samples));
        sum.sites.truncate(MAX_SITES);
        sum
    })
}

/// Reasons for which threads slept on a parker's word, as fractions of the samples.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    pub(super) lock: f64,
    pub(super) idle: f64,
    pub(super) asleep: f64,
    pub(super) untold: f64,
    /// Number of samples of threads that waited for a lock, by stack.
    pub(super) locking: HashMap<u32, u64>,
    read: u64,
}

impl Reasons {
    pub(super) fn of(parker: &WaitTarget, stacks: &mut Stacks) -> Reasons {
        let identity = parker.identity;
        let all: u64 = parker.waiting_at.values().sum();
        let otherwise = identity.parked_for(&[]);
        let mut reasons = Reasons::default();
        // If the reason depends on the stack, the stacks that were read represent all sleeps.
        if otherwise == ParkedFor::Idle || all == 0 {
            *reasons.share(otherwise) = 1.0;
            return reasons;
        }
        reasons.read = all;
        for (&stack, &samples) in &parker.waiting_at {
            let reason = identity.parked_for(&stacks.callers(stack));
            *reasons.share(reason) += samples as f64 / all as f64;
            if reason == ParkedFor::Lock {
                reasons.locking.insert(stack, samples);
            }
        }
        reasons
    }

    /// Variance of `lock` (Laplace's rule of succession).
    pub(super) fn lock_variance(&self) -> f64 {
        if self.read == 0 {
            return 0.0;
        }
        let read = self.read as f64;
        let share = (self.lock * read + 1.0) / (read + 2.0);
        share * (1.0 - share) / read
    }

    fn share(&mut self, of: ParkedFor) -> &mut f64 {
        match of {
            ParkedFor::Lock => &mut self.lock,
            ParkedFor::Idle => &mut self.idle,
            ParkedFor::Sleep => &mut self.asleep,
            ParkedFor::Untold => &mut self.untold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadtoll_record::profile::{Interval, NameFrom};

    #[test]
    fn a_share_of_few_stacks_is_uncertain() {
        let variance = |lock, read| Reasons { lock, read, ..Reasons::default() }.lock_variance();
        assert!(variance(1.0, 3) > 0.05 && variance(1.0, 300) < 1e-4, "{}", variance(1.0, 3));
        assert!((variance(0.5, 100) - 0.0025).abs() < 1e-12);
        assert_eq!(variance(1.0, 0), 0.0);
    }

    #[test]
    fn parked_threads_count_together_where_they_wait() {
        let wait = |name: &str, mean: f64| IdleWait {
            name: Text::from(name),
            name_from: NameFrom::WaiterSite,
            address: Address(0x1000),
            threads: 1,
            queue_mean: Ratio::new(mean),
            queue_mean_interval95: Interval::new(Ratio::new(mean - 0.3), Ratio::new(mean + 0.3)),
            queue_max: 1,
            sites: Vec::new(),
        };
        let waits = vec![wait("in serve", 0.5), wait("in sweep", 0.75), wait("in serve", 0.5)];
        let waits = by_place(waits);
        let rows: Vec<_> =
            waits.iter().map(|wait| (&*wait.name, wait.queue_mean.get(), wait.threads)).collect();
        assert_eq!(rows, [("in serve", 1.0, 2), ("in sweep", 0.75, 1)]);
        let within = waits[0].queue_mean_interval95.map(|it| it.high().get() - 1.0);
        assert!(within.is_some_and(|half| (half - 0.3 * 2_f64.sqrt()).abs() < 1e-9));
    }
}
