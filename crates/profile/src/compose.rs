//! The account and the judgement of it, as a record.

use std::collections::BTreeMap;
use std::ffi::OsString;

use threadtoll_record::profile::{
    Address, Cause, CauseKind, ChainLink, Ended, IdleWait, Interval, IoKind, Late, Lock, LockKind,
    Method, NameFrom, Perturbation, Predicted, Process, Profile, ThreadShare, ThreadTime,
    TimeIntervals, Verdict, WhatIf,
};
use threadtoll_record::{Fraction, Ns, PerSecond, Ratio, Seconds, Text};

use crate::account::{Account, Device, Object, ProcessAccount, Time};
use crate::judge::cause::{Cause as Judged, causes};
use crate::judge::gain::{Surroundings, gain};
use crate::judge::interval::{Estimate, share};
use crate::judge::mend::{Context, mend};
use crate::judge::prediction::{Change, CpuDemand, Predictor, Present};
use crate::judge::verdict::{Verdict as Judgement, efficiency};
use crate::primitive::{Kind, Role};
use crate::profiler::Watched;

/// Normal quantile of a 95% interval.
const Z: f64 = 1.96;

/// Mean hold below which waiters that are about to sleep, or have just been woken, are too large a
/// part of the queue.
const SHORT_HOLD_NS: f64 = 200_000.0;

/// Most locks, and most other things, of a process that are listed.
const MAX_LISTED: usize = 100;

/// Numbers of threads for which a speed-up is predicted, besides those of the present.
const THREADS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// What the profile says besides what was seen.
#[derive(Debug)]
pub(crate) struct Circumstances {
    pub(crate) finished: bool,
    pub(crate) seconds: f64,
    pub(crate) budget: f64,
    pub(crate) cpu_ns: u64,
    pub(crate) perf_event: bool,
}

/// Everything seen so far.
pub(crate) fn compose(
    account: &Account,
    watched: &[Watched],
    circumstances: &Circumstances,
) -> Profile {
    let Circumstances { finished, seconds, budget, cpu_ns, perf_event } = *circumstances;
    let [on_time, late] = account.due_ever;
    let samples = on_time + late;
    let mut lateness = account.lateness.clone();
    lateness.sort_unstable();
    let p99 = lateness.get(lateness.len().saturating_mul(99) / 100);
    let known = account.seconds > 0.0;
    Profile {
        run: Text::default(),
        at: Text::default(),
        finished,
        program: watched.first().map(|first| texts(&first.command)).unwrap_or_default(),
        exit_code: None,
        seconds: Seconds::new(seconds),
        machine: None,
        method: Method::Sampled,
        samples: samples.into(),
        rate_per_s: known.then(|| PerSecond::new(samples as f64 / account.seconds)),
        late: p99.map(|&p99| Late {
            p99_ns: Ns::new(f64::from(p99)),
            share: Fraction::new(late as f64 / samples.max(1) as f64),
        }),
        budget: Ratio::new(budget),
        perf_event,
        stacks_cut_share: None,
        processes: account
            .processes
            .iter()
            .zip(watched)
            .map(|(process, watched)| compose_process(process, watched, perf_event))
            .collect(),
        unseen: Vec::new(),
        perturbation: Perturbation {
            per_acquisition_ns: None,
            share_of_cpu: known.then(|| Ratio::new(cpu_ns as f64 / 1e9 / account.seconds)),
        },
    }
}

fn texts(words: &[OsString]) -> Vec<Text> {
    words.iter().map(|word| Text::from(&*word.to_string_lossy())).collect()
}

/// Mean number of threads that do something.
#[derive(Clone, Copy, Debug, Default)]
struct Threads {
    mean: f64,
    variance: f64,
}

impl Threads {
    fn of(mean: &crate::account::Mean) -> Threads {
        mean.estimate().map_or_else(Threads::default, |estimate| Threads {
            mean: estimate.mean,
            variance: estimate.error.powi(2),
        })
    }

