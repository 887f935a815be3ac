//! Statistics over the samples of all processes: the activities of threads, the share of time in
//! which each lock is held, and the number of threads that wait for each lock.

mod lateness;
mod mean;
mod presence;
mod process;
mod semaphores;
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
pub(crate) use process::instants::ThreadThen;
pub(crate) use process::semaphore_waits::AwaitedSemaphore;
pub use process::{ProcessAccount, Wish};
pub(crate) use semaphores::{SemaphoreReadings, Semaphores};
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

/// Maximum number of ended processes to keep. A build may start tens of thousands of processes.
pub(crate) const MAX_ENDED: usize = 500;

/// Without records of context switches, a sample counts as late if it waited longer than this for a
/// CPU. An idle CPU wakes up sooner.
const LATE_NS: u64 = 100_000;

/// A context switch in which a thread of the program gave up its CPU voluntarily.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Time of the switch, in nanoseconds.
    pub at: u64,
    /// CPU that the thread gave up.
    pub cpu: u32,
}

#[derive(Debug)]
pub(crate) struct Reported<'a> {
    /// `None` if perf events are not available.
    pub(crate) timeline: Option<&'a Timeline>,
    pub(crate) departures: &'a [Departure],
    pub(crate) incomplete: bool,
    pub(crate) running: &'a [RunningStack],
}

impl Reported<'_> {
    fn is_complete(&self) -> bool {
        self.timeline.is_some() && !self.incomplete
    }

    /// Returns `true` if the sample had to wait until a thread of the program gave up its CPU. Such
    /// a sample is biased: a thread that computes under a lock usually releases the lock just
    /// before it gives up the CPU. Other delays do not depend on the program and cause no bias.
    fn is_late(&self, tick: &Tick) -> bool {
        if !self.is_complete() {
            let since_due = tick.at.saturating_sub(tick.due).saturating_sub(tick.listing_ns);
            let delay = tick.run_delay_ns.unwrap_or(since_due);
            return delay > LATE_NS;
        }
        let waited_since = tick.run_delay_ns.map_or(tick.due, |delay| {
            // The delay may include waits during the sample before this one.
            tick.due.max(tick.began.saturating_sub(delay))
        });
        let from = self.departures.partition_point(|departure| departure.at < waited_since);
        let meanwhile = self.departures[from..].iter().take_while(|left| left.at <= tick.at);
        meanwhile.into_iter().any(|left| left.cpu == tick.cpu)
    }
}

/// Statistics of all processes since the profile began.
#[derive(Debug)]
pub struct Account {
    /// Due time of the first sample that found threads to read.
    pub started: u64,
    living: BTreeMap<u32, ProcessAccount>,
    ended: BTreeMap<u32, ProcessAccount>,
    samples: u64,
    current: StretchSamples,
    /// Number of scheduled sampling times with a sample in time, and number with a late one.
    pub due: [u64; 2],
    /// Delays of the samples.
    pub lateness: Lateness,
    /// Total length of the ended stretches, in seconds. A stretch is a period of constant sampling
    /// rate.
    pub seconds: f64,
    /// End of the latest stretch, in nanoseconds.
    pub until: u64,
    pub(crate) trace: StateTrace,
    pub(crate) semaphores: Semaphores,
}

impl Account {
    /// Creates an account that begins at this time.
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
            semaphores: Semaphores::default(),
        }
    }

    fn second(&self, at: u64) -> u64 {
        at.saturating_sub(self.started) / 1_000_000_000
    }

    /// Adds a process.
    pub fn add(&mut self, index: u32, process: ProcessAccount) {
        self.living.insert(index, process);
    }

    /// Returns the process with this index.
    pub fn process(&self, index: u32) -> Option<&ProcessAccount> {
        self.living.get(&index).or_else(|| self.ended.get(&index))
    }

    /// All processes.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessAccount> {
        self.living.values().chain(self.ended.values())
    }

    /// Returns a process unless its last samples have been folded.
    pub fn living(&mut self, index: u32) -> Option<&mut ProcessAccount> {
        self.living.get_mut(&index)
    }

    /// Processes whose last samples have not been folded yet, with their indices.
    pub fn all_living(&mut self) -> impl Iterator<Item = (u32, &mut ProcessAccount)> {
        self.living.iter_mut().map(|(&index, process)| (index, process))
    }

    /// Removes ended processes beyond `MAX_ENDED`, those with the fewest thread samples first, and
    /// returns them with their indices. The first process is never removed.
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
            // Skip samples from before the first thread started and after the last one ended.
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
            // Threads that ended before they were read count as alive and idle.
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
                // A thread of another process may be read because it holds a lock, but its time
                // does not count for this process.
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
        self.read_semaphores(lookups);
    }

    fn read_semaphores(&mut self, lookups: &dyn Lookups) {
        let living = || self.living.values();
        let waits = living().filter(|process| process.semaphores.shared).flat_map(|process| {
            process.semaphores.all().into_iter().map(move |wait| (process.pid, wait))
        });
        let has_threads =
            |pid| living().any(|process| process.pid == pid && process.threads.len() > 1);
        self.semaphores.read(waits, &has_threads, lookups);
    }

    /// Ends a stretch after all of its samples have been folded.
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

#[derive(Clone, Debug, Default)]
pub(crate) struct StretchSamples {
    samples: SampleCount,
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
