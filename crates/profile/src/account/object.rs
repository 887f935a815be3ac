//! One thing that threads wait on by a futex: a lock, a condition variable, …

mod held;
mod patterns;
mod queue;

use std::collections::{HashMap, HashSet};

use threadtoll_judge::bursts::{Bursts, Read};
use threadtoll_judge::cause::PatternCounts;
use threadtoll_judge::sample::Sample;

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

/// Contradictions in a row after which the memory is taken to have another use: a look may fall
/// between two stores of the lock itself.
const MAX_CONTRADICTIONS: u32 = 16;

/// One thing that threads wait on.
#[derive(Debug)]
pub struct Object {
    /// Address of the object, or of its futex word while it is not known which object it is.
    pub address: u64,
    /// When it was first seen.
    pub first_seen: u64,
    /// Kind of lock, or of anything else.
    pub identity: Identity,
    /// Of a lock of readers and writers: the account of its readers. The other one, at the same
    /// address, is that of its writers.
    pub for_readers: bool,
    /// Place of that other account.
    pub(super) twin: Option<u32>,
    /// Evidence of what it is.
    pub evidence: Evidence,
    /// Looks at its word.
    pub(super) readings: u32,
    /// Looks in a row whose bytes contradict what it is taken for.
    contradictions: u32,
    /// Number of objects that have been at this address before.
    pub generation: u32,
    pub(super) queue: Queue,
    /// Most threads seen waiting at one look.
    pub waiters_max: u32,
    /// Held share and queue of a lock.
    pub(super) held: Held,
    /// Its state as a lock, and the value of its word while it is not known to be one.
    pub(crate) steady_hold: Steady<Hold>,
    pub(crate) steady_word: Steady<u32>,
    /// Its holder, if it is a lock.
    pub(crate) holder: LockHolder,
    pub(super) patterns: Patterns,
    /// Looks at which each thread waited for it.
    pub waiting: HashMap<u32, u64>,
    /// Threads seen to hold it or to wait for it.
    pub users: HashSet<u32>,
    /// Stacks of waiters, by their numbers, with the number of looks.
    pub waiting_at: HashMap<u32, u64>,
    /// Looks that saw such stacks, and the last of them.
    pub looks_at_stacks: u64,
    last_stack: u64,
    /// Readings of its word in bursts, which tell how long it is held.
    pub bursts: Bursts,
    /// Threads have waited for it that give up after a while.
    pub(super) gives_up: bool,
    /// It was seen in a state in which nothing is that is used as a lock.
    is_no_lock: bool,
    /// The stack of a waiter that may tell what it is.
    pub telling_stack: Option<u32>,
    /// Looks that are not among the samples yet, for they have not shown if it is a lock.
    unjudged: Vec<Unjudged>,
    /// What the current look showed.
    pub now: Now,
}

/// What one look showed of an object.
#[derive(Debug, Default)]
pub struct Now {
    /// Number of the look.
    pub look: u64,
    /// State of the word.
    pub hold: Option<Hold>,
    /// State of the word after the threads were looked at.
    pub hold_again: Option<Hold>,
    /// Threads waiting, as the picked ones stand for all.
    pub waiting: f64,
    /// Threads woken for it that do not run yet.
    pub waking: f64,
    /// Those of them that no look saw asleep.
    pub unseen: f64,
    /// The picked threads that wait.
    pub waiters: Vec<u32>,
    /// The picked threads that were woken for it and do not run yet.
    pub woken: u32,
    /// The waits of a thing that is not known yet, with the threads that each stands for.
    waits: Vec<(Wait, f64)>,
    /// Bytes of a thing that is not known yet, and the address of the first.
    window: (u64, Vec<u8>),
    /// One of them that wants it for itself alone.
    pub writer: Option<u32>,
    /// The picked threads that have begun to wait since they were looked at last, each with the
    /// idle wait that it was in then.
    pub arrivals: Vec<Option<u32>>,
}

impl Now {
    /// The picked threads that wait, and the one that holds it.
    pub(super) fn users(&self) -> impl Iterator<Item = u32> {
        let owner = match self.hold {
            Some(Hold::Held { owner }) => owner,
            _ => None,
        };
        self.waiters.iter().copied().chain(owner)
    }
}

