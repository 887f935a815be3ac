//! Composes the profile that is recorded, with its verdicts, from the account.

mod cpus;
mod doing;
mod gains;
mod idle;
mod judged;
mod locking;
mod locks;
mod meanwhile;
mod naming;
mod parked;
mod runtime_threads;
mod semaphores;
mod shared;
mod sleeper;
mod stuck;
mod thread_names;
mod threads;
mod trace;
mod turns;
mod unseen;
mod waits;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

use threadtoll_machine::IdleTimes;
use threadtoll_record::profile::{
    Ended, IdleWait, Interval, Late, Lock, Method, Perturbation, Process, Profile,
    Role as SiteRole, Runtime, Site, ThreadShare,
};
use threadtoll_record::{Fraction, Ns, PerSecond, Ratio, Seconds, Text};
use threadtoll_stats::interval::{Estimate, share, share_of};

use crate::account::{Account, ProcessAccount, Semaphores, WaitTarget};
use crate::holder::Holders;
use crate::primitive::Kind;
use crate::stacks::Stacks;
use crate::watched::Watched;
use cpus::{Cpus, CpusOfProcess};
pub(crate) use doing::Doing;
use doing::{spin_loops, spins};
use gains::Gains;
use idle::by_place;
use locking::CpuOfLocks;
use locks::LockFacts;
use shared::SharedLocks;
use threads::MeanThreads;
use unseen::{semaphores_that_may_lock, unseen};

const MAX_LISTED: usize = 100;

/// Maximum number of locks, those with the longest queues, whose gains are computed to find the
/// largest gains.
const MAX_JUDGED: usize = 400;

/// Maximum number of futex words, and of stacks, considered when waits are grouped by the code that
/// waits.
const MAX_GROUPED: usize = 1_000;

const MAX_SITES: usize = 8;

#[derive(Debug)]
pub(crate) struct RunFacts<'a> {
    pub(crate) finished: bool,
    pub(crate) traced: bool,
    pub(crate) seconds: f64,
    pub(crate) budget: f64,
    pub(crate) cpu_ns: u64,
    pub(crate) perf_refused: Option<String>,
    pub(crate) background: Vec<u32>,
    /// Number of child processes that are not profiled.
    pub(crate) children: u32,
    /// Further limits of the profile, one sentence each.
    pub(crate) unseen: Vec<String>,
    /// Time spent by threads of processes that are not listed.
    pub(crate) forgotten: Doing,
    pub(crate) idle_before: &'a IdleTimes,
}

pub(crate) fn compose(
    account: &Account,
    watched: &BTreeMap<u32, Watched>,
    stacks: &mut Stacks,
    facts: &RunFacts<'_>,
) -> Profile {
    let &RunFacts { finished, seconds, budget, cpu_ns, .. } = facts;
    let perf_event = facts.perf_refused.is_none();
    let [on_time, late] = account.due;
    let samples = on_time + late;
    let known = account.seconds > 0.0;
    let (seen, cut) = stacks.table.seen_and_cut();
    let mut unseen = unseen(account, watched, facts);
    let idle = IdleTimes::read();
    let cpus = Cpus::of_this_process([facts.idle_before, &idle], seconds);
    let (mut processes, mut indices) = (Vec::new(), Vec::new());
    let mut shared = SharedLocks::default();
    let mut time = facts.forgotten.clone();
    for (&index, watched) in watched {
        let Some(process) = account.process(index) else { continue };
        let doing = Doing::of(process, stacks);
        time.add(&doing, process.seconds());
        let cpus = cpus.of(watched.cpus().as_ref(), process.seconds());
        let one = One { index, process, watched, perf_event, cpus };
        let record = one.record(&doing, &account.semaphores, stacks);
        unseen.extend(semaphores_that_may_lock(process, &record.semaphores));
        for lock in &record.locks {
            if let Some(place) = stacks.table.shared_place(index, lock.address.0) {
                shared.add(place, processes.len(), lock.id);
            }
        }
        processes.push(Process { children: facts.children, ..record });
        indices.push(index);
    }
    stuck::enter(account, watched, stacks, &indices, &mut processes);
    let parts_of = shared.put_together(&mut processes);
    let trace = facts.traced.then(|| {
        let listed = trace::ListedProcesses {
            indices: &indices,
            processes: &processes,
            parts_of: &parts_of,
        };
        Box::new(trace::record(account, watched, stacks, listed).within_limit())
    });
    Profile {
        run: Text::default(),
        at: Text::default(),
        finished,
        program: watched.values().next().map(|first| texts(&first.command)).unwrap_or_default(),
        exit_code: None,
        seconds: Seconds::new(seconds),
        interval_ns: Interval::new(Ns::new(account.started as f64), Ns::new(account.until as f64)),
        machine: None,
        trace: trace.filter(|trace| trace.columns > 0),
        method: Method::Sampled,
        samples: samples.into(),
        rate_per_s: known.then(|| PerSecond::new(samples as f64 / account.seconds)),
        late: account.lateness.quantile(0.99).map(|p99| Late {
            p99_ns: Ns::new(p99 as f64),
            share: Fraction::new(late as f64 / samples.max(1) as f64),
        }),
        budget: Ratio::new(budget),
        perf_event,
        stacks_cut_share: share(cut, seen).map(fraction),
        time: time.record(perf_event),
        processes,
        background: facts.background.clone(),
        unseen,
        perturbation: Perturbation {
            per_acquisition_ns: None,
            share_of_cpu: known.then(|| Ratio::new(cpu_ns as f64 / 1e9 / account.seconds)),
            cpu_seconds: Some(Seconds::new(cpu_ns as f64 / 1e9)),
        },
    }
}

