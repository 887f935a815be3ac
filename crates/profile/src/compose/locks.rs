//! Locks of a profile, with their verdicts.

use libc::c_long;
use threadtoll_judge::cause::{Awaited, Cause as CauseFound, CauseShare};
use threadtoll_judge::mend::{MendContext, Sleeper, mend};
use threadtoll_judge::prediction;
use threadtoll_judge::{Judgement, LockSeen};
use threadtoll_record::profile::{
    Address, Cause, CauseKind, ChainLink, Interval, Lock, LockKind, NameFrom, Predicted,
    Role as SiteRole, ThreadShare, WhatIf,
};
use threadtoll_record::{Fraction, Text};
use threadtoll_stats::interval::Estimate;

use super::gains::{Chains, Gains};
use super::judged::{cause_kind, change, verdict};
use super::naming::Named;
use super::sleeper::{sleeper, waits_at_queue};
use super::{One, fraction, fractions, ratio, ratios, sites};
use crate::account::WaitTarget;
use crate::holder::Holders;
use crate::primitive::Kind;
use crate::stacks::Stacks;

/// Calls in which a holder waits until a reader or a disk has made room. Without the lock, the
/// thread would wait, too.
const WRITES: [c_long; 5] =
    [libc::SYS_write, libc::SYS_writev, libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg];

/// Minimum share of a lock's samples with an inferred holder for such holders to be reported. A few
/// may be due to stacks that were read too late.
const LEAST_INFERRED: f64 = 0.1;

/// The queue of a spinlock is a lower bound if more threads than this, relative to the queue, may
/// have lost their CPU while they spun.
const UNSEEN: f64 = 0.05;

/// Where threads fill at least this share of the CPUs, the held share of a spinlock is withheld:
/// each sample takes the CPU of a thread that would have the lock, or take it.
const FULL: f64 = 0.9;

/// Share of a lock's holds, if one thread at a time holds it, that belong to threads that were also
/// seen waiting for it; 0 if the holders are unknown.
fn share_of_waiters(target: &WaitTarget, holders: &Holders) -> f64 {
    let exclusive = !matches!(target.identity.kind(), Kind::RwLock | Kind::RustRwLock);
    if !exclusive || holders.inferred {
        return 0.0;
    }
    let waits = |(tid, _): &(&u32, &u64)| target.waiting.contains_key(*tid);
    let of_waiters: u64 = holders.threads.iter().filter(waits).map(|(_, samples)| samples).sum();
    let all: u64 = holders.threads.values().sum();
    of_waiters as f64 / all.max(1) as f64
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LockFacts<'a> {
    pub(super) gains: &'a Gains<'a>,
    pub(super) chains: &'a Chains,
    pub(super) names: &'a [Named],
}

