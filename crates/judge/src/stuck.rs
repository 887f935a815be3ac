//! Threads that cannot go on: a graph of who waits for whom.
//!
//! A thread that sleeps without a time-out goes on when its lock is let go of, when the thread ends
//! that it joins, or when another thread of its process wakes it. All threads that sleep so are
//! taken for stuck at first; then those are taken away, again and again, that a thread may help
//! which is not stuck. What is left is stuck for good, whoever holds the locks that name no
//! holder: the knots of R. C. Holt, Some Deadlock Properties of Computer Systems (Computing
//! Surveys 4, 1972).
//!
//! It does not know of signal handlers and of debuggers, which could change a program's memory.

use std::collections::{HashMap, HashSet};

/// Least time for which threads sleep that are called stuck.
pub const LEAST_NS: u64 = 1_000_000_000;

/// Least time after which a lock is said not to be released.
pub const NOT_RELEASED_NS: u64 = 2_000_000_000;

/// A thread, at the end of the observation.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its process.
    pub process: u32,
    /// Condition under which it goes on.
    pub waits: Waits,
    /// Its wait ends by itself after a time.
    pub timed: bool,
    /// Time for which it has been in one sleep; 0 if that is not known.
    pub asleep_ns: u64,
    /// Time for which all samples showed it in one system call, from one place of its code: it may
    /// have run between them.
    pub same_ns: u64,
}

/// Condition under which a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waits {
    /// It runs, sleeps for a time of its own choice, or this is not known.
    Not,
    /// Something from outside the program: a connection, input, a signal.
    ForOutside,
    /// The lock at this place among the locks.
    ForLock(usize),
    /// The end of this thread.
    ForEnd(u32),
    /// Another thread of its process wakes it: a condition variable, a semaphore, a channel.
    ForThread,
}

/// A lock, at the end of the observation.
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    /// Its process.
    pub process: u32,
    /// Its holder.
    pub holder: Holder,
    /// Time for which all readings of its word have shown that.
    pub same_ns: u64,
    /// The word was never seen in another state.
    pub always: bool,
    /// Time for which its process has been observed.
    pub watched_ns: u64,
}

/// The holder of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Nobody: it is free.
    Nobody,
    /// This thread.
    Thread(u32),
    /// A thread that does not exist any more, or never did in this process.
    Gone,
    /// A thread of a process that is not observed.
    Elsewhere {
        /// True if that process is stopped.
        stopped: bool,
    },
    /// One thread of its process, or several: the word names none.
    Untold,
    /// The same, and what holders were doing has been seen.
    UntoldButSeen,
    /// Not known.
    Unknown,
}

/// Kind of a standstill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Threads wait for locks or ends of each other in a circle.
    Deadlock,
    /// A thread waits for a lock that it holds.
    SelfDeadlock,
    /// All threads of a process wait: some of them for a lock, or at least two for other threads.
    Stuck,
    /// A lock is free, and those that wait for it sleep on.
    LostWakeUp,
    /// The holder of a lock does not exist.
    OwnerGone,
    /// The holder of a lock is a thread of a process that is not observed, and does not let go.
    OwnerElsewhere,
    /// A circle in which waits end after a time.
    Circle,
    /// A lock is not released by a thread that does something else.
    NotReleased,
}

/// Threads that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandStill {
    /// Its kind.
    pub kind: Kind,
    /// The process of its first thread.
    pub process: u32,
    /// The threads of the circle, each of which waits for the next one; otherwise those that wait,
    /// and the holder first if it is one of the program's.
    pub threads: Vec<Stuck>,
    /// Places of the locks that nobody gets.
    pub locks: Vec<usize>,
    /// Further threads that wait for these.
    pub behind: usize,
    /// Time for which this has lasted at least.
    pub for_ns: u64,
}

/// A thread that cannot go on, or keeps others from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Its number.
    pub tid: u32,
    /// A lock that it holds.
    pub holds: Option<usize>,
    /// Condition under which it goes on.
    pub waits: Waits,
}

