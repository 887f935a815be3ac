//! Wait targets: objects on which threads wait through a futex, such as locks and condition
//! variables.

mod held;
mod patterns;
mod queue;

use std::collections::{HashMap, HashSet};

use threadtoll_judge::bursts::{Bursts, Read};
use threadtoll_judge::cause::PatternCounts;
use threadtoll_judge::sample::LockSample;

use self::held::{Held, Sampled};
use self::patterns::Patterns;
use self::queue::Queue;
use super::steady::Steady;
use crate::circumstances::Circumstances;
use crate::holder::{Holders, LockHolder};
use crate::primitive::{
    Access, Context, Evidence, Hold, Identity, Kind, Role, Wait, Window, identify,
};
use crate::sample::Burst;
use crate::stacks::Stacks;
use crate::tally::{MAX_KINDS, count};

/// Number of consecutive contradicting samples after which the memory must have been reused. Fewer
/// prove nothing: a sample may fall between two stores of the lock's own code.
const MAX_CONTRADICTIONS: u32 = 16;

/// An object on which threads wait, such as a lock or a condition variable.
#[derive(Debug)]
pub struct WaitTarget {
    /// Address of the object or, until its kind is known, of its futex word.
    pub address: u64,
    /// Time at which the target was first seen, in nanoseconds.
    pub first_seen: u64,
    /// Kind of the target, as far as known.
    pub identity: Identity,
    /// True for the account of a readers-writer lock's readers. The lock's writers have another
    /// account, with the same address.
    pub for_readers: bool,
    /// Index of the other account of a readers-writer lock: from the readers' to the writers', and
    /// vice versa.
    pub(super) twin: Option<u32>,
    /// Evidence of the target's kind.
    pub evidence: Evidence,
    pub(super) readings: u32,
    contradictions: u32,
    /// Number of earlier targets in the same memory.
    pub generation: u32,
    pub(super) queue: Queue,
    /// Maximum number of threads that a sample saw waiting.
    pub waiters_max: u32,
    pub(super) held: Held,
    /// State of a lock, or value of the word of another target. Each is kept with the time for
    /// which all readings have agreed.
    pub(crate) steady_hold: Steady<Hold>,
    pub(crate) steady_word: Steady<u32>,
    pub(crate) holder: LockHolder,
    pub(super) patterns: Patterns,
    /// Number of samples in which each thread waited.
    pub waiting: HashMap<u32, u64>,
    /// Number of samples with waiters while the target looked like a lock: all, and those in which
    /// all threads in `waiting` waited at once.
    waited: [u32; 2],
    /// Threads seen holding the target or waiting for it.
    pub users: HashSet<u32>,
    /// Largest number of threads that the lock's word showed to hold it or to wait for it at once.
    pub users_counted: usize,
    /// Number of samples of each stack of a waiter, by stack number.
    pub waiting_at: HashMap<u32, u64>,
    /// Number of samples with a waiter's stack, and number of the last such sample.
    pub stack_samples: u64,
    last_stack: u64,
    /// Bursts of readings of the word, which show how long a lock is held.
    pub bursts: Bursts,
    pub(super) gives_up: bool,
    /// Number of samples of running threads that saw a thread spin for the lock.
    pub(crate) spun: u64,
    /// True for a private futex: only threads of the same process can wake its waiters.
    pub(crate) private: bool,
    is_no_lock: bool,
    /// A waiter's stack that may show the target's kind.
    pub telling_stack: Option<u32>,
    /// Samples taken before the target was known to be a lock or not; not yet in `held`.
    unjudged: Vec<Unjudged>,
    /// Observations in the current sample.
    pub now: Now,
}

