//! Reads the memory of a process without holding up the sampler.
//!
//! `process_vm_readv(2)` waits for the kernel's lock on the mappings of the process (mmap_lock),
//! and for pages that are not in memory. Either may take 100 ms. If some reads took long, further
//! reads are made by a thread of their own, for which the sampler waits for a limited time. A
//! sample whose reads take longer has the states of threads, but no words and stacks.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use threadtoll_stacks::process::{Batch, Memory};

use crate::clock::now;

/// A read that takes longer is slow. Other reads take some microseconds.
const SLOW_NS: u64 = 1_000_000;

/// Number of slow reads, among the last 32, after which a thread reads. A sampler that was
/// preempted during a read found it slow, too, but that happens rarely.
const MANY_SLOW: u32 = 3;

/// Time for which the sampler waits for the thread.
const PATIENCE: Duration = Duration::from_millis(1);

/// Number of prompt reads in succession after which the thread ends.
const MANY_PROMPT: u32 = 200;

#[derive(Debug)]
pub(super) struct Reader {
    patience: Duration,
    /// The last 32 reads, newest lowest: 1 for a slow one.
    slow: u32,
    thread: Option<ReadingThread>,
    /// Set if a read was not answered in time since the last call of [`Reader::take_unread`].
    unread: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Reader { patience: PATIENCE, slow: 0, thread: None, unread: false }
    }
}

impl Reader {
    pub(super) fn is_prompt(&self) -> bool {
        self.thread.is_none()
    }

    pub(super) fn take_unread(&mut self) -> bool {
        std::mem::take(&mut self.unread)
    }

    /// Reads all windows. If that takes too long, the batch is empty afterwards.
    pub(super) fn read_many(&mut self, memory: Memory, batch: &mut Batch) {
        if batch.is_empty() {
            return;
        }
        if self.is_prompt() {
            let began = now();
            memory.read_many(batch);
            self.took(now() - began);
        } else {
            self.read_by_thread(memory, batch);
        }
    }

    /// Reads bytes from `address` on, and returns their number. They end early where memory cannot
    /// be read, and perhaps even before.
    pub(super) fn read_stack(&mut self, memory: Memory, address: u64, bytes: &mut [u8]) -> usize {
        if self.is_prompt() {
            let began = now();
            // Most stacks end within the copy, so a single call is tried first. Finding the exact
            // end would take two more calls.
            let got = match memory.read_once(address, bytes) {
                0 => memory.read(address, bytes),
                got => got,
            };
            self.took(now() - began);
            return got;
        }
        let mut batch = Batch::new();
        batch.push(address, bytes.len());
        self.read_by_thread(memory, &mut batch);
        match batch.part(0) {
            Some((from, part)) if from == address => {
                bytes[..part.len()].copy_from_slice(part);
                part.len()
            }
            _ => 0,
        }
    }

    fn took(&mut self, ns: u64) {
        self.slow = self.slow << 1 | u32::from(ns > SLOW_NS);
        if self.slow.count_ones() >= MANY_SLOW {
            self.slow = 0;
            self.thread = ReadingThread::start();
        }
    }

    fn read_by_thread(&mut self, memory: Memory, batch: &mut Batch) {
        let Some(thread) = &mut self.thread else { return };
        if thread.read_many(memory, batch, self.patience) {
            thread.prompt += 1;
            if thread.prompt >= MANY_PROMPT {
                self.thread = None;
            }
        } else {
            thread.prompt = 0;
            batch.clear();
            self.unread = true;
        }
    }
}

/// A thread that reads one batch at a time. It ends when this is dropped, after its last read.
#[derive(Debug)]
struct ReadingThread {
    batches: Sender<(Memory, Batch)>,
    read: Receiver<Batch>,
    /// Set while the thread reads a batch for which the sampler no longer waits.
    late: bool,
    /// Number of batches that were read in time since the last that was not.
    prompt: u32,
}

