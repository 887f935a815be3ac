//! Names of the threads, locks and other wait targets in a standstill.

use std::collections::BTreeMap;

use threadtoll_judge::stuck::{self, StandStill, StandStillKind, Waits};
use threadtoll_record::profile::{Process, Stuck, StuckKind, StuckThread};
use threadtoll_record::{Seconds, Text};
use threadtoll_stacks::process::{Activity, KernelState, ThreadFacts};

use super::super::cpus::CpusOfProcess;
use super::MAX_THREADS;
use super::state_at_end::{OwnerOrigin, StateAtEnd, ends_in_ns};
use super::words::{self, Member, Said};
use crate::account::{Account, WaitTarget};
use crate::compose::One;
use crate::compose::locks::syscall_name;
use crate::primitive::Kind;
use crate::stacks::Stacks;
use crate::watched::Watched;

#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) account: &'a Account,
    pub(super) watched: &'a BTreeMap<u32, Watched>,
    pub(super) indices: &'a [u32],
    pub(super) processes: &'a [Process],
    pub(super) at_end: &'a StateAtEnd,
}

impl<'a> Names<'a> {
    /// Returns the standstill and the indices of the processes involved. `in_process` adds the
    /// locks.
    pub(super) fn stuck(self, of: &StandStill, stacks: &mut Stacks) -> (Stuck, Vec<u32>) {
        let kind = self.kind(of);
        let mut concerned = vec![of.process];
        let (mut threads, mut members) = (Vec::new(), Vec::new());
        for one in &of.threads {
            let index = self.at_end.process_of(one.tid).unwrap_or(of.process);
            if !concerned.contains(&index) {
                concerned.push(index);
            }
            if threads.len() == MAX_THREADS {
                continue;
            }
            members.push(Member {
                who: self.thread(one.tid, index, of.process),
                holds: one.holds.map(|place| self.lock(place, stacks)),
                waits: self.waits(one.tid, index, one.waits, of.process, stacks),
            });
            let id = |place: usize| self.at_end.places[place].1 + 1;
            threads.push(StuckThread {
                tid: one.tid,
                name: Text::from(self.thread_name(one.tid, index)),
                holds: one.holds.map(id),
                waits_for: match one.waits {
                    Waits::ForLock(place) => Some(id(place)),
                    _ => None,
                },
                joins: match one.waits {
                    Waits::ForEnd(tid) => Some(tid),
                    _ => None,
                },
                frames: self.frames(one.tid, index, stacks),
            });
        }
        let more = of.behind + of.threads.len() - threads.len();
        let alive = concerned.iter().filter_map(|&index| self.account.process(index));
        let owner = of.locks.first().map(|&place| self.at_end.owners[place].clone());
        let locks: Vec<usize> = of.locks.iter().copied().take(MAX_THREADS).collect();
        let mut places = of.locks.iter();
        let said = Said {
            kind,
            for_ns: of.for_ns,
            waiting: of.threads.len(),
            behind: of.behind,
            alive: alive.map(|process| process.threads.len()).sum(),
            owner: owner.map(|owner| self.owner(&owner)).unwrap_or_default(),
            holder_first: of.threads.first().is_some_and(|one| one.holds.is_some()),
            always: places.clone().all(|&place| self.at_end.locks[place].always),
            inferred: places
                .any(|&place| matches!(self.at_end.owners[place], OwnerOrigin::Inferred)),
            ends_in_ns: of.threads.iter().filter_map(|one| self.ends_in_ns(one.tid)).min(),
            locks: locks.into_iter().map(|place| self.lock(place, stacks)).collect(),
            members,
        };
        let stuck = Stuck {
            kind,
            seconds: Some(Seconds::new(of.for_ns as f64 / 1e9)),
            locks: Vec::new(),
            more_threads: (more as u64).into(),
            threads,
            text: Text::from(words::text(&said)),
            mend: words::mend(&said).map(Text::from),
        };
        (stuck, concerned)
    }

    /// Returns `true` if the threads are a pool without work: one thread holds the lock and waits
    /// for work, in the function in which the others wait for the lock.
    pub(super) fn takes_turns(self, of: &StandStill, stacks: &mut Stacks) -> bool {
        if !matches!(of.kind, StandStillKind::NotReleased | StandStillKind::Stuck) {
            return false;
        }
        let mut functions = |tid: u32| {
            let index = self.at_end.process_of(tid)?;
            let stack = self.account.process(index)?.stack_of(tid)?;
            let functions = stacks.program_functions(stack);
            (!functions.is_empty()).then_some(functions)
        };
        let waits = |one: &&stuck::Stuck| matches!(one.waits, Waits::ForLock(_));
        let waiters: Vec<_> =
            of.threads.iter().filter(waits).filter_map(|one| functions(one.tid)).collect();
        // If the holder is unknown, any idle thread of the process may hold the lock.
        let holder = of.threads.iter().find(|one| one.holds.is_some()).map(|one| one.tid);
        let idle = |thread: &&stuck::ThreadAtEnd| {
            let waits = matches!(thread.waits, Waits::ForThread | Waits::ForOutside);
            waits && thread.process == of.process && holder.is_none_or(|tid| tid == thread.tid)
        };
        let idle: Vec<_> =
            self.at_end.threads.iter().filter(idle).filter_map(|one| functions(one.tid)).collect();
        let shares = |waiter: &Vec<(String, u64)>| {
            let innermost = waiter.first();
            idle.iter().any(|idle| innermost.is_some_and(|function| idle.contains(function)))
        };
        !waiters.is_empty() && waiters.iter().all(shares)
    }

