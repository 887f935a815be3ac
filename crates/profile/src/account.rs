//! Accumulates the samples of all processes: where threads spend their time, for what share of the
//! time locks are held, and how many threads wait for them.

mod lateness;
mod mean;
mod presence;
mod process;
pub(crate) mod standing;
mod steady;
mod stops;
#[cfg(test)]
mod tests;
mod time;
mod trace;
mod wait_target;

pub use lateness::Lateness;
pub use mean::{Mean, MeanEstimate, SampleCount};
pub(crate) use presence::Presence;
pub(crate) use process::asleep::Sleeping;
pub(crate) use process::file_locks::{FileLocks, LockedFile};
pub(crate) use process::instants::ThreadThen;
pub use process::{ProcessAccount, Wish};
pub use time::Time;
pub(crate) use trace::{ColumnCount, HeldBy, SampledState, StateTrace, Strip};
pub use wait_target::WaitTarget;

use std::collections::BTreeMap;

use threadtoll_judge::sample::LockSample;
use threadtoll_judge::samples::LockSamples;

use crate::circumstances::{Circumstances, RunningStack};
use crate::lookups::Lookups;
use crate::perf::Timeline;
use crate::sample::{Chunk, StretchReport, Tick};
use crate::stacks::Stacks;

/// Maximum number of ended processes that are kept: a build has tens of thousands.
pub(crate) const MAX_ENDED: usize = 500;

/// If switches are not reported, a sample that waited this long for a CPU counts as late: an idle
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

/// Reports of perf events for the time of some samples.
#[derive(Debug)]
pub(crate) struct Reported<'a> {
    /// States of threads; `None` without perf events.
    pub(crate) timeline: Option<&'a Timeline>,
    /// In chronological order.
    pub(crate) departures: &'a [Departure],
    /// True if switches are missing.
    pub(crate) incomplete: bool,
    /// Stacks of running threads, in chronological order.
    pub(crate) running: &'a [RunningStack],
}

