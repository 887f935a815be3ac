//! The gain without each lock's queue: what its waiters run into next, and what waits behind it.

use std::collections::HashMap;

use threadtoll_judge::chain::{Link, freed};
use threadtoll_judge::gain::{Locking, OtherLock, Surroundings, gain};
use threadtoll_stats::interval::Estimate;

use super::One;
use super::doing::Doing;
use crate::account::{Object, ProcessAccount};
use crate::holder::Holders;

/// Busiest locks that the threads are compared with which wait for another one.
const MAX_BUSIEST: usize = 8;

/// Least share of time for which a lock is held that limits what another lock's waiters can do.
const LEAST_BUSY: f64 = 0.02;

/// Share of all waiting from which a lock may take all of the CPU time that goes into locking.
const MAIN_SHARE: f64 = 0.1;

/// A lock that is held for long.
#[derive(Clone, Copy, Debug)]
struct Busy<'a> {
    place: usize,
    lock: &'a Object,
    /// Share of time for which one thread has it, or is being given it.
    busy: f64,
}

/// All that gains need to know of a process, but for its chains of locks.
#[derive(Debug)]
pub(super) struct Gains<'a> {
    process: &'a ProcessAccount,
    busiest: Vec<Busy<'a>>,
    working: f64,
    on_cpu: f64,
    cpus: f64,
    locking: Locking,
    /// Mean number of threads that wait for any lock.
    waiting: f64,
}

/// Chains of the locks that are listed.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// Mean numbers of threads freed, by the lock's place.
    freed: HashMap<usize, Estimate>,
    /// Shares of time in which the holder of one waits for the other.
    waits_for: HashMap<(usize, usize), f64>,
}

/// The rest of the program, as one lock's waiters find it.
#[derive(Debug)]
pub(super) struct Around {
    others: Vec<OtherLock>,
    locking: Locking,
    users_on_cpu: f64,
}

