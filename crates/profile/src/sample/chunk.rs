//! Results of a few milliseconds of samples, as the sampling thread sends them.

use std::collections::HashSet;

use threadtoll_stacks::process::{Activity, InnerTids};

/// Samples in the order in which they were taken.
#[derive(Debug, Default)]
pub struct Chunk {
    /// Mean time between scheduled samples, in seconds.
    pub gap_s: f64,
    /// The samples.
    pub ticks: Vec<Tick>,
    words: Vec<WordRead>,
    threads: Vec<ThreadRead>,
    stacks: Vec<StackRead>,
    listings: Vec<Listing>,
    gone: Vec<u32>,
    left: Vec<u32>,
    /// Bursts of readings, each of one word.
    pub bursts: Vec<Burst>,
    bytes: Vec<u8>,
}

pub(crate) type NumberStack<'a> = &'a mut dyn FnMut(&ThreadRead, u64, &[u8]) -> Option<u32>;

/// Readings of one word in quick succession.
#[derive(Clone, Debug)]
pub struct Burst {
    /// Index of the process.
    pub process: u32,
    /// Address of the futex word.
    pub word: u64,
    /// Address of the first byte of each reading.
    pub address: u64,
    /// Length of each reading.
    pub length: usize,
    /// True if a thread waited on the word both before and after the burst.
    pub waited: bool,
    /// Times of the readings, in nanoseconds.
    pub times: Vec<u64>,
    /// Bytes of all readings, one after another.
    pub bytes: Vec<u8>,
}

/// List of the threads of a process.
#[derive(Debug)]
pub struct Listing {
    /// Index of the process.
    pub process: u32,
    /// TIDs of all living threads.
    pub threads: Vec<u32>,
    /// Translation of TIDs from the process's own PID namespace, if it has one.
    pub inner: Option<InnerTids>,
}

/// One sample of words and threads.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    /// Time at which the sample was due, in nanoseconds of `CLOCK_MONOTONIC`.
    pub due: u64,
    /// Time at which the sampler got its CPU.
    pub began: u64,
    /// Time at which the words were read.
    pub at: u64,
    /// Time for which the sampler waited for a CPU before the sample; `None` if the kernel hides
    /// this time.
    pub run_delay_ns: Option<u64>,
    /// CPU on which the sample was taken.
    pub cpu: u32,
    /// Time at which the words were read again; `None` if they were not.
    pub again_at: Option<u64>,
    /// Time at which the words of examined owners were read again; `None` if no owners were
    /// examined.
    pub checked_at: Option<u64>,
    /// Time spent on listing threads before the words were read.
    pub listing_ns: u64,
    /// Number of scheduled samples that this sample stands for; more than one if it was late.
    pub times: u32,
    /// Number of living threads in all processes.
    pub threads_alive: u32,
    /// Number of threads that were picked at random and examined.
    pub threads_picked: u32,
    /// Number of threads picked at random that had ended since they were listed.
    pub threads_gone: u32,
    words: (u32, u32),
    threads: (u32, u32),
    listings: (u32, u32),
    gone: (u32, u32),
    left: (u32, u32),
}

/// Reason why a word was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The word was picked for the sample.
    Picked,
    /// The word was read a second time, after the threads. Only picked words, and words with
    /// examined owners, are read twice.
    Again,
    /// The word was read because a thread was seen waiting on it. Such times are not random: they
    /// show the lock held more often than it is on average.
    Waiter,
}

/// Bytes around a futex word.
#[derive(Clone, Copy, Debug)]
pub struct WordRead {
    /// Index of the process.
    pub process: u32,
    /// Address of the futex word.
    pub word: u64,
    /// Reason for the reading.
    pub reason: Reason,
    /// Address of the first byte that was read.
    pub address: u64,
    bytes: (u32, u32),
}

/// A thread that a sample examined.
#[derive(Clone, Copy, Debug)]
pub struct ThreadRead {
    /// Index of the process.
    pub process: u32,
    /// TID of the thread.
    pub tid: u32,
    /// True if the thread was picked at random. Otherwise, it was examined because it owns a lock
    /// for which another thread waits.
    pub picked: bool,
    /// Activity of the thread when it was examined.
    pub activity: Activity,
    /// Number of the thread's stack, once the stack has been unwound.
    pub stack_number: Option<u32>,
    stack: u32,
}

#[derive(Clone, Copy, Debug)]
struct StackRead {
    address: u64,
    bytes: (u32, u32),
}

const NO_STACK: u32 = u32::MAX;

impl ThreadRead {
    pub(crate) fn new(process: u32, tid: u32, picked: bool, activity: Activity) -> Self {
        ThreadRead { process, tid, picked, activity, stack_number: None, stack: NO_STACK }
    }
}

