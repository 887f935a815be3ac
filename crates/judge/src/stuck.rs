//! Finds threads that cannot go on, in a graph of which thread waits for which.
//!
//! A thread that sleeps without a time-out goes on when its lock is released, when the thread that
//! it joins ends, or when another thread of its process wakes it. The search starts with the set of
//! all threads that sleep without a time-out. It repeatedly removes each thread that a thread
//! outside the set may help. The remaining threads are stuck for good, whoever holds the locks that
//! name no holder: these are the knots of R. C. Holt, Some Deadlock Properties of Computer Systems
//! (Computing Surveys 4, 1972).
//!
//! Signal handlers and debuggers, which could change a program's memory, are not considered.

use std::collections::{HashMap, HashSet};

/// Minimum time, in nanoseconds, for which a thread must have slept to count as stuck.
pub const LEAST_NS: u64 = 1_000_000_000;

/// Minimum time, in nanoseconds, after which a lock is reported as not released.
pub const NOT_RELEASED_NS: u64 = 2_000_000_000;

/// A thread at the end of the observation.
#[derive(Clone, Copy, Debug)]
pub struct ThreadAtEnd {
    /// TID of the thread.
    pub tid: u32,
    /// Number of the thread's process.
    pub process: u32,
    /// Condition under which the thread goes on.
    pub waits: Waits,
    /// True if the wait ends by itself after a time-out.
    pub timed: bool,
    /// Time for which the thread has been in one sleep, in nanoseconds; 0 if unknown.
    pub asleep_ns: u64,
    /// Time, in nanoseconds, for which all samples saw the thread in one system call, at one place
    /// in its code. The thread may have run in between.
    pub same_ns: u64,
}

impl ThreadAtEnd {
    /// Returns `true` if the thread runs now and then, but goes back to sleep at the same place.
    fn returns_to_one_place(&self) -> bool {
        let sleeps = matches!(self.waits, Waits::ForTime | Waits::ForOutside);
        sleeps && self.same_ns >= NOT_RELEASED_NS && self.asleep_ns < LEAST_NS
    }
}

/// Condition under which a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waits {
    /// The thread runs, or its condition is unknown.
    Not,
    /// An event from outside the program: a connection, input, a signal.
    ForOutside,
    /// The end of a sleep whose length the thread chose itself.
    ForTime,
    /// The lock with this index.
    ForLock(usize),
    /// The end of the thread with this TID.
    ForEnd(u32),
    /// A wake-up by another thread of its process, through a condition variable, a semaphore or a
    /// channel.
    ForThread,
}

/// A lock at the end of the observation.
#[derive(Clone, Copy, Debug)]
pub struct LockAtEnd {
    /// Number of the lock's process.
    pub process: u32,
    /// Holder of the lock.
    pub holder: HolderAtEnd,
    /// Time, in nanoseconds, for which all reads of the lock's word have shown this holder.
    pub same_ns: u64,
    /// True if the word was never seen in another state.
    pub always: bool,
    /// Time, in nanoseconds, for which the lock's process has been observed.
    pub watched_ns: u64,
}

/// The holder of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HolderAtEnd {
    /// No thread: the lock is free.
    Nobody,
    /// The thread with this TID.
    Thread(u32),
    /// A thread that no longer exists, or never did in this process.
    Gone,
    /// A thread of a process that is not observed.
    Elsewhere {
        /// True if the holder's process is stopped.
        stopped: bool,
    },
    /// One or several threads of the lock's process, which the word does not name.
    Untold,
    /// Like [`Untold`](HolderAtEnd::Untold), but samples have shown the activity of holders.
    UntoldButSeen,
    /// Unknown.
    Unknown,
}

/// Kind of a standstill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StandStillKind {
    /// Threads wait in a cycle for each other's locks, or for each other to end.
    Deadlock,
    /// A thread waits for a lock that it holds.
    SelfDeadlock,
    /// All threads of a process wait: some of them for a lock, or at least two for other threads.
    Stuck,
    /// A lock is free, but its waiters still sleep.
    LostWakeUp,
    /// The holder of a lock does not exist.
    OwnerGone,
    /// A lock is not released by its holder, a thread of a process that is not observed.
    OwnerElsewhere,
    /// A cycle in which some wait ends after a time-out.
    Circle,
    /// A lock is not released for a long time, and its holder, if known, waits for something other
    /// than a lock.
    NotReleased,
}