fn texts(words: &[OsString]) -> Vec<Text> {
    words.iter().map(|word| Text::from(&*word.to_string_lossy())).collect()
}

#[derive(Clone, Copy, Debug)]
struct One<'a> {
    index: u32,
    process: &'a ProcessAccount,
    watched: &'a Watched,
    perf_event: bool,
    cpus: CpusOfProcess,
}

impl One<'_> {
    fn record(self, doing: &Doing, semaphores: &Semaphores, stacks: &mut Stacks) -> Process {
        let One { process, watched, .. } = self;
        let mut used: Vec<(usize, &WaitTarget)> = process
            .targets
            .iter()
            .enumerate()
            .filter(|(_, target)| target.is_lock() && target.is_used())
            .collect();
        let not_judged = used.len().saturating_sub(MAX_JUDGED);
        if not_judged > 0 {
            let queue = |target: &WaitTarget| MeanThreads::of(process.waiters(target)).mean;
            keep_first(&mut used, MAX_JUDGED, |(_, one), (_, other)| {
                queue(other).total_cmp(&queue(one))
            });
        }
        let gains = Gains::of(self, doing);
        let not_listed = not_judged + used.len().saturating_sub(MAX_LISTED);
        if not_listed > not_judged {
            // Gains are computed only if needed: a prediction takes a millisecond.
            let gain = |&(place, lock): &(usize, _)| gains.alone(place, lock);
            let mut all: Vec<_> = used.into_iter().map(|lock| (gain(&lock), lock)).collect();
            keep_first(&mut all, MAX_LISTED, |one, other| other.0.total_cmp(&one.0));
            used = all.into_iter().map(|(_, lock)| lock).collect();
        }
        let holders: HashMap<usize, Holders> =
            used.iter().map(|&(place, lock)| (place, lock.holders(stacks))).collect();
        let chains = gains.chains(&used, &holders);
        let names = self.names(&used, stacks);
        let listed = LockFacts { gains: &gains, chains: &chains, names: &names };
        let mut locks: Vec<Lock> = Vec::new();
        for (named, (place, _)) in names.iter().zip(&used) {
            if let Some(holders) = holders.get(place) {
                locks.push(self.lock(named, holders, &listed, stacks));
            }
        }
        locks.extend(self.parked(stacks));
        locks.sort_by(|one, other| {
            let (one, other) = (one.cost(), other.cost());
            other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1))
        });
        let locks_left_out = (not_listed + locks.len().saturating_sub(MAX_LISTED)) as u32;
        locks.truncate(MAX_LISTED);
        let spun = spins(process, stacks);
        let of_spins = sites(SiteRole::Waiter, &spun, spun.values().sum(), stacks);
        let looped = spin_loops(process, stacks);
        let of_loops = sites(SiteRole::Waiter, &looped, looped.values().sum(), stacks);
        let ran = CpuOfLocks::of(process, stacks).at;
        let of_locking = sites(SiteRole::Waiter, &ran, ran.values().sum(), stacks);
        let mut idle = |kind: Kind| {
            let of_kind = |target: &&WaitTarget| target.identity.kind() == kind;
            let targets = process.targets.iter().filter(of_kind);
            let mut waits: Vec<(&WaitTarget, MeanThreads)> = targets
                .map(|target| (target, self.idle_threads(target, stacks)))
                .filter(|(_, waiters)| waiters.mean > 0.0)
                .collect();
            let most = if kind == Kind::Parker { MAX_GROUPED } else { MAX_LISTED };
            keep_first(&mut waits, most, |(_, one), (_, other)| other.mean.total_cmp(&one.mean));
            let named = |(target, waiters)| self.idle(target, waiters, stacks);
            let mut waits: Vec<IdleWait> = waits.into_iter().map(named).collect();
            if kind == Kind::Parker {
                waits = by_place(waits);
                waits.truncate(MAX_LISTED);
            }
            waits
        };
        Process {
            pid: process.pid,
            image: watched.image,
            command: texts(&watched.command),
            parent: watched.parent,
            children: 0,
            threads_max: process.threads_max as u32,
            ended: watched.ended.unwrap_or(Ended::Running),
            signal: watched.signal,
            seconds: Some(Seconds::new(process.seconds())),
            time: doing.record(self.perf_event),
            stuck: None,
            also_stuck: Vec::new(),
            locks,
            locks_left_out,
            condvars: idle(Kind::Condvar),
            semaphores: idle(Kind::Semaphore),
            barriers: idle(Kind::Barrier),
            joins: idle(Kind::Join),
            onces: idle(Kind::Once),
            parkers: idle(Kind::Parker),
            unknown: idle(Kind::Unknown),
            spins: of_spins,
            spin_loops: of_loops,
            locking: of_locking,
            waits: self.waits(doing, semaphores, stacks),
            runtime: match (process.go, process.jvm) {
                (true, _) => Some(Runtime::Go),
                (_, true) => Some(Runtime::Java),
                _ => None,
            },
        }
    }

    fn shares(self, samples: &HashMap<u32, u64>, inferred: bool) -> Vec<ThreadShare> {
        let all: u64 = samples.values().sum();
        let mut threads: Vec<(u32, u64)> =
            samples.iter().map(|(&tid, &samples)| (tid, samples)).collect();
        threads.sort_by_key(|&(tid, samples)| (std::cmp::Reverse(samples), tid));
        threads.truncate(MAX_LISTED);
        let record = |(tid, samples): (u32, u64)| {
            let named = self.name_of_thread(tid);
            let share = share(samples, all)?;
            Some(ThreadShare {
                tid,
                name: Text::from(named.name),
                pid: named.pid,
                ended: named.ended,
                share: fraction(share),
                interval95: fractions(share),
                inferred,
            })
        };
        threads.into_iter().filter_map(record).collect()
    }
}

