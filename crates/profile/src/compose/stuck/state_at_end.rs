//! Threads and locks at the end of the observation, from which standstills are judged.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;

use libc::c_long;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::time::{ClockId, clock_gettime};
use threadtoll_judge::stuck::{HolderAtEnd, LockAtEnd, ThreadAtEnd, Waits};
use threadtoll_stacks::process::{Activity, KernelState, SystemCall, ThreadFacts};

use crate::account::standing::Stand;
use crate::account::{Account, ProcessAccount, WaitTarget};
use crate::futex::{FutexWait, Operation};
use crate::occupation::Occupation;
use crate::primitive::{Hold, Kind, ReadMemory, Role};
use crate::stacks::Stacks;
use crate::watched::Watched;

/// A state seen at most this many nanoseconds before the end is assumed to last until the end.
const LATELY_NS: u64 = 500_000_000;

/// Futex values with which threads wait for a lock whose word is 0 when free: 1, or 2 for a lock
/// that notes in its word that threads wait.
const HELD: RangeInclusive<u32> = 1..=2;

/// System calls in which threads idle until something outside the program happens. Reads from one
/// descriptor and waits for one child are not listed, because they may be slow work under a lock.
const OUTSIDE: &[c_long] = &[
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_io_uring_enter,
];
#[cfg(target_arch = "x86_64")]
const OLD_OUTSIDE: &[c_long] =
    &[libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait, libc::SYS_pause];
#[cfg(not(target_arch = "x86_64"))]
const OLD_OUTSIDE: &[c_long] = &[];

#[derive(Clone, Debug)]
pub(super) enum OwnerOrigin {
    /// A thread of the program, an unknown thread, or no thread.
    Program,
    /// A thread of the program, found by excluding all others.
    Inferred,
    Readers(u32),
    Ended {
        tid: u32,
    },
    /// A thread of the parent process: a fork copied the lock while it was held.
    Forked {
        tid: u32,
        parent: u32,
    },
    Elsewhere {
        tid: u32,
        facts: ThreadFacts,
    },
}

#[derive(Debug, Default)]
pub(super) struct StateAtEnd {
    pub(super) threads: Vec<ThreadAtEnd>,
    pub(super) locks: Vec<LockAtEnd>,
    pub(super) places: Vec<(u32, u32)>,
    pub(super) owners: Vec<OwnerOrigin>,
    processes: HashMap<u32, u32>,
    by_place: HashMap<(u32, u32), usize>,
    shared: HashSet<usize>,
}

impl StateAtEnd {
    pub(super) fn of(
        account: &Account,
        watched: &BTreeMap<u32, Watched>,
        stacks: &Stacks,
        indices: &[u32],
    ) -> StateAtEnd {
        let mut at_end = StateAtEnd::default();
        let living = indices.iter().filter_map(|&index| {
            let process = account.process(index).filter(|process| !process.ended)?;
            Some((index, process))
        });
        let living: Vec<(u32, &ProcessAccount)> = living.collect();
        for &(index, process) in &living {
            at_end.processes.extend(process.threads.iter().map(|&tid| (tid, index)));
        }
        for &(index, process) in &living {
            let mut tids: Vec<u32> = process.threads.iter().copied().collect();
            tids.sort_unstable();
            let memory = LazyCell::new(|| watched.get(&index)?.process.as_ref()?.maps().ok());
            let is_own = |address: u64| {
                let mapping = memory.as_ref()?.iter().find(|mapping| mapping.contains(address))?;
                Some(!mapping.shared)
            };
            for tid in tids {
                let is_own = &|address| is_own(address) == Some(true);
                let thread = at_end.thread(tid, index, process, account.until, is_own);
                at_end.threads.extend(thread);
            }
        }
        for place in 0..at_end.locks.len() {
            let (index, target) = at_end.places[place];
            let (Some(process), Some(watched)) = (account.process(index), watched.get(&index))
            else {
                continue;
            };
            let target = &process.targets[target as usize];
            let (mut lock, owner) =
                at_end.lock(target, process, index, watched, stacks, account.until);
            let untold = matches!(lock.holder, HolderAtEnd::Untold | HolderAtEnd::UntoldButSeen);
            if untold && at_end.shared.contains(&place) {
                lock.holder = HolderAtEnd::Unknown;
            }
            (at_end.locks[place], at_end.owners[place]) = (lock, owner);
        }
        at_end
    }