/// A look at a thing of which it was not known if it is a lock.
#[derive(Clone, Debug)]
pub(super) struct Unjudged {
    /// Its queue holds those that were being woken only.
    sampled: Sampled,
    waits: Vec<(Wait, f64)>,
    /// No bytes if they were not read.
    window: (u64, Vec<u8>),
}

impl Object {
    pub(super) fn new(address: u64, first_seen: u64) -> Self {
        Object {
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
            users: HashSet::new(),
            waiting_at: HashMap::new(),
            looks_at_stacks: 0,
            last_stack: 0,
            bursts: Bursts::default(),
            gives_up: false,
            is_no_lock: false,
            telling_stack: None,
            unjudged: Vec::new(),
            now: Now::default(),
        }
    }

    /// A lock that debug information names: nobody has waited for it yet.
    pub(super) fn declared(identity: Identity, first_seen: u64) -> Self {
        Object { identity, ..Object::new(identity.object, first_seen) }
    }

    /// The readers of a lock whose writers have an account of their own.
    pub(super) fn readers_of(writers: &Object) -> Self {
        let mut readers = Object::declared(writers.identity, writers.first_seen);
        readers.address = writers.address;
        readers.for_readers = true;
        readers
    }

    /// Many looks at waiting threads left threads out: more may have waited at once.
    pub fn seen_in_part(&self) -> bool {
        self.queue.seen_in_part()
    }

    /// It is a lock.
    pub fn is_lock(&self) -> bool {
        self.identity.role() == Role::Lock
    }

    /// It is a semaphore that may be used as a lock.
    pub(super) fn may_lock(&self) -> bool {
        self.identity.kind() == Kind::Semaphore && !self.is_no_lock
    }

    /// Its holders while a thread waited.
    pub(crate) fn holders(&self, stacks: &Stacks) -> Holders {
        self.holder.holders(stacks, &|tid| self.users.contains(&tid))
    }

    /// A thread was seen to hold it or to wait for it.
    pub fn is_used(&self) -> bool {
        !self.users.is_empty()
    }

    /// Judges what it is, if there is news. Returns true if the answer has changed.
    pub(super) fn judge(&mut self, news: bool, context: &Context<'_>) -> bool {
        if !news || self.identity.certain {
            return false;
        }
        let identity = identify(&self.evidence, context);
        let changed = identity != self.identity;
        self.identity = identity;
        changed
    }

    /// Takes over what another word of the same object has shown it to be, unless that is known.
    /// Returns true if it is news.
    pub(super) fn adopt(&mut self, identity: Identity) -> bool {
        let certain = self.identity.certain && self.identity.role() != Role::Parked;
        let adopted = identity.certain && !certain && identity != self.identity;
        if adopted {
            (self.identity, self.address) = (identity, identity.object);
        }
        adopted
    }

