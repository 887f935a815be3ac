//! The account and the judgement of it, as a record.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

use threadtoll_record::profile::{
    Address, Cause, ChainLink, Ended, IdleWait, Interval, IoKind, Late, Lock, LockKind, Method,
    NameFrom, Perturbation, Predicted, Process, Profile, Role as SiteRole, Site, ThreadShare,
    ThreadTime, TimeIntervals, WhatIf,
};
use threadtoll_record::{Fraction, Ns, PerSecond, Ratio, Seconds, Text};

use crate::account::{Account, Device, MAX_OBJECTS, Object, ProcessAccount, Time};
use crate::judge::cause::{Cause as CauseFound, CauseShare};
use crate::judge::gain::Surroundings;
use crate::judge::interval::{Estimate, share};
use crate::judge::mend::{Context, mend};
use crate::judge::prediction::{self, CpuDemand};
use crate::judge::samples::Figure;
use crate::judge::{Judgement, LockSeen};
use crate::primitive::{Kind, ParkedFor, Role};
use crate::profiler::Watched;
use crate::stacks::Stacks;

/// Normal quantile of a 95% interval.
const Z: f64 = 1.96;

/// Most locks, and most other things, of a process that are listed.
const MAX_LISTED: usize = 100;

/// Most locks that are judged, those with the longest queues, to find which would gain most.
const MAX_JUDGED: usize = 400;

/// Most semaphores of a process that are said to be locks, perhaps.
const MAX_SEMAPHORES: usize = 3;

/// Most words of parked threads that are named, to be listed by the code that they wait in.
const MAX_GROUPED: usize = 1_000;

/// Most stacks of a lock, and of anything else, that are listed.
const MAX_SITES: usize = 8;

/// What the profile says besides what was seen.
#[derive(Debug)]
pub(crate) struct Circumstances {
    pub(crate) finished: bool,
    pub(crate) seconds: f64,
    pub(crate) budget: f64,
    pub(crate) cpu_ns: u64,
    /// Why the kernel grants no perf events.
    pub(crate) perf_refused: Option<String>,
    /// More that could not be seen, as sentences.
    pub(crate) unseen: Vec<String>,
}

/// Everything seen so far.
pub(crate) fn compose(
    account: &Account,
    watched: &BTreeMap<u32, Watched>,
    stacks: &mut Stacks,
    circumstances: &Circumstances,
) -> Profile {
    let &Circumstances { finished, seconds, budget, cpu_ns, .. } = circumstances;
    let perf_event = circumstances.perf_refused.is_none();
    let [on_time, late] = account.due;
    let samples = on_time + late;
    let known = account.seconds > 0.0;
    let mut unseen = unseen(account, watched, circumstances);
    // Asks for files of the control group.
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let mut processes = Vec::new();
    for (&index, watched) in watched {
        let Some(process) = account.process(index) else { continue };
        let record = One { index, process, watched, perf_event, cpus }.record(stacks);
        unseen.extend(semaphores_that_may_lock(process, &record.semaphores));
        processes.push(record);
    }
    Profile {
        run: Text::default(),
        at: Text::default(),
        finished,
        program: watched.values().next().map(|first| texts(&first.command)).unwrap_or_default(),
        exit_code: None,
        seconds: Seconds::new(seconds),
        interval_ns: Interval::new(Ns::new(account.started as f64), Ns::new(account.until as f64)),
        machine: None,
        method: Method::Sampled,
        samples: samples.into(),
        rate_per_s: known.then(|| PerSecond::new(samples as f64 / account.seconds)),
        late: account.lateness.quantile(0.99).map(|p99| Late {
            p99_ns: Ns::new(p99 as f64),
            share: Fraction::new(late as f64 / samples.max(1) as f64),
        }),
        budget: Ratio::new(budget),
        perf_event,
        stacks_cut_share: share(stacks.cut, stacks.seen).map(fraction),
        processes,
        unseen,
        perturbation: Perturbation {
            per_acquisition_ns: None,
            share_of_cpu: known.then(|| Ratio::new(cpu_ns as f64 / 1e9 / account.seconds)),
        },
    }
}

