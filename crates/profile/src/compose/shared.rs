//! Locks in memory that several processes share. Each lock is listed once, under the process with
//! the most waiters.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use threadtoll_record::Ratio;
use threadtoll_record::profile::{Interval, Lock, Process, ThreadShare};
use threadtoll_stacks::image::SharedPlace;

/// Locks in shared memory, each with the indices of the processes that use it, and its number in
/// each.
#[derive(Debug, Default)]
pub(super) struct SharedLocks {
    locks: BTreeMap<SharedPlace, Vec<(usize, u32)>>,
}

#[derive(Debug)]
struct LockInProcess {
    process: usize,
    pid: u32,
    lock: Lock,
    /// Mean number of waiters in this process, over the longest time for which any process was
    /// observed.
    queue: f64,
    seconds: f64,
}

impl SharedLocks {
    pub(super) fn add(&mut self, place: SharedPlace, process: usize, lock: u32) {
        self.locks.entry(place).or_default().push((process, lock));
    }

    /// Merges the locks that several processes share. Maps each lock that was merged (process and
    /// number) to the lock that replaces it.
    pub(super) fn put_together(
        self,
        processes: &mut [Process],
    ) -> HashMap<(usize, u32), (usize, u32)> {
        let mut parts_of = HashMap::new();
        // A process may have mapped the memory twice, or may have executed another program since.
        let pids = |of: &[(usize, u32)]| {
            let pids = of.iter().filter_map(|&(process, _)| Some(processes.get(process)?.pid));
            pids.collect::<BTreeSet<u32>>().len()
        };
        let of_several: Vec<Vec<(usize, u32)>> =
            self.locks.into_values().filter(|of| pids(of) > 1).collect();
        for of in of_several {
            let mut parts: Vec<LockInProcess> =
                of.iter().filter_map(|&(process, lock)| take(processes, process, lock)).collect();
            let longest = parts.iter().map(|part| part.seconds).fold(0.0, f64::max);
            for part in &mut parts {
                let mean = part.lock.queue_mean.map_or(0.0, |mean| mean.get());
                part.queue = if longest > 0.0 { mean * part.seconds / longest } else { mean };
            }
            parts.sort_by(|one, other| other.queue.total_cmp(&one.queue));
            if let Some((process, lock)) = merged(parts) {
                parts_of.extend(of.into_iter().map(|part| (part, (process, lock.id))));
                processes[process].locks.push(lock);
                let by_cost = |one: &Lock, other: &Lock| {
                    let (one, other) = (one.cost(), other.cost());
                    other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1))
                };
                processes[process].locks.sort_by(by_cost);
            }
        }
        parts_of
    }
}

fn take(processes: &mut [Process], process: usize, lock: u32) -> Option<LockInProcess> {
    let of = processes.get_mut(process)?;
    let at = of.locks.iter().position(|other| other.id == lock)?;
    let seconds = of.seconds.map_or(0.0, |seconds| seconds.get());
    let lock = of.locks.remove(at);
    Some(LockInProcess { process, pid: of.pid, lock, queue: 0.0, seconds })
}

fn merged(parts: Vec<LockInProcess>) -> Option<(usize, Lock)> {
    let first = parts.first()?;
    let pids: BTreeSet<u32> = parts.iter().map(|part| part.pid).collect();
    let queue: f64 = parts.iter().map(|part| part.queue).sum();
    let side = |of: fn(&Interval<Ratio>, f64) -> f64| {
        let sides = parts.iter().filter_map(|part| {
            let mean = part.lock.queue_mean?.get();
            let part_of = if mean > 0.0 { part.queue / mean } else { 1.0 };
            Some((of(part.lock.queue_mean_interval95.as_ref()?, mean) * part_of).powi(2))
        });
        sides.sum::<f64>().sqrt()
    };
    let below = side(|interval, mean| mean - interval.low().get());
    let above = side(|interval, mean| interval.high().get() - mean);
    let threads: u32 = parts.iter().map(|part| part.lock.threads).sum();
    let alive: u32 = parts.iter().filter_map(|part| Some(part.lock.threads_interval?.high())).sum();
    let known = parts.iter().all(|part| part.lock.queue_mean.is_some());
    // Each process is weighted with the time for which it lived.
    let gains = parts.iter().map(|part| Some(part.lock.gain?.get() * part.seconds));
    let gain: Option<f64> = gains.sum();
    let seconds: f64 = parts.iter().map(|part| part.seconds).sum();
    let lock = Lock {
        threads,
        threads_interval: Interval::new(threads, alive.max(threads)),
        queue_mean: known.then(|| Ratio::new(queue)),
        queue_mean_interval95: Interval::new(
            Ratio::new((queue - below).max(0.0)),
            Ratio::new(queue + above),
        )
        .filter(|_| known),
        queue_is_lower_bound: parts.iter().any(|part| part.lock.queue_is_lower_bound),
        // More threads may have waited at once in all processes together than in any one.
        seen_in_part: true,
        gain: gain.filter(|_| seconds > 0.0).map(|gain| Ratio::new(gain / seconds)),
        gain_interval95: None,
        takes_turns: parts.iter().any(|part| part.lock.takes_turns),
        released_by_others: parts.iter().any(|part| part.lock.released_by_others),
        efficiency: None,
        efficiency_interval95: None,
        holders: shares(&parts, first.pid, |lock| &lock.holders),
        waiters: shares(&parts, first.pid, |lock| &lock.waiters),
        // The models cover the threads of a single process.
        predicted: Vec::new(),
        what_if: Vec::new(),
        shared_by: pids.into_iter().collect(),
        ..first.lock.clone()
    };
    Some((first.process, lock))
}