    /// Returns `true` if no thread waits for a lock and something unseen may wake the threads, such
    /// as a signal handler that posts a semaphore. Signal handlers neither signal condition
    /// variables nor arrive at barriers.
    pub(super) fn may_be_woken(self, of: &StandStill) -> bool {
        let waits_for_thread = |one: &&stuck::Stuck| matches!(one.waits, Waits::ForThread);
        let mut waiting = of.threads.iter().filter(waits_for_thread);
        let by_threads = |one: &stuck::Stuck| {
            let kind = self
                .at_end
                .process_of(one.tid)
                .and_then(|index| Some(self.waited_for(one.tid, index)?.identity.kind()));
            matches!(kind, Some(Kind::Condvar | Kind::Barrier | Kind::Once))
        };
        of.kind == StandStillKind::Stuck && of.locks.is_empty() && !waiting.all(by_threads)
    }

    fn waited_for(self, tid: u32, index: u32) -> Option<&'a WaitTarget> {
        let process = self.account.process(index)?;
        let (_, place) = process.waited_for(tid, process.standing.get(tid)?)?;
        process.targets.get(place? as usize)
    }

    pub(super) fn in_process(self, stuck: &Stuck, of: &StandStill, index: u32) -> Stuck {
        let listed = self.record(index).map_or(&[][..], |record| &record.locks);
        let of_lock = |place: usize| {
            let (process, writers) = self.at_end.places[place];
            let process = self.account.process(process).filter(|_| process == index);
            let readers = process.and_then(|process| process.of_readers(writers));
            process.map(|_| writers).into_iter().chain(readers)
        };
        let ids = of.locks.iter().flat_map(|&place| of_lock(place)).map(|place| place + 1);
        let locks = ids.filter(|id| listed.iter().any(|lock| lock.id == *id)).collect();
        Stuck { locks, ..stuck.clone() }
    }

    fn kind(self, of: &StandStill) -> StuckKind {
        match of.kind {
            StandStillKind::Deadlock => StuckKind::Deadlock,
            StandStillKind::SelfDeadlock => StuckKind::SelfDeadlock,
            StandStillKind::Stuck => StuckKind::StandStill,
            StandStillKind::LostWakeUp => StuckKind::LostWakeUp,
            StandStillKind::OwnerElsewhere => StuckKind::OwnerElsewhere,
            StandStillKind::OwnerGone => {
                match of.locks.first().map(|&place| &self.at_end.owners[place]) {
                    Some(OwnerOrigin::Forked { .. }) => StuckKind::OwnerElsewhere,
                    _ => StuckKind::OwnerEnded,
                }
            }
            StandStillKind::Circle => StuckKind::Circle,
            StandStillKind::NotReleased => StuckKind::NeverReleased,
        }
    }

    fn record(self, index: u32) -> Option<&'a Process> {
        let place = self.indices.iter().position(|&other| other == index)?;
        self.processes.get(place)
    }

    fn lock(self, place: usize, stacks: &mut Stacks) -> String {
        let (index, target) = self.at_end.places[place];
        let listed = self.record(index).map_or(&[][..], |record| &record.locks);
        if let Some(lock) = listed.iter().find(|lock| lock.id == target + 1) {
            // Readers and writers stand at the same lock.
            let name = lock.name.strip_suffix(" for writers");
            return name.unwrap_or(&lock.name).to_owned();
        }
        let process = self.account.process(index);
        let target = process.and_then(|process| process.targets.get(target as usize));
        target.map_or_else(|| "a lock".to_owned(), |target| self.target(target, index, stacks))
    }

    fn target(self, target: &WaitTarget, index: u32, stacks: &mut Stacks) -> String {
        match (self.account.process(index), self.watched.get(&index)) {
            (Some(process), Some(watched)) => {
                let cpus = CpusOfProcess::default();
                let one = One { index, process, watched, perf_event: false, cpus };
                one.name(target, stacks).0
            }
            _ => format!("{:#x}", target.address),
        }
    }

    fn thread_name(self, tid: u32, index: u32) -> String {
        let watched = self.watched.get(&index);
        let process = watched.and_then(|watched| watched.process.as_ref());
        match process.and_then(|process| process.thread_name(tid).ok()) {
            Some(name) => name.to_string_lossy().into_owned(),
            None => watched.and_then(|it| it.names.get(&tid).cloned()).unwrap_or_default(),
        }
    }

    /// Name and TID of a thread; also its PID, if the sentence is about another process.
    fn thread(self, tid: u32, index: u32, spoken_of: u32) -> String {
        let name = self.thread_name(tid, index);
        let name = if name.trim().is_empty() { "a thread" } else { &name };
        match self.account.process(index).filter(|_| index != spoken_of) {
            Some(process) => format!("{name} (PID {}, TID {tid})", process.pid),
            None => format!("{name} (TID {tid})"),
        }
    }

    fn waits(
        self,
        tid: u32,
        index: u32,
        waits: Waits,
        spoken_of: u32,
        stacks: &mut Stacks,
    ) -> String {
        match waits {
            Waits::ForLock(place) => format!("waits for {}", self.lock(place, stacks)),
            Waits::ForEnd(other) => {
                let of = self.at_end.process_of(other).unwrap_or(index);
                format!("waits for {} to end", self.thread(other, of, spoken_of))
            }
            Waits::ForThread => self.waits_for_thread(tid, index, stacks),
            Waits::ForOutside | Waits::ForTime | Waits::Not => {
                let stand = self.account.process(index).and_then(|it| it.standing.get(tid));
                match stand.map(|stand| stand.activity) {
                    Some(Activity::Asleep(call)) => {
                        let at = self.caller(tid, index, stacks);
                        let verb = if waits == Waits::ForTime { "sleeps" } else { "waits" };
                        format!("{verb} in {}{at}", syscall_name(call.number))
                    }
                    _ => "runs".to_owned(),
                }
            }
        }
    }

    fn waits_for_thread(self, tid: u32, index: u32, stacks: &mut Stacks) -> String {
        let target = self.waited_for(tid, index);
        let noun = match target.map(|target| target.identity.kind()) {
            Some(Kind::Condvar) => "on the condition variable",
            Some(Kind::Semaphore) => "for the semaphore",
            Some(Kind::Barrier) => "at the barrier",
            Some(Kind::Once) => "for the initialisation",
            _ => return format!("waits for another thread{}", self.caller(tid, index, stacks)),
        };
        let name = target.map(|target| self.target(target, index, stacks)).unwrap_or_default();
        match name.strip_prefix("lock in ") {
            Some(function) => format!("waits {noun} in {function}"),
            None => format!("waits {noun} {name}"),
        }
    }

    fn caller(self, tid: u32, index: u32, stacks: &mut Stacks) -> String {
        let process = self.account.process(index);
        let stack = process.and_then(|process| process.stack_of(tid));
        let caller = stack.and_then(|stack| stacks.caller(stack));
        caller.map_or_else(String::new, |caller| format!(" ← {caller}"))
    }

    fn frames(self, tid: u32, index: u32, stacks: &mut Stacks) -> Vec<Text> {
        let process = self.account.process(index);
        let stack = process.and_then(|process| process.stack_of(tid));
        let names = stack.map(|stack| stacks.names(stack).0).unwrap_or_default();
        names.into_iter().map(Text::from).collect()
    }

    /// Describes the holder of a lock. The text is empty if the holder is unknown or a thread of
    /// the program, or if there is none.
    fn owner(self, owner: &OwnerOrigin) -> String {
        match owner {
            OwnerOrigin::Program | OwnerOrigin::Inferred => String::new(),
            OwnerOrigin::Readers(1) => "a reader".to_owned(),
            OwnerOrigin::Readers(readers) => format!("{readers} readers"),
            OwnerOrigin::Ended { tid } => format!("a thread that has ended (TID {tid})"),
            OwnerOrigin::Forked { tid, parent } => format!(
                "a thread of the parent, PID {parent}, that did not survive the fork (TID {tid})"
            ),
            OwnerOrigin::Elsewhere { tid, facts } => {
                let doing = match (facts.state, ThreadFacts::activity_of(*tid)) {
                    (KernelState::Stopped, _) => ", which is stopped by a signal".to_owned(),
                    (KernelState::Traced, _) => ", which a debugger has stopped".to_owned(),
                    (_, Some(Activity::Asleep(call))) => {
                        format!(", which is in {}", syscall_name(call.number))
                    }
                    _ => String::new(),
                };
                let (name, process) = (facts.name.to_string_lossy(), facts.process);
                match *tid == process {
                    true => format!("{name} (PID {process}), another process{doing}"),
                    false => format!("{name} (TID {tid}) of another process, PID {process}{doing}"),
                }
            }
        }
    }

    fn ends_in_ns(self, tid: u32) -> Option<u64> {
        let index = self.at_end.process_of(tid)?;
        let process = self.account.process(index)?;
        let stand = process.standing.get(tid)?;
        let memory = self.watched.get(&index)?.process.as_ref()?.memory();
        ends_in_ns(stand, &mut |address, bytes| memory.read(address, bytes))
    }
}