    fn and(self, other: Threads) -> Threads {
        Threads { mean: self.mean + other.mean, variance: self.variance + other.variance }
    }

    fn share(self, all: f64) -> Fraction {
        Fraction::new((self.mean / all).clamp(0.0, 1.0))
    }

    fn interval(self, all: f64) -> Option<Interval<Fraction>> {
        let half = Z * self.variance.sqrt();
        let end = |mean: f64| Fraction::new((mean / all).clamp(0.0, 1.0));
        Interval::new(end(self.mean - half), end(self.mean + half))
    }

    fn ratio_interval(self) -> Option<Interval<Ratio>> {
        let half = Z * self.variance.sqrt();
        Interval::new(Ratio::new((self.mean - half).max(0.0)), Ratio::new(self.mean + half))
    }
}

/// What the threads of a process do, in mean numbers of threads.
#[derive(Debug)]
struct Doing {
    times: BTreeMap<Time, Threads>,
    lock: Threads,
    idle: Threads,
    unknown: Threads,
    all: f64,
}

impl Doing {
    fn of(process: &ProcessAccount) -> Doing {
        let times: BTreeMap<Time, Threads> =
            Time::ALL.iter().map(|&kind| (kind, Threads::of(process.time(kind)))).collect();
        let waiting = |role: fn(Role) -> bool| {
            let objects = process.objects.iter().filter(|object| role(object.identity.role()));
            objects
                .map(|object| Threads::of(&object.waiters))
                .fold(Threads::default(), Threads::and)
        };
        let lock = waiting(|role| role == Role::Lock);
        let idle = waiting(|role| matches!(role, Role::Idle | Role::Parked));
        let unknown = waiting(|role| role == Role::Unknown);
        let all = times.values().fold(lock.and(idle).and(unknown), |sum, &time| sum.and(time)).mean;
        Doing { times, lock, idle, unknown, all }
    }

    fn time(&self, kind: Time) -> Threads {
        self.times.get(&kind).copied().unwrap_or_default()
    }

    fn on_cpu(&self) -> Threads {
        self.time(Time::Running).and(self.time(Time::Runnable))
    }

    /// Threads that neither wait for a lock nor idle.
    fn working(&self) -> f64 {
        let idle = self.time(Time::Idle).mean;
        (self.times.values().map(|time| time.mean).sum::<f64>() - idle).max(0.0)
    }

    fn record(&self, perf_event: bool) -> Option<ThreadTime> {
        if self.all <= 0.0 {
            return None;
        }
        let all = self.all;
        let idle = self.idle.and(self.time(Time::Idle));
        let unknown = self.unknown.and(self.time(Time::Other));
        let io: BTreeMap<IoKind, Threads> = [
            (IoKind::Disk, self.time(Time::Io(Device::Disk)).and(self.time(Time::Paging))),
            (IoKind::Socket, self.time(Time::Io(Device::Socket))),
            (IoKind::Pipe, self.time(Time::Io(Device::Pipe))),
            (IoKind::Terminal, self.time(Time::Io(Device::Terminal))),
            (IoKind::Other, self.time(Time::Io(Device::Other))),
        ]
        .into_iter()
        .filter(|(_, threads)| threads.mean > 0.0)
        .collect();
        let (running, runnable) = (self.time(Time::Running), self.time(Time::Runnable));
        let sleep = self.time(Time::Sleep);
        let told = |threads: Threads| perf_event.then(|| threads.share(all));
        let told_interval =
            |threads: Threads| if perf_event { threads.interval(all) } else { None };
        Some(ThreadTime {
            on_cpu: self.on_cpu().share(all),
            running: told(running),
            runnable: told(runnable),
            lock_wait: self.lock.share(all),
            idle_wait: idle.share(all),
            io: io.iter().map(|(&kind, threads)| (kind, threads.share(all))).collect(),
            sleep: sleep.share(all),
            unknown: unknown.share(all),
            interval95: TimeIntervals {
                on_cpu: self.on_cpu().interval(all),
                running: told_interval(running),
                runnable: told_interval(runnable),
                lock_wait: self.lock.interval(all),
                idle_wait: idle.interval(all),
                io: io
                    .iter()
                    .filter_map(|(&kind, threads)| Some((kind, threads.interval(all)?)))
                    .collect(),
                sleep: sleep.interval(all),
                unknown: unknown.interval(all),
            },
        })
    }
}