    pub(super) fn process_of(&self, tid: u32) -> Option<u32> {
        self.processes.get(&tid).copied()
    }

    /// Returns a thread's state; `None` for a main thread that has ended, because it delays no
    /// other thread. `is_own` returns `true` if memory at an address belongs to the process alone.
    fn thread(
        &mut self,
        tid: u32,
        index: u32,
        process: &ProcessAccount,
        until: u64,
        is_own: &dyn Fn(u64) -> bool,
    ) -> Option<ThreadAtEnd> {
        let mut thread = ThreadAtEnd {
            tid,
            process: index,
            waits: Waits::Not,
            timed: false,
            asleep_ns: 0,
            same_ns: 0,
        };
        let Some(stand) = process.standing.get(tid) else {
            let has_ended =
                || ThreadFacts::read(tid).is_some_and(|it| it.state == KernelState::Ended);
            let first = tid == process.pid && has_ended();
            return (!first).then_some(thread);
        };
        let lately = |at: u64| at + LATELY_NS >= until;
        let sleep = stand.sleep().filter(|sleep| lately(sleep.until));
        thread.asleep_ns = sleep.map_or(0, |sleep| sleep.until - sleep.since);
        let last = sleep.map_or(stand.last, |sleep| sleep.until.max(stand.last));
        if !lately(last) {
            return Some(thread);
        }
        thread.same_ns = last - stand.first;
        match process.waited_for(tid, stand) {
            Some((wait, place)) => {
                thread.timed = wait.timed;
                thread.waits = self.waits(&wait, place, index, process, is_own);
            }
            None => {
                let Activity::Asleep(call) = stand.activity else { return Some(thread) };
                thread.waits = match Occupation::of_call(&call) {
                    Occupation::Sleep => Waits::ForTime,
                    // A wait for a reply may be slow work, like a read.
                    _ if process.does_io(tid, call.number) => Waits::Not,
                    _ if is_from_outside(&call) => Waits::ForOutside,
                    _ => Waits::Not,
                };
            }
        }
        Some(thread)
    }

    fn waits(
        &mut self,
        wait: &FutexWait,
        place: Option<u32>,
        index: u32,
        process: &ProcessAccount,
        is_own: &dyn Fn(u64) -> bool,
    ) -> Waits {
        let target = place.and_then(|place| Some((place, process.targets.get(place as usize)?)));
        // `pthread_join` waits on a word that contains the other thread's TID. The kernel clears
        // the word when that thread ends.
        if !wait.private
            && let Some(tid) = process.named(wait.value).filter(|tid| process.threads.contains(tid))
            && target.is_none_or(|(_, target)| target.identity.kind() == Kind::Join)
        {
            return Waits::ForEnd(tid);
        }
        // Another process may wake the thread, unless it cannot reach the word. Some libraries
        // never use private futexes.
        let by_thread = match wait.private || is_own(wait.address) {
            true => Waits::ForThread,
            false => Waits::ForOutside,
        };
        let Some((place, target)) = target else { return by_thread };
        match target.identity.role() {
            Role::Lock => {
                let place = self.place(index, place);
                if !wait.private {
                    self.shared.insert(place);
                }
                Waits::ForLock(place)
            }
            // musl moves waiters of a condition variable to futex words of their own. These words
            // have the value of a free lock.
            Role::Unknown if !process.foreign_libc && reads_free(target, wait) => {
                Waits::ForLock(self.place(index, place))
            }
            // The thread to be joined has ended, so this wait is about to end.
            Role::Idle if target.identity.kind() == Kind::Join => Waits::Not,
            Role::Idle | Role::Parked | Role::Unknown => by_thread,
        }
    }

    fn place(&mut self, index: u32, place: u32) -> usize {
        let next = self.locks.len();
        *self.by_place.entry((index, place)).or_insert_with(|| {
            let (holder, watched_ns) = (HolderAtEnd::Unknown, 0);
            let lock = LockAtEnd { process: index, holder, same_ns: 0, always: false, watched_ns };
            self.locks.push(lock);
            self.places.push((index, place));
            self.owners.push(OwnerOrigin::Program);
            next
        })
    }