impl Chunk {
    /// Begins a sample that was due at `due` and stands for `times` scheduled samples.
    pub fn begin(&mut self, due: u64, times: u32) {
        let words = (self.words.len() as u32, self.words.len() as u32);
        let threads = (self.threads.len() as u32, self.threads.len() as u32);
        let listings = (self.listings.len() as u32, self.listings.len() as u32);
        let gone = (self.gone.len() as u32, self.gone.len() as u32);
        let left = (self.left.len() as u32, self.left.len() as u32);
        self.ticks.push(Tick {
            due,
            began: due,
            at: due,
            run_delay_ns: None,
            cpu: 0,
            again_at: None,
            checked_at: None,
            listing_ns: 0,
            times,
            threads_alive: 0,
            threads_picked: 0,
            threads_gone: 0,
            words,
            threads,
            listings,
            gone,
            left,
        });
    }

    /// Returns the current sample.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn tick(&mut self) -> &mut Tick {
        #[expect(clippy::expect_used, reason = "a sample is begun before anything is added to it")]
        self.ticks.last_mut().expect("a sample was begun")
    }

    /// Adds the list of a process's threads to the current sample.
    pub fn push_listing(&mut self, listing: Listing) {
        self.listings.push(listing);
        self.tick().listings.1 += 1;
    }

    /// Discards the current sample's readings of a process that now executes another program: they
    /// may belong to either program.
    pub fn forget_process(&mut self, process: u32) {
        let Some(tick) = self.ticks.last_mut() else { return };
        let picked = |read: &ThreadRead| u32::from(read.picked && read.process == process);
        let from = tick.threads.0 as usize;
        tick.threads_picked -= self.threads[from..].iter().map(picked).sum::<u32>();
        let mut place = 0;
        self.threads.retain(|read| {
            place += 1;
            place <= from || read.process != process
        });
        tick.threads.1 = self.threads.len() as u32;
        let from = tick.words.0 as usize;
        let mut place = 0;
        self.words.retain(|read| {
            place += 1;
            place <= from || read.process != process
        });
        tick.words.1 = self.words.len() as u32;
    }

    /// Replaces the contents of `seen` with the processes in the current sample.
    pub fn processes_seen(&self, seen: &mut HashSet<u32>) {
        seen.clear();
        let Some(tick) = self.ticks.last() else { return };
        seen.extend(self.threads(tick).iter().map(|thread| thread.process));
        seen.extend(self.words(tick).map(|(word, _)| word.process));
    }

    /// Adds the bytes around a futex word.
    pub fn push_word(&mut self, process: u32, word: u64, reason: Reason, read: (u64, &[u8])) {
        let (address, bytes) = (read.0, self.push_bytes(read.1));
        self.words.push(WordRead { process, word, reason, address, bytes });
        self.tick().words.1 += 1;
    }

    /// Adds a thread.
    pub fn push_thread(&mut self, process: u32, tid: u32, picked: bool, activity: Activity) {
        self.threads.push(ThreadRead::new(process, tid, picked, activity));
        let tick = self.tick();
        tick.threads.1 += 1;
        tick.threads_picked += u32::from(picked);
    }

    /// Notes that a thread of this process was picked but had ended.
    pub fn push_gone(&mut self, process: u32) {
        self.gone.push(process);
        let tick = self.tick();
        tick.gone.1 += 1;
        tick.threads_gone += 1;
    }

    /// Notes that a process is not observed from the current sample on.
    pub fn push_left(&mut self, process: u32) {
        self.left.push(process);
        self.tick().left.1 += 1;
    }

    /// Adds the stack of the thread with index `thread` in the current sample.
    pub fn push_stack(&mut self, thread: usize, address: u64, bytes: &[u8]) {
        let bytes = self.push_bytes(bytes);
        let index = self.tick().threads.0 as usize + thread;
        if let Some(thread) = self.threads.get_mut(index) {
            thread.stack = self.stacks.len() as u32;
            self.stacks.push(StackRead { address, bytes });
        }
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> (u32, u32) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        (start, self.bytes.len() as u32)
    }

    /// Lists of threads made since the previous sample.
    pub fn listings(&self, tick: &Tick) -> &[Listing] {
        &self.listings[tick.listings.0 as usize..tick.listings.1 as usize]
    }

    /// Process index of each picked thread that had ended.
    pub fn gone(&self, tick: &Tick) -> &[u32] {
        &self.gone[tick.gone.0 as usize..tick.gone.1 as usize]
    }

    /// Processes that are not observed from this sample on.
    pub fn left(&self, tick: &Tick) -> &[u32] {
        &self.left[tick.left.0 as usize..tick.left.1 as usize]
    }

    /// Words that a sample read, with their bytes.
    pub fn words(&self, tick: &Tick) -> impl Iterator<Item = (&WordRead, &[u8])> {
        self.words[tick.words.0 as usize..tick.words.1 as usize]
            .iter()
            .map(|word| (word, &self.bytes[word.bytes.0 as usize..word.bytes.1 as usize]))
    }

    /// Threads that a sample examined.
    pub fn threads(&self, tick: &Tick) -> &[ThreadRead] {
        &self.threads[tick.threads.0 as usize..tick.threads.1 as usize]
    }

    /// Returns `true` if the current sample has examined this thread.
    pub fn saw(&self, process: u32, tid: u32) -> bool {
        self.ticks.last().is_some_and(|tick| {
            self.threads(tick).iter().any(|thread| (thread.process, thread.tid) == (process, tid))
        })
    }

    /// Assigns numbers to the stacks. Only the innermost part of each was copied, from the stack
    /// pointer up.
    pub(crate) fn number_stacks(&mut self, number: NumberStack<'_>) {
        for thread in &mut self.threads {
            if let Some(stack) = self.stacks.get(thread.stack as usize) {
                let bytes = &self.bytes[stack.bytes.0 as usize..stack.bytes.1 as usize];
                thread.stack_number = number(thread, stack.address, bytes);
            }
        }
    }

    /// Size of the samples in bytes.
    pub fn weight(&self) -> usize {
        self.bytes.len()
            + size_of_val(&self.threads[..])
            + size_of_val(&self.words[..])
            + size_of_val(&self.ticks[..])
            + self.listings.iter().map(|listing| size_of_val(&listing.threads[..])).sum::<usize>()
    }

    /// Empties the chunk for the next samples.
    pub fn clear(&mut self) {
        self.ticks.clear();
        self.words.clear();
        self.threads.clear();
        self.stacks.clear();
        self.listings.clear();
        self.gone.clear();
        self.left.clear();
        self.bursts.clear();
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back_as_they_were_added() {
        let mut chunk = Chunk::default();
        chunk.begin(10, 1);
        chunk.push_word(0, 0x1000, Reason::Picked, (0xfd0, &[1, 2]));
        chunk.push_thread(0, 7, true, Activity::OnCpu);
        chunk.begin(20, 2);
        chunk.push_thread(1, 8, false, Activity::OnCpu);
        chunk.push_thread(1, 9, true, Activity::OnCpu);
        chunk.push_stack(1, 0x7000, &[3, 4, 5]);

        let [first, second] = chunk.ticks[..] else { panic!() };
        let words: Vec<_> = chunk.words(&first).map(|(word, bytes)| (word.word, bytes)).collect();
        assert_eq!(words, [(0x1000, &[1, 2][..])]);
        assert_eq!(chunk.words(&second).count(), 0);
        assert_eq!(chunk.threads(&first).len(), 1);
        let threads = chunk.threads(&second);
        assert_eq!(threads.iter().map(|thread| thread.tid).collect::<Vec<_>>(), [8, 9]);
        assert_eq!((second.times, second.threads_picked), (2, 1));
        let mut stacks = Vec::new();
        chunk.number_stacks(&mut |thread, address, bytes| {
            stacks.push((thread.tid, address, bytes.to_vec()));
            Some(77)
        });
        assert_eq!(stacks, [(9, 0x7000, vec![3, 4, 5])]);
        let numbers: Vec<_> = chunk.threads(&second).iter().map(|read| read.stack_number).collect();
        assert_eq!(numbers, [None, Some(77)]);
        chunk.clear();
        assert_eq!(chunk.weight(), 0);
    }

    #[test]
    fn a_process_that_was_replaced_during_a_sample_is_forgotten_for_that_sample() {
        let mut chunk = Chunk::default();
        for due in [10, 20] {
            chunk.begin(due, 1);
            for process in [3, 4] {
                chunk.push_word(process, 0x1000, Reason::Picked, (0x1000, &[1]));
                chunk.push_thread(process, 7 + process, true, Activity::OnCpu);
            }
        }
        chunk.forget_process(3);
        chunk.push_thread(4, 99, true, Activity::OnCpu);
        let [first, second] = chunk.ticks[..] else { panic!() };
        let seen = |tick: &Tick| {
            let threads = chunk.threads(tick).iter().map(|read| read.tid).collect::<Vec<_>>();
            (chunk.words(tick).count(), threads, tick.threads_picked)
        };
        assert_eq!(seen(&first), (2, vec![10, 11], 2));
        assert_eq!(seen(&second), (1, vec![11, 99], 2));
        let mut seen = HashSet::new();
        chunk.processes_seen(&mut seen);
        assert_eq!(seen, [4].into());
    }
}