fn compose_process(process: &ProcessAccount, watched: &Watched, perf_event: bool) -> Process {
    let doing = Doing::of(process);
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let mut locks: Vec<Lock> = process
        .objects
        .iter()
        .enumerate()
        .filter(|(_, object)| object.is_lock())
        .map(|(place, object)| compose_lock(place, object, process, &doing, cpus))
        .collect();
    let gain_of = |lock: &Lock| lock.gain.map_or(0.0, Ratio::get);
    locks.sort_by(|one, other| gain_of(other).total_cmp(&gain_of(one)));
    let locks_left_out = locks.len().saturating_sub(MAX_LISTED) as u32;
    locks.truncate(MAX_LISTED);
    let idle = |kind: Kind| {
        let of_kind = |object: &&Object| object.identity.kind() == kind;
        let mut waits: Vec<IdleWait> =
            process.objects.iter().filter(of_kind).filter_map(compose_idle).collect();
        waits.sort_by(|one, other| other.queue_mean.get().total_cmp(&one.queue_mean.get()));
        waits.truncate(MAX_LISTED);
        waits
    };
    Process {
        pid: process.pid,
        image: 1,
        command: texts(&watched.command),
        parent: None,
        threads_max: process.threads_max as u32,
        ended: if watched.ended { Ended::Exit } else { Ended::Running },
        signal: None,
        time: doing.record(perf_event),
        locks,
        locks_left_out,
        condvars: idle(Kind::Condvar),
        semaphores: idle(Kind::Semaphore),
        barriers: idle(Kind::Barrier),
        joins: idle(Kind::Join),
        onces: idle(Kind::Once),
        parkers: idle(Kind::Parker),
        unknown: idle(Kind::Unknown),
    }
}

fn compose_idle(object: &Object) -> Option<IdleWait> {
    let waiters = Threads::of(&object.waiters);
    (waiters.mean > 0.0).then(|| IdleWait {
        name: Text::from(format!("{:#x}", object.address)),
        name_from: NameFrom::Address,
        address: Address(object.address),
        threads: object.users.len() as u32,
        queue_mean: Ratio::new(waiters.mean),
        queue_mean_interval95: waiters.ratio_interval(),
        queue_max: object.waiters_max.round() as u32,
        sites: Vec::new(),
    })
}

fn lock_kind(kind: Kind) -> LockKind {
    match kind {
        Kind::Mutex => LockKind::Mutex,
        Kind::RwLock => LockKind::RwlockWrite,
        Kind::Spinlock => LockKind::Spinlock,
        Kind::RustMutex => LockKind::RustMutex,
        Kind::RustRwLock => LockKind::RustRwlock,
        Kind::Parker => LockKind::Parker,
        _ => LockKind::Futex,
    }
}

fn fractions(estimate: Estimate) -> Option<Interval<Fraction>> {
    let end = |value: f64| Fraction::new(value.clamp(0.0, 1.0));
    Interval::new(end(estimate.low), end(estimate.high))
}

fn ratios(estimate: Estimate) -> Option<Interval<Ratio>> {
    let end = |value: f64| Ratio::new(value.max(0.0));
    Interval::new(end(estimate.low), end(estimate.high))
}