impl One<'_> {
    pub(super) fn lock(
        self,
        named: &Named,
        holders: &Holders,
        listed: &LockFacts<'_>,
        stacks: &mut Stacks,
    ) -> Lock {
        let Named { id, ref name, name_from, .. } = *named;
        let process = self.process;
        let place = id as usize - 1;
        let target = &process.targets[place];
        let is_spinlock = target.identity.kind() == Kind::Spinlock;
        let users = process.at_once(target.users.len().max(target.users_counted)) as u32;
        let alive = self.may_use(target).max(users);
        let cpus = self.cpus.number;
        let mut around = listed.gains.around(place, target, listed.chains);
        around.held_up_by_others =
            holders.doing.sleeps_mostly_in(|call| WRITES.contains(&c_long::from(call)));
        let unseen = process.unseen(target);
        let judged = Judgement::new(LockSeen {
            samples: &process.samples(target),
            unseen,
            bursts: &target.bursts,
            holders: &holders.doing,
            patterns: target.patterns(),
            users,
            alive,
            cpu: Some(listed.gains.demand(target)),
            freed: listed.chains.freed(place),
            elsewhere: listed.gains.elsewhere(target),
            program: listed.gains.surroundings(&around),
        });
        let context = MendContext {
            lock: &named.of_both,
            syscall: None,
            sleeper: None,
            awaited: None,
            cpus,
            on_cpu: listed.gains.on_cpu(),
            threads: alive,
            fewer_do: judged.fewer_do(cpus, users),
            nice: self.nice(holders),
            read_write: matches!(target.identity.kind(), Kind::RwLock | Kind::RustRwLock),
            spins: is_spinlock,
            interpreter: target.identity.interpreter_lock().is_some(),
            library: named.library.map(|library| library.mend),
        };
        let mut holding = of_samples(self.shares(&holders.threads, holders.inferred), holders);
        let seen_holding: f64 = holding.iter().map(|holder| holder.share.get()).sum();
        let is_told = !holders.inferred || seen_holding >= LEAST_INFERRED;
        if !is_told {
            holding.clear();
        }
        let disturbed = is_spinlock && listed.gains.on_cpu() >= FULL * f64::from(cpus);
        let held = judged.held.known().filter(|_| !disturbed);
        let estimated = judged.queue.known();
        let queue = match process.most_waiting(target) {
            // A thread that holds the lock does not wait for it.
            Some(most) => {
                let held = held.map_or(0.0, |held| held.low) * share_of_waiters(target, holders);
                estimated.map(|queue| queue.at_most(most - held))
            }
            None => estimated,
        };
        let is_least = match is_spinlock {
            true => queue.is_some_and(|queue| unseen.anywhere > UNSEEN * queue.value),
            false => judged.queue_is_lower_bound,
        };
        let is_beyond = |(raw, queue): (Estimate, Estimate)| {
            raw.value >= f64::from(users) || queue.value < raw.value
        };
        let too_few = target.seen_in_part() && estimated.zip(queue).is_some_and(is_beyond);
        let mut all_sites =
            sites(SiteRole::Waiter, &target.waiting_at, target.stack_samples, stacks);
        let lock = not_judged(id, lock_kind(target), Address(target.address), users, alive);
        let lock = Lock { name: Text::from(name.as_str()), name_from, ..lock };
        let words = |found: &CauseShare| {
            let (sleeper, awaited) = self.words(*found, target, holders, listed.names, stacks);
            let context =
                MendContext { sleeper: sleeper.as_ref(), awaited: awaited.as_deref(), ..context };
            cause(*found, context)
        };
        let mut causes: Vec<Cause> = judged.causes.iter().map(words).collect();
        let takes_turns = judged.causes.first().is_some_and(|first| {
            first.share.value >= MOST && waits_for_work(*first, target, holders, stacks)
        });
        if takes_turns && let Some(first) = causes.first_mut() {
            first.mend = Some(Text::from(idle(named)));
        }
        // Another thread releases the lock, so the lock's holder and waiters do not determine the
        // pace.
        let is_event = holders.released_by_others || waits_for_its_own(id - 1, holders);
        // A fork made this copy of the lock; the owner holds the original.
        let is_copy = target.private && holding.iter().any(|holder| holder.pid.is_some());
        if is_event || is_copy {
            causes.clear();
        }
        if is_copy {
            holding.clear();
        }
        let starves = causes.first().is_some_and(|first| first.cause == CauseKind::StarvedWriter);
        let untold = takes_turns || is_event || is_copy || starves;
        let is_tried = may_be_tried(held, queue, holding.len());
        let gain = judged.gain.filter(|_| !untold && !is_tried);
        // The models cover one holder at a time, and threads of a single process.
        let elsewhere = holding.iter().any(|holder| holder.pid.is_some());
        let modelled = !context.read_write && !elsewhere && !untold && !is_tried && !disturbed;
        if is_told && !is_copy {
            let samples = holders.stacks.values().sum();
            all_sites.extend(sites(SiteRole::Holder, &holders.stacks, samples, stacks));
        }
        let (candidates, samples) = (&holders.candidates, holders.candidate_samples);
        // Candidates are left out if holds are short or of unknown length: the stacks of the
        // candidates were then read too late to show the holder.
        if !is_least && queue.is_some() {
            all_sites.extend(sites(SiteRole::Candidate, candidates, samples, stacks));
        }
        let efficiency = judged.efficiency.filter(|_| !too_few && !is_tried);
        Lock {
            generation: target.generation + 1,
            held_share: held.map(fraction),
            held_share_interval95: held.and_then(fractions),
            queue_mean: queue.map(ratio),
            queue_mean_interval95: queue.and_then(ratios),
            queue_is_lower_bound: is_least || is_tried,
            queue_max: Some(target.waiters_max),
            seen_in_part: target.seen_in_part(),
            gain: gain.map(ratio),
            gain_interval95: gain.and_then(ratios),
            takes_turns,
            released_by_others: is_event,
            never_taken: is_copy,
            efficiency: efficiency.map(fraction),
            efficiency_interval95: efficiency.and_then(fractions),
            verdict: judged.verdict.filter(|_| !is_tried && !disturbed).map(verdict),
            holder_not_seen_share: holders.doing.not_seen().map(fraction),
            holder_not_seen_interval95: holders.doing.not_seen().and_then(fractions),
            waiting_samples: Some(holders.doing.samples.into()),
            holder_let_go_share: holders.doing.let_go().map(fraction),
            holders: holding,
            waiters: self.shares(&target.waiting, false),
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
            causes,
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

    fn words(
        self,
        found: CauseShare,
        target: &WaitTarget,
        holders: &Holders,
        names: &[Named],
        stacks: &mut Stacks,
    ) -> (Option<Sleeper>, Option<String>) {
        match found.cause {
            CauseFound::SleptHolding(number) => {
                let call = syscall_name(number);
                (sleeper(&holders.stacks, &target.waiting_at, &call, stacks), None)
            }
            CauseFound::WaitsForLock(place) => {
                let other = names.iter().find(|named| named.id == place + 1);
                (None, other.map(|named| named.name.clone()))
            }
            CauseFound::WaitsForThreads(..) => {
                let sleeper = sleeper(&holders.stacks, &target.waiting_at, "futex", stacks);
                (sleeper, self.awaited(found, stacks))
            }
            _ => (None, None),
        }
    }

    fn awaited(self, found: CauseShare, stacks: &mut Stacks) -> Option<String> {
        let CauseFound::WaitsForThreads(kind, place) = found.cause else { return None };
        let kind = match kind {
            Awaited::Condvar => "condition variable",
            Awaited::Semaphore => "semaphore",
            Awaited::Barrier => "barrier",
            Awaited::Join => return Some("a thread to end".to_owned()),
            Awaited::Once => "initialisation",
            Awaited::Unknown => return Some("other threads".to_owned()),
        };
        let target = place.and_then(|place| self.process.targets.get(place as usize));
        let named = target.map(|target| self.name(target, stacks));
        Some(match named {
            Some((name, NameFrom::Symbol)) => format!("{kind} {name}"),
            _ if kind.starts_with('i') => format!("an {kind}"),
            _ => format!("a {kind}"),
        })
    }

    /// Number of living threads that may use a lock: those seen using it, and those neither seen
    /// using other locks nor in one wait all the time.
    fn may_use(self, lock: &WaitTarget) -> u32 {
        let process = self.process;
        let others = process.lock_users().filter(|tid| !lock.users.contains(tid)).count();
        process.threads.len().saturating_sub(others + process.without_part()) as u32
    }

    /// Nice value of the most frequent holder, if positive: other threads have priority over it.
    fn nice(self, holders: &Holders) -> Option<u8> {
        let most = holders.threads.iter().max_by_key(|&(tid, samples)| (samples, tid));
        let nice = self.watched.process.as_ref()?.thread_nice(*most?.0)?;
        u8::try_from(nice).ok().filter(|nice| *nice > 0)
    }
}

/// If a holder waits for work in at least this share of the waiting time, the threads count as
/// taking turns at waiting for work.
const MOST: f64 = 0.25;

/// If a lock's owner waits for its own lock in at least this share of the waiting time, the lock
/// counts as an event.
const OWN: f64 = 0.1;

fn waits_for_its_own(place: u32, holders: &Holders) -> bool {
    let mut waits = holders.doing.waits_for().into_iter();
    waits.any(|(lock, share)| lock == place && share.value >= OWN)
}

fn waits_for_work(
    found: CauseShare,
    target: &WaitTarget,
    holders: &Holders,
    stacks: &mut Stacks,
) -> bool {
    match found.cause {
        CauseFound::SleptHolding(call) => WORK.contains(&i64::from(call)),
        CauseFound::WaitsForThreads(Awaited::Join, _) => false,
        CauseFound::WaitsForThreads(..) => {
            waits_at_queue(&holders.stacks, &target.waiting_at, stacks)
        }
        _ => false,
    }
}

/// System calls in which threads wait for work from outside the process.
const WORK: &[c_long] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];