/// Finds what stands still, the gravest first.
pub fn stand_stills(threads: &[Thread], locks: &[Lock]) -> Vec<StandStill> {
    let graph = Graph::new(threads, locks);
    let never = graph.stuck(&|thread| !thread.timed);
    let (mut found, in_circles) = graph.circles(&never);
    found.extend(graph.processes(&never, &in_circles));
    let for_a_time = graph.stuck(&|_| true);
    let circles = graph.circles(&for_a_time).0.into_iter();
    let timed = |circle: &StandStill| {
        circle.threads.iter().any(|one| graph.thread(one.tid).is_some_and(|thread| thread.timed))
    };
    found.extend(circles.filter(timed).map(|circle| StandStill { kind: Kind::Circle, ..circle }));
    let concerned: HashSet<usize> =
        found.iter().flat_map(|one| one.locks.iter().copied()).collect();
    let others = (0..locks.len()).filter(|place| !concerned.contains(place));
    found.extend(others.filter_map(|place| graph.lock(place)));
    found = by_holder(found);
    found.sort_by_key(|one| one.kind);
    found
}

/// Places of locks that were held all the time, while those that wait for them now slept: nobody
/// was seen to take them.
pub fn never_released(threads: &[Thread], locks: &[Lock]) -> Vec<usize> {
    let graph = Graph::new(threads, locks);
    let never = |&place: &usize| {
        let lock = &locks[place];
        let held = !matches!(lock.holder, Holder::Nobody | Holder::Unknown);
        let asleep = |&waiter: &usize| threads[waiter].asleep_ns >= LEAST_NS;
        let waiters = &graph.waiters[place];
        let waited_for = !waiters.is_empty() && waiters.iter().all(asleep);
        held && lock.always && lock.same_ns >= lock.watched_ns / 10 * 9 && waited_for
    };
    (0..locks.len()).filter(never).collect()
}

