//! Waits on anything but a known lock, grouped by the program's function that waits.

use std::collections::{BTreeMap, HashMap, HashSet};

use threadtoll_primitive::function::{Part, is_queue, part};
use threadtoll_record::profile::{
    HoldingProcess, IoKind, NameFrom, Role as SiteRole, SemaphoreUse, Wait, WaitFor, WaitKind,
};
use threadtoll_record::{Fraction, Ns, Ratio, Text};
use threadtoll_stacks::process::SemaphoreGoal;

use super::doing::{Doing, io_kind};
use super::idle::{Reasons, is_parker};
use super::locks::syscall_name;
use super::meanwhile::meanwhile;
use super::runtime_threads::{fills_cpus, is_of_java, waits_for_work};
use super::threads::MeanThreads;
use super::{MAX_GROUPED, One, keep_first, semaphores, sites};
use crate::account::{AwaitedSemaphore, ProcessAccount, Semaphores, Sleeping, Time, WaitTarget};
use crate::primitive::library::taken_in;
use crate::primitive::waiting::Waiting;
use crate::primitive::{Kind, ParkedFor, Role};
use crate::stacks::Stacks;

const MAX_WAITS: usize = 50;

const MAX_SITES: usize = 3;

const FEWEST: f64 = 0.005;

/// Minimum mean number of waiting threads for which the states of other threads meanwhile are
/// examined.
const LEAST_OPEN: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    kind: WaitKind,
    io: Option<IoKind>,
    what: WaitFor,
    call: Option<u32>,
    semaphore: Option<AwaitedSemaphore>,
    of_runtime: bool,
}

#[derive(Debug, Default)]
struct Group {
    threads: f64,
    at: HashMap<u32, Sleeping>,
    names: HashSet<Option<String>>,
}

struct WaiterGroup<'a> {
    way: Way,
    threads: f64,
    at: &'a [(u32, Sleeping)],
    /// True if two threads were seen waiting at once, so that the wait target does not belong to
    /// one thread.
    shared: bool,
    name: Option<&'a str>,
}

/// Kind and place of a wait. For a sleep of a set time, also the caller of the sleeping function,
/// which may have chosen the time.
type Key = (Way, Waiting, Option<String>);

#[derive(Clone, Debug, Default)]
struct StackFacts {
    waiting: Waiting,
    caller: Option<String>,
    of_runtime: bool,
}

#[derive(Debug, Default)]
struct Groups {
    all: BTreeMap<Key, Group>,
    jvm: bool,
    known: HashMap<u32, StackFacts>,
}

impl One<'_> {
    pub(super) fn waits(
        self,
        doing: &Doing,
        semaphores: &Semaphores,
        stacks: &mut Stacks,
    ) -> Vec<Wait> {
        let mut groups = Groups { jvm: self.process.jvm, ..Groups::default() };
        let full = fills_cpus(self.process, doing.on_cpu().mean, self.cpus.number, stacks);
        let pages_from_disk = self.process.pages_from_disk();
        for ((time, call), mean, of) in self.process.asleep() {
            let Some(way) = Way::of_time(time, call, pages_from_disk) else { continue };
            let all: Vec<_> = of.at.iter().map(|(&stack, &seen)| (stack, seen)).collect();
            for (way, share, at) in self.by_semaphore(way, all) {
                let threads = mean.mean * share;
                let waiters = WaiterGroup { way, threads, at: &at, shared: true, name: None };
                groups.add(&waiters, stacks);
            }
        }
        let waiting = |target: &WaitTarget| MeanThreads::of(self.process.waiters(target)).mean;
        let mut targets: Vec<(f64, &WaitTarget)> = self
            .process
            .targets
            .iter()
            .filter(|target| target.identity.role() != Role::Lock)
            .map(|target| (waiting(target), target))
            .filter(|&(mean, _)| mean > 0.0)
            .collect();
        keep_first(&mut targets, MAX_GROUPED, |one, other| other.0.total_cmp(&one.0));
        for (mean, target) in targets {
            let name = self.variable(target, stacks);
            let of_runtime =
                full && is_parker(target) || self.process.jvm && self.is_of_java(target);
            for (way, share, all) in self.ways(target, stacks) {
                let (way, name) = (Way { of_runtime, ..way }, name.as_deref());
                let (threads, shared) = (mean * share, target.waiters_max >= 2);
                groups.add(&WaiterGroup { way, threads, at: &all, shared, name }, stacks);
            }
        }
        groups.merge_alike();
        let mut waits = Vec::new();
        for ((way, waiting, _), group) in groups.all {
            if group.threads < FEWEST {
                continue;
            }
            let known = matches!(way.what, WaitFor::Join | WaitFor::Signal | WaitFor::Other);
            let open = way.kind == WaitKind::Thread && !way.of_runtime && !known;
            let at = group.at.keys().copied().collect();
            let meanwhile = match open && group.threads >= LEAST_OPEN {
                true => meanwhile(self.process, &at, stacks),
                false => None,
            };
            let wait = self.wait(way, waiting, group, semaphores, stacks);
            waits.push(Wait { meanwhile, ..wait });
        }
        keep_first(&mut waits, MAX_WAITS, |one, other| {
            other.queue_mean.get().total_cmp(&one.queue_mean.get())
        });
        name_initialisers(self.process, &mut waits, stacks);
        waits
    }
}

