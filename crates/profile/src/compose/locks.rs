//! Locks of a profile, and the judgement of each.

use std::collections::HashMap;

use threadtoll_judge::cause::{Cause as CauseFound, CauseShare};
use threadtoll_judge::gain::{Surroundings, gain};
use threadtoll_judge::mend::{Context, mend};
use threadtoll_judge::prediction::{self, CpuDemand};
use threadtoll_judge::{Judgement, LockSeen};
use threadtoll_record::profile::{
    Address, Cause, ChainLink, Interval, Lock, LockKind, NameFrom, Predicted, Role as SiteRole,
    WhatIf,
};
use threadtoll_record::{Fraction, Ratio, Text};

use super::doing::Doing;
use super::idle::{Reasons, is_parker};
use super::judged::{cause_kind, change, verdict};
use super::threads::Threads;
use super::{One, fraction, fractions, ratio, ratios, sites};
use crate::account::{Object, ProcessAccount};
use crate::primitive::Kind;
use crate::stacks::Stacks;

/// Number of the row for all Java monitors, which must not change as more locks are found: those
/// are numbered from 1.
const MONITORS: u32 = 0;

/// The two busiest locks of a process, each by its place and the share of time for which one thread
/// has it, or is being given it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Busiest {
    first: (usize, f64),
    second: f64,
}

impl Busiest {
    pub(super) fn of(process: &ProcessAccount) -> Busiest {
        let locks = process.objects.iter().enumerate().filter(|(_, object)| object.is_lock());
        // Readers that share a lock do not keep each other from working.
        let busy = locks.filter_map(|(place, lock)| {
            let busy = process.samples(lock).busy()?.value;
            Some((place, busy * lock.exclusive_share()))
        });
        busy.fold(Busiest::default(), |busiest, (place, busy)| match busy {
            _ if busy > busiest.first.1 => {
                Busiest { first: (place, busy), second: busiest.first.1 }
            }
            _ => Busiest { second: busiest.second.max(busy), ..busiest },
        })
    }

    pub(super) fn other_than(self, place: usize) -> f64 {
        if self.first.0 == place { self.second } else { self.first.1 }
    }
}

