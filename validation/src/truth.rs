//! The account that programs keep, read: what was true of a lock over an interval.

use crate::account::{REACQUIRED, Record, SHARED};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// An acquisition by a thread. Times that are still to come are `u64::MAX`.
#[derive(Clone, Copy, Debug)]
pub struct Acquisition {
    /// The thread.
    pub tid: u32,
    /// The lock.
    pub lock: u32,
    /// Shared with other readers.
    pub shared: bool,
    /// `None` if a condition variable acquired it.
    pub asked: Option<u64>,
    /// Acquired.
    pub acquired: u64,
    /// Released.
    pub released: u64,
    /// CPU time used while held; 0 if that is not recorded.
    pub cpu: u64,
}

/// Reads all threads' files.
pub fn read_folder(folder: &Path) -> io::Result<Vec<Acquisition>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let tid = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        let Some(tid) = tid else { continue };
        read_thread(tid, &path, &mut all)?;
    }
    Ok(all)
}

fn read_thread(tid: u32, path: &Path, all: &mut Vec<Acquisition>) -> io::Result<()> {
    let mut file = std::fs::File::open(path)?;
    // The file is sparse and mostly empty: it is read up to the first empty record.
    let mut chunk = vec![0; 4096 * size_of::<Record>()];
    loop {
        io::Read::read_exact(&mut file, &mut chunk)?;
        for record in chunk.chunks_exact(size_of::<Record>()) {
            let word = |i: usize| u64::from_ne_bytes(record[8 * i..8 * i + 8].try_into().unwrap());
            let half = |i: usize| u32::from_ne_bytes(record[4 * i..4 * i + 4].try_into().unwrap());
            let (asked, acquired, released) = (word(0), word(1), word(2));
            if asked == 0 && acquired == 0 {
                return Ok(());
            }
            let later = |at: u64| if at == 0 { u64::MAX } else { at };
            let mode = half(9);
            all.push(Acquisition {
                tid,
                lock: half(8),
                shared: mode == SHARED,
                asked: (mode != REACQUIRED).then_some(asked),
                acquired: later(acquired),
                released: later(released),
                cpu: word(3),
            });
        }
    }
}

/// Threads whose waiting counts, and the holds that keep them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    /// All threads, kept out by any hold.
    Any,
    /// Readers, kept out by writers.
    Shared,
    /// Writers, kept out by any hold.
    Exclusive,
}

impl Modes {
    fn waits(self, acquisition: &Acquisition) -> bool {
        match self {
            Modes::Any => true,
            Modes::Shared => acquisition.shared,
            Modes::Exclusive => !acquisition.shared,
        }
    }

    fn is_kept_out_by(self, acquisition: &Acquisition) -> bool {
        self != Modes::Shared || !acquisition.shared
    }
}

/// Figures of a lock over an interval, by the program's own account.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Realised {
    /// Share of the time in which a hold kept those out that count.
    pub held_share: f64,
    /// Threads waiting, averaged over time. `None` if some waited in a condition variable until
    /// they had the lock again: nobody knows when they began to wait for the lock itself.
    pub queue_mean: Option<f64>,
    /// Most threads that waited at once, for longer than no time.
    pub queue_max: u32,
    /// Threads that asked for it or held it.
    pub users: usize,
    /// Holders by the time for which they held it while somebody waited, most first, as shares.
    pub holders: Vec<(u32, f64)>,
    /// Of the time in which somebody waited: share in which nobody held it.
    pub free_while_waited: f64,
    /// Of the time in which somebody waited and somebody held it: share in which the holder was on
    /// a CPU, if it used its CPU time evenly. `None` if CPU time is not recorded.
    pub on_cpu: Option<f64>,
    /// Acquisitions that ended in the interval.
    pub acquisitions: usize,
}