type Stacked = Vec<(u32, Sleeping)>;

impl One<'_> {
    fn variable(self, target: &WaitTarget, stacks: &mut Stacks) -> Option<String> {
        if is_parker(target) {
            return None;
        }
        match self.name(target, stacks) {
            (name, NameFrom::Symbol) => Some(name),
            _ => None,
        }
    }

    fn is_of_java(self, target: &WaitTarget) -> bool {
        let named = |&tid: &u32| is_of_java(&self.name_of_thread(tid).name);
        !target.waiting.is_empty() && target.waiting.len() <= 2 && target.waiting.keys().all(named)
    }

    fn ways(self, target: &WaitTarget, stacks: &mut Stacks) -> Vec<(Way, f64, Stacked)> {
        let way = Way::of_kind(target.identity.kind());
        let all: Stacked = target
            .waiting_at
            .iter()
            .map(|(&stack, &samples)| (stack, Sleeping::seen(samples)))
            .collect();
        if !is_parker(target) {
            return vec![(way, 1.0, all)];
        }
        // Waits for locks are listed elsewhere. The Java virtual machine also parks its own threads
        // when they wait on condition variables.
        let Reasons { idle, asleep, untold, .. } = Reasons::of(target, stacks);
        let idling = match self.process.jvm {
            true => Way::of_kind(Kind::Condvar),
            false => way,
        };
        let sleeping = Way { kind: WaitKind::Sleep, what: WaitFor::Other, ..way };
        let ways = [
            (idling, idle, ParkedFor::Idle),
            (sleeping, asleep, ParkedFor::Sleep),
            (way, untold, ParkedFor::Untold),
        ];
        ways.into_iter()
            .filter(|(_, share, _)| *share > 0.0)
            .map(|(way, share, reason)| {
                let of_reason = |&(stack, _): &(u32, Sleeping)| {
                    target.identity.parked_for(&stacks.callers(stack)) == reason
                };
                (way, share, all.iter().copied().filter(of_reason).collect())
            })
            .collect()
    }
}

impl Groups {
    fn add(&mut self, waiters: &WaiterGroup<'_>, stacks: &mut Stacks) {
        let &WaiterGroup { way, threads, at, shared, name } = waiters;
        let samples: u64 = at.iter().map(|(_, seen)| seen.samples).sum();
        if samples == 0 {
            let group = self.all.entry((way, Waiting::default(), None)).or_default();
            group.threads += threads;
            group.names.insert(name.map(str::to_owned));
            return;
        }
        for &(stack, seen) in at {
            let known =
                self.known.entry(stack).or_insert_with(|| StackFacts::of(stack, self.jvm, stacks));
            let StackFacts { mut waiting, caller, of_runtime } = known.clone();
            let of_queue = waiting.function.as_deref().is_some_and(is_queue);
            if (!shared || of_queue) && waiting.lock.as_deref().is_some_and(may_be_event) {
                waiting.lock = None;
            }
            let on_condvar = way.what == WaitFor::ConditionVariable;
            let library = waiting.lock.as_deref().filter(|_| on_condvar).and_then(taken_in);
            let what = match waiting.barrier && way.kind == WaitKind::Thread {
                _ if library.is_some() => WaitFor::LibraryLock,
                true => WaitFor::Barrier,
                false => way.what,
            };
            let name = library.map(|lock| lock.name).or(name);
            let of_runtime = of_runtime || way.of_runtime;
            let caller = caller.filter(|_| way.kind == WaitKind::Sleep);
            let key = (Way { what, of_runtime, ..way }, waiting, caller);
            let group = self.all.entry(key).or_default();
            group.names.insert(name.map(str::to_owned));
            group.threads += threads * seen.samples as f64 / samples as f64;
            let sum = group.at.entry(stack).or_default();
            *sum = sum.and(seen);
        }
    }