impl One<'_> {
    /// Throughput that the program would gain without the lock's queue.
    pub(super) fn gain(self, place: usize, lock: &Object, doing: &Doing, busiest: Busiest) -> f64 {
        let queue = self.process.samples(lock).queue().known();
        queue.map_or(0.0, |queue| gain(queue, self.surroundings(place, doing, busiest)).value)
    }

    fn surroundings(self, place: usize, doing: &Doing, busiest: Busiest) -> Surroundings {
        Surroundings {
            working: doing.working(),
            on_cpu: doing.on_cpu().mean,
            cpus: f64::from(self.cpus),
            busiest_other: busiest.other_than(place),
        }
    }

    pub(super) fn lock(
        self,
        named: Named,
        doing: &Doing,
        busiest: Busiest,
        stacks: &mut Stacks,
    ) -> Lock {
        let Named { id, name, name_from } = named;
        let process = self.process;
        let place = id as usize - 1;
        let object = &process.objects[place];
        let users = process.at_once(object.users.len()) as u32;
        let alive = (process.threads.len() as u32).max(users);
        let cpus = self.cpus;
        let holders = object.holder.holders(stacks);
        let judged = Judgement::new(LockSeen {
            samples: &process.samples(object),
            unseen: process.unseen(object),
            bursts: &object.bursts,
            holders: &holders.doing,
            patterns: object.patterns(),
            users,
            alive,
            cpu: Some(CpuDemand { on_cpu: process.on_cpu(&object.users), cpus }),
            program: self.surroundings(place, doing, busiest),
        });
        let context = Context {
            lock: &name,
            syscall: None,
            cpus,
            threads: alive,
            read_write: matches!(object.identity.kind(), Kind::RwLock | Kind::RustRwLock),
            interpreter: object.identity.interpreter_lock().is_some(),
        };
        let holding = self.shares(&holders.threads, holders.inferred);
        // The models know one holder at a time, and the threads of one process.
        let elsewhere = holding.iter().any(|holder| holder.pid.is_some());
        let modelled = !context.read_write && !elsewhere;
        let (held, queue) = (judged.held.known(), judged.queue.known());
        // More threads wait than were seen to.
        let too_few = object.seen_in_part() && queue.is_some_and(|it| it.value >= f64::from(users));
        let efficiency = judged.efficiency.filter(|_| !too_few);
        let mut all_sites =
            sites(SiteRole::Waiter, &object.waiting_at, object.looks_at_stacks, stacks);
        let lock = not_judged(id, lock_kind(object), Address(object.address), users, alive);
        let lock = Lock { name: Text::from(&*name), name_from, ..lock };
        let looks = holders.stacks.values().sum();
        all_sites.extend(sites(SiteRole::Holder, &holders.stacks, looks, stacks));
        let (candidates, looks) = (&holders.candidates, holders.looks_at_candidates);
        all_sites.extend(sites(SiteRole::Candidate, candidates, looks, stacks));
        Lock {
            generation: object.generation + 1,
            held_share: held.map(fraction),
            held_share_interval95: held.and_then(fractions),
            queue_mean: queue.map(ratio),
            queue_mean_interval95: queue.and_then(ratios),
            queue_is_lower_bound: judged.queue_is_lower_bound,
            queue_max: Some(object.waiters_max),
            seen_in_part: object.seen_in_part(),
            gain: judged.gain.map(ratio),
            gain_interval95: judged.gain.and_then(ratios),
            efficiency: efficiency.map(fraction),
            efficiency_interval95: efficiency.and_then(fractions),
            verdict: judged.verdict.map(verdict),
            holder_not_seen_share: holders.doing.not_seen().map(fraction),
            holder_not_seen_interval95: holders.doing.not_seen().and_then(fractions),
            holders: holding,
            waiters: self.shares(&object.waiting, false),
            waits_for: holders
                .doing
                .waits_for()
                .into_iter()
                .map(|(lock, share)| ChainLink {
                    lock: lock + 1,
                    share: fraction(share),
                    interval95: fractions(share),
                })
                .collect(),
            causes: judged.causes.iter().map(|&found| cause(found, context)).collect(),
            predicted: judged
                .predicted
                .iter()
                .filter(|_| modelled)
                .map(|&(threads, speedup)| Predicted {
                    threads,
                    speedup: ratio(speedup),
                    interval95: ratios(speedup),
                })
                .collect(),
            what_if: judged
                .what_if
                .iter()
                .chain(&judged.what_if_all_use)
                .filter(|_| modelled)
                .map(what_if)
                .collect(),
            sites: all_sites,
            ..lock
        }
    }

    /// Java's monitors that threads wait to enter, as one lock: each thread waits on a word of its
    /// own, which does not tell the monitor.
    pub(super) fn monitors(self, stacks: &mut Stacks) -> Option<Lock> {
        let (mut waiters, mut looks) = (Threads::default(), 0);
        let (mut threads, mut waiting_at) = (HashMap::new(), HashMap::new());
        for object in self.process.objects.iter().filter(|object| is_parker(object)) {
            let reasons = Reasons::of(object, stacks);
            if reasons.lock > 0.0 {
                let here = Threads::of(self.process.waiters(object));
                waiters = waiters.and(here.part(reasons.lock));
                looks = looks.max(object.looks_at_stacks);
                object
                    .waiting
                    .iter()
                    .for_each(|(&tid, looks)| *threads.entry(tid).or_default() += looks);
                reasons
                    .locking
                    .iter()
                    .for_each(|(&at, looks)| *waiting_at.entry(at).or_default() += looks);
            }
        }
        if threads.is_empty() {
            return None;
        }
        let users = self.process.at_once(threads.len()) as u32;
        let alive = (self.process.threads.len() as u32).max(users);
        Some(Lock {
            name: Text::from("synchronized (Java)"),
            name_from: NameFrom::WaiterSite,
            queue_mean: Some(Ratio::new(waiters.mean)),
            queue_mean_interval95: waiters.ratio_interval(),
            efficiency: Some(Fraction::new((1.0 - waiters.mean / f64::from(users)).max(0.0))),
            holder_not_seen_share: Some(Fraction::new(1.0)),
            waiters: self.shares(&threads, false),
            sites: sites(SiteRole::Waiter, &waiting_at, looks, stacks),
            ..not_judged(MONITORS, LockKind::Parker, Address(0), users, alive)
        })
    }
}