/// Threads of all processes in one role, as reported for the process with PID `seen_from`. The
/// shares in a process are weighted with the process's number of waiters.
fn shares(
    parts: &[LockInProcess],
    seen_from: u32,
    of: fn(&Lock) -> &[ThreadShare],
) -> Vec<ThreadShare> {
    let mut all: HashMap<u32, ThreadShare> = HashMap::new();
    let weights: f64 = parts.iter().filter(|part| !of(&part.lock).is_empty()).map(weight).sum();
    for part in parts {
        for thread in of(&part.lock) {
            let share = thread.share.get() * weight(part) / weights;
            let pid = Some(thread.pid.unwrap_or(part.pid)).filter(|&pid| pid != seen_from);
            match all.get_mut(&thread.tid) {
                Some(known) => {
                    known.share = (known.share.get() + share).min(1.0).into();
                    known.interval95 = None;
                }
                None => {
                    let share = share.min(1.0).into();
                    let thread = ThreadShare { pid, share, interval95: None, ..thread.clone() };
                    all.insert(thread.tid, thread);
                }
            }
        }
    }
    let mut all: Vec<ThreadShare> = all.into_values().collect();
    all.sort_by(|one, other| {
        other.share.get().total_cmp(&one.share.get()).then(one.tid.cmp(&other.tid))
    });
    all
}

fn weight(part: &LockInProcess) -> f64 {
    part.queue.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use threadtoll_record::profile::{Address, LockKind};

    use super::super::locks::not_judged;
    use super::*;

    fn holder(tid: u32, pid: Option<u32>, share: f64) -> ThreadShare {
        ThreadShare {
            tid,
            name: "writer".into(),
            pid,
            ended: false,
            share: share.into(),
            interval95: None,
            inferred: false,
        }
    }

    fn part(
        process: usize,
        pid: u32,
        queue: f64,
        seconds: f64,
        held_by: &[ThreadShare],
    ) -> LockInProcess {
        let lock = Lock {
            queue_mean: Some(queue.into()),
            queue_mean_interval95: Interval::new((queue - 0.3).into(), (queue + 0.4).into()),
            gain: Some(queue.into()),
            holders: held_by.to_vec(),
            ..not_judged(7, LockKind::Mutex, Address(0x1000), 2, 3)
        };
        LockInProcess { process, pid, lock, queue: queue * seconds / 10.0, seconds }
    }

    #[test]
    fn processes_wait_together_for_a_lock_that_they_share() {
        let parts = vec![
            part(4, 50, 2.0, 10.0, &[holder(51, None, 0.5), holder(60, Some(60), 0.5)]),
            part(5, 60, 1.0, 5.0, &[holder(60, None, 1.0)]),
        ];
        let (process, lock) = merged(parts).unwrap();
        assert_eq!((process, lock.threads, &lock.shared_by[..]), (4, 4, &[50, 60][..]));
        assert_eq!(lock.queue_mean.unwrap().get(), 2.5);
        let within = lock.queue_mean_interval95.unwrap();
        assert!((within.low().get() - (2.5 - 0.3_f64.hypot(0.15))).abs() < 1e-9, "{within:?}");
        assert!((within.high().get() - (2.5 + 0.4_f64.hypot(0.2))).abs() < 1e-9, "{within:?}");
        assert!((lock.gain.unwrap().get() - 25.0 / 15.0).abs() < 1e-9);
        let held_by: Vec<(u32, Option<u32>, f64)> = lock
            .holders
            .iter()
            .map(|it| (it.tid, it.pid, (it.share.get() * 100.0).round()))
            .collect();
        assert_eq!(held_by, [(60, Some(60), 60.0), (51, None, 40.0)]);
    }
}