    /// Merges groups that differ only in the caller, unless their sleeps differ in length.
    fn merge_alike(&mut self) {
        let mut sleeping: BTreeMap<(Way, Waiting), Vec<Sleeping>> = BTreeMap::new();
        for ((way, waiting, _), group) in self.all.iter().filter(|((.., of), _)| of.is_some()) {
            sleeping.entry((*way, waiting.clone())).or_default().push(group.sleeping());
        }
        for ((way, waiting, caller), group) in std::mem::take(&mut self.all) {
            let key = (way, waiting);
            let alike = sleeping.get(&key).is_some_and(|all| {
                let (known, unknown) =
                    (|of: &Sleeping| of.is_aged(), |of: &Sleeping| !of.is_aged());
                let same = all.iter().all(known) || all.iter().all(unknown);
                same && all.iter().fold(Sleeping::default(), |sum, &of| sum.and(of)).are_alike()
            });
            let (way, waiting) = key;
            let caller = caller.filter(|_| !alike);
            self.all.entry((way, waiting, caller)).or_default().add(group);
        }
    }
}

impl StackFacts {
    fn of(stack: u32, jvm: bool, stacks: &mut Stacks) -> StackFacts {
        let waiting = stacks.waiting(stack);
        let (names, _) = stacks.names(stack);
        let function = waiting.function.as_ref();
        let at = names.iter().position(|name| Some(name) == function);
        let caller = at.and_then(|at| names.get(at + 1)).cloned();
        let of_runtime = waits_for_work(&names, jvm);
        StackFacts { waiting, caller, of_runtime }
    }
}

impl Group {
    fn sleeping(&self) -> Sleeping {
        self.at.values().fold(Sleeping::default(), |sum, &of| sum.and(of))
    }

    fn add(&mut self, other: Group) {
        self.threads += other.threads;
        for (stack, seen) in other.at {
            let sum = self.at.entry(stack).or_default();
            *sum = sum.and(seen);
        }
        self.names.extend(other.names);
    }
}

/// Returns `true` for a lock that Python's library also uses as an event. A condition variable
/// creates such a lock for each wait, and only that waiter sleeps on the lock. Idle threads sleep
/// on the lock of a `queue.SimpleQueue`.
fn may_be_event(lock: &str) -> bool {
    ["PyThread_acquire_lock", "lock_PyThread_acquire_lock", "acquire_timed", "_PyMutex_LockTimed"]
        .iter()
        .any(|own| lock.starts_with(own))
}