/// A lock of which no more is known. `alive` threads may use it, and `users` of them do.
pub(super) fn not_judged(
    id: u32,
    kind: LockKind,
    address: Address,
    users: u32,
    alive: u32,
) -> Lock {
    Lock {
        id,
        kind,
        name: Text::default(),
        name_from: NameFrom::Address,
        address,
        generation: 1,
        first_seen: Vec::new(),
        acquisitions: None,
        contended: None,
        hold: None,
        wait: None,
        threads: users,
        threads_interval: Interval::new(users, alive),
        held_share: None,
        held_share_interval95: None,
        queue_mean: None,
        queue_mean_interval95: None,
        queue_is_lower_bound: false,
        queue_max: None,
        seen_in_part: false,
        gain: None,
        gain_interval95: None,
        efficiency: None,
        efficiency_interval95: None,
        verdict: None,
        shared_by: Vec::new(),
        holder_not_seen_share: None,
        holder_not_seen_interval95: None,
        holders: Vec::new(),
        waiters: Vec::new(),
        waits_for: Vec::new(),
        causes: Vec::new(),
        handoff_ns: None,
        predicted: Vec::new(),
        what_if: Vec::new(),
        sites: Vec::new(),
    }
}

/// Number and name of a lock.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) name_from: NameFrom,
}

/// Numbers locks of one name, such as those of an array.
pub(super) fn tell_apart(locks: &mut [Named]) {
    let mut times: HashMap<String, u32> = HashMap::new();
    for lock in locks.iter() {
        *times.entry(lock.name.clone()).or_default() += 1;
    }
    for lock in locks.iter_mut().filter(|lock| times[&lock.name] > 1) {
        lock.name = match lock.name.strip_prefix("lock in ") {
            Some(site) => format!("lock {} in {site}", lock.id),
            None => format!("{} #{}", lock.name, lock.id),
        };
    }
}

fn cause(found: CauseShare, context: Context<'_>) -> Cause {
    let syscall = match found.cause {
        CauseFound::SleptHolding(number) => Some(syscall_name(number)),
        _ => None,
    };
    let context = Context { syscall: syscall.as_deref(), ..context };
    Cause {
        cause: cause_kind(found.cause),
        share: fraction(found.share),
        interval95: fractions(found.share),
        mend: Some(Text::from(mend(found.cause, context))),
        syscall: syscall.map(Text::from),
    }
}

fn what_if(effect: &prediction::WhatIf) -> WhatIf {
    WhatIf {
        change: change(effect.change),
        threads: effect.threads,
        speedup: ratio(effect.speedup),
        interval95: ratios(effect.speedup),
        gain: Some(ratio(effect.gain)),
        gain_interval95: ratios(effect.gain),
    }
}

fn lock_kind(object: &Object) -> LockKind {
    match object.identity.kind() {
        Kind::RwLock if object.for_readers => LockKind::RwlockRead,
        Kind::Mutex => LockKind::Mutex,
        Kind::RwLock => LockKind::RwlockWrite,
        Kind::Spinlock => LockKind::Spinlock,
        Kind::RustMutex => LockKind::RustMutex,
        Kind::RustRwLock => LockKind::RustRwlock,
        Kind::Parker => LockKind::Parker,
        _ => LockKind::Futex,
    }
}

fn syscall_name(number: u32) -> String {
    match syscalls::Sysno::new(number as usize) {
        Some(call) => call.name().to_string(),
        None => format!("system call {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_one_site_have_numbers() {
        let names = ["lock in item_get", "log", "lock in item_get", "slabs_lock", "log"];
        let mut locks: Vec<Named> = (1..)
            .zip(names)
            .map(|(id, name)| Named { id, name: name.into(), name_from: NameFrom::Symbol })
            .collect();
        tell_apart(&mut locks);
        let names: Vec<&str> = locks.iter().map(|lock| &*lock.name).collect();
        let expected =
            ["lock 1 in item_get", "log #2", "lock 3 in item_get", "slabs_lock", "log #5"];
        assert_eq!(names, expected);
    }
}