/// Observations of a wait target in one sample.
#[derive(Debug, Default)]
pub struct Now {
    /// Number of the sample.
    pub sample: u64,
    /// State of the lock.
    pub hold: Option<Hold>,
    /// State of the lock, read again after the threads were examined.
    pub hold_again: Option<Hold>,
    /// Number of waiting threads, spinning ones included, if the lock's word shows it.
    pub counted: Option<u32>,
    /// True if a thread was seen spinning for the lock at about the time of the sample.
    pub spins: bool,
    /// Number of waiting threads, extrapolated from the picked threads.
    pub waiting: f64,
    /// Number of threads that were woken but do not run yet, extrapolated from the picked threads.
    pub waking: f64,
    /// Number of waiting or woken threads that no sample saw asleep.
    pub unseen: f64,
    /// Picked threads that wait.
    pub waiters: Vec<u32>,
    /// Number of picked threads that were woken but do not run yet.
    pub woken: u32,
    /// Kinds of waits, each with its number of threads; kept until the target's kind is certain.
    waits: Vec<(Wait, f64)>,
    /// Address and bytes around the word; kept until the target's kind is certain.
    window: (u64, Vec<u8>),
    /// A waiter that wants the lock exclusively.
    pub writer: Option<u32>,
    /// One entry for each picked thread that has begun to wait since its last sample: the condition
    /// variable or semaphore on which the thread waited in that last sample, if any.
    pub arrivals: Vec<Option<u32>>,
}

impl Now {
    pub(super) fn users(&self) -> impl Iterator<Item = u32> {
        let owner = match self.hold {
            Some(Hold::Held { owner }) => owner,
            _ => None,
        };
        self.waiters.iter().copied().chain(owner)
    }

