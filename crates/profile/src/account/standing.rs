//! Threads that stay in one wait: since when, and whether they have run in the meantime.
//!
//! If samples show a thread in one system call, with the same arguments and stack pointer, they may
//! have seen one sleep or many. Records of context switches show which, and so does the kernel's
//! count of the thread's switches: if two readings of it are equal, the thread slept all the time
//! in between.

use std::collections::{HashMap, HashSet};

use threadtoll_stacks::process::Activity;

use crate::futex::FutexWait;
use crate::sample::ThreadRead;

/// Maximum number of threads that are tracked.
const MAX_THREADS: usize = 20_000;

/// A thread's switches are counted only after it has been seen in the same call for this long.
const WORTH_COUNTING_NS: u64 = 250_000_000;

/// A thread is mostly in a call if at most one in this many samples found the thread on a CPU.
const AWAKE: u32 = 8;

/// An interval that a thread spent in one sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sleep {
    pub(crate) since: u64,
    pub(crate) until: u64,
}

/// A thread in the call in which samples keep finding it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stand {
    pub(crate) activity: Activity,
    /// Times of the first and the last sample that found the thread in the call.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Number of samples since the first one, and number of those that found the thread on a CPU.
    samples: u32,
    awake: u32,
    /// Number of the thread's stack in the call.
    pub(crate) stack: Option<u32>,
    /// The thread's current sleep, according to records of switches.
    recorded: Option<Sleep>,
    /// The thread's number of switches when last read, and the sleep inferred from equal readings.
    counted: Option<(u64, Sleep)>,
    /// True if two readings of the thread's number of switches in this call differed.
    ran: bool,
}

impl Stand {
    fn new(read: &ThreadRead, at: u64, still_since: Option<u64>) -> Stand {
        Stand {
            activity: read.activity,
            first: at,
            last: at,
            samples: 1,
            awake: 0,
            stack: read.stack_number,
            recorded: still_since.map(|since| Sleep { since, until: at }),
            counted: None,
            ran: false,
        }
    }

    /// The thread's current sleep, as far as known.
    pub(crate) fn sleep(&self) -> Option<Sleep> {
        match (self.recorded, self.counted.map(|(_, sleep)| sleep)) {
            (Some(one), Some(other)) if one.since <= other.until && other.since <= one.until => {
                let (since, until) = (one.since.min(other.since), one.until.max(other.until));
                Some(Sleep { since, until })
            }
            (one, other) => {
                one.into_iter().chain(other).max_by_key(|sleep| (sleep.until, sleep.since))
            }
        }
    }

    /// Returns `true` if nearly all samples found the thread in this call: if it ever leaves, it
    /// soon comes back.
    pub(crate) fn mostly_here(&self) -> bool {
        self.awake <= self.samples / AWAKE
    }

    /// Returns `true` if all samples from this time on found the thread in the call.
    pub(crate) fn is_in_place_since(&self, time: u64) -> bool {
        self.first <= time && self.awake == 0
    }

    /// The thread's current sleep, as far as it can be inferred from readings of its number of
    /// switches.
    pub(crate) fn counted_sleep(&self) -> Option<Sleep> {
        self.counted.map(|(_, sleep)| sleep)
    }

    /// Returns whether the thread ran between two readings of its number of switches; `None` if
    /// there were fewer than two.
    pub(crate) fn ran_between_counts(&self) -> Option<bool> {
        let sleep = self.counted_sleep()?;
        (self.ran || sleep.since < sleep.until).then_some(self.ran)
    }

    /// Notes that the thread has not run since this time, according to records of switches at `at`.
    fn record(&mut self, since: u64, at: u64) {
        self.recorded = Some(match self.recorded {
            Some(sleep) if since <= sleep.until => {
                Sleep { since: since.min(sleep.since), until: at.max(sleep.until) }
            }
            _ => Sleep { since, until: at },
        });
    }

    fn count(&mut self, switches: u64, at: u64) {
        self.ran |= self.counted.is_some_and(|(before, _)| before != switches);
        self.counted = Some(match self.counted {
            Some((before, sleep)) if before == switches => (switches, Sleep { until: at, ..sleep }),
            _ => (switches, Sleep { since: at, until: at }),
        });
    }
}

/// The threads of one process.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    threads: HashMap<u32, Stand>,
}