/// What could not be seen, and what would show it.
fn unseen(
    account: &Account,
    watched: &BTreeMap<u32, Watched>,
    circumstances: &Circumstances,
) -> Vec<Text> {
    let mut unseen: Vec<String> = circumstances.unseen.clone();
    if let Some(refused) = &circumstances.perf_refused {
        unseen.push(format!(
            "Threads that run, wait for a CPU or were preempted are not told apart, and running \
             holders have no stacks: {refused}."
        ));
    }
    let mut images = |runs: fn(&ProcessAccount) -> bool, text: &str| {
        if account.processes().any(runs) {
            unseen.push(text.to_owned());
        }
    };
    images(
        |process| process.go,
        "Goroutines' locks: Go parks a thread in the same way if a goroutine waits for one and if \
         there is no work; use its mutex and block profiles (net/http/pprof).",
    );
    images(
        |process| process.jvm,
        "Which Java monitor, and locks of java.util.concurrent: use a JFR recording, or `jcmd PID \
         Thread.print -l`.",
    );
    images(
        |process| process.foreign_libc,
        "Condition variables, semaphores and read-write locks of musl: waits for them are listed \
         as unknown.",
    );
    images(
        |process| process.objects.iter().any(|object| object.identity.is_shared_word()),
        "Which C++ atomic threads wait for, and if it is a lock: libstdc++ lets atomics share the \
         words on which threads sleep, so only stacks tell. A `std::atomic<int>` has a word of its \
         own.",
    );
    images(
        |process| process.is_full,
        &format!(
            "Waits for anything but the {MAX_OBJECTS} locks and other things of a process that \
             were seen first: they count as unknown."
        ),
    );
    if watched.values().any(|watched| watched.is_32_bit) {
        unseen.push("Locks of 32-bit programs are not recognised.".to_owned());
    }
    let withheld = |process: &ProcessAccount| {
        let used = process.objects.iter().filter(|object| object.is_lock() && object.is_used());
        used.map(|object| process.samples(object)).any(|samples| {
            [samples.held(), samples.queue()]
                .iter()
                .any(|figure| matches!(figure, Figure::Withheld(_)))
        })
    };
    if account.processes().any(withheld) {
        unseen.push(
            "Some figures are withheld: the profiler waited for a CPU too often to tell. Leave it \
             an idle CPU, or sample for longer."
                .to_owned(),
        );
    }
    unseen.into_iter().map(Text::from).collect()
}

