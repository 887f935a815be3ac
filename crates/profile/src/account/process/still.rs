//! Threads that have been in one wait since the process was first observed, and so take no part in
//! its work.
//!
//! If several samples show a thread in the same call, they may have seen one sleep or many. Records
//! of context switches show which. For threads whose switches are not recorded, the kernel's count
//! of their switches shows it. If the count was read for only some of these threads, they represent
//! the others.

use std::collections::HashMap;

use super::sleeps::Tally;
use crate::account::mean::{Mean, Stretch, Stretches};
use crate::account::standing::{Sleep, Stand, Standing};

const MAX_THREADS: usize = 20_000;

/// A thread's first wait must have begun by this time after the process's first sample, in
/// nanoseconds. It is not 0, because the recording of a thread's switches starts late.
const BEGINS_NS: u64 = 500_000_000;

/// A thread's first wait counts only if it lasts until this time after the process's first sample,
/// in nanoseconds. Nearly all threads wait for shorter times.
const COUNTS_NS: u64 = 750_000_000;

/// Minimum length of a first wait that counts, as a fraction of the observed time.
const LEAST: f64 = 0.5;

/// Minimum number of threads with counted switches that may represent the others.
const FEWEST: u32 = 8;

#[derive(Debug, Default)]
pub(super) struct Still {
    threads: HashMap<u32, OneWait>,
    last: u64,
}

#[derive(Debug, Default)]
struct OneWait {
    came: u64,
    until: u64,
    /// Time in this wait that would otherwise count as work.
    time: Tally,
    slept: bool,
    left: bool,
}

impl Still {
    /// Notes a sample of a thread at the time `at`. The process was first observed at `first`.
    /// Returns `true` if the thread may still be in its first wait.
    pub(super) fn note(&mut self, tid: u32, stand: Option<&Stand>, first: u64, at: u64) -> bool {
        self.last = self.last.max(at);
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&tid) {
            return false;
        }
        let new = OneWait { came: at, until: first, ..OneWait::default() };
        let wait = self.threads.entry(tid).or_insert(new);
        let Some(stand) = stand.filter(|stand| stand.is_in_place_since(wait.begins_by(first)))
        else {
            wait.left |= at > first + BEGINS_NS;
            return false;
        };
        let sleep = stand.sleep();
        wait.slept |= sleep.is_some_and(|sleep| is_first(sleep, first));
        // The first sleep has ended: the thread has run and returned to the same call.
        wait.left |= wait.slept && sleep.is_some_and(|sleep| !began(sleep, first));
        if !wait.left {
            wait.until = at;
        }
        !wait.left
    }

    pub(super) fn add(&mut self, tid: u32, threads: f64) {
        if let Some(wait) = self.threads.get_mut(&tid) {
            wait.time.now += threads;
        }
    }

    pub(super) fn end_sample(&mut self, times: u32) {
        self.threads.values_mut().for_each(|wait| wait.time.end_sample(times));
    }

    pub(super) fn end_stretch(&mut self, stretch: &Stretch) {
        self.threads.values_mut().for_each(|wait| wait.time.mean.end_stretch(stretch));
    }

    pub(super) fn settle(&mut self, standing: &Standing, first: u64) {
        for (&tid, wait) in &mut self.threads {
            wait.slept |= wait.is_one_sleep(standing.get(tid), first);
        }
    }

    /// Mean number of threads in their first wait, which would otherwise count as working.
    pub(super) fn threads(&self, standing: &Standing, first: u64, over: &Stretches) -> f64 {
        let mean = |mean: &Mean| mean.estimate(over).map_or(0.0, |threads| threads.mean);
        let seen_ns = self.last.saturating_sub(first) as f64;
        // Records of switches may show that a wait went on after the thread's last sample.
        let until = |wait: &OneWait, stand: Option<&Stand>| {
            let sleep = stand.filter(|_| !wait.left).and_then(Stand::sleep);
            sleep.map_or(wait.until, |sleep| sleep.until.max(wait.until))
        };
        let (mut slept, mut open, mut told) = (0.0, 0.0, [0_u32; 2]);
        for (&tid, wait) in &self.threads {
            let stand = standing.get(tid);
            let all_along = wait.slept || wait.is_one_sleep(stand, first);
            if let Some(ran) = stand.and_then(Stand::ran_between_counts) {
                told[usize::from(ran && !all_along)] += 1;
            }
            if ((until(wait, stand) - first) as f64) < LEAST * seen_ns {
                continue;
            }
            let known = stand.is_some_and(|stand| stand.ran_between_counts().is_some());
            match all_along {
                true => slept += mean(&wait.time.mean),
                false if !wait.left && !known => open += mean(&wait.time.mean),
                false => {}
            }
        }
        let [still, ran] = told.map(f64::from);
        let enough = told[0] + told[1] >= FEWEST;
        slept + if enough { open * still / (still + ran) } else { 0.0 }
    }

    pub(super) fn all(&self, standing: &Standing, first: u64) -> impl Iterator<Item = u32> {
        let is_still = move |tid: u32, wait: &OneWait| {
            !wait.left && (wait.slept || wait.is_one_sleep(standing.get(tid), first))
        };
        let still = self.threads.iter().filter(move |&(&tid, wait)| is_still(tid, wait));
        still.map(|(&tid, _)| tid)
    }
}

