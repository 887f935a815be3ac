//! Patterns of lock use that show only in several samples: herds, hogs, and writers that readers
//! overtake.

use std::collections::HashMap;

use threadtoll_judge::cause::PatternCounts;

use super::Now;
use crate::primitive::Hold;
use crate::tally::count;

/// Minimum number of threads in a herd: threads that leave one wait together and then queue for one
/// lock.
const HERD: f64 = 3.0;

#[derive(Debug, Default)]
pub(in crate::account) struct Patterns {
    counts: PatternCounts,
    /// Number of samples in which a thread had taken the lock ahead of a woken waiter, by the TID
    /// of the thread that took the lock.
    overtaking: HashMap<u32, u64>,
    waiting_writer: Option<WaitingWriter>,
}

#[derive(Clone, Copy, Debug)]
struct WaitingWriter {
    tid: u32,
    readers: u32,
    overtaken: bool,
}

impl Patterns {
    pub(in crate::account) fn sample(&mut self, now: &Now, scale: f64) {
        self.counts.arrivals += now.arrivals.len() as u64;
        for before in now.arrivals.iter().flatten() {
            let together = now.arrivals.iter().filter(|other| **other == Some(*before)).count();
            self.counts.herd_arrivals += u64::from(together as f64 * scale >= HERD);
        }
        let readers = match (now.hold, now.writer) {
            (Some(Hold::Readers(readers)), Some(tid)) => Some((readers, tid)),
            _ => None,
        };
        self.waiting_writer = readers.map(|(readers, tid)| {
            let before = self.waiting_writer.filter(|before| before.tid == tid);
            let more = |before: WaitingWriter| before.overtaken || readers > before.readers;
            WaitingWriter { tid, readers, overtaken: before.is_some_and(more) }
        });
        if let Some(writer) = self.waiting_writer {
            self.counts.writer_waited += 1;
            self.counts.readers_overtook += u64::from(writer.overtaken);
        }
    }

    /// Adds the lock's states from a burst of readings made while threads waited. A reader that
    /// joins other readers overtakes the waiting writer.
    pub(super) fn burst(&mut self, states: &[Hold]) {
        let Some(writer) = &mut self.waiting_writer else { return };
        let came = |pair: &[Hold]| match *pair {
            [Hold::Readers(before), Hold::Readers(now)] => now > before,
            _ => false,
        };
        writer.overtaken |= states.windows(2).any(came);
    }

    pub(in crate::account) fn turn(&mut self, overtaken_by: Option<u32>) {
        self.counts.turns += 1;
        if let Some(tid) = overtaken_by {
            count(&mut self.overtaking, tid);
        }
    }

    pub(super) fn counts(&self, of_readers: bool) -> PatternCounts {
        // Woken readers already hold the lock, so no writer can overtake them.
        let hogged_turns = match of_readers {
            true => 0,
            false => self.overtaking.values().copied().max().unwrap_or(0),
        };
        PatternCounts { hogged_turns, ..self.counts }
    }
}
