//! Shares, queues and their intervals, folded from looks.

mod mean;
mod object;
mod occupation;
mod process;
#[cfg(test)]
mod tests;

pub use mean::{Estimate, Looks, Mean};
pub use object::{Holders, Object};
pub use occupation::{Device, Occupation};
pub use process::{ProcessAccount, RunningStack, Time, Wish};

use crate::perf::Timeline;
use crate::sample::{Chunk, Stretch, Tick};
use crate::stacks::Stacks;
use process::Circumstances;
pub(crate) use process::NEAR_NS;

/// Where switches are not reported, a look that waited this long for a CPU counts as late: an idle
/// CPU wakes up sooner.
const LATE_NS: u64 = 100_000;

/// A thread of the program that left its CPU of its own accord.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// When it left.
    pub at: u64,
    /// The CPU.
    pub cpu: u32,
}

/// Reports of perf events from the time of some looks.
#[derive(Debug)]
pub(crate) struct Reported<'a> {
    /// States of threads; `None` without perf events.
    pub(crate) timeline: Option<&'a Timeline>,
    /// In the order of time.
    pub(crate) departures: &'a [Departure],
    /// Switches are missing.
    pub(crate) incomplete: bool,
    /// Stacks of running threads, in the order of time.
    pub(crate) running: &'a [RunningStack],
}

impl Reported<'_> {
    /// All switches are known.
    fn is_complete(&self) -> bool {
        self.timeline.is_some() && !self.incomplete
    }

    /// A look is late if it got its CPU because a thread of the program let go of it: then it came
    /// just when a thread that computes under a lock let go of that, too. A look that waited for
    /// anything else, or took the CPU away from the program, saw it at a time like any other.
    fn is_late(&self, tick: &Tick) -> bool {
        if !self.is_complete() {
            let delay = tick.run_delay_ns.unwrap_or(tick.at.saturating_sub(tick.due));
            return delay > LATE_NS;
        }
        let from = self.departures.partition_point(|departure| departure.at < tick.due);
        let meanwhile = self.departures[from..].iter().take_while(|left| left.at <= tick.at);
        meanwhile.into_iter().any(|left| left.cpu == tick.cpu)
    }
}

/// Everything seen so far.
#[derive(Debug)]
pub struct Account {
    /// When it began: when the first look was due that had a thread to look at.
    pub started: u64,
    /// The processes, by their indices.
    pub processes: Vec<ProcessAccount>,
    looks: u64,
    /// Looks of the current stretch.
    current: Looks,
    /// Due times of the current stretch, as in [`EndedStretch::due`].
    due: [[u64; 2]; 2],
    /// Due times of the whole run.
    pub due_ever: [u64; 2],
    /// Lateness of looks, the later ones once more often than they came.
    pub lateness: Vec<u32>,
    /// Length of the ended stretches.
    pub seconds: f64,
    /// When the last of them ended.
    pub until: u64,
}

/// Most latenesses kept for a quantile.
const MAX_LATENESSES: usize = 1 << 16;

impl Account {
    /// An account that begins at this instant.
    pub fn new(started: u64) -> Self {
        Account {
            started,
            processes: Vec::new(),
            looks: 0,
            current: Looks::default(),
            due: [[0; 2]; 2],
            due_ever: [0; 2],
            lateness: Vec::new(),
            seconds: 0.0,
            until: started,
        }
    }

    fn second(&self, at: u64) -> u64 {
        at.saturating_sub(self.started) / 1_000_000_000
    }

    fn living(&mut self, process: u32) -> Option<&mut ProcessAccount> {
        self.processes.get_mut(process as usize).filter(|process| !process.is_over())
    }

    /// Folds looks.
    pub(crate) fn fold(
        &mut self,
        chunk: &Chunk,
        reported: &Reported<'_>,
        stacks: &Stacks,
        throttled: bool,
    ) {
        for burst in &chunk.bursts {
            if let Some(process) = self.processes.get_mut(burst.process as usize) {
                process.burst(burst);
            }
        }
        // Looks from before there were threads to look at, and from after, show nothing.
        for tick in chunk.ticks.iter().filter(|tick| tick.threads_picked > 0) {
            if self.looks == 0 {
                self.started = tick.due;
            }
            self.looks += 1;
            let lateness = tick.at.saturating_sub(tick.due);
            let late = reported.is_late(tick);
            self.current.add(tick.times);
            let queue_late = late && !reported.is_complete();
            self.due[usize::from(late)][usize::from(queue_late)] += u64::from(tick.times);
            if self.lateness.len() < MAX_LATENESSES {
                self.lateness.push(u32::try_from(lateness).unwrap_or(u32::MAX));
            }
            // Those that were gone are among the threads alive, and did nothing.
            let picked = (tick.threads_picked + tick.threads_gone).max(1);
            let seen = Circumstances {
                look: self.looks,
                second: self.second(tick.due),
                due: tick.due,
                gap_s: chunk.gap_s,
                scale: f64::from(tick.threads_alive) / f64::from(picked),
                late,
                queue_late,
                timeline: reported.timeline,
                stacks,
                running: reported.running,
                throttled,
            };
            for (word, bytes) in chunk.words(tick) {
                if let Some(process) = self.living(word.process) {
                    process.word(word, bytes, tick, seen.look);
                }
            }
            for thread in chunk.threads(tick) {
                if let Some(process) = self.living(thread.process) {
                    process.thread(thread, tick.at, &seen);
                }
            }
            for process in self.processes.iter_mut().filter(|process| !process.is_over()) {
                process.end_look(chunk, tick, &seen);
            }
        }
    }

    /// Ends a stretch, all of whose looks have been folded.
    pub fn end_stretch(&mut self, stretch: &Stretch) {
        let ended = EndedStretch {
            second: self.second(stretch.until.saturating_sub(1)),
            length_s: stretch.length_ns as f64 / 1e9,
            gap_s: 1.0 / stretch.effort.rate_per_s,
            looks: std::mem::take(&mut self.current),
            due: std::mem::take(&mut self.due),
        };
        let living = self.processes.iter_mut().filter(|process| !process.is_over());
        living.for_each(|process| process.end_stretch(&ended));
        self.seconds += ended.length_s;
        self.until = stretch.until;
        for (ever, now) in self.due_ever.iter_mut().zip(ended.due) {
            *ever += now.into_iter().sum::<u64>();
        }
    }
}

/// A stretch of looks that has ended.
#[derive(Debug)]
struct EndedStretch {
    second: u64,
    length_s: f64,
    /// Mean time between two due times.
    gap_s: f64,
    looks: Looks,
    /// Due times that were answered on time, and late; of each, those whose queues are on time, and
    /// late.
    due: [[u64; 2]; 2],
}
