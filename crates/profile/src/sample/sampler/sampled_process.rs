//! One process that the sampler observes, with the words and the stacks that are read.

use std::collections::{HashMap, HashSet};

use threadtoll_stacks::process::{Activity, Batch, Process, ProgramRun, Thread, ThreadSample};

use super::super::chunk::{Chunk, Reason};
use super::super::churn::Churn;
use super::super::watch::{Span, Watch};
use super::reader::Reader;
use crate::primitive::{Evidence, MAX_WAIT_TARGETS, Window};

/// Maximum number of futex words of a process: the account cannot hold more, and reports any
/// excess.
const MAX_WORDS: usize = MAX_WAIT_TARGETS;

pub(super) const STACK: usize = 16 << 10;

const MAX_STRANGERS: usize = 64;

#[derive(Debug)]
pub(super) struct SampledProcess {
    pub(super) index: u32,
    pub(super) process: Process,
    pub(super) run: Option<ProgramRun>,
    pub(super) churn: Churn,
    /// Number of living threads from which this sample draws; `None` if it draws from the list.
    pub(super) drawn_of: Option<u32>,
    /// True if a new list of threads must still be passed to the account (`unnoted`) or to the
    /// profiler (`untold`).
    pub(super) unnoted: bool,
    pub(super) untold: bool,
    pub(super) words: Vec<u64>,
    pub(super) watches: Vec<Watch>,
    known: HashMap<u64, u32>,
    pub(super) ignored: HashSet<u64>,
    /// Words to read if a thread waits on them, each with the bytes to read and the due time of the
    /// last sample in which a thread waited.
    with_waiters: HashMap<u64, (Span, u64)>,
    batch: Batch,
    pub(super) reader: Reader,
    /// Number of samples in this stretch in which memory could not be read in time.
    pub(super) unread: u32,
    pub(super) owners: HashMap<u64, u32>,
    /// Threads of other processes that use locks of this process.
    pub(super) strangers: HashMap<u32, Thread>,
    pub(super) ended: bool,
}

impl SampledProcess {
    pub(super) fn new(index: u32, process: Process, run: Option<ProgramRun>) -> Self {
        SampledProcess {
            index,
            process,
            run,
            churn: Churn::default(),
            drawn_of: None,
            unnoted: false,
            untold: false,
            words: Vec::new(),
            watches: Vec::new(),
            known: HashMap::new(),
            ignored: HashSet::new(),
            with_waiters: HashMap::new(),
            batch: Batch::new(),
            reader: Reader::default(),
            unread: 0,
            owners: HashMap::new(),
            strangers: HashMap::new(),
            ended: false,
        }
    }

    pub(super) fn waited(&mut self, word: u64, chunk: &mut Chunk) {
        let sample = chunk.tick().due;
        let Some((window, last)) = self.with_waiters.get_mut(&word) else {
            if !self.known.contains_key(&word) && !self.ignored.contains(&word) {
                // Until the wait target is identified, the word is also read whenever a thread is
                // seen waiting on it: the word may be the thread's own and lead to a lock only
                // while the thread waits.
                let window = Evidence::new(word).window();
                self.watch(word, Watch::unknown(window));
                self.watch_waiters(word, window);
                self.waited(word, chunk);
            }
            return;
        };
        if std::mem::replace(last, sample) == sample {
            return;
        }
        let (from, length) = *window;
        self.batch.clear();
        self.batch.push(from, length);
        self.reader.read_many(self.process.memory(), &mut self.batch);
        if let Some(part) = self.batch.part(0) {
            chunk.push_word(self.index, word, Reason::Waiter, part);
        }
    }

    pub(super) fn count_unread(&mut self) {
        self.unread += u32::from(self.reader.take_unread());
    }

    pub(super) fn know_stranger(&mut self, tid: u32) {
        if self.strangers.len() < MAX_STRANGERS
            && let Some(thread) = Thread::of_any_process(tid)
        {
            self.strangers.insert(tid, thread);
        }
    }

    pub(super) fn sample_owner(&self, tid: u32) -> ThreadSample {
        self.strangers.get(&tid).map_or_else(|| self.sample(tid), Thread::sample)
    }

    pub(super) fn watch_waiters(&mut self, word: u64, window: Span) {
        // The map is cleared when full, because it also contains words of threads that have ended.
        if self.with_waiters.len() >= MAX_WORDS {
            self.with_waiters.clear();
        }
        self.with_waiters.insert(word, (window, 0));
    }

    pub(super) fn owned_word(&self, word: u64) -> Option<u32> {
        let &place = self.known.get(&word)?;
        self.watches[place as usize].names_owner().then_some(place)
    }

    pub(super) fn watch(&mut self, word: u64, watch: Watch) {
        self.ignored.remove(&word);
        self.with_waiters.remove(&word);
        match self.known.get(&word) {
            Some(&place) => self.watches[place as usize] = watch,
            None if self.words.len() < MAX_WORDS => {
                self.known.insert(word, self.words.len() as u32);
                self.words.push(word);
                self.watches.push(watch);
            }
            None => {}
        }
    }

    pub(super) fn ignore(&mut self, word: u64) {
        self.with_waiters.remove(&word);
        if let Some(place) = self.known.remove(&word) {
            self.words.swap_remove(place as usize);
            self.watches.swap_remove(place as usize);
            if let Some(&moved) = self.words.get(place as usize) {
                self.known.insert(moved, place);
            }
        }
        // The set is cleared when full, because it also contains words of threads and wait targets
        // that no longer exist.
        if self.ignored.len() >= MAX_WORDS {
            self.ignored.clear();
        }
        self.ignored.insert(word);
    }

    pub(super) fn read(
        &mut self,
        picked: impl Iterator<Item = usize> + Clone,
        reason: Reason,
        chunk: &mut Chunk,
    ) {
        self.batch.clear();
        for place in picked.clone() {
            let (from, length) = self.watches[place].window;
            self.batch.push(from, length);
        }
        self.reader.read_many(self.process.memory(), &mut self.batch);
        self.owners.clear();
        for (read, place) in picked.enumerate() {
            let word = self.words[place];
            let Some((address, bytes)) = self.batch.part(read) else { continue };
            chunk.push_word(self.index, word, reason, (address, bytes));
            let window = Window { address, bytes };
            if let Some(owner) = self.watches[place].owner(word, &window) {
                let inner = self.process.inner_tids();
                let owner = inner.map_or(Some(owner), |inner| inner.get(&owner).copied());
                owner.map(|owner| self.owners.insert(word, owner));
            }
        }
    }
}

/// Reads the stack of a sleeping thread. Returns `false` if the thread does not sleep, or if its
/// stack cannot be read.
pub(super) fn read_stack(
    followed: &mut SampledProcess,
    activity: &Activity,
    thread: usize,
    buffer: &mut [u8; STACK],
    chunk: &mut Chunk,
) -> bool {
    let Some((stack_pointer, _)) = activity.position() else { return false };
    let got = followed.reader.read_stack(followed.process.memory(), stack_pointer, buffer);
    if got > 0 {
        chunk.push_stack(thread, stack_pointer, &buffer[..got]);
    }
    got > 0
}
