//! `raw-copy`: one core writes words and another reads them. This is the upper limit for the
//! throughput of any queue.
//!
//! There are two buffers, each with a flag. The writer fills one buffer while the reader reads the
//! other. A flag is set to "full" with release after the last word is written, and to "free" with
//! release after the last word is read. Every word differs from the word that it replaces, so the
//! sum that the reader checks reveals old data. Both loops are plain and vectorise.
//!
//! This is not a queue: single messages cannot be sent, and a block is visible only when it is
//! complete.

use std::alloc::{Layout as Allocation, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Origin, Wait};

use crate::cache_padded::CachePadded;
use crate::error::Unavailable;
use crate::exchange::on_a_line;
use crate::stream::{Received, ReceiverLoop, SenderLoop, StreamControl, StreamSpec, Streams};

use super::stream::{StretchStamps, receive_pass, settling};
use super::words::{count_up, sum};
use super::{Capacity, Queue, Way};

pub(super) fn queues() -> [Queue; 1] {
    [Queue {
        name: "raw-copy".into(),
        origin: Origin::Raw,
        version: env!("CARGO_PKG_VERSION").into(),
        sentence:
            "not a queue, but an upper limit for all queues: blocks of 4 to 256 KiB copied from core to \
             core"
                .into(),
        capacity: Capacity::Fixed,
        built: None,
        ways: vec![Way::stream_only(Wait::Spin, make)],
    }]
}

const LINE: usize = 128;

fn make(words: u64) -> Result<Streams, Unavailable> {
    let memory = Arc::new(Memory::new(words as usize));
    let writer = Writer { memory: Arc::clone(&memory), block: 1 };
    Ok(Streams { senders: vec![Box::new(writer)], receiver: Box::new(Reader { memory, block: 1 }) })
}

struct Memory {
    start: NonNull<u64>,
    words: usize,
    allocation: Allocation,
    /// For each buffer, the number of the block in it; 0 if the buffer is free.
    full: [CachePadded<AtomicU64>; 2],
}

// SAFETY: the flag of a buffer gives exclusive access to the writer while it is 0, and to the
// reader otherwise. Both ends change the flag with release and read it with acquire.
unsafe impl Send for Memory {}
// SAFETY: as for `Send`.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(words: usize) -> Self {
        // Another line lies between the buffers, so that prefetching past the end of one buffer
        // does not fetch lines of the other.
        let size = 2 * Self::stride(words) * size_of::<u64>();
        let allocation = match Allocation::from_size_align(size, LINE) {
            Ok(allocation) => allocation,
            Err(error) => unreachable!("the size is limited: {error}"),
        };
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc_zeroed(allocation) };
        let Some(start) = NonNull::new(memory) else { handle_alloc_error(allocation) };
        // A page is mapped only when it is written: write to every page before the clock starts.
        // SAFETY: the memory was just allocated and is not shared yet.
        unsafe { start.write_bytes(0, size) };
        Memory { start: start.cast(), words, allocation, full: Default::default() }
    }

    fn stride(words: usize) -> usize {
        words.next_multiple_of(LINE / 8) + LINE / 8
    }

    fn buffer(&self, block: u64) -> NonNull<u64> {
        // SAFETY: the offset is at most one stride, and the allocation holds two.
        unsafe { self.start.add((block % 2) as usize * Self::stride(self.words)) }
    }

    fn flag(&self, block: u64) -> &AtomicU64 {
        &self.full[(block % 2) as usize].0
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this layout, and both ends are gone.
        unsafe { dealloc(self.start.as_ptr().cast(), self.allocation) }
    }
}

/// Returns the first word of a block, from which the other words count up. The factor `STEP` makes
/// each word differ from the word that it replaces.
fn first_of(block: u64) -> u64 {
    block.wrapping_mul(STEP)
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn sum_of(block: u64, words: u64) -> u64 {
    first_of(block)
        .wrapping_mul(words)
        .wrapping_add((words.wrapping_sub(1)).wrapping_mul(words) / 2)
}

struct Writer {
    memory: Arc<Memory>,
    block: u64,
}

impl SenderLoop for Writer {
    fn enter(&mut self) {}

    fn send(&mut self, sender: usize, control: &StreamControl) -> u64 {
        on_a_line();
        let memory = &*self.memory;
        let words = memory.words as u64;
        let begin = self.block;
        loop {
            let block = self.block;
            let flag = memory.flag(block);
            // Acquire pairs with the reader's release: the reader has finished with the previous
            // block.
            while flag.load(Ordering::Acquire) != 0 {
                std::hint::spin_loop();
            }
            let last = control.stopped();
            if last {
                control.announce(sender, (block - begin + 1) * words);
            }
            // SAFETY: the flag gives the buffer to the writer. The buffer has `memory.words`
            // initialised words.
            let buffer = unsafe {
                std::slice::from_raw_parts_mut(memory.buffer(block).as_ptr(), memory.words)
            };
            count_up(buffer, first_of(block));
            flag.store(block, Ordering::Release);
            self.block += 1;
            if last {
                return (self.block - begin) * words;
            }
        }
    }

    fn code(&self) -> usize {
        Self::send as *const () as usize
    }
}

struct Reader {
    memory: Arc<Memory>,
    block: u64,
}

impl ReceiverLoop for Reader {
    fn enter(&mut self) {}

    fn receive(
        &mut self,
        spec: StreamSpec,
        control: &StreamControl,
        clock: &Clock,
        times: Option<&mut Vec<u64>>,
    ) -> Received {
        let words = self.memory.words as u64;
        let marks = StretchStamps::new(clock, times);
        receive_pass(settling(words), spec, words, control, marks, |spec, marks| {
            self.stretches(spec, marks)
        })
    }

    fn code(&self) -> usize {
        Self::stretches as *const () as usize
    }
}

impl Reader {
    #[inline(never)]
    fn stretches(&mut self, spec: StreamSpec, marks: &mut StretchStamps<'_>) -> Received {
        on_a_line();
        let memory = &*self.memory;
        let words = memory.words as u64;
        let mut block = self.block;
        let mut wrong = 0;
        let mut messages = 0;
        for _ in 0..spec.stretches {
            for _ in 0..spec.per_stretch / words {
                let flag = memory.flag(block);
                // Acquire pairs with the writer's release: the block is complete.
                while flag.load(Ordering::Acquire) != block {
                    std::hint::spin_loop();
                }
                // SAFETY: the flag gives the buffer to the reader. The buffer has `memory.words`
                // initialised words.
                let buffer = unsafe {
                    std::slice::from_raw_parts(memory.buffer(block).as_ptr(), memory.words)
                };
                wrong |= sum(buffer) ^ sum_of(block, words);
                flag.store(0, Ordering::Release);
                block += 1;
            }
            messages += spec.per_stretch;
            if marks.mark() >= spec.until {
                break;
            }
        }
        self.block = block;
        Received { messages, wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_sums_up_to_what_it_must_and_an_old_or_damaged_one_does_not() {
        for words in [1usize, 7, 512, 2048] {
            let mut buffer = vec![0; words];
            for block in [1, 2, 1 << 40] {
                count_up(&mut buffer, first_of(block));
                assert_eq!(sum(&buffer), sum_of(block, words as u64));
                assert_ne!(
                    sum(&buffer),
                    sum_of(block + 2, words as u64),
                    "the block before in this buffer"
                );
                buffer[words / 2] ^= 1;
                assert_ne!(sum(&buffer), sum_of(block, words as u64));
            }
        }
    }
}
