//! Locks of runtimes that park each thread on a word of its own, so that the word does not identify
//! the lock. Java's monitors are reported as one lock, and Abseil's mutexes as one lock per waiting
//! function.

use std::collections::{BTreeMap, HashMap};

use threadtoll_primitive::function::plain;
use threadtoll_record::profile::{Address, Interval, Lock, LockKind, NameFrom, Role as SiteRole};
use threadtoll_record::{Fraction, Ratio, Text};

use super::idle::{Reasons, is_parker};
use super::locks::not_judged;
use super::threads::MeanThreads;
use super::{One, sites};
use crate::account::WaitTarget;
use crate::primitive::ParkedFor;
use crate::stacks::Stacks;

/// Number of the row for locks that are reported as one, such as Java's monitors. Locks are
/// numbered from 1, so 0 stays free however many locks are found.
const AS_ONE: u32 = 0;

const MAX_ROWS: usize = 20;

/// The queue is a lower bound if the stacks of more threads than this, relative to the queue, were
/// never read while they were parked.
const UNREAD: f64 = 0.05;

#[derive(Debug, Default)]
struct ParkedRow {
    id: u32,
    waiters: MeanThreads,
    samples: u64,
    threads: HashMap<u32, u64>,
    waiting_at: HashMap<u32, u64>,
}

pub(super) fn row_name(parker: &WaitTarget, reasons: &Reasons, stacks: &mut Stacks) -> String {
    if let Some(name) = parker.identity.locks_as_one() {
        return name.to_owned();
    }
    let most = reasons.locking.iter().max_by_key(|&(stack, samples)| (samples, stack));
    match most.and_then(|(&stack, _)| stacks.caller(stack)) {
        Some(caller) => format!("lock in {}", plain(&caller)),
        None => "locks of parked threads".to_owned(),
    }
}

impl One<'_> {
    pub(super) fn parked(self, stacks: &mut Stacks) -> Vec<Lock> {
        let mut rows: BTreeMap<String, ParkedRow> = BTreeMap::new();
        let parkers = self.process.targets.iter().enumerate();
        for (place, target) in parkers.filter(|(_, target)| is_parker(target)) {
            let reasons = Reasons::of(target, stacks);
            if reasons.lock <= 0.0 {
                continue;
            }
            let name = row_name(target, &reasons, stacks);
            let as_one = target.identity.locks_as_one().is_some();
            let id = if as_one { AS_ONE } else { place as u32 + 1 };
            if rows.len() >= MAX_ROWS && !rows.contains_key(&name) {
                continue;
            }
            // The row takes the number of its first wait target. That target is no lock, so no lock
            // has this number.
            let row = rows.entry(name).or_insert_with(|| ParkedRow { id, ..ParkedRow::default() });
            let here = MeanThreads::of(self.process.waiters(target));
            // The reasons are known only from the stacks that were read, which may be few.
            let variance = here.mean.powi(2) * reasons.lock_variance();
            let of_stacks = MeanThreads { mean: 0.0, variance };
            row.waiters = row.waiters.and(here.part(reasons.lock)).and(of_stacks);
            row.samples = row.samples.max(target.stack_samples);
            for (&tid, samples) in &target.waiting {
                *row.threads.entry(tid).or_default() += samples;
            }
            for (&stack, samples) in &reasons.locking {
                *row.waiting_at.entry(stack).or_default() += samples;
            }
        }
        let unread = self.parked_without_stacks();
        let lock = |(name, row)| self.parked_row(name, row, unread, stacks);
        rows.into_iter().filter_map(lock).collect()
    }

    /// Parked threads whose stacks were never read. They may wait for any lock or for none.
    fn parked_without_stacks(self) -> MeanThreads {
        let untold = |target: &&WaitTarget| {
            let reason = target.identity.parked_for(&[]);
            is_parker(target) && target.waiting_at.is_empty() && reason == ParkedFor::Untold
        };
        let parkers = self.process.targets.iter().filter(untold);
        let threads = parkers.map(|target| MeanThreads::of(self.process.waiters(target)));
        threads.fold(MeanThreads::default(), MeanThreads::and)
    }

    fn parked_row(
        self,
        name: String,
        row: ParkedRow,
        unread: MeanThreads,
        stacks: &mut Stacks,
    ) -> Option<Lock> {
        if row.threads.is_empty() {
            return None;
        }
        let users = self.process.at_once(row.threads.len()) as u32;
        let alive = (self.process.threads.len() as u32).max(users);
        let efficiency = (1.0 - row.waiters.mean / f64::from(users)).max(0.0);
        let is_lower_bound = unread.mean > UNREAD * row.waiters.mean;
        let most = if is_lower_bound { row.waiters.and(unread) } else { row.waiters };
        let interval = row.waiters.ratio_interval().zip(most.ratio_interval());
        let interval = interval.and_then(|(least, most)| Interval::new(least.low(), most.high()));
        Some(Lock {
            name: Text::from(name),
            name_from: NameFrom::WaiterSite,
            queue_mean: Some(Ratio::new(row.waiters.mean)),
            queue_mean_interval95: interval,
            queue_is_lower_bound: is_lower_bound,
            efficiency: Some(Fraction::new(efficiency)).filter(|_| !is_lower_bound),
            holder_not_seen_share: Some(Fraction::new(1.0)),
            waiters: self.shares(&row.threads, false),
            sites: sites(SiteRole::Waiter, &row.waiting_at, row.samples, stacks),
            ..not_judged(row.id, LockKind::Parker, Address(0), users, alive)
        })
    }
}
