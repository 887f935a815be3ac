//! The event loop.
//!
//! A thread is in one phase, and has at most one planned event, which ends that phase. An event
//! that is no longer valid is recognised by its tag and skipped. Queues are linked lists through
//! the threads, so they need no additional memory.
//!
//! A lock is *free* if it has no owner, *taken* if its owner holds it, and *promised* if its owner
//! is still on its way: in a FIFO hand-off, or as a spinning thread that takes over. While a lock
//! is free, threads are parked only if one of them is being woken.

mod cores;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::calendar::{Calendar, Tag};
use super::statistics::{BATCHES, Sums};
use super::{HandOff, Policy, System};
use crate::Shape;
use crate::random::{below, unit};

use cores::Scheduler;

const NOBODY: u32 = u32::MAX;
/// Value of `Thread::since` for a thread that does not wait.
const NOT_WAITING: f64 = -1.0;

#[derive(Clone, Copy, Debug)]
pub(super) enum RunLength {
    /// The run ends after `warm_up` attempts and [`BATCHES`] batches of `batch` attempts.
    Batches { warm_up: u64, batch: u64 },
    /// The run ends after this number of tasks.
    Tasks(u64),
}

#[derive(Debug)]
pub(super) struct Outcome {
    /// By batch boundary, then by kind of lock.
    pub(super) snapshots: Vec<Vec<Sums>>,
    /// By kind of lock.
    pub(super) sums: Vec<Sums>,
    pub(super) queue_max: Vec<u32>,
    pub(super) fairness: f64,
    pub(super) events: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Asking,
    Thinking,
    Holding,
    Spinning,
    Parked,
    /// The thread is being woken to try to take the lock.
    Waking,
    /// The lock is promised to the thread, which is on its way.
    Taking,
    /// The woken thread needs a core before it can try to take the lock.
    Trying,
    /// The woken thread needs a core before it can take the lock, which is promised to it.
    Entering,
    Done,
}

#[derive(Clone, Debug)]
struct Thread {
    planned: Tag,
    since: f64,
    parked: f64,
    lock: u32,
    next: u32,
    served: u32,
    phase: Phase,
    /// True if the thread takes the lock as a reader.
    reads: bool,
}

/// A queue of threads, linked by [`Thread::next`].
#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
}

#[derive(Clone, Debug)]
struct Lock {
    owner: u32,
    /// Number of readers that hold the lock or are promised it.
    readers: u32,
    writers: u32,
    parked: Queue,
    spinning: Queue,
    waiting: u32,
    kind: u32,
    /// True if a thread is being woken to try to take the lock.
    waking: bool,
}

impl Lock {
    /// Returns `true` if one more thread (a reader if `reads`) may take the lock.
    #[inline]
    fn is_open(&self, reads: bool) -> bool {
        self.owner == NOBODY && if reads { self.writers == 0 } else { self.readers == 0 }
    }

    #[inline]
    fn admit(&mut self, id: u32, reads: bool) {
        if reads { self.readers += 1 } else { self.owner = id }
    }
}

/// Locks with equal properties.
#[derive(Debug)]
struct LockKind {
    hold: Shape,
    policy: Policy,
    hand_off: HandOff,
    read_share: f64,
    queue_limit: u32,
    first: u32,
    count: u32,
    /// Share of acquisitions of this kind and all kinds before it.
    up_to: f64,
    waiting: u32,
    held: u32,
    queue_max: u32,
    sums: Sums,
}

impl LockKind {
    /// Adds the time up to `now` to the integrals.
    #[inline]
    fn flush(&mut self, now: f64) {
        let passed = now - self.sums.time;
        self.sums.waiting += f64::from(self.waiting) * passed;
        self.sums.held += f64::from(self.held) * passed;
        self.sums.time = now;
    }
}