fn idle(lock: &Named) -> String {
    format!(
        "Nothing to do if the waiting threads have no other work; otherwise, release {} before \
         waiting for work.",
        lock.of_both
    )
}

/// Scales the holders' shares to all samples with a waiter, including samples that saw no holder.
fn of_samples(mut shares: Vec<ThreadShare>, holders: &Holders) -> Vec<ThreadShare> {
    let seen = holders.threads.values().sum::<u64>() as f64;
    let part = seen / (holders.doing.samples as f64).max(seen).max(1.0);
    let scaled = |share: Fraction| Fraction::new(share.get() * part);
    for holder in &mut shares {
        holder.share = scaled(holder.share);
        let within = holder.interval95;
        holder.interval95 =
            within.and_then(|it| Interval::new(scaled(it.low()), scaled(it.high())));
    }
    shares
}

/// Returns `true` for a lock that several threads hold much of the time and for which no thread
/// sleeps. Threads may try to take the lock again and again instead, so that its queue does not
/// show.
fn may_be_tried(held: Option<Estimate>, queue: Option<Estimate>, holders: usize) -> bool {
    const OFTEN_HELD: f64 = 0.5;
    const NO_QUEUE: f64 = 0.02;
    holders >= 2
        && held.is_some_and(|held| held.low >= OFTEN_HELD)
        && queue.is_some_and(|queue| queue.value <= NO_QUEUE)
}

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
        waiting_samples: None,
        holder_let_go_share: None,
        never_taken: false,
        takes_turns: false,
        released_by_others: false,
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

