//! Gain from removing a lock's queue. It depends on the next limit of the lock's waiters, and on
//! the threads that wait behind them.

use std::collections::{HashMap, HashSet};

use threadtoll_judge::cause::{HolderCounts, MIN_SAMPLES};
use threadtoll_judge::chain::{Link, behind, freed};
use threadtoll_judge::gain::{Locking, OtherLock, Surroundings, gain};
use threadtoll_judge::prediction::CpuDemand;
use threadtoll_stats::Z95;
use threadtoll_stats::interval::Estimate;

use super::One;
use super::cpus::CpusOfProcess;
use super::doing::Doing;
use super::threads::MeanThreads;
use crate::account::{ProcessAccount, WaitTarget};
use crate::holder::Holders;
use crate::primitive::Kind;

/// Number of the busiest other locks that are checked as the next limit of a lock's waiters.
const MAX_BUSIEST: usize = 8;

/// Minimum share of the time for which a lock must be held to limit another lock's waiters.
const LEAST_BUSY: f64 = 0.02;

/// From this share of all waiting on, the upper bound attributes all CPU time spent on locking to
/// one lock.
const MAIN_SHARE: f64 = 0.1;

#[derive(Clone, Copy, Debug)]
struct Busy<'a> {
    place: usize,
    lock: &'a WaitTarget,
    /// Share of time in which a thread holds the lock or is being given it.
    busy: Estimate,
}

/// Data on a process from which gains are computed, without the dependencies between its locks.
#[derive(Debug)]
pub(super) struct Gains<'a> {
    process: &'a ProcessAccount,
    busiest: Vec<Busy<'a>>,
    working: f64,
    working_error: f64,
    on_cpu: MeanThreads,
    running: f64,
    /// Mean number of threads on a CPU that spin for known locks. Without the locks, their CPUs are
    /// free.
    spinners: f64,
    cpus: CpusOfProcess,
    locking: Locking,
    waiting: f64,
    waiting_of: HashMap<u32, f64>,
}

#[derive(Debug, Default)]
pub(super) struct Chains {
    /// Mean number of threads that removing a lock's queue would free, by the lock's index.
    freed: HashMap<usize, Estimate>,
    number: HashMap<usize, usize>,
    /// Pairs of locks, each with the fraction of the first lock's hold time in which its holder
    /// waits for the second.
    links: Vec<Link>,
}

#[derive(Debug)]
pub(super) struct Around {
    others: Vec<OtherLock>,
    locking: Locking,
    users_on_cpu: f64,
    users_at_rest: f64,
    waiters_working: f64,
    pub(super) held_up_by_others: bool,
    working_within: f64,
}