/// `LIMITED` is true if the number of cores is limited.
#[derive(Debug)]
pub(super) struct Engine<const LIMITED: bool> {
    rng: Xoshiro256PlusPlus,
    now: f64,
    calendar: Calendar,
    threads: Vec<Thread>,
    locks: Vec<Lock>,
    kinds: Vec<LockKind>,
    think: Shape,
    scheduler: Scheduler,
    tasks_left: u64,
    /// Number of attempts until the next snapshot.
    until_snapshot: u64,
    batch: u64,
    snapshots: Vec<Vec<Sums>>,
    events: u64,
}

impl Engine<false> {
    pub(super) fn simulate(system: &System, length: RunLength, seed: u64) -> Outcome {
        match system.cores {
            None => Engine::<false>::new(system, length, seed).run(length),
            Some(_) => Engine::<true>::new(system, length, seed).run(length),
        }
    }
}

impl<const LIMITED: bool> Engine<LIMITED> {
    fn new(system: &System, length: RunLength, seed: u64) -> Self {
        let shares: f64 = system.locks.iter().map(|locks| locks.share).sum();
        let empty = Queue { head: NOBODY, tail: NOBODY };
        let (mut kinds, mut locks, mut up_to) = (Vec::new(), Vec::new(), 0.0);
        for (kind, spec) in system.locks.iter().enumerate() {
            up_to += spec.share / shares;
            kinds.push(LockKind {
                hold: spec.hold.clone(),
                policy: spec.policy,
                hand_off: spec.hand_off.clone(),
                read_share: spec.read_share,
                queue_limit: spec.queue_limit.unwrap_or(u32::MAX),
                first: locks.len() as u32,
                count: spec.count,
                up_to,
                waiting: 0,
                held: 0,
                queue_max: 0,
                sums: Sums::default(),
            });
            let lock = Lock {
                owner: NOBODY,
                readers: 0,
                writers: 0,
                parked: empty,
                spinning: empty,
                waiting: 0,
                kind: kind as u32,
                waking: false,
            };
            locks.resize(locks.len() + spec.count as usize, lock);
        }
        let thread = Thread {
            planned: 0,
            since: NOT_WAITING,
            parked: 0.0,
            lock: 0,
            next: NOBODY,
            served: 0,
            phase: Phase::Thinking,
            reads: false,
        };
        let (until_snapshot, batch, tasks_left) = match length {
            RunLength::Batches { warm_up, batch } => (warm_up.max(1), batch, u64::MAX),
            RunLength::Tasks(tasks) => (u64::MAX, u64::MAX, tasks),
        };
        let n = system.threads as usize;
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            now: 0.0,
            calendar: Calendar::with_capacity(n),
            threads: vec![thread; n],
            locks,
            kinds,
            think: system.think.clone(),
            scheduler: Scheduler::new(system.cores, n),
            tasks_left,
            until_snapshot,
            batch,
            snapshots: Vec::new(),
            events: 0,
        }
    }

    fn run(mut self, length: RunLength) -> Outcome {
        for id in 0..self.threads.len() as u32 {
            if matches!(length, RunLength::Tasks(_)) {
                self.threads[id as usize].phase = Phase::Asking;
                if LIMITED {
                    self.scheduler.ready.push_back(id);
                } else {
                    self.plan(id, 0.0);
                }
            } else {
                let think = self.think.draw(&mut self.rng);
                if LIMITED {
                    self.scheduler.runs[id as usize].remaining = think;
                    self.scheduler.ready.push_back(id);
                } else {
                    self.plan(id, think);
                }
            }
        }
        if LIMITED {
            self.dispatch();
        }
        while self.snapshots.len() <= BATCHES {
            let Some((now, tag, id)) = self.calendar.take() else { break };
            if self.threads[id as usize].planned != tag {
                continue;
            }
            self.threads[id as usize].planned = 0;
            self.now = now;
            self.events += 1;
            self.end_phase(id);
            if LIMITED {
                self.dispatch();
            }
        }
        self.outcome()
    }

    fn outcome(mut self) -> Outcome {
        for kind in &mut self.kinds {
            kind.flush(self.now);
        }
        let served = self.threads.iter().map(|thread| f64::from(thread.served));
        let squares: f64 = served.clone().map(|count| count * count).sum();
        let fairness = if squares > 0.0 {
            served.sum::<f64>().powi(2) / (squares * self.threads.len() as f64)
        } else {
            1.0
        };
        Outcome {
            snapshots: self.snapshots,
            sums: self.kinds.iter().map(|kind| kind.sums).collect(),
            queue_max: self.kinds.iter().map(|kind| kind.queue_max).collect(),
            fairness,
            events: self.events,
        }
    }

    #[inline]
    fn end_phase(&mut self, id: u32) {
        if LIMITED && !self.work_is_done(id) {
            return;
        }
        match self.threads[id as usize].phase {
            Phase::Asking | Phase::Thinking => self.request(id),
            Phase::Holding => self.release(id),
            Phase::Spinning => {
                self.stop_spinning(id);
                self.park(id);
            }
            Phase::Waking => {
                if LIMITED {
                    self.threads[id as usize].phase = Phase::Trying;
                    self.scheduler.woken.push_back(id);
                } else {
                    self.try_again(id);
                }
            }
            Phase::Taking => {
                if LIMITED && self.scheduler.runs[id as usize].core == NOBODY {
                    self.threads[id as usize].phase = Phase::Entering;
                    self.scheduler.woken.push_back(id);
                } else {
                    self.enter(id);
                }
            }
            Phase::Parked | Phase::Trying | Phase::Entering | Phase::Done => {}
        }
    }

    #[inline]
    fn plan(&mut self, id: u32, delay: f64) {
        self.threads[id as usize].planned = self.calendar.put(self.now + delay, id);
    }

    #[inline]
    fn begin(&mut self, id: u32, work: f64) {
        if LIMITED {
            self.scheduler.runs[id as usize].remaining = work;
            self.resume(id);
        } else {
            self.plan(id, work);
        }
    }

    /// Makes a thread do `before` nanoseconds of work, and then think.
    #[inline]
    fn think(&mut self, id: u32, before: f64) {
        self.threads[id as usize].phase = Phase::Thinking;
        let work = before + self.think.draw(&mut self.rng);
        self.begin(id, work);
    }

    /// Begins a thread's next task, if there is one, by requesting a lock.
    #[inline]
    fn request(&mut self, id: u32) {
        if self.tasks_left == 0 {
            self.threads[id as usize].phase = Phase::Done;
            if LIMITED {
                self.leave_core(id);
            }
            return;
        }
        self.tasks_left -= 1;
        let at = self.choose();
        self.threads[id as usize].lock = at;
        let lock = &mut self.locks[at as usize];
        let kind = &mut self.kinds[lock.kind as usize];
        let reads = kind.read_share > 0.0 && unit(&mut self.rng) < kind.read_share;
        self.threads[id as usize].reads = reads;
        if lock.is_open(reads) {
            lock.admit(id, reads);
            self.enter(id);
            return;
        }
        kind.flush(self.now);
        if lock.waiting >= kind.queue_limit {
            kind.sums.refused += 1;
            self.count_attempt();
            self.think(id, 0.0);
            return;
        }
        lock.waiting += 1;
        lock.writers += u32::from(!reads);
        kind.waiting += 1;
        kind.queue_max = kind.queue_max.max(lock.waiting);
        self.threads[id as usize].since = self.now;
        self.wait(id);
    }

    #[inline]
    fn choose(&mut self) -> u32 {
        let kind = match &*self.kinds {
            [one] if one.count == 1 => return 0,
            [one] => one,
            [.., last] => {
                let at = unit(&mut self.rng);
                self.kinds.iter().find(|kind| at < kind.up_to).unwrap_or(last)
            }
            [] => return 0,
        };
        kind.first + below(&mut self.rng, kind.count.into()) as u32
    }

    #[inline]
    fn wait(&mut self, id: u32) {
        let at = self.threads[id as usize].lock as usize;
        let lock = &self.locks[at];
        match self.kinds[lock.kind as usize].policy {
            Policy::SpinThenPark { spin_ns, .. } if lock.parked.head == NOBODY && !lock.waking => {
                self.threads[id as usize].phase = Phase::Spinning;
                push(&mut self.locks[at].spinning, &mut self.threads, id);
                self.begin(id, spin_ns);
            }
            _ => self.park(id),
        }
    }

    #[inline]
    fn park(&mut self, id: u32) {
        let thread = &mut self.threads[id as usize];
        thread.phase = Phase::Parked;
        thread.parked = self.now;
        let at = thread.lock as usize;
        push(&mut self.locks[at].parked, &mut self.threads, id);
        if LIMITED {
            self.leave_core(id);
        }
    }

    /// All threads spin for the same time, so the thread is the first in the queue unless its core
    /// was taken away.
    fn stop_spinning(&mut self, id: u32) {
        let queue = &mut self.locks[self.threads[id as usize].lock as usize].spinning;
        if queue.head == id {
            pop(queue, &self.threads);
            return;
        }
        let mut before = queue.head;
        while before != NOBODY && self.threads[before as usize].next != id {
            before = self.threads[before as usize].next;
        }
        if before != NOBODY {
            self.threads[before as usize].next = self.threads[id as usize].next;
            if queue.tail == id {
                queue.tail = before;
            }
        }
    }

    fn try_again(&mut self, id: u32) {
        let lock = &mut self.locks[self.threads[id as usize].lock as usize];
        lock.waking = false;
        if lock.owner == NOBODY {
            lock.owner = id;
            self.enter(id);
        } else {
            self.wait(id);
        }
    }

    #[inline]
    fn enter(&mut self, id: u32) {
        let thread = &mut self.threads[id as usize];
        let lock = &mut self.locks[thread.lock as usize];
        let kind = &mut self.kinds[lock.kind as usize];
        kind.flush(self.now);
        if thread.since >= 0.0 {
            lock.waiting -= 1;
            lock.writers -= u32::from(!thread.reads);
            kind.waiting -= 1;
            kind.sums.contended += 1;
            kind.sums.waited += self.now - thread.since;
            thread.since = NOT_WAITING;
        }
        kind.held += 1;
        kind.sums.acquisitions += 1;
        kind.sums.on_entry += f64::from(lock.waiting);
        thread.phase = Phase::Holding;
        thread.served += 1;
        let hold = kind.hold.draw(&mut self.rng);
        self.begin(id, hold);
        self.count_attempt();
    }

    #[inline]
    fn release(&mut self, id: u32) {
        let at = self.threads[id as usize].lock as usize;
        let lock = &mut self.locks[at];
        let kind = &mut self.kinds[lock.kind as usize];
        kind.flush(self.now);
        kind.held -= 1;
        if self.threads[id as usize].reads {
            lock.readers -= 1;
        } else {
            lock.owner = NOBODY;
        }
        let wake_costs = match kind.policy {
            _ if kind.read_share > 0.0 => self.admit_waiting(at),
            Policy::Fifo => match pop(&mut lock.parked, &self.threads) {
                Some(next) => {
                    lock.owner = next;
                    self.wake(next, Phase::Taking)
                }
                None => 0.0,
            },
            Policy::Barging => self.wake_one(at),
            Policy::SpinThenPark { takeover_ns, .. } => {
                if let Some(next) = pop(&mut lock.spinning, &self.threads) {
                    lock.owner = next;
                    self.take_over(next, takeover_ns);
                }
                self.wake_one(at)
            }
        };
        self.think(id, wake_costs);
    }

    /// Promises the lock to a spinning thread, which notices after `takeover_ns`.
    fn take_over(&mut self, next: u32, takeover_ns: f64) {
        self.threads[next as usize].phase = Phase::Taking;
        if LIMITED {
            let run = &mut self.scheduler.runs[next as usize];
            run.slice_left -= self.now - run.started;
        }
        self.plan(next, takeover_ns);
    }

    /// Admits one writer, or all readers up to the next writer; spinning threads come first.
    /// Returns the cost of the wake-ups to the releasing thread, in nanoseconds.
    fn admit_waiting(&mut self, at: usize) -> f64 {
        let mut costs = 0.0;
        loop {
            let lock = &mut self.locks[at];
            let spins = lock.spinning.head != NOBODY;
            let next = if spins { lock.spinning.head } else { lock.parked.head };
            if next == NOBODY || lock.owner != NOBODY {
                return costs;
            }
            let reads = self.threads[next as usize].reads;
            if !reads && lock.readers > 0 {
                return costs;
            }
            lock.admit(next, reads);
            match self.kinds[lock.kind as usize].policy {
                Policy::SpinThenPark { takeover_ns, .. } if spins => {
                    pop(&mut lock.spinning, &self.threads);
                    self.take_over(next, takeover_ns);
                }
                _ => {
                    pop(&mut lock.parked, &self.threads);
                    costs += self.wake(next, Phase::Taking);
                }
            }
        }
    }

    /// Wakes the thread that has been parked longest, unless a thread is already being woken.
    /// Returns the cost of the wake-up to the releasing thread, in nanoseconds.
    fn wake_one(&mut self, at: usize) -> f64 {
        let lock = &mut self.locks[at];
        if !lock.waking
            && let Some(next) = pop(&mut lock.parked, &self.threads)
        {
            lock.waking = true;
            return self.wake(next, Phase::Waking);
        }
        0.0
    }

    /// Returns the cost of the wake-up to the releasing thread, in nanoseconds.
    #[inline]
    fn wake(&mut self, id: u32, phase: Phase) -> f64 {
        let thread = &mut self.threads[id as usize];
        let idle_since = if LIMITED {
            self.scheduler.idle.last().map_or(self.now, |&(_, since)| since)
        } else {
            thread.parked
        };
        let kind = &self.kinds[self.locks[thread.lock as usize].kind as usize];
        let idle = self.now - idle_since;
        let (delay, cost) = (kind.hand_off.after(idle), kind.hand_off.wake_cost(idle));
        thread.phase = phase;
        if delay > 0.0 {
            self.plan(id, delay);
        } else {
            // A hand-off that takes no time needs no event, because no other thread can get in
            // between.
            match (phase, LIMITED) {
                (Phase::Taking, false) => self.enter(id),
                (Phase::Taking, true) => {
                    thread.phase = Phase::Entering;
                    self.scheduler.woken.push_back(id);
                }
                (_, false) => self.try_again(id),
                (_, true) => {
                    thread.phase = Phase::Trying;
                    self.scheduler.woken.push_back(id);
                }
            }
        }
        cost
    }

    #[inline]
    fn count_attempt(&mut self) {
        self.until_snapshot -= 1;
        if self.until_snapshot == 0 {
            self.snapshot();
        }
    }

    #[cold]
    fn snapshot(&mut self) {
        if self.snapshots.is_empty() {
            for thread in &mut self.threads {
                thread.served = 0;
            }
        }
        self.until_snapshot = self.batch;
        for kind in &mut self.kinds {
            kind.flush(self.now);
        }
        self.snapshots.push(self.kinds.iter().map(|kind| kind.sums).collect());
    }
}

#[inline]
fn push(queue: &mut Queue, threads: &mut [Thread], id: u32) {
    threads[id as usize].next = NOBODY;
    if queue.head == NOBODY {
        queue.head = id;
    } else {
        threads[queue.tail as usize].next = id;
    }
    queue.tail = id;
}

#[inline]
fn pop(queue: &mut Queue, threads: &[Thread]) -> Option<u32> {
    let first = queue.head;
    if first == NOBODY {
        return None;
    }
    queue.head = threads[first as usize].next;
    Some(first)
}