fn cause(found: CauseShare, context: MendContext<'_>) -> Cause {
    let syscall = match found.cause {
        CauseFound::SleptHolding(number) => Some(syscall_name(number)),
        _ => None,
    };
    let mend = mend(found.cause, MendContext { syscall: syscall.as_deref(), ..context });
    Cause {
        cause: cause_kind(found.cause),
        share: fraction(found.share),
        interval95: fractions(found.share),
        mend: Some(Text::from(mend)),
        syscall: syscall.map(Text::from),
        awaited: context.awaited.map(Text::from),
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

fn lock_kind(target: &WaitTarget) -> LockKind {
    match target.identity.kind() {
        Kind::RwLock if target.for_readers => LockKind::RwlockRead,
        Kind::Mutex => LockKind::Mutex,
        Kind::RwLock => LockKind::RwlockWrite,
        Kind::RustMutex => LockKind::RustMutex,
        Kind::RustRwLock => LockKind::RustRwlock,
        Kind::Parker => LockKind::Parker,
        Kind::Spinlock => LockKind::Spinlock,
        _ => LockKind::Futex,
    }
}

pub(super) fn syscall_name(number: u32) -> String {
    match syscalls::Sysno::new(number as usize) {
        Some(call) => call.name().to_string(),
        None => format!("system call {number}"),
    }
}