fn compose_lock(
    place: usize,
    object: &Object,
    process: &ProcessAccount,
    doing: &Doing,
    cpus: u32,
) -> Lock {
    let (held, queue) = (object.samples.held().known(), object.samples.queue().known());
    let busy = object.samples.busy();
    let users = object.users.len() as u32;
    let alive = (process.threads.len() as u32).max(users);
    let busiest_other = process
        .objects
        .iter()
        .enumerate()
        .filter(|&(other, object)| other != place && object.is_lock())
        .filter_map(|(_, object)| object.samples.busy())
        .map(|busy| busy.value)
        .fold(0.0, f64::max);
    let surroundings = Surroundings {
        working: doing.working(),
        on_cpu: doing.on_cpu().mean,
        cpus: f64::from(cpus),
        busiest_other,
    };
    let gained = queue.map(|queue| gain(queue, surroundings));
    let efficient = queue.map(|queue| efficiency(queue, users));
    let judged = queue.zip(busy).map(|(queue, busy)| Judgement::new(queue, busy, users));
    let name = format!("{:#x}", object.address);
    let found = causes(&object.holding, object.patterns);
    let moved = found.iter().find_map(|found| match found.cause {
        Judged::SleptHolding(_) => Some(found.share.value),
        _ => None,
    });
    let (predicted, what_if) = predict(object, users, alive, doing, cpus, moved);
    Lock {
        id: place as u32 + 1,
        kind: lock_kind(object.identity.kind()),
        name: Text::from(&*name),
        name_from: NameFrom::Address,
        address: Address(object.address),
        generation: object.generation + 1,
        first_seen: Vec::new(),
        acquisitions: None,
        contended: None,
        hold: None,
        wait: None,
        threads: users,
        threads_interval: Interval::new(users, alive),
        held_share: held.map(|held| Fraction::new(held.value.clamp(0.0, 1.0))),
        held_share_interval95: held.and_then(fractions),
        queue_mean: queue.map(|queue| Ratio::new(queue.value.max(0.0))),
        queue_mean_interval95: queue.and_then(ratios),
        queue_is_lower_bound: object.holds.mean_ns().is_some_and(|mean| mean < SHORT_HOLD_NS),
        queue_max: Some(object.waiters_max.round() as u32),
        gain: gained.map(|gained| Ratio::new(gained.value.max(0.0))),
        gain_interval95: gained.and_then(ratios),
        efficiency: efficient.map(|share| Fraction::new(share.value.clamp(0.0, 1.0))),
        efficiency_interval95: efficient.and_then(fractions),
        verdict: judged.and_then(verdict),
        holder_not_seen_share: object
            .holding
            .not_seen()
            .map(|share| Fraction::new(share.value.clamp(0.0, 1.0))),
        holders: compose_holders(object),
        waiters: Vec::new(),
        waits_for: object
            .holding
            .waits_for()
            .into_iter()
            .map(|(lock, share)| ChainLink {
                lock: lock + 1,
                share: Fraction::new(share.value.clamp(0.0, 1.0)),
            })
            .collect(),
        causes: found
            .into_iter()
            .map(|found| {
                let syscall = match found.cause {
                    Judged::SleptHolding(number) => Some(syscall_name(number)),
                    _ => None,
                };
                let context = Context {
                    lock: &name,
                    syscall: syscall.as_deref(),
                    cpus,
                    threads: alive,
                    read_write: matches!(object.identity.kind(), Kind::RwLock | Kind::RustRwLock),
                };
                Cause {
                    cause: cause_kind(found.cause),
                    share: Fraction::new(found.share.value.clamp(0.0, 1.0)),
                    interval95: fractions(found.share),
                    mend: Some(Text::from(mend(found.cause, context))),
                    syscall: syscall.map(Text::from),
                }
            })
            .collect(),
        handoff_ns: None,
        predicted,
        what_if,
        sites: Vec::new(),
    }
}

fn compose_holders(object: &Object) -> Vec<ThreadShare> {
    let all: u64 = object.holders.values().sum();
    let mut holders: Vec<ThreadShare> = object
        .holders
        .iter()
        .filter_map(|(&tid, &looks)| {
            Some(ThreadShare {
                tid,
                name: Text::default(),
                share: Fraction::new(share(looks, all)?.value),
                inferred: false,
            })
        })
        .collect();
    holders.sort_by(|one, other| other.share.get().total_cmp(&one.share.get()));
    holders.truncate(MAX_LISTED);
    holders
}