impl ReadingThread {
    /// `None` if the system has no room for another thread.
    fn start() -> Option<Self> {
        let (batches, to_read) = channel::<(Memory, Batch)>();
        let (done, read) = channel();
        let run = move || {
            for (memory, mut batch) in to_read {
                memory.read_many(&mut batch);
                if done.send(batch).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("memory".into()).spawn(run).ok()?;
        Some(ReadingThread { batches, read, late: false, prompt: 0 })
    }

    /// Returns `false` if the batch is not read in time; it is lost then.
    fn read_many(&mut self, memory: Memory, batch: &mut Batch, patience: Duration) -> bool {
        if self.late && self.read.try_recv().is_err() {
            return false;
        }
        self.late = false;
        if self.batches.send((memory, std::mem::take(batch))).is_err() {
            return false;
        }
        match self.read.recv_timeout(patience) {
            Ok(read) => {
                *batch = read;
                true
            }
            Err(RecvTimeoutError::Timeout) => {
                self.late = true;
                false
            }
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Memory {
        Memory::of(std::process::id())
    }

    /// A reader that waits for its thread even on a busy machine.
    fn patient() -> Reader {
        Reader { patience: Duration::from_secs(600), ..Reader::default() }
    }

    #[test]
    fn a_thread_reads_the_same_bytes() {
        let words = [1u64, 2, 3];
        let address = words.as_ptr().expose_provenance() as u64;
        let mut reader = patient();
        for by_thread in [false, true] {
            assert_eq!(reader.is_prompt(), !by_thread);
            let mut bytes = [0; 24];
            assert_eq!(reader.read_stack(own(), address, &mut bytes), 24);
            assert_eq!(bytes[16..], 3u64.to_ne_bytes());
            // Nothing is mapped at the first page.
            assert_eq!(reader.read_stack(own(), 8, &mut bytes), 0);
            let mut batch = Batch::new();
            batch.push(address + 8, 8);
            reader.read_many(own(), &mut batch);
            assert_eq!(batch.get(0), Some(&2u64.to_ne_bytes()[..]));
            (0..MANY_SLOW).for_each(|_| reader.took(SLOW_NS + 1));
        }
    }

    #[test]
    fn reads_are_made_by_a_thread_while_they_are_slow() {
        let word = 7u32;
        let address = (&raw const word).expose_provenance() as u64;
        let mut reader = patient();
        for _ in 0..10 {
            reader.took(SLOW_NS + 1);
            (0..31).for_each(|_| reader.took(SLOW_NS));
        }
        assert!(reader.is_prompt(), "one slow read in 32 is no reason");
        (0..MANY_SLOW).for_each(|_| reader.took(SLOW_NS + 1));
        assert!(!reader.is_prompt());
        for _ in 0..MANY_PROMPT {
            assert!(!reader.is_prompt());
            assert_eq!(reader.read_stack(own(), address, &mut [0; 4]), 4);
        }
        assert!(reader.is_prompt());
    }

    #[test]
    fn reads_that_are_not_answered_in_time_are_counted_and_lost() {
        let (batches, unread) = channel();
        let (done, read) = channel();
        let thread = Some(ReadingThread { batches, read, late: false, prompt: 0 });
        let mut reader = Reader { thread, ..Reader::default() };
        let mut batch = Batch::new();
        batch.push(8, 8);
        reader.read_many(own(), &mut batch);
        assert!(batch.is_empty() && reader.take_unread() && !reader.take_unread());
        // While the first batch is being read, there is no second.
        assert_eq!(reader.read_stack(own(), 8, &mut [0; 8]), 0);
        assert!(reader.take_unread());
        done.send(unread.recv().unwrap().1).unwrap();
        assert!(unread.try_recv().is_err());
        // The next one is read.
        let answer = std::thread::spawn(move || {
            let (_, batch) = unread.recv().unwrap();
            done.send(batch).unwrap();
        });
        batch.push(8, 8);
        reader.patience = Duration::from_secs(600);
        reader.read_many(own(), &mut batch);
        answer.join().unwrap();
        assert_eq!(batch.len(), 1);
    }
}