impl One<'_> {
    fn wait(
        self,
        way: Way,
        waiting: Waiting,
        group: Group,
        semaphores: &Semaphores,
        stacks: &mut Stacks,
    ) -> Wait {
        let at = &group.at;
        let seen: HashMap<u32, u64> = at.iter().map(|(&stack, of)| (stack, of.samples)).collect();
        let mut listed = sites(SiteRole::Waiter, &seen, seen.values().sum(), stacks);
        listed.truncate(MAX_SITES);
        let sleeping = group.sleeping();
        let mut names = group.names.into_iter();
        let name = names.next().flatten().filter(|_| names.next().is_none());
        let file = self.process.file_locks.file(seen.keys());
        let file = file.filter(|_| way.what == WaitFor::FileLock);
        let name = file.map(|file| file.path.to_string_lossy().into_owned()).or(name);
        let of_file = file.map(|file| holders(&file.holders, file.lists, &file.idle, &file.names));
        let read = way.semaphore.and_then(|awaited| semaphores.get(awaited.id()?));
        let of_semaphore = read
            .filter(|read| read.usage() == SemaphoreUse::Lock)
            .map(|read| holders(&read.holders, read.waited, &read.idle, &read.names));
        let semaphore = way.semaphore.map(|awaited| semaphores::record(awaited, read));
        let name = semaphore.as_ref().map(semaphores::name).or(name);
        let length_ns = sleeping.length_ns().filter(|_| way.kind == WaitKind::Sleep);
        Wait {
            kind: way.kind,
            io: way.io,
            what: way.what,
            syscall: way.call.map(|call| Text::from(syscall_name(call))),
            name: name.map(Text::from),
            of_runtime: way.of_runtime,
            function: waiting.function.map(Text::from),
            lock_function: waiting.lock.map(Text::from),
            queue_mean: Ratio::new(group.threads),
            sleep_ns: length_ns.map(Ns::new),
            run_by: None,
            held_by: of_file.or(of_semaphore).unwrap_or_default(),
            semaphore,
            meanwhile: None,
            sites: listed,
        }
    }

    /// Divides threads that wait for System V semaphores by semaphore.
    fn by_semaphore(self, way: Way, all: Stacked) -> Vec<(Way, f64, Stacked)> {
        let samples = |of: &Stacked| of.iter().map(|(_, seen)| seen.samples).sum::<u64>() as f64;
        let of_all = samples(&all);
        if way.what != WaitFor::SysvSemaphore || of_all == 0.0 {
            return vec![(way, 1.0, all)];
        }
        let mut parts: BTreeMap<Option<AwaitedSemaphore>, Stacked> = BTreeMap::new();
        for (stack, seen) in all {
            let semaphore = self.process.semaphores.of_stack(stack);
            parts.entry(semaphore).or_default().push((stack, seen));
        }
        let part = |(semaphore, of): (Option<AwaitedSemaphore>, Stacked)| {
            let what = match semaphore.and_then(|awaited| awaited.goal) {
                Some(SemaphoreGoal::Zero) => WaitFor::Barrier,
                _ => way.what,
            };
            (Way { what, semaphore, ..way }, samples(&of) / of_all, of)
        };
        parts.into_iter().map(part).collect()
    }
}

/// Processes that held a lock in most of `readings`. `held` and `idle` count the readings of each
/// process.
fn holders(
    held: &HashMap<u32, u64>,
    readings: u64,
    idle: &HashMap<u32, u64>,
    names: &HashMap<u32, String>,
) -> Vec<HoldingProcess> {
    let share = |of: u64| Fraction::new(of as f64 / readings.max(1) as f64);
    let mut all: Vec<(u64, u32)> = held.iter().map(|(&pid, &held)| (held, pid)).collect();
    keep_first(&mut all, MAX_SITES, |one, other| other.cmp(one));
    let holder = |(held, pid): (u64, u32)| HoldingProcess {
        pid,
        name: names.get(&pid).map(|name| Text::from(name.as_str())).unwrap_or_default(),
        share: share(held),
        waiting_for_work: share(idle.get(&pid).copied().unwrap_or(0)),
    };
    all.into_iter().map(holder).collect()
}

impl Way {
    /// Kind of a wait in a page fault, or in a system call other than futex(2). Returns `None` for
    /// a thread on a CPU.
    fn of_time(time: Time, call: Option<u32>, pages_from_disk: bool) -> Option<Way> {
        let way =
            |kind, what| Way { kind, io: None, what, call, semaphore: None, of_runtime: false };
        Some(match time {
            Time::OnCpu | Time::Running | Time::Runnable => return None,
            Time::Io(device) => {
                let io = Some(io_kind(device));
                Way { io, ..way(WaitKind::Io, WaitFor::Descriptor) }
            }
            Time::Paging if pages_from_disk => {
                Way { io: Some(IoKind::Disk), ..way(WaitKind::Io, WaitFor::Memory) }
            }
            Time::Paging => way(WaitKind::Unknown, WaitFor::Memory),
            Time::Threads => way(WaitKind::Thread, call.map_or(WaitFor::Other, for_threads)),
            Time::OwnPipe => way(WaitKind::Thread, WaitFor::Pipe),
            Time::Idle => way(WaitKind::Idle, WaitFor::Descriptor),
            Time::Sleep => way(WaitKind::Sleep, WaitFor::Other),
            Time::Other => {
                let memory = call.is_some_and(|call| MEMORY.contains(&libc::c_long::from(call)));
                let what = if memory { WaitFor::Memory } else { WaitFor::Other };
                way(WaitKind::Unknown, what)
            }
        })
    }