fn keep_first<T>(all: &mut Vec<T>, most: usize, order: impl FnMut(&T, &T) -> Ordering) {
    all.sort_by(order);
    all.truncate(most);
}

/// Stacks seen in a role, most frequent first. `all_samples` is the number of samples that saw a
/// thread in this role. Several threads with one stack in one sample count as one observation.
fn sites(
    role: SiteRole,
    seen: &HashMap<u32, u64>,
    all_samples: u64,
    stacks: &mut Stacks,
) -> Vec<Site> {
    let of: u64 = seen.values().sum();
    let mut all: Vec<(u32, u64)> = seen.iter().map(|(&stack, &samples)| (stack, samples)).collect();
    all.sort_by_key(|&(stack, samples)| (std::cmp::Reverse(samples), stack));
    all.truncate(MAX_SITES);
    let record = |(stack, samples): (u32, u64)| {
        let (frames, inferred_frames) = stacks.names(stack);
        let share = share_of(samples, of, all_samples);
        Site {
            role,
            frames: frames.into_iter().map(Text::from).collect(),
            inferred_frames,
            samples: samples.into(),
            share: share.map(fraction),
            interval95: share.and_then(fractions),
            count: None,
            wait_ns: None,
            hold_ns: None,
        }
    };
    all.into_iter().map(record).collect()
}

fn fraction(estimate: Estimate) -> Fraction {
    Fraction::new(estimate.value.clamp(0.0, 1.0))
}

fn ratio(estimate: Estimate) -> Ratio {
    Ratio::new(estimate.value.max(0.0))
}

fn fractions(estimate: Estimate) -> Option<Interval<Fraction>> {
    let end = |value: f64| Fraction::new(value.clamp(0.0, 1.0));
    Interval::new(end(estimate.low), end(estimate.high))
}

fn ratios(estimate: Estimate) -> Option<Interval<Ratio>> {
    let end = |value: f64| Ratio::new(value.max(0.0));
    Interval::new(end(estimate.low), end(estimate.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_queues_are_named() {
        let mut queues: Vec<f64> = (0..1_000).map(|at| f64::from(at * 7 % 1_000)).collect();
        keep_first(&mut queues, 3, |one, other| other.total_cmp(one));
        assert_eq!(queues, [999.0, 998.0, 997.0]);
    }
}