impl OneWait {
    /// Latest time at which the first wait may have begun. If each sample reads only some of the
    /// threads, a thread may first be seen late.
    fn begins_by(&self, first: u64) -> u64 {
        self.came.max(first + BEGINS_NS)
    }

    fn is_one_sleep(&self, stand: Option<&Stand>, first: u64) -> bool {
        let stand = stand.filter(|stand| stand.is_in_place_since(self.begins_by(first)));
        stand.is_some_and(|stand| {
            let seen_ns = stand.last.saturating_sub(first);
            let long = |sleep: Sleep| (sleep.until - sleep.since) as f64 >= LEAST * seen_ns as f64;
            let counted = seen_ns >= COUNTS_NS && stand.counted_sleep().is_some_and(long);
            counted || stand.sleep().is_some_and(|sleep| is_first(sleep, first))
        })
    }
}

fn began(sleep: Sleep, first: u64) -> bool {
    sleep.since <= first + BEGINS_NS
}

fn is_first(sleep: Sleep, first: u64) -> bool {
    began(sleep, first) && sleep.until >= first + COUNTS_NS
}

#[cfg(test)]
mod tests {
    use threadtoll_stacks::process::{Activity, SystemCall};

    use super::*;
    use crate::account::SampleCount;
    use crate::sample::ThreadRead;

    const MS: u64 = 1_000_000;

    fn reading(tid: u32, awake: bool) -> ThreadRead {
        let call = SystemCall {
            number: libc::SYS_read as u32,
            arguments: [u64::from(tid), 0, 1, 0, 0, 0],
            stack_pointer: 0,
            program_counter: 0,
        };
        let activity = if awake { Activity::OnCpu } else { Activity::Asleep(call) };
        ThreadRead::new(0, tid, true, activity)
    }

    /// Simulates 50 samples in 5 s. `slept_since` returns the recorded start of a thread's sleep,
    /// and `switches` the thread's number of switches. Returns the mean number of threads in their
    /// first wait, and the number of threads still in it.
    fn still(
        threads: u32,
        awake: impl Fn(u32, u64) -> bool,
        slept_since: impl Fn(u32, u64) -> Option<u64>,
        switches: impl Fn(u32, u64) -> Option<u64>,
    ) -> (f64, usize) {
        let (mut still, mut standing) = (Still::default(), Standing::default());
        let (mut stretches, mut samples) = (Stretches::default(), SampleCount::default());
        for sample in 0..50 {
            let at = sample * 100 * MS;
            for tid in 1..=threads {
                let read = reading(tid, awake(tid, at));
                standing.note(&read, at, || slept_since(tid, at));
                if still.note(tid, standing.get(tid), 0, at) {
                    still.add(tid, 1.0);
                }
                if let Some(switches) = switches(tid, at) {
                    standing.count(tid, switches, at);
                }
            }
            still.end_sample(1);
            samples.add(1);
        }
        still.end_stretch(&stretches.end_stretch(5.0, &samples).unwrap());
        let known = still.threads(&standing, 0, &stretches);
        let all = still.all(&standing, 0).count();
        still.settle(&standing, 0);
        assert_eq!(still.all(&Standing::default(), 0).count(), all);
        (known, all)
    }

    #[test]
    fn a_thread_in_one_wait_takes_no_part_in_the_work() {
        let asleep = |_, _| false;
        let nothing = |_, _| None;
        let one_sleep = |_, _| Some(0);
        assert_eq!(still(2, asleep, one_sleep, nothing), (2.0, 2));
        assert_eq!(still(2, asleep, |_, at| Some(at.saturating_sub(MS)), nothing).1, 0);
        assert_eq!(still(2, |tid, at| (tid, at) == (1, 1_000 * MS), one_sleep, nothing).1, 1);
        // The thread slept for 3 s, then worked.
        let (threads, left) = still(1, |_, at| at > 3_000 * MS, one_sleep, nothing);
        assert!((0.55..0.65).contains(&threads) && left == 0, "{threads}");
    }

    #[test]
    fn numbers_of_switches_tell_of_threads_that_are_not_followed() {
        let (asleep, nothing) = (|_, _| false, |_, _| None);
        let twice = |at: u64| at == 500 * MS || at == 4_900 * MS;
        let count = |tid: u32, at: u64| twice(at).then_some(if tid > 6 { at } else { 3 });
        assert_eq!(still(6, asleep, nothing, count), (6.0, 6));
        assert_eq!(still(8, asleep, nothing, count), (6.0, 6));
        assert_eq!(still(8, asleep, nothing, nothing), (0.0, 0));
        // The switches of eight threads were counted, and six of the eight slept. So three of the
        // other four are taken to have slept.
        let of_some = |tid, at| count(tid, at).filter(|_| tid <= 8);
        let (threads, sure) = still(12, asleep, nothing, of_some);
        assert!((threads - 9.0).abs() < 1e-9 && sure == 6, "{threads}");
    }
}