    /// A picked thread waits on it. Returns true if that is news of what it is.
    pub(super) fn wait(&mut self, tid: u32, wait: Wait, scale: f64) -> bool {
        self.now.waiting += scale;
        self.gives_up |= matches!(wait, Wait::Futex(wait) if wait.timed);
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

    /// A thread waits for it with this stack.
    pub(super) fn waits_at(&mut self, stack: u32, look: u64) {
        count(&mut self.waiting_at, stack);
        self.looks_at_stacks += u64::from(self.last_stack != look);
        self.last_stack = look;
    }

    /// Its word was read. Returns true if that is news of what it is.
    pub(super) fn read(&mut self, window: &Window<'_>) -> bool {
        if self.identity.contradicted(window) {
            self.contradictions += 1;
        } else {
            self.contradictions = 0;
        }
        self.is_no_lock |= self.may_lock() && !self.identity.may_lock(window);
        self.now.hold = Some(self.identity.hold(window));
        if !self.identity.certain {
            self.now.window.0 = window.address;
            self.now.window.1.extend_from_slice(window.bytes);
        }
        !self.identity.certain && self.evidence.saw_window(window)
    }

    /// Its word was read because a thread waited, which shows what it is, but not how often it is
    /// held.
    pub(super) fn read_with_waiter(&mut self, window: &Window<'_>) -> bool {
        !self.identity.certain && self.evidence.saw_window(window)
    }

    /// Its word was read many times in a row.
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

    /// The memory has another use by now.
    pub(super) fn is_something_else(&self) -> bool {
        self.contradictions >= MAX_CONTRADICTIONS
    }

    /// Forgets what was seen so far of the memory's former use.
    pub(super) fn begin_anew(&mut self, first_seen: u64) {
        let generation = self.generation + 1;
        let now = Now { look: self.now.look, ..Now::default() };
        *self = Object { generation, now, ..Object::new(self.evidence.address(), first_seen) };
    }

    /// Begins a look, if that has not been done.
    pub(super) fn see(&mut self, look: u64) {
        if self.now.look != look {
            self.now.look = look;
            (self.now.hold, self.now.hold_again) = (None, None);
            (self.now.waiting, self.now.waking, self.now.unseen) = (0.0, 0.0, 0.0);
            self.now.waiters.clear();
            self.now.woken = 0;
            self.now.waits.clear();
            self.now.window.1.clear();
            self.now.arrivals.clear();
            self.now.writer = None;
        }
    }

    /// Takes the look into account.
    ///
    /// There is room for this many more looks to be kept at things that may be locks.
    pub(super) fn end_look(&mut self, times: u32, seen: &Circumstances<'_>, room: &mut usize) {
        let queue = self.now.waiting + self.now.waking;
        if queue > 0.0 {
            self.queue.sample(queue, self.now.unseen, times, seen.scale);
            let waiters = self.now.waiters.len() as u32 + self.now.woken;
            self.waiters_max = self.waiters_max.max(waiters);
        }
        let remember = |threads: &mut HashSet<u32>, tid| {
            if threads.len() < MAX_KINDS {
                threads.insert(tid);
            }
        };
        self.now.waiters.iter().for_each(|&tid| remember(&mut self.users, tid));
        for &waiter in &self.now.waiters {
            count(&mut self.waiting, waiter);
        }
        let sample = Sample {
            held: None,
            queue: Some(queue),
            waking: Some(self.now.waking),
            waiter: seen.scale,
            time: f64::from(times) * seen.gap_s,
            late: seen.late,
        };
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
        self.held.add(&sampled, self.now.hold, self.for_readers);
        if let Some(Hold::Held { owner: Some(owner) }) = self.now.hold {
            self.holder.names_owner = true;
            remember(&mut self.users, owner);
        }
    }

    /// Share of the time held in which one thread kept all others out, readers included.
    pub(crate) fn exclusive_share(&self) -> f64 {
        self.held.exclusive_share()
    }

    /// Looks from before it was known to be a lock.
    pub(super) fn take_unjudged(&mut self) -> Vec<Unjudged> {
        std::mem::take(&mut self.unjudged)
    }

    /// Sees its word at the current look once more, by what it is known to be now.
    pub(super) fn see_hold(&mut self) {
        let (address, bytes) = &self.now.window;
        if !bytes.is_empty() {
            self.now.hold = Some(self.identity.hold(&Window { address: *address, bytes }));
        }
    }

    /// Takes looks into account from before it was known to be a lock.
    pub(super) fn add_unjudged(&mut self, looks: &[Unjudged]) {
        let apart = self.identity.kind() == Kind::RwLock;
        for look in looks {
            let mine = |wait: &Wait| {
                !apart || (self.identity.access(wait) == Access::Shared) == self.for_readers
            };
            let waits = look.waits.iter().filter(|(wait, _)| mine(wait));
            let waiting: f64 = waits.map(|(_, threads)| threads).sum();
            let woken = if self.for_readers { Some(0.0) } else { look.sampled.sample.waking };
            let (address, bytes) = &look.window;
            let hold = self.identity.hold(&Window { address: *address, bytes });
            let queue = woken.map(|woken| waiting + woken);
            let sample = Sample { queue, waking: woken, ..look.sampled.sample };
            let sampled = Sampled { sample, ..look.sampled };
            self.held.add(&sampled, Some(hold), self.for_readers);
        }
    }

    /// Number of looks that show each pattern.
    pub fn patterns(&self) -> PatternCounts {
        self.patterns.counts(self.for_readers)
    }
}