impl Standing {
    /// Notes a sample of a thread. `still_since` returns the time since which the thread has not
    /// run, if known.
    pub(super) fn note(
        &mut self,
        read: &ThreadRead,
        at: u64,
        still_since: impl FnOnce() -> Option<u64>,
    ) {
        if read.activity == Activity::OnCpu {
            if let Some(stand) = self.threads.get_mut(&read.tid) {
                (stand.recorded, stand.counted) = (None, None);
                (stand.samples, stand.awake) = (stand.samples + 1, stand.awake + 1);
                if !stand.mostly_here() {
                    self.threads.remove(&read.tid);
                }
            }
            return;
        }
        let room = self.threads.len() < MAX_THREADS;
        match self.threads.get_mut(&read.tid) {
            Some(stand) if stand.activity == read.activity => {
                stand.last = at;
                stand.samples = stand.samples.saturating_add(1);
                stand.stack = read.stack_number.or(stand.stack);
                if let Some(since) = still_since() {
                    stand.record(since, at);
                }
            }
            Some(stand) => *stand = Stand::new(read, at, still_since()),
            None if room => {
                self.threads.insert(read.tid, Stand::new(read, at, still_since()));
            }
            None => {}
        }
    }

    pub(super) fn retain(&mut self, alive: &HashSet<u32>) {
        self.threads.retain(|tid, _| alive.contains(tid));
    }

    pub(super) fn forget(&mut self) {
        self.threads = HashMap::new();
    }

    pub(crate) fn get(&self, tid: u32) -> Option<&Stand> {
        self.threads.get(&tid)
    }

    /// Looks up, in the records of switches up to `at`, since when each thread has not run.
    pub(crate) fn ask_records(&mut self, at: u64, still_since: impl Fn(u32) -> Option<u64>) {
        for (&tid, stand) in &mut self.threads {
            // If a thread has run since its last sample, it need not be in the same call any more.
            if let Some(since) =
                still_since(tid).filter(|&since| since <= stand.last && stand.last <= at)
            {
                stand.record(since, at);
            }
        }
    }

    /// Threads that have not moved for a while, but may have run unnoticed: at most `most` of them.
    /// Those on a futex come first, beginning with those whose number of switches was read longest
    /// ago. For the others, that number is read only once, and once more at the end (`last`).
    pub(crate) fn to_count(&self, now: u64, most: usize, last: bool) -> Vec<u32> {
        let worth = |stand: &&Stand| {
            let told = stand.sleep().is_some_and(|sleep| sleep.until + WORTH_COUNTING_NS > now);
            // Threads that sleep for a time or wait for input cannot be part of a deadlock.
            let once_more = on_futex(stand) || stand.counted.is_none() || last;
            once_more && stand.first + WORTH_COUNTING_NS <= now && !told
        };
        let counted = |stand: &Stand| stand.counted.map(|(_, sleep)| sleep.until);
        let mut threads: Vec<(bool, Option<u64>, u32)> = self
            .threads
            .iter()
            .filter(|(_, stand)| worth(stand))
            .map(|(&tid, stand)| (!on_futex(stand), counted(stand), tid))
            .collect();
        threads.sort_unstable();
        threads.into_iter().take(most).map(|(.., tid)| tid).collect()
    }

    /// Notes the number of switches of a thread, which was asleep at the time `at`.
    pub(crate) fn count(&mut self, tid: u32, switches: u64, at: u64) {
        if let Some(stand) = self.threads.get_mut(&tid) {
            stand.count(switches, at);
        }
    }
}

