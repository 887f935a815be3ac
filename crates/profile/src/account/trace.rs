//! States of threads over time, and holders of locks, in columns of equal width.
//!
//! The length of a run is not known in advance. When all columns are in use, adjacent columns are
//! merged in pairs, and each becomes twice as wide. Memory is bounded by the number of columns, of
//! threads with a row of their own, and of states in a column. A sample costs one lookup in a hash
//! table and a few comparisons. Memory is allocated only while new columns come into use.

use std::collections::HashMap;

use threadtoll_record::profile::Trace as Record;

use super::time::Time;

/// Initial width of a column. Most profiles last ten seconds, which use nearly all columns.
const FIRST_NS: u64 = 1_100_000;

/// Maximum number of states that a row counts separately in one column. Beyond it, all further
/// locks are counted together, and so are all further wait targets of other kinds.
const MAX_IN_COLUMN: usize = 8;

const MAX_RESTS: usize = 16;

/// Maximum number of locks whose holders are kept: the first ones with waiters.
const MAX_LOCKS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampledState {
    /// Any activity other than a wait on a futex.
    Doing(Time),
    /// Waiting on the target with this index in the process's account.
    On {
        place: u32,
        /// True if the target was known to be a lock when the sample was taken.
        lock: bool,
    },
    Lock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldBy {
    Thread(u32),
    Other,
    NotSeen,
}

/// A value that a sample shows in a row: a thread's state, or a lock's holder.
pub(crate) trait Shown: Copy + PartialEq {
    /// Broader value, counted instead of this one in a column with too many values.
    fn summed(self) -> Self;
}

impl SampledState {
    /// Returns `true` for a thread that is on a CPU or waits for one.
    pub(crate) fn has_or_wants_cpu(self) -> bool {
        matches!(self, SampledState::Doing(Time::OnCpu | Time::Running | Time::Runnable))
    }

    /// Priority of the state: threads with the highest level get rows of their own first.
    fn level(self) -> u8 {
        match self {
            SampledState::On { lock: true, .. } | SampledState::Lock => 2,
            SampledState::Doing(
                Time::OnCpu | Time::Running | Time::Runnable | Time::Io(_) | Time::Paging,
            ) => 1,
            SampledState::On { .. } | SampledState::Doing(_) => 0,
        }
    }
}

impl Shown for SampledState {
    fn summed(self) -> SampledState {
        match self {
            SampledState::On { lock: true, .. } => SampledState::Lock,
            SampledState::On { lock: false, .. } => SampledState::Doing(Time::Threads),
            SampledState::Doing(_) | SampledState::Lock => self,
        }
    }
}

impl Shown for HeldBy {
    fn summed(self) -> HeldBy {
        match self {
            HeldBy::Thread(_) => HeldBy::Other,
            HeldBy::Other | HeldBy::NotSeen => self,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Strip<S> {
    seen: Vec<ColumnCount<S>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnCount<S> {
    pub(crate) column: u16,
    pub(crate) shown: S,
    pub(crate) samples: u32,
}

impl<S> Default for Strip<S> {
    fn default() -> Strip<S> {
        Strip { seen: Vec::new() }
    }
}

impl<S: Shown> Strip<S> {
    /// In ascending order of columns.
    pub(crate) fn seen(&self) -> &[ColumnCount<S>] {
        &self.seen
    }

    fn add(&mut self, column: u16, shown: S, samples: u32) {
        let mut in_column = 0;
        for seen in self.seen.iter_mut().rev().take_while(|seen| seen.column == column) {
            if seen.shown == shown {
                seen.samples = seen.samples.saturating_add(samples);
                return;
            }
            in_column += 1;
        }
        let summed = shown.summed();
        if in_column >= MAX_IN_COLUMN && summed != shown {
            self.add(column, summed, samples);
        } else {
            self.seen.push(ColumnCount { column, shown, samples });
        }
    }

    fn halve(&mut self) {
        for seen in std::mem::take(&mut self.seen) {
            self.add(seen.column / 2, seen.shown, seen.samples);
        }
    }

    fn append(&mut self, other: Strip<S>) {
        let mut all = std::mem::take(&mut self.seen);
        all.extend(other.seen);
        all.sort_by_key(|seen| seen.column);
        all.into_iter().for_each(|seen| self.add(seen.column, seen.shown, seen.samples));
    }

    /// Removes the indices of wait targets, which mean nothing outside their process.
    fn summed(mut self) -> Strip<S> {
        self.seen.iter_mut().for_each(|seen| seen.shown = seen.shown.summed());
        self
    }
}

#[derive(Debug)]
pub(crate) struct ThreadRow {
    pub(crate) process: u32,
    pub(crate) tid: u32,
    pub(crate) strip: Strip<SampledState>,
    level: u8,
}

#[derive(Debug)]
pub(crate) struct StateTrace {
    pub(crate) width_ns: u64,
    pub(crate) columns: u16,
    /// Column of the current sample, and number of scheduled samples that the sample stands for.
    sample: (u16, u32),
    rows: Vec<ThreadRow>,
    by_thread: HashMap<(u32, u32), usize>,
    lowest: u8,
    rests: HashMap<u32, Strip<SampledState>>,
    /// States of the other threads in processes without an entry in `rests`: processes beyond
    /// `MAX_RESTS`, and those no longer listed.
    others: Strip<SampledState>,
    holders: HashMap<(u32, u32), Strip<HeldBy>>,
}

impl Default for StateTrace {
    fn default() -> StateTrace {
        StateTrace {
            width_ns: FIRST_NS,
            columns: 0,
            sample: (0, 1),
            rows: Vec::new(),
            by_thread: HashMap::new(),
            lowest: 0,
            rests: HashMap::new(),
            others: Strip::default(),
            holders: HashMap::new(),
        }
    }
}

impl StateTrace {
    pub(super) fn begin_sample(&mut self, since_ns: u64, times: u32) {
        while since_ns / self.width_ns >= u64::from(Record::MAX_COLUMNS) {
            self.halve();
        }
        let column = self.column(since_ns);
        self.sample = (column, times);
        self.columns = self.columns.max(column + 1);
    }

    pub(crate) fn column(&self, since_ns: u64) -> u16 {
        (since_ns / self.width_ns).min(u64::from(Record::MAX_COLUMNS) - 1) as u16
    }

    fn halve(&mut self) {
        self.rows.iter_mut().for_each(|row| row.strip.halve());
        self.rests.values_mut().for_each(Strip::halve);
        self.others.halve();
        self.holders.values_mut().for_each(Strip::halve);
        self.width_ns = self.width_ns.saturating_mul(2);
        self.columns = self.columns.div_ceil(2);
    }

    /// Counts a thread's state in the current sample. Returns `true` if the thread gets a new row.
    pub(super) fn saw(&mut self, process: u32, tid: u32, state: SampledState) -> bool {
        let (column, times) = self.sample;
        let level = state.level();
        let known = self.by_thread.get(&(process, tid)).copied();
        if let Some(row) = known.and_then(|place| self.rows.get_mut(place)) {
            row.level = row.level.max(level);
            row.strip.add(column, state, times);
            return false;
        }
        let is_full = self.rows.len() >= Record::MAX_THREADS;
        let instead = if is_full { self.less_worth(level) } else { None };
        if is_full && instead.is_none() {
            self.add_to_rest(process, state);
            return false;
        }
        let mut strip = Strip::default();
        strip.add(column, state, times);
        let row = ThreadRow { process, tid, strip, level };
        self.by_thread.insert((process, tid), instead.unwrap_or(self.rows.len()));
        match instead {
            Some(place) => {
                let before = std::mem::replace(&mut self.rows[place], row);
                self.by_thread.remove(&(before.process, before.tid));
                match self.rest_of(before.process) {
                    Some(rest) => rest.append(before.strip),
                    None => self.others.append(before.strip.summed()),
                }
            }
            None => self.rows.push(row),
        }
        true
    }

    /// Returns the index of a row with the lowest level, if that level is below `level`. Levels of
    /// rows only rise, so each row is replaced at most twice.
    fn less_worth(&mut self, level: u8) -> Option<usize> {
        if level <= self.lowest {
            return None;
        }
        let all = self.rows.iter().enumerate();
        let (place, row) = all.min_by_key(|(_, row)| row.level)?;
        self.lowest = row.level;
        (row.level < level).then_some(place)
    }

    fn add_to_rest(&mut self, process: u32, state: SampledState) {
        let (column, times) = self.sample;
        match self.rest_of(process) {
            Some(rest) => rest.add(column, state, times),
            None => self.others.add(column, state.summed(), times),
        }
    }

    fn rest_of(&mut self, process: u32) -> Option<&mut Strip<SampledState>> {
        let has_room = self.rests.len() < MAX_RESTS || self.rests.contains_key(&process);
        has_room.then(|| self.rests.entry(process).or_default())
    }

    pub(super) fn held(&mut self, process: u32, place: u32, by: HeldBy) {
        let (column, times) = self.sample;
        let of = (process, place);
        if self.holders.len() < MAX_LOCKS || self.holders.contains_key(&of) {
            self.holders.entry(of).or_default().add(column, by, times);
        }
    }

    pub(super) fn forget(&mut self, process: u32) {
        while let Some(place) = self.rows.iter().position(|row| row.process == process) {
            let row = self.rows.swap_remove(place);
            self.by_thread.remove(&(process, row.tid));
            if let Some(moved) = self.rows.get(place) {
                self.by_thread.insert((moved.process, moved.tid), place);
            }
            self.others.append(row.strip.summed());
        }
        if let Some(rest) = self.rests.remove(&process) {
            self.others.append(rest.summed());
        }
        self.holders.retain(|&(of, _), _| of != process);
        self.lowest = 0;
    }

    pub(crate) fn rows(&self) -> &[ThreadRow] {
        &self.rows
    }

    /// Rows of the other threads, by process index; `None` for the row that several processes
    /// share.
    pub(crate) fn rests(&self) -> impl Iterator<Item = (Option<u32>, &Strip<SampledState>)> {
        let of_processes = self.rests.iter().map(|(&process, rest)| (Some(process), rest));
        of_processes.chain([(None, &self.others)])
    }

    /// Holders of a lock in samples in which threads waited for it. `place` is the lock's index in
    /// the process's account.
    pub(crate) fn holders(&self, process: u32, place: u32) -> &[ColumnCount<HeldBy>] {
        self.holders.get(&(process, place)).map_or(&[], |strip| strip.seen())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: SampledState = SampledState::Doing(Time::Running);
    const ASLEEP: SampledState = SampledState::Doing(Time::Sleep);
    const WAITING: SampledState = SampledState::On { place: 3, lock: true };

    fn samples<S: Shown>(seen: &[ColumnCount<S>], shown: impl Fn(S) -> bool) -> u32 {
        seen.iter().filter(|seen| shown(seen.shown)).map(|seen| seen.samples).sum()
    }

    fn row(trace: &StateTrace, tid: u32) -> &ThreadRow {
        trace.rows().iter().find(|row| row.tid == tid).unwrap()
    }

    fn all_samples(trace: &StateTrace) -> u32 {
        for (place, row) in trace.rows().iter().enumerate() {
            assert_eq!(trace.by_thread.get(&(row.process, row.tid)), Some(&place));
        }
        assert_eq!(trace.by_thread.len(), trace.rows().len());
        let rows = trace.rows().iter().map(|row| &row.strip);
        let all = rows.chain(trace.rests().map(|(_, rest)| rest));
        all.map(|strip| samples(strip.seen(), |_| true)).sum()
    }

    #[test]
    fn joined_columns_keep_their_samples_and_their_times() {
        let mut trace = StateTrace::default();
        for minute in 0..600_u64 {
            trace.begin_sample(minute * 60_000_000_000, 1);
            let state = if minute % 60 < 30 { RUNNING } else { WAITING };
            trace.saw(0, 7, state);
            trace.held(0, 3, HeldBy::Thread(7));
        }
        assert!(trace.columns <= 600 && trace.columns > 300, "{}", trace.columns);
        let seen = row(&trace, 7).strip.seen();
        assert!(seen.is_sorted_by_key(|seen| seen.column));
        assert_eq!([RUNNING, WAITING].map(|it| samples(seen, |shown| shown == it)), [300, 300]);
        let mixed = seen.windows(2).filter(|pair| pair[0].column == pair[1].column).count();
        assert!(mixed <= 20, "only where a half hour ends");
        assert_eq!(samples(trace.holders(0, 3), |by| by == HeldBy::Thread(7)), 600);
    }

    #[test]
    fn ten_seconds_use_nearly_all_columns() {
        let mut trace = StateTrace::default();
        for sample in 0..10_000 {
            trace.begin_sample(sample * 1_000_000, 1);
            trace.saw(0, 7, RUNNING);
        }
        assert!(trace.columns > 560, "{}", trace.columns);
        let seen = row(&trace, 7).strip.seen();
        assert!((560..=600).contains(&seen.len()), "{}", seen.len());
    }

    #[test]
    fn a_column_sums_up_what_is_too_much_to_tell_apart() {
        let mut trace = StateTrace::default();
        for place in 0..1_000 {
            trace.begin_sample(u64::from(place), 2);
            trace.saw(0, 7, SampledState::On { place, lock: place % 2 == 0 });
            trace.held(0, 3, HeldBy::Thread(place));
        }
        trace.saw(0, 7, RUNNING);
        let seen = row(&trace, 7).strip.seen();
        assert_eq!(seen.len(), MAX_IN_COLUMN + 3);
        assert_eq!(samples(seen, |_| true), 2 * 1_001);
        assert_eq!(samples(seen, |shown| shown == SampledState::Lock), 2 * 496);
        let by_others = samples(trace.holders(0, 3), |by| by == HeldBy::Other);
        assert_eq!(by_others, 2 * (1_000 - MAX_IN_COLUMN as u32));
    }

    #[test]
    fn threads_that_wait_for_locks_have_rows_before_those_that_run_or_sleep() {
        let mut trace = StateTrace::default();
        let see = |trace: &mut StateTrace, tids: std::ops::Range<u32>, state| {
            trace.begin_sample(0, 1);
            tids.for_each(|tid| _ = trace.saw(tid % 3, tid, state));
        };
        see(&mut trace, 0..100, ASLEEP);
        assert!(trace.rows().iter().map(|row| row.tid).eq(0..64));
        see(&mut trace, 100..140, RUNNING);
        see(&mut trace, 200..230, WAITING);
        see(&mut trace, 0..300, ASLEEP);
        let has = |tids: std::ops::Range<u32>| {
            tids.filter(|tid| trace.rows().iter().any(|row| row.tid == *tid)).count()
        };
        assert_eq!([has(200..230), has(100..140), has(0..100)], [30, 34, 0]);
        assert_eq!(all_samples(&trace), 100 + 40 + 30 + 300);
    }

    #[test]
    fn threads_of_forgotten_processes_are_summed_up() {
        let mut trace = StateTrace::default();
        trace.begin_sample(0, 1);
        for tid in 0..60 {
            trace.saw(tid % 20, tid, WAITING);
        }
        (0..200).for_each(|tid| _ = trace.saw(tid % 20, 1_000 + tid, WAITING));
        trace.held(4, 3, HeldBy::NotSeen);
        assert_eq!(trace.rests.len(), MAX_RESTS);
        (0..20).filter(|process| process % 2 == 0).for_each(|process| trace.forget(process));
        assert!(trace.rows().iter().all(|row| row.process % 2 == 1));
        assert!(trace.holders(4, 3).is_empty());
        assert_eq!(all_samples(&trace), 260);
        assert!(trace.others.seen().iter().all(|seen| seen.shown == SampledState::Lock));
    }
}
