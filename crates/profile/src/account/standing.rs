//! Threads that stay in one wait: since when they wait, and if they have run meanwhile.
//!
//! If samples show a thread in one system call, with the same arguments and stack pointer, they may
//! have seen one sleep or many. Records of context switches show which, and so does the kernel's
//! count of the thread's switches: if two readings of the count are equal, the thread slept all the
//! time between them.

use std::collections::{HashMap, HashSet};

use threadtoll_stacks::process::Activity;

use crate::futex::FutexWait;
use crate::sample::ThreadRead;

const MAX_THREADS: usize = 20_000;

/// A thread's switches are counted only after this many nanoseconds in one call.
const WORTH_COUNTING_NS: u64 = 250_000_000;

/// A thread is mostly in a call if at most one in this many samples finds the thread on a CPU.
const AWAKE: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sleep {
    pub(crate) since: u64,
    pub(crate) until: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stand {
    pub(crate) activity: Activity,
    pub(crate) first: u64,
    pub(crate) last: u64,
    samples: u32,
    awake: u32,
    pub(crate) stack: Option<u32>,
    recorded: Option<Sleep>,
    /// Latest reading of the thread's number of switches, and the sleep inferred from equal
    /// readings.
    counted: Option<(u64, Sleep)>,
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

    pub(crate) fn mostly_here(&self) -> bool {
        self.awake <= self.samples / AWAKE
    }

    pub(crate) fn is_in_place_since(&self, time: u64) -> bool {
        self.first <= time && self.awake == 0
    }

    /// Inferred from equal readings of the thread's number of switches.
    pub(crate) fn counted_sleep(&self) -> Option<Sleep> {
        self.counted.map(|(_, sleep)| sleep)
    }

    pub(crate) fn ran_between_counts(&self) -> Option<bool> {
        let sleep = self.counted_sleep()?;
        (self.ran || sleep.since < sleep.until).then_some(self.ran)
    }

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

#[derive(Debug, Default)]
pub(crate) struct Standing {
    threads: HashMap<u32, Stand>,
}

impl Standing {
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

    /// Looks up since when each thread has not run, in records of switches up to `at`.
    pub(crate) fn ask_records(&mut self, at: u64, still_since: impl Fn(u32) -> Option<u64>) {
        for (&tid, stand) in &mut self.threads {
            // A thread that has run since its last sample may have left the call.
            if let Some(since) =
                still_since(tid).filter(|&since| since <= stand.last && stand.last <= at)
            {
                stand.record(since, at);
            }
        }
    }

    /// Returns up to `most` threads that have not moved for a while but may have run unnoticed.
    /// Threads on a futex come first, beginning with the oldest reading of their switches. The
    /// switches of other threads are read only once, and once more at the end (`last`).
    pub(crate) fn to_count(&self, now: u64, most: usize, last: bool) -> Vec<u32> {
        let worth = |stand: &&Stand| {
            let told = stand.sleep().is_some_and(|sleep| sleep.until + WORTH_COUNTING_NS > now);
            // Threads that sleep for a set time or wait for input cannot be part of a deadlock.
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

    pub(crate) fn count(&mut self, tid: u32, switches: u64, at: u64) {
        if let Some(stand) = self.threads.get_mut(&tid) {
            stand.count(switches, at);
        }
    }
}

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
        standing.ask_records(990 * MS, |_| Some(970 * MS));
        assert_eq!(sleep(&standing), Some((50, 950)));
        standing.note(&read(1), 1_000 * MS, || Some(970 * MS));
        assert_eq!(sleep(&standing), Some((970, 1_000)));
        assert_eq!(standing.get(7).map(|stand| stand.first / MS), Some(100));
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
