//! States of threads over time, for a strip chart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Ns, Text};

/// States of a program's threads over time, as numbers of samples. In a profile's file, a trace is
/// the line before the profile of the same moment; only the last complete trace is used.
///
/// Time is divided into columns of equal width. A row lists the number of samples in each column,
/// without zeros at the end. A thread has one row per state, in the order of `states`, without
/// empty rows at the end. A thread has no samples in a column if none were taken then, or if the
/// thread was not alive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// Id of the run.
    pub run: Text,
    /// Beginning of the first column, in nanoseconds on `CLOCK_MONOTONIC`.
    pub start_ns: Ns,
    /// Width of a column, in nanoseconds.
    pub column_ns: Ns,
    /// Number of columns, at most 600.
    pub columns: u32,
    /// The states that were seen, in the order of the rows.
    pub states: Vec<ThreadState>,
    /// At most 64 threads, beginning with those that waited most for locks. A thread may be added
    /// some time after its first sample; the samples before that are part of `others`.
    pub threads: Vec<TracedThread>,
    /// Samples of all other threads together, one row per state.
    pub others: Vec<Vec<u32>>,
    /// Holders of the costliest lock; null if no holder was seen.
    pub holders: Option<LockHolders>,
}

/// State of a thread in a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum ThreadState {
    /// On a CPU.
    Running,
    /// On a CPU or waiting for one; the samples do not show which.
    OnCpu,
    /// Waiting for a CPU.
    Runnable,
    /// Waiting for a lock.
    Lock {
        /// PID of the process under which the lock is listed.
        pid: u32,
        /// Number of the lock in that process.
        lock: u32,
        /// Name of the lock.
        name: Text,
    },
    /// Waiting for a lock other than the six for which threads wait most.
    OtherLock,
    /// Waiting for input or output.
    Io,
    /// Waiting for other threads, for an unknown reason.
    Threads,
    /// Waiting for work.
    Idle,
    /// Sleeping for a time.
    Asleep,
    /// In another system call, or in an unknown state.
    Unknown,
}

/// States of a thread over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TracedThread {
    /// PID of the thread's process.
    pub pid: u32,
    /// Thread id (TID).
    pub tid: u32,
    /// Name of the thread.
    pub name: Text,
    /// Numbers of samples, one row per state.
    pub samples: Vec<Vec<u32>>,
}

/// Holders of a lock over time, in the samples in which a thread waited for the lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LockHolders {
    /// PID of the process under which the lock is listed.
    pub pid: u32,
    /// Number of the lock in that process.
    pub lock: u32,
    /// Name of the lock.
    pub name: Text,
    /// At most eight threads, beginning with the most frequent holder.
    pub threads: Vec<HoldingThread>,
    /// For each column, number of samples in which a thread that is not listed held the lock.
    pub others: Vec<u32>,
    /// For each column, number of samples in which no holder was seen.
    pub not_seen: Vec<u32>,
}

/// A thread that held a lock, and its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HoldingThread {
    /// Thread id (TID).
    pub tid: u32,
    /// Name of the thread.
    pub name: Text,
    /// For each column, number of samples in which the thread held the lock.
    pub samples: Vec<u32>,
}

impl Trace {
    /// Maximum number of columns.
    pub const MAX_COLUMNS: u32 = 600;
    /// Maximum number of threads with rows of their own.
    pub const MAX_THREADS: usize = 64;
    /// Maximum number of locks with a state of their own.
    pub const MAX_LOCKS: usize = 6;
    /// Maximum number of holders of the costliest lock that are listed.
    pub const MAX_HOLDERS: usize = 8;
    /// Maximum length of a trace's line, in bytes.
    pub const MAX_BYTES: usize = 1 << 20;
    /// Maximum number of states: one for each lock, and nine without a lock.
    const MAX_STATES: usize = 9 + Trace::MAX_LOCKS;

    /// Merges columns in pairs. The total number of samples per state stays the same.
    pub fn halve(&mut self) {
        let of_threads = self.threads.iter_mut().flat_map(|thread| &mut thread.samples);
        let of_holders = self.holders.iter_mut().flat_map(|holders| {
            let threads = holders.threads.iter_mut().map(|thread| &mut thread.samples);
            threads.chain([&mut holders.others, &mut holders.not_seen])
        });
        for row in of_threads.chain(&mut self.others).chain(of_holders) {
            let sum = |pair: &[u32]| pair.iter().copied().fold(0, u32::saturating_add);
            *row = row.chunks(2).map(sum).collect();
        }
        self.columns = self.columns.div_ceil(2);
        self.column_ns = Ns::new(self.column_ns.get() * 2.0);
    }