fn verdict(judged: Judgement) -> Option<Verdict> {
    Some(match (judged.comfortable, judged.crowded, judged.saturated) {
        (true, false, false) => Verdict::Comfortable,
        (false, true, false) => Verdict::Crowded,
        (false, false, true) => Verdict::Saturated,
        (true, true, false) => Verdict::ComfortableOrCrowded,
        (false, true, true) => Verdict::CrowdedOrSaturated,
        (true, false, true) => Verdict::ComfortableOrSaturated,
        (true, true, true) => Verdict::ComfortableOrCrowdedOrSaturated,
        (false, false, false) => return None,
    })
}

fn cause_kind(cause: Judged) -> CauseKind {
    match cause {
        Judged::SleptHolding(_) => CauseKind::SleptHolding,
        Judged::Computing => CauseKind::Computing,
        Judged::Preempted => CauseKind::Preempted,
        Judged::Throttled => CauseKind::Throttled,
        Judged::Convoy => CauseKind::Convoy,
        Judged::Herd => CauseKind::Herd,
        Judged::Hog => CauseKind::Hog,
        Judged::StarvedWriter => CauseKind::StarvedWriter,
    }
}

fn syscall_name(number: u32) -> String {
    match syscalls::Sysno::new(number as usize) {
        Some(call) => call.name().to_string(),
        None => format!("system call {number}"),
    }
}

/// Speed-ups by number of threads, and what changes would bring.
fn predict(
    object: &Object,
    users: u32,
    alive: u32,
    doing: &Doing,
    cpus: u32,
    asleep: Option<f64>,
) -> (Vec<Predicted>, Vec<WhatIf>) {
    let none = (Vec::new(), Vec::new());
    let Some(means) = object.samples.means() else { return none };
    let on_cpu = doing.on_cpu().mean.min(f64::from(users));
    let cpu = Some(CpuDemand { on_cpu, cpus });
    let of = |users| Predictor::new(Present { means, users, hand_off: None, cpu }).ok();
    let Some(predictor) = of(users) else { return none };
    let mut threads = THREADS.to_vec();
    threads.extend([users, 2 * users, alive]);
    threads.sort_unstable();
    threads.dedup();
    let predicted = threads
        .into_iter()
        .filter_map(|threads| {
            let speedup = predictor.speedup(threads).ok()?;
            let interval95 = ratios(speedup);
            Some(Predicted { threads, speedup: Ratio::new(speedup.value), interval95 })
        })
        .collect();
    let mut changes = vec![Change::HalveHold, Change::Stripe(2), Change::Stripe(4)];
    changes.extend(asleep.map(Change::MoveOut));
    changes.push(Change::Threads(2 * users));
    let now = predictor.speedup(users).ok();
    let mut what_if: Vec<WhatIf> = changes
        .into_iter()
        .filter_map(|change| {
            let effect = predictor.what_if(change).ok()?;
            let change = match change {
                Change::HalveHold => threadtoll_record::profile::Change::HalveHold,
                Change::MoveOut(_) => threadtoll_record::profile::Change::MoveOut,
                Change::Stripe(locks) => threadtoll_record::profile::Change::Stripe(locks),
                Change::Threads(threads) => threadtoll_record::profile::Change::Threads(threads),
            };
            let speedup = now?.value * effect.gain.value;
            Some(WhatIf {
                change,
                threads: effect.threads,
                speedup: Ratio::new(speedup),
                interval95: ratios(effect.gain.map(|gain| now.map_or(0.0, |now| now.value) * gain)),
                gain: Some(Ratio::new(effect.gain.value)),
                gain_interval95: ratios(effect.gain),
            })
        })
        .collect();
    let gain_of = |what_if: &WhatIf| what_if.gain.map_or(0.0, Ratio::get);
    what_if.sort_by(|one, other| gain_of(other).total_cmp(&gain_of(one)));
    (predicted, what_if)
}