/// Threads that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandStill {
    /// Kind of the standstill.
    pub kind: StandStillKind,
    /// Number of the first thread's process.
    pub process: u32,
    /// The threads concerned. In a cycle, each thread waits for the next. Otherwise, the holder
    /// comes first, if it is a thread of the program, and then the waiters.
    pub threads: Vec<Stuck>,
    /// Indices of the locks that no thread can get.
    pub locks: Vec<usize>,
    /// Number of further threads that wait for the listed ones.
    pub behind: usize,
    /// Lower bound of the time for which the standstill has lasted, in nanoseconds.
    pub for_ns: u64,
}

/// A thread that cannot go on, or prevents others from going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// TID of the thread.
    pub tid: u32,
    /// A lock that the thread holds, if any.
    pub holds: Option<usize>,
    /// Condition under which the thread goes on.
    pub waits: Waits,
}

/// Finds standstills, the gravest first.
pub fn stand_stills(threads: &[ThreadAtEnd], locks: &[LockAtEnd]) -> Vec<StandStill> {
    let graph = Graph::new(threads, locks);
    let never = graph.stuck(&|thread| !thread.timed);
    let (mut found, in_circles) = graph.circles(&never);
    found.extend(graph.processes(&never, &in_circles));
    let for_a_time = graph.stuck(&|_| true);
    let circles = graph.circles(&for_a_time).0.into_iter();
    let timed = |circle: &StandStill| {
        circle.threads.iter().any(|one| graph.thread(one.tid).is_some_and(|thread| thread.timed))
    };
    found.extend(
        circles.filter(timed).map(|circle| StandStill { kind: StandStillKind::Circle, ..circle }),
    );
    let concerned: HashSet<usize> =
        found.iter().flat_map(|one| one.locks.iter().copied()).collect();
    let others = (0..locks.len()).filter(|place| !concerned.contains(place));
    found.extend(others.filter_map(|place| graph.lock(place)));
    found = by_holder(found);
    found.sort_by_key(|one| one.kind);
    found
}

/// Indices of the locks that one holder has held in all samples, and whose waiters are all asleep.
pub fn never_released(threads: &[ThreadAtEnd], locks: &[LockAtEnd]) -> Vec<usize> {
    let graph = Graph::new(threads, locks);
    let never = |&place: &usize| {
        let lock = &locks[place];
        let held = !matches!(lock.holder, HolderAtEnd::Nobody | HolderAtEnd::Unknown);
        let asleep = |&waiter: &usize| threads[waiter].asleep_ns >= LEAST_NS;
        let waiters = &graph.waiters[place];
        let waited_for = !waiters.is_empty() && waiters.iter().all(asleep);
        held && lock.always && lock.same_ns >= lock.watched_ns / 10 * 9 && waited_for
    };
    (0..locks.len()).filter(never).collect()
}

/// Merges standstills at locks that one thread does not release, and standstills at locks of one
/// process whose holders are unknown.
fn by_holder(all: Vec<StandStill>) -> Vec<StandStill> {
    let mut found: Vec<StandStill> = Vec::new();
    for one in all {
        let holder = |of: &StandStill| of.threads.first().filter(|it| it.holds.is_some()).copied();
        let same = |other: &&mut StandStill| {
            let tid = |of: &StandStill| holder(of).map(|holder| holder.tid);
            one.kind == StandStillKind::NotReleased
                && (other.kind, other.process, tid(other)) == (one.kind, one.process, tid(&one))
        };
        let Some(other) = found.iter_mut().find(same) else {
            found.push(one);
            continue;
        };
        let waiters = one.threads.iter().skip(usize::from(holder(&one).is_some()));
        other.threads.extend(waiters);
        other.locks.extend(
            one.locks.iter().filter(|lock| !other.locks.contains(lock)).collect::<Vec<_>>(),
        );
        other.behind += one.behind;
        other.for_ns = other.for_ns.min(one.for_ns);
    }
    found
}

struct Graph<'a> {
    threads: &'a [ThreadAtEnd],
    locks: &'a [LockAtEnd],
    places: HashMap<u32, usize>,
    /// Indices of the threads that wait for each lock.
    waiters: Vec<Vec<usize>>,
    /// For each thread: indices of the threads that only this one can help.
    helped_by: HashMap<usize, Vec<usize>>,
}