    /// Merges columns until the line is at most [`Trace::MAX_BYTES`] long.
    #[must_use]
    pub fn within_limit(mut self) -> Trace {
        /// Bytes kept free for the run's id and the schema's name, which are added later.
        const ROOM: usize = 1 << 10;
        let length = |trace: &Trace| serde_json::to_string(trace).map_or(0, |text| text.len());
        while self.columns > 1 && length(&self) + ROOM > Trace::MAX_BYTES {
            self.halve();
        }
        self
    }

    pub(crate) fn validate(&self) -> Result<(), String> {
        let most = |what: &str, count: usize, most: usize| match count > most {
            true => Err(format!("it has {count} {what}, but at most {most} are allowed")),
            false => Ok(()),
        };
        let columns = self.columns as usize;
        most("columns", columns, Trace::MAX_COLUMNS as usize)?;
        most("states", self.states.len(), Trace::MAX_STATES)?;
        most("threads", self.threads.len(), Trace::MAX_THREADS)?;
        let rows = |samples: &[Vec<u32>]| {
            most("rows of a thread", samples.len(), self.states.len())?;
            samples.iter().try_for_each(|row| most("numbers in a row", row.len(), columns))
        };
        self.threads.iter().try_for_each(|thread| rows(&thread.samples))?;
        rows(&self.others)?;
        let Some(holders) = &self.holders else { return Ok(()) };
        most("holders", holders.threads.len(), Trace::MAX_HOLDERS)?;
        let of_threads = holders.threads.iter().map(|thread| &thread.samples);
        let mut of_holders = of_threads.chain([&holders.others, &holders.not_seen]);
        of_holders.try_for_each(|row| most("numbers in a row", row.len(), columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(columns: u32, samples: Vec<Vec<u32>>) -> Trace {
        let thread = |tid| TracedThread { pid: 7, tid, name: "w".into(), samples: samples.clone() };
        Trace {
            run: "1".into(),
            start_ns: Ns::new(5.0),
            column_ns: Ns::new(3.0),
            columns,
            states: vec![ThreadState::Running, ThreadState::Idle],
            threads: (0..64).map(thread).collect(),
            others: samples.clone(),
            holders: Some(LockHolders {
                pid: 7,
                lock: 1,
                name: "lock".into(),
                threads: vec![HoldingThread { tid: 0, name: "w".into(), samples: vec![1, 2, 4] }],
                others: vec![u32::MAX, 1],
                not_seen: Vec::new(),
            }),
        }
    }

    #[test]
    fn joined_columns_keep_their_samples() {
        let mut trace = trace(5, vec![vec![1, 2, 3, 4, 5], vec![], vec![7]]);
        trace.halve();
        assert_eq!(trace.threads[3].samples, [vec![3, 7, 5], vec![], vec![7]]);
        assert_eq!(trace.others, trace.threads[0].samples);
        assert_eq!((trace.columns, trace.column_ns.get()), (3, 6.0));
        let holders = trace.holders.unwrap();
        assert_eq!(holders.threads[0].samples, [3, 4]);
        assert_eq!((holders.others, holders.not_seen), (vec![u32::MAX], vec![]));
    }

    #[test]
    fn a_line_that_would_be_too_long_has_fewer_columns() {
        let busy = trace(600, vec![vec![1_234_567; 600]; 4]);
        let kept = busy.clone().within_limit();
        assert_eq!(kept.columns, 300);
        assert!(serde_json::to_string(&kept).unwrap().len() < Trace::MAX_BYTES);
        let sum = |trace: &Trace| trace.others.iter().flatten().map(|&n| u64::from(n)).sum::<u64>();
        assert_eq!(sum(&kept), sum(&busy));
        assert_eq!(trace(600, vec![vec![3; 600]]).within_limit().columns, 600);
    }

    #[test]
    fn what_is_not_within_the_limits_is_refused() {
        assert_eq!(trace(3, vec![vec![1, 2, 3], vec![]]).validate(), Ok(()));
        let says = |trace: Trace, what: &str| {
            let why = trace.validate().unwrap_err();
            assert!(why.contains(what), "{why}");
        };
        says(trace(601, Vec::new()), "601 columns, but at most 600 are allowed");
        says(trace(3, vec![vec![1, 2, 3, 4]]), "4 numbers in a row, but at most 3 are allowed");
        says(
            trace(3, vec![vec![], vec![], vec![]]),
            "3 rows of a thread, but at most 2 are allowed",
        );
        let mut many = trace(3, Vec::new());
        many.threads.push(many.threads[0].clone());
        says(many, "65 threads, but at most 64 are allowed");
        let mut long = trace(3, Vec::new());
        long.holders.as_mut().unwrap().not_seen = vec![0; 4];
        says(long, "4 numbers in a row, but at most 3 are allowed");
        let mut held = trace(3, Vec::new());
        let holders = held.holders.as_mut().unwrap();
        holders.threads = vec![holders.threads[0].clone(); 9];
        says(held, "9 holders, but at most 8 are allowed");
    }
}