impl<'a> Gains<'a> {
    pub(super) fn of(one: One<'a>, doing: &Doing) -> Gains<'a> {
        let process = one.process;
        let locks = process.targets.iter().enumerate().filter(|(_, target)| target.is_lock());
        // Readers that share a lock do not delay each other, so only exclusive holds count.
        let mut busiest: Vec<Busy<'_>> = locks
            .filter_map(|(place, lock)| {
                let share = lock.exclusive_share();
                let busy = process.samples(lock).busy()?.map(|busy| busy * share);
                (busy.value >= LEAST_BUSY).then_some(Busy { place, lock, busy })
            })
            .collect();
        busiest.sort_by(|one, other| other.busy.value.total_cmp(&one.busy.value));
        busiest.truncate(MAX_BUSIEST);
        let mut waiting_of = HashMap::new();
        for lock in process.targets.iter().filter(|target| target.is_lock()) {
            let queue = process.waiters(lock).map_or(0.0, |waiters| waiters.mean);
            let all: u64 = lock.waiting.values().sum();
            for (&tid, &samples) in lock.waiting.iter().filter(|_| queue > 0.0) {
                *waiting_of.entry(tid).or_default() += queue * samples as f64 / all as f64;
            }
        }
        Gains {
            process,
            busiest,
            working: doing.working(),
            working_error: doing.working_error(),
            on_cpu: doing.on_cpu(),
            running: doing.running(one.perf_event, one.cpus),
            spinners: doing.spinners(),
            cpus: one.cpus,
            locking: doing.locking(),
            waiting: doing.waiting_for_locks(),
            waiting_of,
        }
    }

    pub(super) fn elsewhere(&self, lock: &WaitTarget) -> f64 {
        let waiting = lock.users.iter().filter_map(|tid| self.waiting_of.get(tid)).sum::<f64>();
        let here = self.process.waiters(lock).map_or(0.0, |waiters| waiters.mean);
        (waiting - here).max(0.0)
    }

    pub(super) fn surroundings<'b>(&self, around: &'b Around) -> Surroundings<'b> {
        let cpus = f64::from(self.cpus.number);
        Surroundings {
            working: self.working,
            working_within: around.working_within,
            waiters_working: around.waiters_working,
            on_cpu: self.on_cpu.estimate().map(|on_cpu| (on_cpu - self.spinners).max(0.0)),
            running: (self.running - self.spinners).max(0.0),
            cpus,
            idle_cpus: self.cpus.idle.map(|idle| (idle + self.spinners).min(cpus)),
            users_on_cpu: around.users_on_cpu,
            users_at_rest: around.users_at_rest,
            held_up_by_others: around.held_up_by_others,
            others: &around.others,
            locking: around.locking,
        }
    }

    pub(super) fn on_cpu(&self) -> f64 {
        self.on_cpu.mean
    }

    /// Demand of the lock's users for CPUs, without their waits for a CPU or for this lock.
    pub(super) fn demand(&self, lock: &WaitTarget) -> CpuDemand {
        let running = self.running / self.on_cpu.mean.max(f64::MIN_POSITIVE);
        let spins = lock.identity.kind() == Kind::Spinlock;
        let spinners = self.process.waiters(lock).filter(|_| spins);
        let at_work = self.process.on_cpu(&lock.users) - spinners.map_or(0.0, |it| it.mean);
        let on_cpu = at_work.max(0.0) * running.min(1.0);
        CpuDemand { on_cpu, cpus: self.cpus.number }
    }

    pub(super) fn alone(&self, place: usize, lock: &WaitTarget) -> f64 {
        let around = self.around(place, lock, &Chains::default());
        let gain = |queue| gain(queue, self.surroundings(&around));
        self.queue(lock).and_then(gain).map_or(0.0, |gain| gain.value)
    }

    pub(super) fn around(&self, place: usize, lock: &WaitTarget, chains: &Chains) -> Around {
        // The readers and the writers of one lock have separate accounts with the same address.
        let others = self.busiest.iter().filter(|other| {
            other.place != place && other.lock.identity.address != lock.identity.address
        });
        let behind = chains.behind(place);
        let limits = others.map(|other| {
            // Without this lock's queue, the holder of the other lock no longer waits for this
            // lock.
            let behind = chains.number.get(&other.place).and_then(|&number| behind.get(number));
            let rest = 1.0 - behind.copied().unwrap_or(0.0);
            let busy = other.busy.map(|busy| busy * rest);
            OtherLock { share: self.in_common(lock, other.lock), busy }
        });
        let queue = self.process.waiters(lock).map_or(0.0, |waiters| waiters.mean);
        let part = queue / self.waiting.max(queue).max(f64::MIN_POSITIVE);
        let Locking { seen, most } = self.locking;
        let of_all = Locking { seen: seen * part, most: most * (part / MAIN_SHARE).min(1.0) };
        let held = self.process.samples(lock).held().known();
        // If the word names no owner, a lock that changes hands between two readings seems to be
        // held throughout.
        let hold = lock.bursts.hold_ns().filter(|_| lock.holder.names_owner);
        let per_s = hold.zip(held).map(|(hold, held)| held.high / hold.low * 1e9);
        let users_at_rest = self.process.at_rest(&lock.users);
        // A thread that holds the lock but never waits for it gains nothing itself.
        let waiters: HashSet<u32> = lock.waiting.keys().copied().collect();
        // If many users were never seen waiting, there are too few samples.
        let waiters = if 2 * waiters.len() >= lock.users.len() { &waiters } else { &lock.users };
        let at_work =
            (1.0 - self.process.at_rest(waiters)) * self.process.at_once(waiters.len()) as f64;
        let waiting: f64 = waiters.iter().filter_map(|tid| self.waiting_of.get(tid)).sum();
        let least = held.map_or(1.0, |held| held.value);
        Around {
            waiters_working: (at_work - waiting).max(least),
            others: limits.collect(),
            locking: of_all.bounded_by(per_s, self.on_cpu.mean),
            users_on_cpu: self.process.on_cpu(&lock.users),
            users_at_rest,
            held_up_by_others: false,
            working_within: if lock.seen_in_part() { Z95 * self.working_error } else { 0.0 },
        }
    }

    /// Lower and upper bound of the fraction of a lock's waiters that also use another lock.
    fn in_common(&self, lock: &WaitTarget, other: &WaitTarget) -> [f64; 2] {
        let all: u64 = lock.waiting.values().sum();
        let common = lock.waiting.iter().filter(|(tid, _)| other.users.contains(tid));
        let share = common.map(|(_, samples)| samples).sum::<u64>() as f64 / (all.max(1)) as f64;
        // Short-lived threads are rarely seen twice, so their use of the other lock may go
        // unnoticed.
        let come_and_go = |of: &WaitTarget| of.users.len() > self.process.at_once(of.users.len());
        match all == 0 || come_and_go(lock) && come_and_go(other) {
            true => [share, 1.0],
            false => [share; 2],
        }
    }

    pub(super) fn queue(&self, lock: &WaitTarget) -> Option<Estimate> {
        self.process.samples(lock).queue().with_unseen(self.process.unseen(lock)).known()
    }

    pub(super) fn chains(
        &self,
        locks: &[(usize, &WaitTarget)],
        holders: &HashMap<usize, Holders>,
    ) -> Chains {
        let number: HashMap<usize, usize> =
            locks.iter().enumerate().map(|(number, &(place, _))| (place, number)).collect();
        let known: Vec<Option<Estimate>> =
            locks.iter().map(|&(_, lock)| self.queue(lock)).collect();
        let queues: Vec<Estimate> =
            known.iter().map(|queue| queue.unwrap_or(Estimate::exact(0.0))).collect();
        let (mut links, mut of_holds) = (Vec::new(), Vec::new());
        for (from, &(place, _)) in locks.iter().enumerate() {
            let Some(of) = holders.get(&place) else { continue };
            let link = |(other, share): (u32, f64)| {
                let to = *number.get(&(other as usize))?;
                Some(Link { from, to, share })
            };
            links.extend(waits_for(&of.doing).into_iter().filter_map(link));
            // `doing` covers only samples with waiters. `while_held` covers all samples, and is
            // used if there are enough of them.
            let enough = of.while_held.samples >= MIN_SAMPLES;
            let while_held = if enough { &of.while_held } else { &of.doing };
            of_holds.extend(waits_for(while_held).into_iter().filter_map(link));
        }
        let mut freed = freed(&queues, &links);
        one_gain_for_readers_and_writers(locks, &mut freed);
        let of_known = known.iter().zip(locks).zip(freed).filter(|((queue, _), _)| queue.is_some());
        let freed = of_known.map(|((_, &(place, _)), freed)| (place, freed)).collect();
        Chains { freed, number, links: of_holds }
    }
}