impl Graph<'_> {
    fn new<'a>(threads: &'a [ThreadAtEnd], locks: &'a [LockAtEnd]) -> Graph<'a> {
        let mut waiters = vec![Vec::new(); locks.len()];
        for (place, thread) in threads.iter().enumerate() {
            if let Waits::ForLock(lock) = thread.waits
                && let Some(waiters) = waiters.get_mut(lock)
            {
                waiters.push(place);
            }
        }
        let places = threads.iter().enumerate().map(|(place, thread)| (thread.tid, place));
        let places: HashMap<u32, usize> = places.collect();
        let mut graph = Graph { threads, locks, places, waiters, helped_by: HashMap::new() };
        for (place, thread) in threads.iter().enumerate() {
            if let Some(helper) = graph.helper(thread) {
                graph.helped_by.entry(helper).or_default().push(place);
            }
        }
        graph
    }

    fn thread(&self, tid: u32) -> Option<&ThreadAtEnd> {
        self.threads.get(*self.places.get(&tid)?)
    }

    /// The only thread that can help this one, if known.
    fn helper(&self, thread: &ThreadAtEnd) -> Option<usize> {
        let tid = match thread.waits {
            Waits::ForLock(lock) => match self.locks.get(lock)?.holder {
                HolderAtEnd::Thread(tid) => tid,
                _ => return None,
            },
            Waits::ForEnd(tid) => tid,
            Waits::Not | Waits::ForOutside | Waits::ForTime | Waits::ForThread => return None,
        };
        self.places.get(&tid).copied()
    }

    /// Returns `true` if any thread of the same process might help this thread.
    fn by_any(&self, thread: &ThreadAtEnd) -> bool {
        match thread.waits {
            Waits::ForThread => true,
            Waits::ForLock(lock) => self.locks.get(lock).is_some_and(|lock| {
                matches!(lock.holder, HolderAtEnd::Untold | HolderAtEnd::UntoldButSeen)
            }),
            Waits::Not | Waits::ForOutside | Waits::ForTime | Waits::ForEnd(_) => false,
        }
    }

    fn never_helped(&self, thread: &ThreadAtEnd) -> bool {
        let Waits::ForLock(lock) = thread.waits else { return false };
        let lock = self.locks.get(lock);
        lock.is_some_and(|lock| lock.holder == HolderAtEnd::Gone && lock.same_ns >= LEAST_NS)
    }

    /// Tells for each thread if only stuck threads can help it. A thread for which `counts` returns
    /// `false` never counts as stuck.
    fn stuck(&self, counts: &dyn Fn(&ThreadAtEnd) -> bool) -> Vec<bool> {
        let sleeps = |thread: &ThreadAtEnd| {
            let waits = !matches!(thread.waits, Waits::Not | Waits::ForOutside | Waits::ForTime);
            let known = self.helper(thread).is_some();
            let helped = known || self.by_any(thread) || self.never_helped(thread);
            waits && helped && thread.asleep_ns >= LEAST_NS && counts(thread)
        };
        let mut stuck: Vec<bool> = self.threads.iter().map(sleeps).collect();
        let mut helped_by_any: HashMap<u32, Vec<usize>> = HashMap::new();
        for (place, thread) in self.threads.iter().enumerate() {
            if stuck[place] && self.by_any(thread) {
                helped_by_any.entry(thread.process).or_default().push(place);
            }
        }
        let mut free: Vec<usize> = (0..stuck.len()).filter(|&place| !stuck[place]).collect();
        while let Some(place) = free.pop() {
            let by_any = helped_by_any.remove(&self.threads[place].process).unwrap_or_default();
            let by_this = self.helped_by.get(&place).into_iter().flatten().copied();
            for helped in by_this.chain(by_any) {
                if std::mem::take(&mut stuck[helped]) {
                    free.push(helped);
                }
            }
        }
        stuck
    }

    /// Returns the cycles: in a cycle, only the next thread can help each thread. The second value
    /// is `true` for each thread that is in a cycle or waits for one.
    fn circles(&self, stuck: &[bool]) -> (Vec<StandStill>, Vec<bool>) {
        const UNSEEN: usize = usize::MAX;
        const NO_CIRCLE: usize = usize::MAX - 1;
        // Index of the cycle to which each thread leads.
        let mut leads_to = vec![UNSEEN; self.threads.len()];
        let mut circles: Vec<Vec<usize>> = Vec::new();
        for start in (0..self.threads.len()).filter(|&start| stuck[start]) {
            let (mut path, mut at) = (Vec::new(), Some(start));
            let mut on_path: HashMap<usize, usize> = HashMap::new();
            let circle = loop {
                let Some(place) = at.filter(|&place| stuck[place]) else { break NO_CIRCLE };
                if leads_to[place] != UNSEEN {
                    break leads_to[place];
                }
                if let Some(&from) = on_path.get(&place) {
                    circles.push(path[from..].to_vec());
                    break circles.len() - 1;
                }
                on_path.insert(place, path.len());
                path.push(place);
                at = self.helper(&self.threads[place]);
            };
            path.into_iter().for_each(|place| leads_to[place] = circle);
        }
        let mut members = vec![Vec::new(); circles.len()];
        for (place, &circle) in leads_to.iter().enumerate() {
            if let Some(members) = members.get_mut(circle) {
                members.push(place);
            }
        }
        let mut found = Vec::new();
        for (circle, all) in circles.iter().zip(members) {
            let kind = match circle.len() {
                1 => StandStillKind::SelfDeadlock,
                _ => StandStillKind::Deadlock,
            };
            let before = circle.iter().cycle().skip(circle.len() - 1);
            let threads = circle.iter().zip(before).map(|(&place, &before)| {
                let holds = self.lock_of(before);
                self.record(place, holds)
            });
            found.push(StandStill {
                kind,
                process: self.threads[circle[0]].process,
                threads: threads.collect(),
                locks: self.locks_of(&all),
                behind: all.len() - circle.len(),
                for_ns: self.asleep_ns(circle),
            });
        }
        let in_circles = leads_to.iter().map(|&circle| circle < circles.len()).collect();
        (found, in_circles)
    }

    /// Standstills of processes whose threads are all stuck without a cycle: the holder of some
    /// lock is unknown or itself waits for a thread, or no lock is involved.
    fn processes(&self, stuck: &[bool], in_circles: &[bool]) -> Vec<StandStill> {
        let mut by_process: HashMap<u32, Vec<usize>> = HashMap::new();
        for (place, thread) in self.threads.iter().enumerate() {
            if stuck[place] && !in_circles[place] && !self.leads_to_gone(place) {
                by_process.entry(thread.process).or_default().push(place);
            }
        }
        let mut found: Vec<StandStill> = Vec::new();
        for (process, all) in by_process {
            let locks = self.locks_of(&all);
            if locks.is_empty() && all.len() < 2 {
                continue;
            }
            let holds = |place: usize| {
                let holds = |&lock: &usize| {
                    self.locks[lock].holder == HolderAtEnd::Thread(self.threads[place].tid)
                };
                locks.iter().copied().find(holds)
            };
            let concerned = |&place: &usize| {
                let waits = self.threads[place].waits;
                holds(place).is_some() || !matches!(waits, Waits::ForThread)
            };
            let (mut members, others): (Vec<usize>, Vec<usize>) =
                all.into_iter().partition(concerned);
            members.sort_by_key(|&place| self.lock_of(place).is_none());
            let anybody = others.iter().chain(&members);
            let waits_for_thread =
                |&place: &usize| matches!(self.threads[place].waits, Waits::ForThread);
            let kind = match anybody.clone().any(waits_for_thread) {
                true => StandStillKind::Stuck,
                false => StandStillKind::Deadlock,
            };
            let all: Vec<usize> = anybody.copied().collect();
            found.push(StandStill {
                kind,
                process,
                threads: members
                    .iter()
                    .chain(&others)
                    .map(|&place| self.record(place, holds(place)))
                    .collect(),
                locks,
                behind: 0,
                for_ns: self.asleep_ns(&all),
            });
        }
        found.sort_by_key(|one| one.process);
        found
    }

    /// Returns `true` if the thread waits for a lock whose holder is gone, directly or through
    /// other threads.
    fn leads_to_gone(&self, place: usize) -> bool {
        let mut at = Some(place);
        for _ in 0..self.threads.len() {
            let Some(thread) = at.and_then(|place| self.threads.get(place)) else { return false };
            if self.never_helped(thread) {
                return true;
            }
            at = self.helper(thread);
        }
        false
    }

    /// Standstill at a lock that is free, or whose holder no longer exists or does not release it.
    fn lock(&self, place: usize) -> Option<StandStill> {
        let (lock, waiters) = (&self.locks[place], &self.waiters[place]);
        let watched_ns = lock.watched_ns;
        let long = watched_ns >= NOT_RELEASED_NS && lock.same_ns >= watched_ns / 10 * 9;
        let asleep = |&waiter: &usize| self.threads[waiter].asleep_ns >= LEAST_NS;
        if waiters.is_empty() || !waiters.iter().all(asleep) || lock.same_ns < LEAST_NS {
            return None;
        }
        let kind = match lock.holder {
            HolderAtEnd::Nobody => StandStillKind::LostWakeUp,
            HolderAtEnd::Gone => StandStillKind::OwnerGone,
            HolderAtEnd::Elsewhere { stopped } => {
                (stopped || lock.always && long).then_some(StandStillKind::OwnerElsewhere)?
            }
            HolderAtEnd::Thread(tid) => {
                let holder = self.thread(tid)?;
                let elsewhere = match holder.waits {
                    // The holder may have run between samples, but it has not released the lock.
                    Waits::ForOutside => holder.same_ns >= NOT_RELEASED_NS,
                    // A running thread may be working towards the holder's wake-up.
                    Waits::ForThread => {
                        holder.asleep_ns >= NOT_RELEASED_NS && self.all_still(lock.process)
                    }
                    // A single long sleep does not count, because it ends by itself.
                    Waits::ForTime => holder.returns_to_one_place(),
                    Waits::Not | Waits::ForLock(_) | Waits::ForEnd(_) => false,
                };
                let half = lock.same_ns >= NOT_RELEASED_NS.max(watched_ns / 2);
                (elsewhere && half).then_some(StandStillKind::NotReleased)?
            }
            HolderAtEnd::Untold => {
                let longest = waiters.iter().map(|&waiter| self.threads[waiter].asleep_ns).max();
                let all_along = lock.always && longest >= Some(watched_ns / 10 * 9);
                // A running thread might be the holder, at work.
                let still = self.all_still(lock.process);
                (all_along && long && still).then_some(StandStillKind::NotReleased)?
            }
            HolderAtEnd::UntoldButSeen | HolderAtEnd::Unknown => return None,
        };
        let holder = match lock.holder {
            HolderAtEnd::Thread(tid) => self.places.get(&tid).copied(),
            _ => None,
        };
        let threads = holder.map(|holder| self.record(holder, Some(place)));
        let longest = waiters.iter().map(|&waiter| self.threads[waiter].asleep_ns).max();
        let for_ns = match kind {
            StandStillKind::OwnerElsewhere => lock.same_ns,
            _ => lock.same_ns.min(longest.unwrap_or(0)),
        };
        let all = self.behind(waiters);
        let mut locks = vec![place];
        locks.extend(self.locks_of(&all).into_iter().filter(|&lock| lock != place));
        Some(StandStill {
            kind,
            process: lock.process,
            threads: threads
                .into_iter()
                .chain(waiters.iter().map(|&waiter| self.record(waiter, None)))
                .collect(),
            locks,
            behind: all.len() - waiters.len(),
            for_ns,
        })
    }

    /// Returns `true` if all threads of a process are asleep, or keep returning to the same sleep.
    fn all_still(&self, process: u32) -> bool {
        let mut of_process = self.threads.iter().filter(|thread| thread.process == process);
        of_process.all(|thread| thread.asleep_ns >= LEAST_NS || thread.returns_to_one_place())
    }

    /// The given threads, and all threads that only these can help.
    fn behind(&self, threads: &[usize]) -> Vec<usize> {
        let mut all = threads.to_vec();
        let mut known: HashSet<usize> = threads.iter().copied().collect();
        let mut next = 0;
        while let Some(&place) = all.get(next) {
            let helped = self.helped_by.get(&place).into_iter().flatten();
            all.extend(helped.filter(|&&helped| known.insert(helped)));
            next += 1;
        }
        all
    }

    fn record(&self, place: usize, holds: Option<usize>) -> Stuck {
        let ThreadAtEnd { tid, waits, .. } = self.threads[place];
        Stuck { tid, holds, waits }
    }

    /// The lock that a thread waits for.
    fn lock_of(&self, place: usize) -> Option<usize> {
        match self.threads[place].waits {
            Waits::ForLock(lock) => Some(lock),
            _ => None,
        }
    }

    fn locks_of(&self, threads: &[usize]) -> Vec<usize> {
        let mut locks: Vec<usize> = threads.iter().filter_map(|&one| self.lock_of(one)).collect();
        locks.sort_unstable();
        locks.dedup();
        locks
    }

    /// Time for which all of these threads have been asleep, in nanoseconds.
    fn asleep_ns(&self, threads: &[usize]) -> u64 {
        threads.iter().map(|&place| self.threads[place].asleep_ns).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