/// Locks that are not released, those of one holder as one; also those of holders that nothing
/// tells.
fn by_holder(all: Vec<StandStill>) -> Vec<StandStill> {
    let mut found: Vec<StandStill> = Vec::new();
    for one in all {
        let holder = |of: &StandStill| of.threads.first().filter(|it| it.holds.is_some()).copied();
        let same = |other: &&mut StandStill| {
            let tid = |of: &StandStill| holder(of).map(|holder| holder.tid);
            one.kind == Kind::NotReleased
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
    threads: &'a [Thread],
    locks: &'a [Lock],
    /// Places of threads by their numbers.
    places: HashMap<u32, usize>,
    /// Places of the threads that wait for each lock.
    waiters: Vec<Vec<usize>>,
    /// Places of the threads that only this one can help.
    helped_by: HashMap<usize, Vec<usize>>,
}

impl Graph<'_> {
    fn new<'a>(threads: &'a [Thread], locks: &'a [Lock]) -> Graph<'a> {
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

    fn thread(&self, tid: u32) -> Option<&Thread> {
        self.threads.get(*self.places.get(&tid)?)
    }

    /// The one thread that can help this one, if it is known.
    fn helper(&self, thread: &Thread) -> Option<usize> {
        let tid = match thread.waits {
            Waits::ForLock(lock) => match self.locks.get(lock)?.holder {
                Holder::Thread(tid) => tid,
                _ => return None,
            },
            Waits::ForEnd(tid) => tid,
            Waits::Not | Waits::ForOutside | Waits::ForThread => return None,
        };
        self.places.get(&tid).copied()
    }

    /// Any thread of its process may help this one.
    fn by_any(&self, thread: &Thread) -> bool {
        match thread.waits {
            Waits::ForThread => true,
            Waits::ForLock(lock) => self
                .locks
                .get(lock)
                .is_some_and(|lock| matches!(lock.holder, Holder::Untold | Holder::UntoldButSeen)),
            Waits::Not | Waits::ForOutside | Waits::ForEnd(_) => false,
        }
    }

    fn never_helped(&self, thread: &Thread) -> bool {
        let Waits::ForLock(lock) = thread.waits else { return false };
        let lock = self.locks.get(lock);
        lock.is_some_and(|lock| lock.holder == Holder::Gone && lock.same_ns >= LEAST_NS)
    }

    /// The threads, by place, that nobody else can help; of those that `counts` lets through.
    fn stuck(&self, counts: &dyn Fn(&Thread) -> bool) -> Vec<bool> {
        let sleeps = |thread: &Thread| {
            let waits = !matches!(thread.waits, Waits::Not | Waits::ForOutside);
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

    /// Circles of threads, each of which can only be helped by the next one; and the threads, by
    /// place, that are part of one or wait for one.
    fn circles(&self, stuck: &[bool]) -> (Vec<StandStill>, Vec<bool>) {
        const UNSEEN: usize = usize::MAX;
        const NO_CIRCLE: usize = usize::MAX - 1;
        // The circle to which each thread leads.
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
                1 => Kind::SelfDeadlock,
                _ => Kind::Deadlock,
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

    /// Processes all of whose threads are stuck: some of them at locks of which it is not known who
    /// holds them, or whose holders wait for a thread; or none of them at a lock.
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
                    self.locks[lock].holder == Holder::Thread(self.threads[place].tid)
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
                true => Kind::Stuck,
                false => Kind::Deadlock,
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

    /// It waits for a lock whose holder is gone, or for a thread that does.
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

    /// A lock that is free, without a holder that exists, or not released.
    fn lock(&self, place: usize) -> Option<StandStill> {
        let (lock, waiters) = (&self.locks[place], &self.waiters[place]);
        let watched_ns = lock.watched_ns;
        let long = watched_ns >= NOT_RELEASED_NS && lock.same_ns >= watched_ns / 10 * 9;
        let asleep = |&waiter: &usize| self.threads[waiter].asleep_ns >= LEAST_NS;
        if waiters.is_empty() || !waiters.iter().all(asleep) || lock.same_ns < LEAST_NS {
            return None;
        }
        let kind = match lock.holder {
            Holder::Nobody => Kind::LostWakeUp,
            Holder::Gone => Kind::OwnerGone,
            Holder::Elsewhere { stopped } => {
                (stopped || lock.always && long).then_some(Kind::OwnerElsewhere)?
            }
            Holder::Thread(tid) => {
                let holder = self.thread(tid)?;
                let elsewhere = match holder.waits {
                    // It may have run between samples, but has not let go.
                    Waits::ForOutside => holder.same_ns >= NOT_RELEASED_NS,
                    Waits::ForThread => holder.asleep_ns >= NOT_RELEASED_NS,
                    Waits::Not | Waits::ForLock(_) | Waits::ForEnd(_) => false,
                };
                let half = lock.same_ns >= NOT_RELEASED_NS.max(watched_ns / 2);
                (elsewhere && half).then_some(Kind::NotReleased)?
            }
            Holder::Untold => {
                let longest = waiters.iter().map(|&waiter| self.threads[waiter].asleep_ns).max();
                let all_along = lock.always && longest >= Some(watched_ns / 10 * 9);
                // One that runs now and then may hold it, and work.
                let of_process = |thread: &&Thread| thread.process == lock.process;
                let mut others = self.threads.iter().filter(of_process);
                let still = others.all(|thread| thread.asleep_ns >= LEAST_NS);
                (all_along && long && still).then_some(Kind::NotReleased)?
            }
            Holder::UntoldButSeen | Holder::Unknown => return None,
        };
        let holder = match lock.holder {
            Holder::Thread(tid) => self.places.get(&tid).copied(),
            _ => None,
        };
        let threads = holder.map(|holder| self.record(holder, Some(place)));
        let longest = waiters.iter().map(|&waiter| self.threads[waiter].asleep_ns).max();
        let for_ns = match kind {
            Kind::OwnerElsewhere => lock.same_ns,
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

    /// These threads, and those that only they can help.
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
        let Thread { tid, waits, .. } = self.threads[place];
        Stuck { tid, holds, waits }
    }

    /// The lock that a thread waits for.
    fn lock_of(&self, place: usize) -> Option<usize> {
        match self.threads[place].waits {
            Waits::ForLock(lock) => Some(lock),
            _ => None,
        }
    }

    /// The locks that threads wait for.
    fn locks_of(&self, threads: &[usize]) -> Vec<usize> {
        let mut locks: Vec<usize> = threads.iter().filter_map(|&one| self.lock_of(one)).collect();
        locks.sort_unstable();
        locks.dedup();
        locks
    }

    /// Time for which all of these have slept.
    fn asleep_ns(&self, threads: &[usize]) -> u64 {
        threads.iter().map(|&place| self.threads[place].asleep_ns).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