impl Chains {
    /// For each lock, by its number: the fraction of its hold time in which its holder waits for
    /// the lock at `place`, directly or behind the holders of other locks.
    fn behind(&self, place: usize) -> Vec<f64> {
        match self.number.get(&place) {
            Some(&root) => behind(root, self.number.len(), &self.links),
            None => Vec::new(),
        }
    }

    pub(super) fn freed(&self, place: usize) -> Option<Estimate> {
        self.freed.get(&place).copied()
    }
}

/// Locks for which a lock's holder waits, each with the share of time of this wait.
fn waits_for(doing: &HolderCounts) -> Vec<(u32, f64)> {
    // If at least half of the samples saw the holder's activity, the others are divided among these
    // activities in proportion. The others include hand-overs, which would not occur without the
    // holder's waits.
    let share = |share: Option<Estimate>| share.map_or(0.0, |share| share.value);
    let others = share(doing.not_seen()) + share(doing.handed_over());
    let seen = if others <= 0.5 { 1.0 - others } else { 1.0 };
    let waits = doing.waits_for().into_iter();
    waits.map(|(lock, share)| (lock, (share.value / seen).min(1.0))).collect()
}

/// Adds up the gains of each lock's readers and writers, which have separate accounts: removing the
/// lock frees the waiters of both.
fn one_gain_for_readers_and_writers(locks: &[(usize, &WaitTarget)], freed: &mut [Estimate]) {
    let mut sums: HashMap<u64, Estimate> = HashMap::new();
    for (&(_, lock), freed) in locks.iter().zip(&*freed) {
        let sum = sums.entry(lock.identity.address).or_insert(Estimate::exact(0.0));
        let plus = |part: fn(&Estimate) -> f64| part(sum) + part(freed);
        *sum = Estimate {
            value: plus(|of| of.value),
            low: plus(|of| of.low),
            high: plus(|of| of.high),
        };
    }
    for (&(_, lock), freed) in locks.iter().zip(freed) {
        *freed = sums.get(&lock.identity.address).copied().unwrap_or(*freed);
    }
}