/// Works out what was true of a lock between two instants.
pub fn realised(all: &[Acquisition], lock: u32, modes: Modes, from: u64, to: u64) -> Realised {
    let mut truth = Realised::default();
    let mut changes: Vec<(u64, Change)> = Vec::new();
    let (mut users, mut unknown_queue) = (BTreeSet::new(), false);
    // CPU time per time held, of holds that have ended.
    let mut busy: BTreeMap<(u32, u64), f64> = BTreeMap::new();
    for each in all.iter().filter(|each| each.lock == lock) {
        let began = each.asked.unwrap_or(each.acquired);
        if began >= to || each.released <= from {
            continue;
        }
        let waits = modes.waits(each);
        if waits {
            users.insert(each.tid);
            unknown_queue |= each.asked.is_none();
        }
        let clip = |at: u64| at.clamp(from, to);
        let (acquired, released) = (clip(each.acquired), clip(each.released));
        if waits && clip(began) < acquired {
            changes.push((clip(began), Change::Waits));
            changes.push((acquired, Change::WaitsNoLonger));
        }
        if modes.is_kept_out_by(each) && acquired < released {
            changes.push((acquired, Change::Holds(each.tid)));
            changes.push((released, Change::HoldsNoLonger(each.tid)));
        }
        if each.released < to {
            truth.acquisitions += usize::from(waits);
            if each.cpu > 0 {
                let length = each.released - each.acquired;
                busy.insert((each.tid, acquired), each.cpu as f64 / length as f64);
            }
        }
    }
    changes.sort_unstable();

    let (mut waiting, mut holding): (u32, Vec<(u32, u64)>) = (0, Vec::new());
    let (mut on_cpu, mut off_or_on) = (0.0, 0.0);
    let (mut held, mut waited, mut contended, mut contended_free) = (0u64, 0u64, 0u64, 0u64);
    let mut holders: BTreeMap<u32, u64> = BTreeMap::new();
    let mut last = from;
    for (at, change) in changes {
        let span = at - last;
        last = at;
        if span > 0 {
            truth.queue_max = truth.queue_max.max(waiting);
        }
        waited += u64::from(waiting) * span;
        held += if holding.is_empty() { 0 } else { span };
        if waiting > 0 {
            contended += span;
            contended_free += if holding.is_empty() { span } else { 0 };
            for holder in &holding {
                *holders.entry(holder.0).or_default() += span;
                if let Some(share) = busy.get(holder) {
                    on_cpu += share * span as f64;
                    off_or_on += span as f64;
                }
            }
        }
        match change {
            Change::Waits => waiting += 1,
            Change::WaitsNoLonger => waiting -= 1,
            Change::Holds(tid) => holding.push((tid, at)),
            Change::HoldsNoLonger(tid) => {
                let at = holding.iter().position(|holder| holder.0 == tid);
                holding.swap_remove(at.expect("a hold ends after it began"));
            }
        }
    }
    let span = (to - from) as f64;
    truth.held_share = held as f64 / span;
    truth.queue_mean = (!unknown_queue).then_some(waited as f64 / span);
    truth.users = users.len();
    let charged: u64 = holders.values().sum();
    truth.holders =
        holders.into_iter().map(|(tid, ns)| (tid, ns as f64 / charged as f64)).collect();
    truth.holders.sort_by(|a, b| b.1.total_cmp(&a.1));
    truth.free_while_waited =
        if contended == 0 { 0.0 } else { contended_free as f64 / contended as f64 };
    truth.on_cpu = (off_or_on > 0.0).then(|| on_cpu / off_or_on);
    truth
}

/// Ends sort before beginnings, so that a hand-over in the same instant is not counted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    HoldsNoLonger(u32),
    WaitsNoLonger,
    Holds(u32),
    Waits,
}

/// Numbers of holders and waiters as steps over time.
#[derive(Clone, Debug, Default)]
pub struct Steps(Vec<(u64, i32, i32)>);

impl Steps {
    /// Steps of a lock.
    pub fn new(all: &[Acquisition], lock: u32) -> Steps {
        let mut steps = Vec::new();
        for each in all.iter().filter(|each| each.lock == lock) {
            steps.push((each.acquired, 1, 0));
            steps.push((each.released, -1, 0));
            if let Some(asked) = each.asked {
                steps.push((asked, 0, 1));
                steps.push((each.acquired, 0, -1));
            }
        }
        steps.sort_unstable();
        let (mut holding, mut waiting) = (0, 0);
        for step in &mut steps {
            (holding, waiting) = (holding + step.1, waiting + step.2);
            (step.1, step.2) = (holding, waiting);
        }
        Steps(steps)
    }