    /// Returns `true` if a thread was seen waiting, or the word shows one. A thread that was seen
    /// spinning just before or after a sample that found the lock free does not count: it has the
    /// lock at once.
    pub(super) fn is_waited_for(&self) -> bool {
        let spins = self.spins && self.hold != Some(Hold::Free);
        !self.waiters.is_empty() || spins || self.counted.is_some_and(|waiters| waiters > 0)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Unjudged {
    /// The queue counts only woken threads; the waiting threads are in `waits`.
    sampled: Sampled,
    waits: Vec<(Wait, f64)>,
    window: (u64, Vec<u8>),
}

impl WaitTarget {
    pub(super) fn new(address: u64, first_seen: u64) -> Self {
        WaitTarget {
            address,
            first_seen,
            identity: Identity::unknown(address),
            for_readers: false,
            twin: None,
            evidence: Evidence::new(address),
            readings: 0,
            contradictions: 0,
            generation: 0,
            queue: Queue::default(),
            waiters_max: 0,
            held: Held::default(),
            steady_hold: Steady::default(),
            steady_word: Steady::default(),
            holder: LockHolder::default(),
            patterns: Patterns::default(),
            waiting: HashMap::new(),
            waited: [0; 2],
            users: HashSet::new(),
            users_counted: 0,
            waiting_at: HashMap::new(),
            stack_samples: 0,
            last_stack: 0,
            bursts: Bursts::default(),
            gives_up: false,
            spun: 0,
            private: false,
            is_no_lock: false,
            telling_stack: None,
            unjudged: Vec::new(),
            now: Now::default(),
        }
    }

    pub(super) fn declared(identity: Identity, first_seen: u64) -> Self {
        WaitTarget { identity, ..WaitTarget::new(identity.address, first_seen) }
    }

    pub(super) fn readers_of(writers: &WaitTarget) -> Self {
        let mut readers = WaitTarget::declared(writers.identity, writers.first_seen);
        readers.address = writers.address;
        readers.for_readers = true;
        readers
    }

    /// Returns `true` if many samples with waiters did not examine all threads: more threads may
    /// have waited at once than `waiters_max` says.
    pub fn seen_in_part(&self) -> bool {
        self.queue.seen_in_part() || self.spun > 0
    }

    /// Returns `true` if the lock's word counts the waiting threads, spinning ones included, and
    /// nearly all samples read it. The queue is then that count, and not the number of threads that
    /// samples saw waiting.
    pub fn counts_waiters(&self) -> bool {
        self.queue.is_from_word()
    }

    /// Returns `true` if the wait target is a lock.
    pub fn is_lock(&self) -> bool {
        self.identity.role() == Role::Lock
    }

    pub(super) fn may_lock(&self) -> bool {
        self.identity.kind() == Kind::Semaphore && !self.is_no_lock
    }

    pub(crate) fn holders(&self, stacks: &Stacks) -> Holders {
        self.holder.holders(stacks, &|tid| self.users.contains(&tid))
    }

    /// Returns `true` if a thread was seen holding the target or waiting for it.
    pub fn is_used(&self) -> bool {
        !self.users.is_empty()
    }

    /// Classifies the target again if there is new evidence. Returns `true` if its identity has
    /// changed.
    pub(super) fn judge(&mut self, news: bool, context: &Context<'_>) -> bool {
        if !news || self.identity.certain {
            return false;
        }
        let identity = identify(&self.evidence, context);
        let changed = identity != self.identity;
        self.identity = identity;
        changed
    }

    /// Adopts an identity that another word of this target has revealed, unless the target's own
    /// identity is certain. Returns `true` if the identity has changed.
    pub(super) fn adopt(&mut self, identity: Identity) -> bool {
        let certain = self.identity.certain && self.identity.role() != Role::Parked;
        let adopted = identity.certain && !certain && identity != self.identity;
        if adopted {
            (self.identity, self.address) = (identity, identity.address);
        }
        adopted
    }

    /// Notes that a picked thread waits. Returns `true` if this is new evidence of the target's
    /// kind.
    pub(super) fn wait(&mut self, tid: u32, wait: Wait, scale: f64) -> bool {
        self.now.waiting += scale;
        self.gives_up |= matches!(wait, Wait::Futex(wait) if wait.timed);
        self.private |= matches!(wait, Wait::Futex(wait) if wait.private);
        if !self.identity.certain {
            match self.now.waits.iter_mut().find(|(other, _)| *other == wait) {
                Some((_, threads)) => *threads += scale,
                None => self.now.waits.push((wait, scale)),
            }
        }
        self.now.waiters.push(tid);
        if self.identity.access(&wait) == Access::Exclusive {
            self.now.writer = Some(tid);
        }
        self.evidence.saw_wait(tid, wait)
    }

    /// Notes that a sample of a running thread, taken at this time, saw it spin for the lock.
    /// Returns
    /// `true` if this is new evidence of the target's kind.
    pub(super) fn spins(&mut self, tid: u32, stack: u32, at: u64) -> bool {
        self.spun += 1;
        self.waits_at(stack, at);
        count(&mut self.waiting, tid);
        remember(&mut self.users, tid);
        self.evidence.saw_wait(tid, Wait::Spinning)
    }

    pub(super) fn waits_at(&mut self, stack: u32, sample: u64) {
        count(&mut self.waiting_at, stack);
        self.stack_samples += u64::from(self.last_stack != sample);
        self.last_stack = sample;
    }

    /// Notes a reading of the word. Returns `true` if this is new evidence of the target's kind.
    pub(super) fn read(&mut self, window: &Window<'_>) -> bool {
        if self.identity.contradicted(window) {
            self.contradictions += 1;
        } else {
            self.contradictions = 0;
        }
        self.is_no_lock |= self.may_lock() && !self.identity.may_lock(window);
        self.see_state(window);
        if !self.identity.certain {
            self.now.window.0 = window.address;
            self.now.window.1.extend_from_slice(window.bytes);
        }
        !self.identity.certain && self.evidence.saw_window(window)
    }

    /// Notes a reading of the word made because a thread waited. The reading is evidence of the
    /// target's kind, but would bias the estimate of the share of time in which the lock is held.
    pub(super) fn read_with_waiter(&mut self, window: &Window<'_>) -> bool {
        !self.identity.certain && self.evidence.saw_window(window)
    }

    pub(super) fn burst(&mut self, burst: &Burst) {
        if !self.is_lock() {
            return;
        }
        let state = |bytes| self.identity.hold(&Window { address: burst.address, bytes });
        let states: Vec<Hold> = burst.bytes.chunks_exact(burst.length).map(state).collect();
        if burst.waited {
            self.patterns.burst(&states);
        }
        let readings = burst.times.iter().zip(states);
        let reads: Vec<Read> = readings
            .map(|(&at, state)| {
                let (held, owner) = match state {
                    Hold::Held { owner } => (true, owner),
                    Hold::Readers(_) => (true, None),
                    Hold::Free | Hold::Unseen => (false, None),
                };
                Read { at, held, owner }
            })
            .collect();
        self.bursts.add(&reads, burst.waited);
    }

    pub(super) fn is_something_else(&self) -> bool {
        self.contradictions >= MAX_CONTRADICTIONS
    }

    pub(super) fn begin_anew(&mut self, first_seen: u64) {
        let generation = self.generation + 1;
        let now = Now { sample: self.now.sample, ..Now::default() };
        *self =
            WaitTarget { generation, now, ..WaitTarget::new(self.evidence.address(), first_seen) };
    }

    pub(super) fn see(&mut self, sample: u64) {
        if self.now.sample != sample {
            self.now.sample = sample;
            (self.now.hold, self.now.hold_again) = (None, None);
            (self.now.counted, self.now.spins) = (None, false);
            (self.now.waiting, self.now.waking, self.now.unseen) = (0.0, 0.0, 0.0);
            self.now.waiters.clear();
            self.now.woken = 0;
            self.now.waits.clear();
            self.now.window.1.clear();
            self.now.arrivals.clear();
            self.now.writer = None;
        }
    }

    /// Adds the current sample. The process has at most `threads` threads. `room` is the number of
    /// further unclassified samples that may be kept, in all wait targets together.
    pub(super) fn end_sample(
        &mut self,
        times: u32,
        seen: &Circumstances<'_>,
        threads: usize,
        room: &mut usize,
    ) {
        let queue = self.now.waiting + self.now.waking;
        if queue > 0.0 {
            self.queue.sample(queue, self.now.unseen, times, seen.scale);
            let waiters = self.now.waiters.len() as u32 + self.now.woken;
            self.waiters_max = self.waiters_max.max(waiters);
        }
        self.now.waiters.iter().for_each(|&tid| remember(&mut self.users, tid));
        for &waiter in &self.now.waiters {
            count(&mut self.waiting, waiter);
        }
        self.see_who_waits();
        let mut sample = LockSample {
            held: None,
            queue: Some(queue),
            waking: Some(self.now.waking),
            waiter: seen.scale,
            time: f64::from(times) * seen.gap_s,
            late: seen.late,
        };
        if self.identity.kind() == Kind::Spinlock {
            let least = u32::from(self.now.is_waited_for());
            self.waiters_max = self.waiters_max.max(self.now.counted.unwrap_or(least));
            sample = without_queue(sample);
        }
        let (due, second, queue_late) = (seen.due, seen.second, seen.queue_late);
        let mut sampled = Sampled { due, second, queue_late, sample };
        if !self.is_lock() {
            let (address, bytes) = (self.now.window.0, &self.now.window.1[..]);
            if let Some(word) = (Window { address, bytes }).u32(self.evidence.address()) {
                self.steady_word.note(word, due);
            }
            if !self.identity.certain && *room > 0 {
                *room -= 1;
                sampled.sample.queue = sample.waking;
                let (waits, window) = (self.now.waits.clone(), self.now.window.clone());
                self.unjudged.push(Unjudged { sampled, waits, window });
            } else if !self.identity.certain {
                self.held.add_queue(&sampled);
            }
            return;
        }
        if let Some(hold) = self.now.hold.filter(|&hold| hold != Hold::Unseen) {
            self.steady_hold.note(hold, due);
        }
        self.count_waiters(&mut sampled, self.now.counted, self.now.hold, threads);
        self.held.add(&sampled, self.now.hold, self.for_readers);
        if let Some(Hold::Held { owner: Some(owner) }) = self.now.hold {
            self.holder.names_owner = true;
            remember(&mut self.users, owner);
        }
    }

    /// Checks if all threads that have ever waited for a supposed lock often wait at the same time.
    /// If the target were a lock, one of these threads would usually hold it.
    fn see_who_waits(&mut self) {
        const OFTEN: u32 = 20;
        const SHARE: u32 = 10;
        if self.identity.certain || !self.is_lock() || self.now.waiters.is_empty() {
            return;
        }
        let all = self.now.waiters.len() >= self.waiting.len().max(2);
        self.waited = [self.waited[0].saturating_add(1), self.waited[1] + u32::from(all)];
        if self.waited[1] >= OFTEN && self.waited[1] >= self.waited[0] / SHARE {
            self.evidence.saw_all_wait();
        }
    }

    /// Fraction of the hold time in which one thread kept out all others, including readers.
    pub(crate) fn exclusive_share(&self) -> f64 {
        self.held.exclusive_share()
    }

    pub(super) fn take_unjudged(&mut self) -> Vec<Unjudged> {
        std::mem::take(&mut self.unjudged)
    }

    pub(super) fn see_hold(&mut self) {
        let (address, bytes) = std::mem::take(&mut self.now.window);
        if !bytes.is_empty() {
            self.see_state(&Window { address, bytes: &bytes });
        }
        self.now.window = (address, bytes);
    }

    fn see_state(&mut self, window: &Window<'_>) {
        self.now.hold = Some(self.identity.hold(window));
        self.now.counted = self.identity.waiting(window);
    }

    /// Replaces the queue of a sample by the number of waiters that the lock's word shows. Late
    /// samples keep a queue that records of switches show for the time at which they were due, and
    /// a number beyond that of all threads is no count.
    fn count_waiters(
        &mut self,
        sampled: &mut Sampled,
        shown: Option<u32>,
        hold: Option<Hold>,
        threads: usize,
    ) {
        if self.identity.kind() == Kind::Spinlock {
            return;
        }
        let read_when_due = !sampled.sample.late || sampled.queue_late;
        let counted = shown.filter(|&waiters| read_when_due && waiters as usize <= threads);
        self.queue.note_source(counted.is_some());
        if let Some(waiters) = counted {
            let holders = usize::from(matches!(hold, Some(Hold::Held { .. })));
            self.users_counted = self.users_counted.max(waiters as usize + holders);
            self.waiters_max = self.waiters_max.max(waiters);
            sampled.sample.queue = Some(waiters.into());
            sampled.sample.waiter = 1.0;
        }
    }

    pub(super) fn add_unjudged(&mut self, earlier: &[Unjudged], threads: usize) {
        let apart = self.identity.kind() == Kind::RwLock;
        for one in earlier {
            let mine = |wait: &Wait| {
                !apart || (self.identity.access(wait) == Access::Shared) == self.for_readers
            };
            let waits = one.waits.iter().filter(|(wait, _)| mine(wait));
            let waiting: f64 = waits.map(|(_, threads)| threads).sum();
            let woken = if self.for_readers { Some(0.0) } else { one.sampled.sample.waking };
            let (address, bytes) = &one.window;
            let window = Window { address: *address, bytes };
            let hold = self.identity.hold(&window);
            let queue = woken.map(|woken| waiting + woken);
            let mut sample = LockSample { queue, waking: woken, ..one.sampled.sample };
            if self.identity.kind() == Kind::Spinlock {
                sample = without_queue(sample);
            }
            let mut sampled = Sampled { sample, ..one.sampled };
            self.count_waiters(&mut sampled, self.identity.waiting(&window), Some(hold), threads);
            self.held.add(&sampled, Some(hold), self.for_readers);
        }
    }

    /// Number of samples in which each pattern was seen.
    pub fn patterns(&self) -> PatternCounts {
        self.patterns.counts(self.for_readers)
    }
}

fn remember(threads: &mut HashSet<u32>, tid: u32) {
    if threads.len() < MAX_KINDS {
        threads.insert(tid);
    }
}

/// The sample of a lock for which no thread sleeps.
fn without_queue(sample: LockSample) -> LockSample {
    LockSample { queue: None, waking: None, ..sample }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futex::FutexWait;

    const WORD: u64 = 0x1000;

    /// Role given to a word that has the values of a lock, if these groups of threads wait for it
    /// in turn.
    fn taken_for(by_turns: &[&[u32]]) -> Role {
        let arguments = [WORD, 128, 2, 0, 0, 0];
        let wait = Wait::Futex(FutexWait::of(libc::SYS_futex as u32, arguments).unwrap());
        let context = Context { is_thread: &|_| true, go: false, jvm: false };
        let mut target = WaitTarget::new(WORD, 0);
        for sample in 1..200 {
            target.see(sample);
            let waiters = by_turns[sample as usize % by_turns.len()];
            let mut news = false;
            for &tid in waiters {
                news |= target.wait(tid, wait, 1.0);
                count(&mut target.waiting, tid);
            }
            let word = if waiters.is_empty() { 0 } else { 2_u32 };
            news |= target.read(&Window { address: WORD, bytes: &word.to_le_bytes() });
            target.judge(news, &context);
            target.see_who_waits();
        }
        target.identity.role()
    }

    #[test]
    fn waiters_of_a_lock_hold_it_at_times_and_those_of_an_event_never_do() {
        assert_eq!(taken_for(&[&[1, 2], &[2, 3], &[], &[3, 1]]), Role::Lock);
        assert_eq!(taken_for(&[&[1, 2, 3], &[2, 3], &[], &[3, 1]]), Role::Unknown);
    }
}