impl Reported<'_> {
    /// Returns `true` if all switches are known.
    fn is_complete(&self) -> bool {
        self.timeline.is_some() && !self.incomplete
    }

    /// Returns `true` if the sample got its CPU because a thread of the program gave it up: the
    /// sample then came just when a thread that computes under a lock released that as well. A
    /// sample that waited for anything else, or that took the CPU away from the program, saw the
    /// program at a time like any other.
    fn is_late(&self, tick: &Tick) -> bool {
        if !self.is_complete() {
            let since_due = tick.at.saturating_sub(tick.due).saturating_sub(tick.listing_ns);
            let delay = tick.run_delay_ns.unwrap_or(since_due);
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
    /// When the account began: the first due time of a sample that had threads to read.
    pub started: u64,
    /// Processes that have not ended, by their indices.
    living: BTreeMap<u32, ProcessAccount>,
    ended: BTreeMap<u32, ProcessAccount>,
    samples: u64,
    current: StretchSamples,
    /// Number of due times that were answered on time, and number answered late.
    pub due: [u64; 2],
    /// Lateness of the samples.
    pub lateness: Lateness,
    /// Total length of the stretches that have ended, in seconds.
    pub seconds: f64,
    /// When the last of them ended.
    pub until: u64,
    /// States of threads over time.
    pub(crate) trace: StateTrace,
}

impl Account {
    /// An account that begins at this time.
    pub fn new(started: u64) -> Self {
        Account {
            started,
            living: BTreeMap::new(),
            ended: BTreeMap::new(),
            samples: 0,
            current: StretchSamples::default(),
            due: [0; 2],
            lateness: Lateness::default(),
            seconds: 0.0,
            until: started,
            trace: StateTrace::default(),
        }
    }

    fn second(&self, at: u64) -> u64 {
        at.saturating_sub(self.started) / 1_000_000_000
    }

    /// Adds a process.
    pub fn add(&mut self, index: u32, process: ProcessAccount) {
        self.living.insert(index, process);
    }

    /// A process.
    pub fn process(&self, index: u32) -> Option<&ProcessAccount> {
        self.living.get(&index).or_else(|| self.ended.get(&index))
    }

    /// All processes.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessAccount> {
        self.living.values().chain(self.ended.values())
    }

    /// A process whose last samples have not been folded yet.
    pub fn living(&mut self, index: u32) -> Option<&mut ProcessAccount> {
        self.living.get_mut(&index)
    }

    /// The processes whose last samples have not been folded yet, with their indices.
    pub fn all_living(&mut self) -> impl Iterator<Item = (u32, &mut ProcessAccount)> {
        self.living.iter_mut().map(|(&index, process)| (index, process))
    }

    /// Forgets ended processes beyond a limit: those whose threads were seen least, but never the
    /// first process. Returns them with their indices.
    pub fn forget_ended(&mut self) -> Vec<(u32, ProcessAccount)> {
        let mut forgotten = Vec::new();
        while self.ended.len() > MAX_ENDED {
            let others = self.ended.iter().filter(|&(&index, _)| index != 0);
            let least = others.min_by(|(_, one), (_, other)| one.seen.total_cmp(&other.seen));
            let Some((&index, _)) = least else { break };
            self.trace.forget(index);
            forgotten.extend(self.ended.remove_entry(&index));
        }
        forgotten
    }

    /// Adds the samples of a chunk to the account.
    pub(crate) fn fold(
        &mut self,
        chunk: &Chunk,
        reported: &Reported<'_>,
        stacks: &Stacks,
        throttled: bool,
        lookups: &dyn Lookups,
    ) {
        for burst in &chunk.bursts {
            if let Some(process) = self.living(burst.process) {
                process.burst(burst);
            }
        }
        for tick in &chunk.ticks {
            let is_first = self.current.samples.is_empty();
            for listing in chunk.listings(tick) {
                if let Some(process) = self.living.get_mut(&listing.process) {
                    process.set_threads(listing.threads.clone(), listing.inner.clone());
                    process.presence.begin(is_first);
                }
            }
            for process in chunk.left(tick) {
                if let Some(process) = self.living.get_mut(process) {
                    process.presence.end(&self.current);
                }
            }
            // Samples from before there were threads to read, or after, show nothing.
            if tick.threads_picked == 0 {
                continue;
            }
            if self.samples == 0 {
                self.started = tick.due;
            }
            self.samples += 1;
            self.lateness.add(tick.at.saturating_sub(tick.due));
            let late = reported.is_late(tick);
            let queue_late = late && !reported.is_complete();
            self.due[usize::from(late)] += u64::from(tick.times);
            // Threads that were gone count as alive, and did nothing.
            let picked = (tick.threads_picked + tick.threads_gone).max(1);
            let seen = Circumstances {
                sample: self.samples,
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
                lookups,
            };
            self.current.add(tick.times, &seen);
            self.trace.begin_sample(tick.due.saturating_sub(self.started), tick.times);
            for (word, bytes) in chunk.words(tick) {
                if let Some(process) = self.living(word.process) {
                    process.word(word, bytes, tick, seen.sample);
                }
            }
            for thread in chunk.threads(tick) {
                // A thread of another process may hold a lock, but has no part in this one's time.
                if let Some(process) = self.living.get_mut(&thread.process)
                    && (thread.picked || process.threads.contains(&thread.tid))
                    && let Some(state) = process.thread(thread, tick.at, &seen)
                    && self.trace.saw(thread.process, thread.tid, state)
                {
                    process.to_name.push(thread.tid);
                }
            }
            for &process in chunk.gone(tick) {
                if let Some(process) = self.living(process) {
                    process.ended_unseen.count(seen.scale);
                }
            }
            let lasting = self.living.iter_mut().filter(|(_, process)| process.presence.lasts());
            for (&index, process) in lasting {
                process.presence.add(tick.times, &seen);
                process.end_sample(chunk, tick, &seen);
                for (place, by) in process.held_by.drain(..) {
                    self.trace.held(index, place, by);
                }
            }
        }
    }

    /// Ends a stretch, all of whose samples have been folded.
    pub fn end_stretch(&mut self, stretch: &StretchReport) {
        let ended = std::mem::take(&mut self.current);
        let length_s = stretch.length_ns as f64 / 1e9;
        for process in self.living.values_mut() {
            if let Some((share, seen)) = process.presence.end_stretch(&ended) {
                process.end_stretch(length_s * share, &seen);
            }
        }
        for (index, mut process) in self.living.extract_if(.., |_, process| process.ended) {
            process.end();
            self.ended.insert(index, process);
        }
        self.seconds += length_s;
        self.until = stretch.until;
    }
}

/// The samples of the current stretch so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct StretchSamples {
    samples: SampleCount,
    /// Samples of a lock for which nobody waits.
    unwaited: LockSamples,
}

impl StretchSamples {
    fn add(&mut self, times: u32, seen: &Circumstances<'_>) {
        self.samples.add(times);
        let sample = LockSample {
            held: None,
            queue: Some(0.0),
            waking: Some(0.0),
            waiter: 1.0,
            time: f64::from(times) * seen.gap_s,
            late: seen.late,
        };
        self.unwaited.add_with_queue(seen.second, sample, seen.queue_late);
    }
}