    fn lock(
        &self,
        target: &WaitTarget,
        process: &ProcessAccount,
        index: u32,
        watched: &Watched,
        stacks: &Stacks,
        until: u64,
    ) -> (LockAtEnd, OwnerOrigin) {
        let mut lock = LockAtEnd {
            process: index,
            holder: HolderAtEnd::Unknown,
            same_ns: 0,
            always: target.steady_hold.always(),
            watched_ns: (process.seconds() * 1e9) as u64,
        };
        let least = until.saturating_sub(LATELY_NS);
        if !target.is_lock() {
            // Targets that are no locks are listed only if their words have the value of a free
            // lock.
            if let Some((_, since, last)) = target.steady_word.now().filter(|now| now.2 >= least) {
                (lock.holder, lock.same_ns) = (HolderAtEnd::Nobody, last - since);
                lock.always = target.steady_word.always();
            }
            return (lock, OwnerOrigin::Program);
        }
        // A holder that has not run since the word was last read cannot have released the lock.
        let not_run = |hold: Hold, last: u64| {
            let Hold::Held { owner: Some(tid) } = hold else { return false };
            let sleep = process.standing.get(tid).and_then(Stand::sleep);
            sleep.is_some_and(|sleep| sleep.since <= last && sleep.until >= least)
        };
        let now = target.steady_hold.now();
        let Some((hold, since, last)) =
            now.filter(|&(hold, _, last)| last >= least || not_run(hold, last))
        else {
            return (lock, OwnerOrigin::Program);
        };
        // The word may have been constant even before the target was known to be a lock.
        let word = target.steady_word.now().filter(|_| target.steady_word.always());
        let before = word.filter(|_| lock.always).map_or(since, |(_, since, _)| since);
        lock.same_ns = last.max(least) - before.min(since);
        let shared = matches!(target.identity.kind(), Kind::RwLock | Kind::RustRwLock);
        let (holder, owner) = match hold {
            // The lock may be passing from readers to a writer.
            Hold::Free if shared => (HolderAtEnd::Unknown, OwnerOrigin::Program),
            Hold::Free => (HolderAtEnd::Nobody, OwnerOrigin::Program),
            Hold::Held { owner: Some(tid) } => self.owner(tid, target, process, index, watched),
            Hold::Held { owner: None } => untold(target, process, stacks),
            Hold::Readers(readers) => {
                let (holder, owner) = untold(target, process, stacks);
                match owner {
                    OwnerOrigin::Inferred => (holder, owner),
                    _ => (HolderAtEnd::Untold, OwnerOrigin::Readers(readers)),
                }
            }
            Hold::Unseen => (HolderAtEnd::Unknown, OwnerOrigin::Program),
        };
        lock.holder = holder;
        (lock, owner)
    }

    fn owner(
        &self,
        tid: u32,
        target: &WaitTarget,
        process: &ProcessAccount,
        index: u32,
        watched: &Watched,
    ) -> (HolderAtEnd, OwnerOrigin) {
        if process.threads.contains(&tid) {
            let seen = process.standing.get(tid).is_some() || tid != process.pid;
            let facts = if seen { None } else { ThreadFacts::read(tid) };
            return match facts.is_some_and(|facts| facts.state == KernelState::Ended) {
                true => (HolderAtEnd::Gone, OwnerOrigin::Ended { tid }),
                false => (HolderAtEnd::Thread(tid), OwnerOrigin::Program),
            };
        }
        let living = |facts: &ThreadFacts| facts.state != KernelState::Ended;
        let Some(facts) = ThreadFacts::read(tid).filter(living) else {
            // The thread may be hidden because it belongs to another user.
            let pid = i32::try_from(tid).ok().and_then(Pid::from_raw);
            let gone = pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH));
            return match gone {
                true => (HolderAtEnd::Gone, OwnerOrigin::Ended { tid }),
                false => (HolderAtEnd::Unknown, OwnerOrigin::Program),
            };
        };
        if facts.process == process.pid {
            // The thread has started since the threads were listed.
            return (HolderAtEnd::Unknown, OwnerOrigin::Program);
        }
        let mapping = watched.process.as_ref().and_then(|process| {
            let mappings = process.maps().ok()?;
            mappings.into_iter().find(|mapping| mapping.contains(target.address))
        });
        match mapping.map(|mapping| mapping.shared) {
            None => (HolderAtEnd::Unknown, OwnerOrigin::Program),
            Some(true) if self.process_of(tid).is_some_and(|other| other != index) => {
                (HolderAtEnd::Thread(tid), OwnerOrigin::Program)
            }
            Some(true) => {
                let stopped = facts.state.is_stopped();
                (HolderAtEnd::Elsewhere { stopped }, OwnerOrigin::Elsewhere { tid, facts })
            }
            Some(false) => {
                let parent = facts.process;
                let forked = ThreadFacts::read(process.pid)
                    .is_some_and(|of_process| of_process.descends_from(parent));
                // If no fork copied the lock, its owner has ended, and the TID now belongs to
                // another thread.
                let owner = match forked {
                    true => OwnerOrigin::Forked { tid, parent },
                    false => OwnerOrigin::Ended { tid },
                };
                (HolderAtEnd::Gone, owner)
            }
        }
    }
}