/// Waits for semaphores that may be locks, and count as idle.
fn semaphores_that_may_lock(process: &ProcessAccount, listed: &[IdleWait]) -> Option<Text> {
    let may_lock = |address| {
        let mut objects = process.objects.iter();
        objects.any(|object| object.address == address && process.may_lock(object))
    };
    let listed = listed.iter().filter(|wait| may_lock(wait.address.0));
    let names: Vec<String> =
        listed.take(MAX_SEMAPHORES).map(|wait| format!("`{}`", &*wait.name)).collect();
    (!names.is_empty()).then(|| {
        Text::from(format!(
            "Semaphores used as locks: {} never had more than one item, as a lock would not, but \
             does not show who posts it, so that its waits count as idle. It is a lock if the \
             threads that wait for it also post it.",
            names.join(", ")
        ))
    })
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
    fn of(mean: Option<crate::account::Estimate>) -> Threads {
        mean.map_or_else(Threads::default, |estimate| Threads {
            mean: estimate.mean,
            variance: estimate.error.powi(2),
        })
    }

    fn and(self, other: Threads) -> Threads {
        Threads { mean: self.mean + other.mean, variance: self.variance + other.variance }
    }

    fn part(self, share: f64) -> Threads {
        Threads { mean: self.mean * share, variance: self.variance * share * share }
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

/// Most of the time on a CPU, or waiting for one, of which switches do not tell which it was: with
/// more, the two are not told apart.
const MOST_UNCLEAR: f64 = 0.05;

/// What the threads of a process do, in mean numbers of threads.
#[derive(Debug)]
struct Doing {
    times: BTreeMap<Time, Threads>,
    lock: Threads,
    idle: Threads,
    parked: Threads,
    unknown: Threads,
    all: f64,
}

impl Doing {
    fn of(process: &ProcessAccount, stacks: &mut Stacks) -> Doing {
        let times: BTreeMap<Time, Threads> =
            Time::ALL.iter().map(|&kind| (kind, Threads::of(process.time(kind)))).collect();
        let [mut lock, mut idle, mut parked, mut unknown] = [Threads::default(); 4];
        for object in &process.objects {
            let waiters = Threads::of(process.waiters(object));
            match object.identity.role() {
                Role::Lock => lock = lock.and(waiters),
                Role::Idle => idle = idle.and(waiters),
                Role::Unknown => unknown = unknown.and(waiters),
                Role::Parked => {
                    let reasons = Reasons::of(object, stacks);
                    lock = lock.and(waiters.part(reasons.lock));
                    idle = idle.and(waiters.part(reasons.idle));
                    parked = parked.and(waiters.part(reasons.untold));
                }
            }
        }
        let waits = lock.and(idle).and(parked).and(unknown);
        let all = times.values().fold(waits, |sum, &time| sum.and(time)).mean;
        Doing { times, lock, idle, parked, unknown, all }
    }

    fn time(&self, kind: Time) -> Threads {
        self.times.get(&kind).copied().unwrap_or_default()
    }

    fn on_cpu(&self) -> Threads {
        self.time(Time::OnCpu).and(self.time(Time::Running)).and(self.time(Time::Runnable))
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
        // Records of switches may be missing, or not yet there.
        let unclear = self.time(Time::OnCpu);
        let told = perf_event && unclear.mean <= MOST_UNCLEAR * self.on_cpu().mean;
        let running = running.and(unclear);
        let told_interval = |threads: Threads| if told { threads.interval(all) } else { None };
        let told = |threads: Threads| told.then(|| threads.share(all));
        Some(ThreadTime {
            on_cpu: self.on_cpu().share(all),
            running: told(running),
            runnable: told(runnable),
            lock_wait: self.lock.share(all),
            idle_wait: idle.share(all),
            parked: self.parked.share(all),
            io: io.iter().map(|(&kind, threads)| (kind, threads.share(all))).collect(),
            sleep: sleep.share(all),
            unknown: unknown.share(all),
            interval95: TimeIntervals {
                on_cpu: self.on_cpu().interval(all),
                running: told_interval(running),
                runnable: told_interval(runnable),
                lock_wait: self.lock.interval(all),
                idle_wait: idle.interval(all),
                parked: if self.parked.mean > 0.0 { self.parked.interval(all) } else { None },
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

/// The two busiest locks of a process, each by its place and the share of time that it is busy.
#[derive(Clone, Copy, Debug, Default)]
struct Busiest {
    first: (usize, f64),
    second: f64,
}

impl Busiest {
    fn of(process: &ProcessAccount) -> Busiest {
        let locks = process.objects.iter().enumerate().filter(|(_, object)| object.is_lock());
        let busy =
            locks.filter_map(|(place, lock)| Some((place, process.samples(lock).busy()?.value)));
        busy.fold(Busiest::default(), |busiest, (place, busy)| match busy {
            _ if busy > busiest.first.1 => {
                Busiest { first: (place, busy), second: busiest.first.1 }
            }
            _ => Busiest { second: busiest.second.max(busy), ..busiest },
        })
    }

    fn other_than(self, place: usize) -> f64 {
        if self.first.0 == place { self.second } else { self.first.1 }
    }
}

/// One process.
#[derive(Clone, Copy, Debug)]
struct One<'a> {
    index: u32,
    process: &'a ProcessAccount,
    watched: &'a Watched,
    perf_event: bool,
    cpus: u32,
}

impl One<'_> {
    fn record(self, stacks: &mut Stacks) -> Process {
        let One { process, watched, .. } = self;
        let doing = Doing::of(process, stacks);
        let mut used: Vec<(usize, &Object)> = process
            .objects
            .iter()
            .enumerate()
            .filter(|(_, object)| object.is_lock() && object.is_used())
            .collect();
        let not_judged = used.len().saturating_sub(MAX_JUDGED);
        if not_judged > 0 {
            let queue = |object: &Object| Threads::of(process.waiters(object)).mean;
            keep_first(&mut used, MAX_JUDGED, |(_, one), (_, other)| {
                queue(other).total_cmp(&queue(one))
            });
        }
        let named = |(place, object): (usize, &Object)| {
            let (name, name_from) = self.name(object, stacks);
            Named { id: place as u32 + 1, name, name_from }
        };
        let mut names: Vec<Named> = used.into_iter().map(named).collect();
        tell_apart(&mut names);
        let busiest = Busiest::of(process);
        let mut locks: Vec<Lock> =
            names.into_iter().map(|named| self.lock(named, &doing, busiest, stacks)).collect();
        locks.extend(self.monitors(stacks));
        let gain_of = |lock: &Lock| lock.gain.map_or(0.0, Ratio::get);
        locks.sort_by(|one, other| gain_of(other).total_cmp(&gain_of(one)));
        let locks_left_out = (not_judged + locks.len().saturating_sub(MAX_LISTED)) as u32;
        locks.truncate(MAX_LISTED);
        let mut idle = |kind: Kind| {
            let of_kind = |object: &&Object| object.identity.kind() == kind;
            let objects = process.objects.iter().filter(of_kind);
            let mut waits: Vec<(&Object, Threads)> = objects
                .map(|object| (object, self.idle_threads(object, stacks)))
                .filter(|(_, waiters)| waiters.mean > 0.0)
                .collect();
            let most = if kind == Kind::Parker { MAX_GROUPED } else { MAX_LISTED };
            keep_first(&mut waits, most, |(_, one), (_, other)| other.mean.total_cmp(&one.mean));
            let named = |(object, waiters)| self.idle(object, waiters, stacks);
            let mut waits: Vec<IdleWait> = waits.into_iter().map(named).collect();
            if kind == Kind::Parker {
                waits = together(waits);
                waits.truncate(MAX_LISTED);
            }
            waits
        };
        Process {
            pid: process.pid,
            image: watched.image,
            command: texts(&watched.command),
            parent: watched.parent,
            threads_max: process.threads_max as u32,
            ended: watched.ended.unwrap_or(Ended::Running),
            signal: watched.signal,
            time: doing.record(self.perf_event),
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

    /// The name of a lock or of something else at an address, and where it is from.
    fn name(self, object: &Object, stacks: &mut Stacks) -> (String, NameFrom) {
        if let Some(name) = object.identity.interpreter_lock() {
            return (name.to_owned(), NameFrom::Symbol);
        }
        let mut others = self.process.objects.iter();
        if let Some(part) = others.find_map(|other| other.identity.part_at(object.address)) {
            return (part, NameFrom::Symbol);
        }
        if let Some(name) = stacks.name_of_data(self.index, object.address) {
            return (name, NameFrom::Symbol);
        }
        let most = object.waiting_at.iter().max_by_key(|&(_, count)| count);
        match most.and_then(|(&stack, _)| stacks.caller(stack)) {
            Some(caller) => (format!("lock in {caller}"), NameFrom::WaiterSite),
            None => (format!("{:#x}", object.address), NameFrom::Address),
        }
    }

    /// Threads that wait for something other than a lock.
    fn idle_threads(self, object: &Object, stacks: &mut Stacks) -> Threads {
        let waiters = Threads::of(self.process.waiters(object));
        if !is_parker(object) {
            return waiters;
        }
        let reasons = Reasons::of(object, stacks);
        waiters.part(reasons.idle + reasons.untold)
    }

    fn idle(self, object: &Object, waiters: Threads, stacks: &mut Stacks) -> IdleWait {
        let (name, name_from) = self.name(object, stacks);
        let name = name.strip_prefix("lock ").unwrap_or(&name);
        IdleWait {
            name: Text::from(name),
            name_from,
            address: Address(object.address),
            threads: object.waiting.len() as u32,
            queue_mean: Ratio::new(waiters.mean),
            queue_mean_interval95: waiters.ratio_interval(),
            queue_max: object.waiters_max,
            sites: sites(SiteRole::Waiter, &object.waiting_at, stacks),
        }
    }

    fn lock(self, named: Named, doing: &Doing, busiest: Busiest, stacks: &mut Stacks) -> Lock {
        let Named { id, name, name_from } = named;
        let process = self.process;
        let place = id as usize - 1;
        let object = &process.objects[place];
        let users = process.at_once(object.users.len()) as u32;
        let alive = (process.threads.len() as u32).max(users);
        let cpus = self.cpus;
        let on_cpu = doing.on_cpu().mean;
        let holders = object.holders(stacks);
        let judged = Judgement::new(LockSeen {
            samples: &process.samples(object),
            bursts: &object.bursts,
            holders: &holders.doing,
            patterns: object.patterns(),
            users,
            alive,
            cpu: Some(CpuDemand { on_cpu: process.on_cpu(&object.users), cpus }),
            program: Surroundings {
                working: doing.working(),
                on_cpu,
                cpus: f64::from(cpus),
                busiest_other: busiest.other_than(place),
            },
        });
        let context = Context {
            lock: &name,
            syscall: None,
            cpus,
            threads: alive,
            read_write: matches!(object.identity.kind(), Kind::RwLock | Kind::RustRwLock),
            interpreter: object.identity.interpreter_lock().is_some(),
        };
        // The models know one holder at a time.
        let modelled = !context.read_write;
        let (held, queue) = (judged.held.known(), judged.queue.known());
        let mut all_sites = sites(SiteRole::Waiter, &object.waiting_at, stacks);
        let lock = not_judged(id, lock_kind(object), Address(object.address), users, alive);
        let lock = Lock { name: Text::from(&*name), name_from, ..lock };
        all_sites.extend(sites(SiteRole::Holder, &holders.stacks, stacks));
        all_sites.extend(sites(SiteRole::Candidate, &holders.candidates, stacks));
        Lock {
            generation: object.generation + 1,
            held_share: held.map(fraction),
            held_share_interval95: held.and_then(fractions),
            queue_mean: queue.map(ratio),
            queue_mean_interval95: queue.and_then(ratios),
            queue_is_lower_bound: judged.queue_is_lower_bound,
            queue_max: Some(object.waiters_max),
            gain: judged.gain.map(ratio),
            gain_interval95: judged.gain.and_then(ratios),
            efficiency: judged.efficiency.map(fraction),
            efficiency_interval95: judged.efficiency.and_then(fractions),
            verdict: judged.verdict.map(Into::into),
            holder_not_seen_share: holders.doing.not_seen().map(fraction),
            holders: self.shares(&holders.threads, holders.inferred),
            waiters: self.shares(&object.waiting, false),
            waits_for: holders
                .doing
                .waits_for()
                .into_iter()
                .map(|(lock, share)| ChainLink { lock: lock + 1, share: fraction(share) })
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
            what_if: judged.what_if.iter().chain(&judged.what_if_all_use).map(what_if).collect(),
            sites: all_sites,
            ..lock
        }
    }

    /// Java's monitors that threads wait to enter, as one lock: each thread waits on a word of its
    /// own, which does not tell the monitor.
    fn monitors(self, stacks: &mut Stacks) -> Option<Lock> {
        let mut waiters = Threads::default();
        let (mut threads, mut waiting_at) = (HashMap::new(), HashMap::new());
        for object in self.process.objects.iter().filter(|object| is_parker(object)) {
            let reasons = Reasons::of(object, stacks);
            if reasons.lock > 0.0 {
                let here = Threads::of(self.process.waiters(object));
                waiters = waiters.and(here.part(reasons.lock));
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
        let id = self.process.objects.len() as u32 + 1;
        Some(Lock {
            name: Text::from("synchronized (Java)"),
            name_from: NameFrom::WaiterSite,
            queue_mean: Some(Ratio::new(waiters.mean)),
            queue_mean_interval95: waiters.ratio_interval(),
            efficiency: Some(Fraction::new((1.0 - waiters.mean / f64::from(users)).max(0.0))),
            holder_not_seen_share: Some(Fraction::new(1.0)),
            waiters: self.shares(&threads, false),
            sites: sites(SiteRole::Waiter, &waiting_at, stacks),
            ..not_judged(id, LockKind::Parker, Address(0), users, alive)
        })
    }

    /// Threads by how often they were seen in a role.
    fn shares(self, looks: &HashMap<u32, u64>, inferred: bool) -> Vec<ThreadShare> {
        let all: u64 = looks.values().sum();
        let mut threads: Vec<(u32, u64)> =
            looks.iter().map(|(&tid, &looks)| (tid, looks)).collect();
        threads.sort_by_key(|&(tid, looks)| (std::cmp::Reverse(looks), tid));
        threads.truncate(MAX_LISTED);
        let record = |(tid, looks): (u32, u64)| {
            // Some threads name themselves late, and some have ended.
            let process = self.watched.process.as_ref();
            let name = match process.and_then(|process| process.thread_name(tid).ok()) {
                Some(name) => name.to_string_lossy().into_owned(),
                None => self.watched.names.get(&tid).cloned().unwrap_or_default(),
            };
            Some(ThreadShare {
                tid,
                name: Text::from(name),
                share: fraction(share(looks, all)?),
                inferred,
            })
        };
        threads.into_iter().filter_map(record).collect()
    }
}

/// Sorts, and drops all but the first few.
fn keep_first<T>(all: &mut Vec<T>, most: usize, order: impl FnMut(&T, &T) -> Ordering) {
    all.sort_by(order);
    all.truncate(most);
}

fn is_parker(object: &Object) -> bool {
    object.identity.role() == Role::Parked
}

/// Waits of parked threads, each on a word of its own, by the code that they wait in.
fn together(waits: Vec<IdleWait>) -> Vec<IdleWait> {
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
        .map(|interval| ((interval.high().get() - interval.low().get()) / 2.0 / Z).powi(2))
        .sum();
    let mean = waits.iter().map(|wait| wait.queue_mean.get()).sum();
    let all = Threads { mean, variance };
    waits.into_iter().reduce(|mut sum, mut wait| {
        sum.queue_mean = Ratio::new(all.mean);
        sum.queue_mean_interval95 = all.ratio_interval();
        sum.queue_max = sum.queue_max.max(wait.queue_max);
        sum.threads += wait.threads;
        sum.sites.append(&mut wait.sites);
        sum.sites.sort_by_key(|site| std::cmp::Reverse(site.samples));
        sum.sites.truncate(MAX_SITES);
        sum
    })
}

/// Shares of the reasons for which threads slept on words of their own.
#[derive(Debug, Default)]
struct Reasons {
    lock: f64,
    idle: f64,
    untold: f64,
    /// Stacks of those that waited for a lock, with the number of looks.
    locking: HashMap<u32, u64>,
}

impl Reasons {
    fn of(parker: &Object, stacks: &mut Stacks) -> Reasons {
        let identity = parker.identity;
        let all: u64 = parker.waiting_at.values().sum();
        let otherwise = identity.parked_for(&[]);
        let mut reasons = Reasons::default();
        // Where only the stack tells, those that were read stand for all.
        if otherwise == ParkedFor::Idle || all == 0 {
            *reasons.share(otherwise) = 1.0;
            return reasons;
        }
        for (&stack, &looks) in &parker.waiting_at {
            let reason = identity.parked_for(&stacks.callers(stack));
            *reasons.share(reason) += looks as f64 / all as f64;
            if reason == ParkedFor::Lock {
                reasons.locking.insert(stack, looks);
            }
        }
        reasons
    }

    fn share(&mut self, of: ParkedFor) -> &mut f64 {
        match of {
            ParkedFor::Lock => &mut self.lock,
            ParkedFor::Idle => &mut self.idle,
            ParkedFor::Untold => &mut self.untold,
        }
    }
}

/// A lock of which no more is known. `alive` threads may use it, and `users` of them do.
fn not_judged(id: u32, kind: LockKind, address: Address, users: u32, alive: u32) -> Lock {
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
        gain: None,
        gain_interval95: None,
        efficiency: None,
        efficiency_interval95: None,
        verdict: None,
        holder_not_seen_share: None,
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
struct Named {
    id: u32,
    name: String,
    name_from: NameFrom,
}

/// Numbers locks of one name, such as those of an array.
fn tell_apart(locks: &mut [Named]) {
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

/// Stacks by how often they were seen in a role.
fn sites(role: SiteRole, looks: &HashMap<u32, u64>, stacks: &mut Stacks) -> Vec<Site> {
    let mut all: Vec<(u32, u64)> = looks.iter().map(|(&stack, &looks)| (stack, looks)).collect();
    all.sort_by_key(|&(stack, looks)| (std::cmp::Reverse(looks), stack));
    all.truncate(MAX_SITES);
    let record = |(stack, looks): (u32, u64)| {
        let (frames, inferred_frames) = stacks.names(stack);
        Site {
            role,
            frames: frames.into_iter().map(Text::from).collect(),
            inferred_frames,
            samples: looks.into(),
            count: None,
            wait_ns: None,
            hold_ns: None,
        }
    };
    all.into_iter().map(record).collect()
}

fn cause(found: CauseShare, context: Context<'_>) -> Cause {
    let syscall = match found.cause {
        CauseFound::SleptHolding(number) => Some(syscall_name(number)),
        _ => None,
    };
    let context = Context { syscall: syscall.as_deref(), ..context };
    Cause {
        cause: found.cause.into(),
        share: fraction(found.share),
        interval95: fractions(found.share),
        mend: Some(Text::from(mend(found.cause, context))),
        syscall: syscall.map(Text::from),
    }
}

fn what_if(effect: &prediction::WhatIf) -> WhatIf {
    WhatIf {
        change: effect.change.into(),
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

    #[test]
    fn running_threads_are_told_from_runnable_ones_if_switches_tell() {
        let doing = |unclear: f64| {
            let threads = |mean: f64| Threads { mean, ..Threads::default() };
            let times =
                [(Time::OnCpu, unclear), (Time::Running, 1.0), (Time::Runnable, 1.0 - unclear)];
            let times = times.map(|(kind, mean)| (kind, threads(mean)));
            let [lock, idle, parked, unknown] = [Threads::default(); 4];
            Doing { times: times.into(), lock, idle, parked, unknown, all: 4.0 }.record(true)
        };
        let (clear, unclear) = (doing(0.02).unwrap(), doing(0.5).unwrap());
        let shares = |time: &ThreadTime| [Some(time.on_cpu), time.running, time.runnable];
        let share = |value: f64| Some(Fraction::new(value));
        assert_eq!(shares(&clear), [share(0.5), share(1.02 / 4.0), share(0.98 / 4.0)]);
        assert_eq!(shares(&unclear), [share(0.5), None, None]);
    }

    #[test]
    fn the_longest_queues_are_named() {
        let mut queues: Vec<f64> = (0..1_000).map(|at| f64::from(at * 7 % 1_000)).collect();
        keep_first(&mut queues, 3, |one, other| other.total_cmp(one));
        assert_eq!(queues, [999.0, 998.0, 997.0]);
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
        let waits = together(waits);
        let rows: Vec<_> =
            waits.iter().map(|wait| (&*wait.name, wait.queue_mean.get(), wait.threads)).collect();
        assert_eq!(rows, [("in serve", 1.0, 2), ("in sweep", 0.75, 1)]);
        let within = waits[0].queue_mean_interval95.map(|it| it.high().get() - 1.0);
        assert!(within.is_some_and(|half| (half - 0.3 * 2_f64.sqrt()).abs() < 1e-9));
    }
}