impl<'a> Gains<'a> {
    pub(super) fn of(one: One<'a>, doing: &Doing) -> Gains<'a> {
        let process = one.process;
        let locks = process.objects.iter().enumerate().filter(|(_, object)| object.is_lock());
        // Readers that share a lock do not keep each other from working.
        let mut busiest: Vec<Busy<'_>> = locks
            .filter_map(|(place, lock)| {
                let busy = process.samples(lock).busy()?.value * lock.exclusive_share();
                (busy >= LEAST_BUSY).then_some(Busy { place, lock, busy })
            })
            .collect();
        busiest.sort_by(|one, other| other.busy.total_cmp(&one.busy));
        busiest.truncate(MAX_BUSIEST);
        Gains {
            process,
            busiest,
            working: doing.working(),
            on_cpu: doing.on_cpu().mean,
            cpus: f64::from(one.cpus),
            locking: doing.locking(),
            waiting: doing.waiting_for_locks(),
        }
    }

    pub(super) fn surroundings<'b>(&self, around: &'b Around) -> Surroundings<'b> {
        Surroundings {
            working: self.working,
            on_cpu: self.on_cpu,
            cpus: self.cpus,
            users_on_cpu: around.users_on_cpu,
            others: &around.others,
            locking: around.locking,
        }
    }

    /// Mean number of threads on a CPU, or waiting for one.
    pub(super) fn on_cpu(&self) -> f64 {
        self.on_cpu
    }

    /// The gain without a lock's queue if its holder never waits for another lock.
    pub(super) fn alone(&self, place: usize, lock: &Object) -> f64 {
        let around = self.around(place, lock, &Chains::default());
        let gain = |queue| gain(queue, self.surroundings(&around));
        self.queue(lock).and_then(gain).map_or(0.0, |gain| gain.value)
    }

    /// What the threads run into next that wait for this lock.
    pub(super) fn around(&self, place: usize, lock: &Object, chains: &Chains) -> Around {
        // The other account of a lock of readers and writers is no other lock.
        let others = self.busiest.iter().filter(|other| {
            other.place != place && other.lock.identity.object != lock.identity.object
        });
        let limits = others.map(|other| {
            let behind = chains.waits_for.get(&(other.place, place)).copied().unwrap_or(0.0);
            let busy = other.busy * (1.0 - behind);
            OtherLock { share: self.in_common(lock, other.lock), busy }
        });
        let queue = self.process.waiters(lock).map_or(0.0, |waiters| waiters.mean);
        let part = queue / self.waiting.max(queue).max(f64::MIN_POSITIVE);
        let Locking { seen, most } = self.locking;
        let of_all = Locking { seen: seen * part, most: most * (part / MAIN_SHARE).min(1.0) };
        let held = self.process.samples(lock).held().known();
        // Without owners, a lock that changes hands between two reads seems to be held on.
        let hold = lock.bursts.hold_ns().filter(|_| lock.holder.names_owner);
        let per_s = hold.zip(held).map(|(hold, held)| held.high / hold.low * 1e9);
        Around {
            others: limits.collect(),
            locking: of_all.bounded_by(per_s, self.on_cpu),
            users_on_cpu: self.process.on_cpu(&lock.users),
        }
    }

    /// Share of the threads waiting for a lock that use another one, too: at least, and at most.
    fn in_common(&self, lock: &Object, other: &Object) -> [f64; 2] {
        let all: u64 = lock.waiting.values().sum();
        let common = lock.waiting.iter().filter(|(tid, _)| other.users.contains(tid));
        let share = common.map(|(_, looks)| looks).sum::<u64>() as f64 / (all.max(1)) as f64;
        // Of threads that live shortly, few are seen twice.
        let come_and_go = |of: &Object| of.users.len() > self.process.at_once(of.users.len());
        match all == 0 || come_and_go(lock) && come_and_go(other) {
            true => [share, 1.0],
            false => [share; 2],
        }
    }

    /// The mean queue of a lock, if it is known.
    pub(super) fn queue(&self, lock: &Object) -> Option<Estimate> {
        self.process.samples(lock).queue().with_unseen(self.process.unseen(lock)).known()
    }

    /// The chains of these locks, whose holders are known.
    pub(super) fn chains(
        &self,
        locks: &[(usize, &Object)],
        holders: &HashMap<usize, Holders>,
    ) -> Chains {
        let number: HashMap<usize, usize> =
            locks.iter().enumerate().map(|(number, &(place, _))| (place, number)).collect();
        let known: Vec<Option<Estimate>> =
            locks.iter().map(|&(_, lock)| self.queue(lock)).collect();
        let queues: Vec<Estimate> =
            known.iter().map(|queue| queue.unwrap_or(Estimate::exact(0.0))).collect();
        let mut chains = Chains::default();
        let mut links = Vec::new();
        for (from, &(place, _)) in locks.iter().enumerate() {
            let Some(of) = holders.get(&place) else { continue };
            // Holders that were not seen do as the others, if these are the most, and without their
            // waits there would be no hand-overs.
            let share = |share: Option<Estimate>| share.map_or(0.0, |share| share.value);
            let others = share(of.doing.not_seen()) + share(of.doing.handed_over());
            let seen = if others <= 0.5 { 1.0 - others } else { 1.0 };
            for (other, share) in of.doing.waits_for() {
                let Some(&to) = number.get(&(other as usize)) else { continue };
                let share = (share.value / seen).min(1.0);
                chains.waits_for.insert((place, other as usize), share);
                links.push(Link { from, to, share });
            }
        }
        let mut freed = freed(&queues, &links);
        one_gain_for_readers_and_writers(locks, &mut freed);
        let of_known = known.iter().zip(locks).zip(freed).filter(|((queue, _), _)| queue.is_some());
        chains.freed = of_known.map(|((_, &(place, _)), freed)| (place, freed)).collect();
        chains
    }
}

impl Chains {
    pub(super) fn freed(&self, place: usize) -> Option<Estimate> {
        self.freed.get(&place).copied()
    }
}

/// Readers and writers wait for one lock: without it, neither would.
fn one_gain_for_readers_and_writers(locks: &[(usize, &Object)], freed: &mut [Estimate]) {
    let mut sums: HashMap<u64, Estimate> = HashMap::new();
    for (&(_, lock), freed) in locks.iter().zip(&*freed) {
        let sum = sums.entry(lock.identity.object).or_insert(Estimate::exact(0.0));
        let plus = |part: fn(&Estimate) -> f64| part(sum) + part(freed);
        *sum = Estimate {
            value: plus(|of| of.value),
            low: plus(|of| of.low),
            high: plus(|of| of.high),
        };
    }
    for (&(_, lock), freed) in locks.iter().zip(freed) {
        *freed = sums.get(&lock.identity.object).copied().unwrap_or(*freed);
    }
}