    fn of_kind(kind: Kind) -> Way {
        let what = match kind {
            Kind::Condvar => WaitFor::ConditionVariable,
            Kind::Semaphore => WaitFor::Semaphore,
            Kind::Barrier => WaitFor::Barrier,
            Kind::Join => WaitFor::Join,
            Kind::Once => WaitFor::Once,
            Kind::Parker => WaitFor::Parker,
            _ => WaitFor::Word,
        };
        Way {
            kind: WaitKind::Thread,
            io: None,
            what,
            call: None,
            semaphore: None,
            of_runtime: false,
        }
    }
}

/// Calls that change the memory mappings of a process. The kernel runs them one at a time.
const MEMORY: &[libc::c_long] = &[
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
];

/// Object of a wait in this system call, which other threads or processes end.
fn for_threads(call: u32) -> WaitFor {
    match libc::c_long::from(call) {
        libc::SYS_flock | libc::SYS_fcntl => WaitFor::FileLock,
        libc::SYS_semop | libc::SYS_semtimedop => WaitFor::SysvSemaphore,
        libc::SYS_msgrcv | libc::SYS_msgsnd => WaitFor::Message,
        libc::SYS_mq_timedreceive | libc::SYS_mq_timedsend => WaitFor::Message,
        libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => WaitFor::Signal,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pause => WaitFor::Signal,
        libc::SYS_futex_waitv => WaitFor::Word,
        _ => WaitFor::Descriptor,
    }
}

/// Names the function that does the initialisation for which threads wait. The thread that runs
/// this function has the waiters' function on its stack, but does not wait.
fn name_initialisers(process: &ProcessAccount, waits: &mut [Wait], stacks: &mut Stacks) {
    if !waits.iter().any(|wait| wait.what == WaitFor::Once) {
        return;
    }
    let waiting: HashSet<u32> = process
        .targets
        .iter()
        .filter(|target| target.identity.kind() == Kind::Once)
        .flat_map(|target| target.waiting_at.keys().copied())
        .collect();
    let asleep = process.asleep().flat_map(|(.., of)| of.at.keys().copied());
    let locking = process.targets.iter().flat_map(|target| target.waiting_at.keys().copied());
    let others: HashSet<u32> = asleep
        .chain(locking)
        .chain(process.ran_at.keys().copied())
        .filter(|stack| !waiting.contains(stack))
        .take(MAX_GROUPED)
        .collect();
    let mut running: Vec<Vec<String>> = Vec::new();
    for stack in others {
        running.push(stacks.names(stack).0);
    }
    for wait in waits.iter_mut().filter(|wait| wait.what == WaitFor::Once) {
        let Some(function) = &wait.function else { continue };
        wait.run_by = running.iter().find_map(|names| initialiser(names, function));
    }
}