/// Returns `true` if the thread sleeps in a call of futex(2).
fn on_futex(stand: &Stand) -> bool {
    match stand.activity {
        Activity::Asleep(call) => FutexWait::of(call.number, call.arguments).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_stacks::process::SystemCall;

    use super::*;

    const MS: u64 = 1_000_000;

    fn read(argument: u64) -> ThreadRead {
        let activity = Activity::Asleep(SystemCall {
            number: libc::SYS_futex as u32,
            arguments: [argument, 128, 2, 0, 0, 0],
            stack_pointer: 0,
            program_counter: 0,
        });
        ThreadRead::new(0, 7, true, activity)
    }

    fn sleep(standing: &Standing) -> Option<(u64, u64)> {
        let sleep = standing.get(7)?.sleep()?;
        Some((sleep.since / MS, sleep.until / MS))
    }

    #[test]
    fn a_sleep_lasts_as_long_as_switches_say() {
        let mut standing = Standing::default();
        standing.note(&read(1), 100 * MS, || Some(50 * MS));
        standing.note(&read(1), 900 * MS, || Some(50 * MS));
        assert_eq!(sleep(&standing), Some((50, 900)));
        standing.ask_records(950 * MS, |_| Some(50 * MS));
        assert_eq!(sleep(&standing), Some((50, 950)));
        // It has run since it was seen last: no sample says where it is.
        standing.ask_records(990 * MS, |_| Some(970 * MS));
        assert_eq!(sleep(&standing), Some((50, 950)));
        // It did run, and is back in the same call.
        standing.note(&read(1), 1_000 * MS, || Some(970 * MS));
        assert_eq!(sleep(&standing), Some((970, 1_000)));
        assert_eq!(standing.get(7).map(|stand| stand.first / MS), Some(100));
        // Another wait.
        standing.note(&read(2), 1_100 * MS, || None);
        assert_eq!(sleep(&standing), None);
        let running = ThreadRead::new(0, 7, true, Activity::OnCpu);
        standing.note(&running, 1_200 * MS, || None);
        assert!(standing.get(7).is_none());
    }

    #[test]
    fn a_thread_that_comes_back_to_one_call_is_mostly_there() {
        let running = ThreadRead::new(0, 7, true, Activity::OnCpu);
        let mut standing = Standing::default();
        for at in 0..100 {
            let read = if at % 20 == 19 { running } else { read(1) };
            standing.note(&read, at * MS, || Some(at * MS));
        }
        let stand = standing.get(7).unwrap();
        assert!(stand.mostly_here() && stand.first == 0);
        assert_eq!(stand.sleep(), None);
    }

    #[test]
    fn without_records_the_number_of_switches_tells() {
        let mut standing = Standing::default();
        standing.note(&read(1), 100 * MS, || None);
        assert!(standing.to_count(200 * MS, 9, false).is_empty());
        standing.note(&read(1), 400 * MS, || None);
        assert_eq!(standing.to_count(400 * MS, 9, false), [7]);
        assert!(standing.to_count(400 * MS, 0, false).is_empty());
        standing.count(7, 33, 410 * MS);
        assert!(standing.to_count(500 * MS, 9, false).is_empty());
        standing.count(7, 33, 900 * MS);
        assert_eq!(sleep(&standing), Some((410, 900)));
        standing.count(7, 34, 1_200 * MS);
        assert_eq!(sleep(&standing), Some((1_200, 1_200)));
        // Records of switches were lost for a while, which the number bridges.
        standing.note(&read(1), 1_300 * MS, || Some(1_250 * MS));
        standing.count(7, 34, 1_400 * MS);
        assert_eq!(sleep(&standing), Some((1_200, 1_400)));
    }

    #[test]
    fn a_thread_that_waits_for_input_is_counted_twice() {
        let activity = Activity::Asleep(SystemCall {
            number: libc::SYS_read as u32,
            arguments: [3, 0, 1, 0, 0, 0],
            stack_pointer: 0,
            program_counter: 0,
        });
        let mut standing = Standing::default();
        standing.note(&ThreadRead::new(0, 8, true, activity), 100 * MS, || None);
        standing.note(&read(1), 100 * MS, || None);
        assert_eq!(standing.to_count(400 * MS, 9, false), [7, 8]);
        standing.count(8, 33, 400 * MS);
        assert_eq!(standing.get(8).and_then(Stand::ran_between_counts), None);
        assert_eq!(standing.to_count(900 * MS, 9, false), [7]);
        assert_eq!(standing.to_count(900 * MS, 9, true), [7, 8]);
        standing.count(8, 33, 900 * MS);
        assert_eq!(standing.get(8).and_then(Stand::ran_between_counts), Some(false));
        standing.count(8, 35, 990 * MS);
        assert_eq!(standing.get(8).and_then(Stand::ran_between_counts), Some(true));
    }

    #[test]
    fn threads_are_kept_in_bounds() {
        let mut standing = Standing::default();
        for tid in 0..30_000 {
            let read = ThreadRead::new(0, tid, true, read(1).activity);
            standing.note(&read, 1, || None);
        }
        assert_eq!(standing.threads.len(), MAX_THREADS);
        standing.retain(&[1, 2].into());
        assert_eq!(standing.threads.len(), 2);
    }
}