fn untold(
    target: &WaitTarget,
    process: &ProcessAccount,
    stacks: &Stacks,
) -> (HolderAtEnd, OwnerOrigin) {
    let only = target.holder.only_one().filter(|&(tid, at)| {
        // The thread still holds the lock only if it has not run since the other threads were
        // excluded.
        let sleep = process.standing.get(tid).and_then(Stand::sleep);
        sleep.is_some_and(|sleep| sleep.since <= at)
    });
    let sleeps = |tid: u32| {
        let stand = process.standing.get(tid);
        stand.is_some_and(|stand| Occupation::of(&stand.activity) == Occupation::Sleep)
    };
    // If the lock was never seen free, a thread that now waits for the lock may hold it. That is at
    // least as likely as a holder that sleeps for a set time.
    let always = target.steady_hold.always();
    if let Some((tid, _)) = only.filter(|&(tid, _)| !always || !sleeps(tid)) {
        return (HolderAtEnd::Thread(tid), OwnerOrigin::Inferred);
    }
    let holders = target.holders(stacks);
    if holders.inferred && always {
        return (HolderAtEnd::Untold, OwnerOrigin::Program);
    }
    let not_seen = holders.doing.not_seen();
    match not_seen.is_some_and(|share| share.value <= 0.5) {
        true => (HolderAtEnd::UntoldButSeen, OwnerOrigin::Program),
        false => (HolderAtEnd::Untold, OwnerOrigin::Program),
    }
}

/// Returns `true` if a thread sleeps on the word as if for a lock, but the word has the value of a
/// free lock. The thread that changed the word should have woken the sleeper.
fn reads_free(target: &WaitTarget, wait: &FutexWait) -> bool {
    let word = target.steady_word.now();
    HELD.contains(&wait.value) && word.is_some_and(|(word, ..)| word == 0)
}

fn is_from_outside(call: &SystemCall) -> bool {
    let number = c_long::from(call.number);
    OUTSIDE.contains(&number) || OLD_OUTSIDE.contains(&number)
}

/// Time until a thread's futex wait times out; `None` if there is no timeout, or if it cannot be
/// read.
pub(super) fn ends_in_ns(stand: &Stand, read: ReadMemory<'_>) -> Option<u64> {
    let Activity::Asleep(call) = stand.activity else { return None };
    let wait = FutexWait::of(call.number, call.arguments).filter(|wait| wait.timed)?;
    if c_long::from(call.number) != libc::SYS_futex {
        return None;
    }
    let mut bytes = [0; 16];
    let [.., timeout, _, _] = call.arguments;
    if read(timeout, &mut bytes) < bytes.len() {
        return None;
    }
    let (seconds, nanoseconds) = bytes.split_at(8);
    let number = |bytes: &[u8]| Some(u64::from_ne_bytes(bytes.try_into().ok()?));
    let at_ns = number(seconds)?.checked_mul(1_000_000_000)?.checked_add(number(nanoseconds)?)?;
    let now = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let sleep = stand.sleep()?;
    match wait.operation {
        // Only `FUTEX_WAIT` has a timeout relative to its start.
        Operation::Wait => at_ns.checked_sub(sleep.until - sleep.since),
        Operation::LockPi => at_ns.checked_sub(now(ClockId::Realtime)),
        _ if wait.realtime => at_ns.checked_sub(now(ClockId::Realtime)),
        _ => at_ns.checked_sub(now(ClockId::Monotonic)),
    }
}