/// Finds the program's function that an initialisation called. The stack must contain the function
/// that started the initialisation (`asked_by`).
fn initialiser(names: &[String], asked_by: &str) -> Option<Text> {
    let asked = names.iter().position(|name| name == asked_by)?;
    let called = names[..asked].iter().rev();
    let mut own = called.skip_while(|name| {
        let name = name.as_str();
        part(name) != Part::Program || name.contains("once")
    });
    own.next().map(|name| Text::from(name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::occupation::Device;

    #[test]
    fn eight_words_of_one_function_are_one_group() {
        let mut groups = Groups::default();
        let waiting = Waiting { function: Some("next_job".into()), ..Waiting::default() };
        groups.known.insert(7, StackFacts { waiting, ..StackFacts::default() });
        let mut stacks = Stacks::default();
        for _ in 0..8 {
            let seen = Sleeping::seen(3);
            let (way, at) = (Way::of_kind(Kind::Condvar), &[(7, seen)]);
            let jobs = WaiterGroup { way, threads: 0.9, at, shared: false, name: Some("jobs") };
            groups.add(&jobs, &mut stacks);
        }
        let way = Way::of_kind(Kind::Condvar);
        let unseen = WaiterGroup { way, threads: 0.5, at: &[], shared: false, name: None };
        groups.add(&unseen, &mut stacks);
        let threads: Vec<(Option<String>, f64)> = groups
            .all
            .iter()
            .map(|((_, waiting, _), group)| (waiting.function.clone(), group.threads))
            .collect();
        assert_eq!(threads[0], (None, 0.5));
        assert!(threads[1].0.is_some() && (threads[1].1 - 7.2).abs() < 1e-9, "{threads:?}");
    }

    #[test]
    fn sleeps_of_unlike_lengths_are_told_by_their_callers() {
        const MS: u64 = 1_000_000;
        let lengths = |of_main: Sleeping, of_worker: Sleeping| {
            let mut groups = Groups::default();
            let mut stacks = Stacks::default();
            let way = Way { kind: WaitKind::Sleep, ..Way::of_kind(Kind::Condvar) };
            for (stack, caller) in [(1, "main"), (2, "worker")] {
                let waiting = Waiting { function: Some("us_sleep".into()), ..Waiting::default() };
                let caller = Some(caller.to_owned());
                groups.known.insert(stack, StackFacts { waiting, caller, of_runtime: false });
            }
            for at in [[(1, of_main)], [(2, of_worker)]] {
                let waiters = WaiterGroup { way, threads: 1.0, at: &at, shared: true, name: None };
                groups.add(&waiters, &mut stacks);
            }
            groups.merge_alike();
            let length = |group: &Group| group.sleeping().length_ns().map(|ns| ns.round() as u64);
            let in_ms = |group| (length(group).map(|ns| (ns + MS / 2) / MS), group.threads as u32);
            groups.all.values().map(in_ms).collect::<Vec<_>>()
        };
        let (short, long) = (Sleeping::of_length(3 * MS, 90), Sleeping::of_length(40 * MS, 90));
        assert_eq!(lengths(short, short), [(Some(3), 2)]);
        assert_eq!(lengths(long, short), [(Some(40), 1), (Some(3), 1)]);
        assert_eq!(lengths(Sleeping::seen(90), short), [(None, 1), (Some(3), 1)]);
        assert_eq!(lengths(Sleeping::seen(90), Sleeping::seen(90)), [(None, 2)]);
    }

    #[test]
    fn ways_say_what_is_waited_for() {
        let of = |time, call| Way::of_time(time, Some(call as u32), false).unwrap();
        assert_eq!(of(Time::Threads, libc::SYS_flock).what, WaitFor::FileLock);
        assert_eq!(of(Time::Threads, libc::SYS_semop).what, WaitFor::SysvSemaphore);
        let many_words = of(Time::Threads, libc::SYS_futex_waitv);
        assert_eq!((many_words.kind, many_words.what), (WaitKind::Thread, WaitFor::Word));
        assert_eq!(many_words.call.map(syscall_name).as_deref(), Some("futex_waitv"));
        assert_eq!(of(Time::Threads, libc::SYS_ppoll).what, WaitFor::Descriptor);
        assert_eq!(of(Time::Other, libc::SYS_mprotect).what, WaitFor::Memory);
        let child = of(Time::Io(Device::Child), libc::SYS_wait4);
        assert_eq!((child.kind, child.io), (WaitKind::Io, Some(IoKind::Child)));
        assert!(Way::of_time(Time::Running, None, false).is_none());
        let paging = |from_disk| Way::of_time(Time::Paging, None, from_disk).unwrap().kind;
        assert_eq!((paging(true), paging(false)), (WaitKind::Io, WaitKind::Unknown));
    }

    #[test]
    fn the_initialiser_is_called_by_the_function_that_asked_for_it() {
        let names = [
            "clock_nanosleep",
            "load_config",
            "std::__invoke_impl<void>",
            "__pthread_once_slow",
            "std::call_once<void (&)()>",
            "get_config",
            "worker",
        ]
        .map(String::from);
        assert_eq!(initialiser(&names, "get_config").as_deref(), Some("load_config"));
        assert_eq!(initialiser(&names, "other"), None);
        assert_eq!(initialiser(&names[5..], "get_config"), None);
    }
}