    /// Numbers of holders and waiters at an instant.
    pub fn at(&self, at: u64) -> (i32, i32) {
        let after = self.0.partition_point(|step| step.0 <= at);
        after.checked_sub(1).map_or((0, 0), |last| (self.0[last].1, self.0[last].2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(tid: u32, asked: u64, acquired: u64, released: u64) -> Acquisition {
        Acquisition { tid, lock: 0, shared: false, asked: Some(asked), acquired, released, cpu: 0 }
    }

    #[test]
    fn two_threads_in_turn() {
        // Thread 1 holds 10..40, thread 2 waits 20..50 and holds 50..80.
        let all = [used(1, 10, 10, 40), used(2, 20, 50, 80)];
        let truth = realised(&all, 0, Modes::Any, 0, 100);
        assert_eq!(truth.held_share, 0.6);
        assert_eq!(truth.queue_mean, Some(0.3));
        assert_eq!((truth.queue_max, truth.users, truth.acquisitions), (1, 2, 2));
        assert_eq!(truth.holders, [(1, 1.0)]);
        assert!((truth.free_while_waited - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn an_interval_cuts_holds_and_waits() {
        let all = [used(1, 10, 10, 40), used(2, 20, 50, u64::MAX), used(3, 60, u64::MAX, u64::MAX)];
        let truth = realised(&all, 0, Modes::Any, 30, 70);
        assert_eq!(truth.held_share, 30.0 / 40.0);
        assert_eq!(truth.queue_mean, Some(30.0 / 40.0));
        assert_eq!(truth.users, 3);
        assert_eq!(realised(&all, 0, Modes::Any, 0, 10).users, 0);
    }

    #[test]
    fn cpu_time_counts_while_somebody_waits() {
        // Thread 1 computes for all of its hold, thread 2 for half of it, while thread 3 waits for
        // 10 and then for 30.
        let computed = |cpu, acquisition| Acquisition { cpu, ..acquisition };
        let all = [
            computed(30, used(1, 0, 0, 30)),
            computed(15, used(2, 40, 40, 70)),
            used(3, 20, 30, 40),
            used(3, 40, 70, 75),
        ];
        let truth = realised(&all, 0, Modes::Any, 0, 100);
        assert_eq!(truth.on_cpu, Some((10.0 + 15.0) / 40.0));
    }

    #[test]
    fn readers_overlap() {
        let read = |tid, from, to| Acquisition { shared: true, ..used(tid, from, from, to) };
        let all = [read(1, 0, 50), read(2, 20, 60), used(3, 30, 60, 70)];
        // Readers are kept out by the writer, the writer by all.
        let readers = realised(&all, 0, Modes::Shared, 0, 100);
        assert_eq!((readers.held_share, readers.queue_mean), (0.1, Some(0.0)));
        assert_eq!((readers.users, readers.acquisitions), (2, 2));
        let writers = realised(&all, 0, Modes::Exclusive, 0, 100);
        assert!((writers.held_share - 0.7).abs() < 1e-12);
        assert_eq!((writers.queue_mean, writers.users), (Some(0.3), 1));
        let truth = realised(&all, 0, Modes::Any, 0, 100);
        assert!((truth.held_share - 0.7).abs() < 1e-12);
        assert_eq!(truth.queue_mean, Some(0.3));
        assert_eq!(truth.holders, [(2, 0.6), (1, 0.4)]);
    }

    #[test]
    fn a_queue_at_a_condition_variable_is_unknown() {
        let all = [Acquisition { asked: None, ..used(1, 0, 10, 20) }];
        let truth = realised(&all, 0, Modes::Any, 0, 100);
        assert_eq!((truth.held_share, truth.queue_mean), (0.1, None));
    }

    #[test]
    fn instants_average_to_the_shares() {
        let all = [used(1, 10, 10, 40), used(2, 20, 50, 80), used(3, 25, 85, 95)];
        let truth = realised(&all, 0, Modes::Any, 0, 100);
        let steps = Steps::new(&all, 0);
        let states: Vec<_> = (0..100).map(|at| steps.at(at)).collect();
        let held = states.iter().filter(|state| state.0 > 0).count();
        let waiting: i32 = states.iter().map(|state| state.1).sum();
        assert_eq!(truth.held_share, held as f64 / 100.0);
        assert_eq!(truth.queue_mean, Some(f64::from(waiting) / 100.0));
    }
}
