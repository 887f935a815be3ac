//! States of threads over time, in the form in which a profile records them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use threadtoll_record::profile::{
    HoldingThread, Lock, LockHolders, LockKind, Process, ThreadState, Trace, TracedThread,
};
use threadtoll_record::{Ns, Text};

use super::idle::Reasons;
use super::parked::row_name;
use super::thread_names::ThreadName;
use crate::account::{Account, ColumnCount, HeldBy, SampledState, Strip, Time};
use crate::primitive::Role;
use crate::stacks::Stacks;
use crate::watched::Watched;

/// Maximum number of locks, costliest first, that are tried to find one whose holders were seen.
const MAX_TRIED: usize = 3;

type LockId = (usize, u32);

#[derive(Clone, Copy, Debug)]
pub(super) struct ListedProcesses<'a> {
    pub(super) indices: &'a [u32],
    pub(super) processes: &'a [Process],
    /// Merged locks, each with the lock that replaced it.
    pub(super) parts_of: &'a HashMap<LockId, LockId>,
}

/// State of a thread. `Lock` refers to a lock that the profile lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Running,
    OnCpu,
    Runnable,
    Lock(LockId),
    OtherLock,
    Io,
    Threads,
    Idle,
    Asleep,
    Unknown,
}

pub(super) fn record(
    account: &Account,
    watched: &BTreeMap<u32, Watched>,
    stacks: &mut Stacks,
    listed: ListedProcesses<'_>,
) -> Trace {
    let traced = &account.trace;
    let holders = holders(account, watched, stacks, listed);
    let mut kinds = Kinds { account, listed, stacks, known: HashMap::new() };
    let threads: Vec<_> =
        traced.rows().iter().map(|row| (row, kinds.all(Some(row.process), &row.strip))).collect();
    let others: Vec<ColumnCount<Kind>> =
        traced.rests().flat_map(|(process, strip)| kinds.all(process, strip)).collect();
    let palette = Palette::of(threads.iter().flat_map(|(_, seen)| seen).chain(&others));
    let mut rows: Vec<_> = threads
        .iter()
        .filter_map(|(row, seen)| {
            let of = watched.get(&row.process)?;
            let name = ThreadName::of(row.tid, account.process(row.process)?, of);
            // The TID of an ended thread may belong to another process by now.
            let name = if name.pid.is_none() { Text::from(name.name) } else { Text::default() };
            let samples = palette.rows(seen);
            Some((rank(seen), TracedThread { pid: of.pid, tid: row.tid, name, samples }))
        })
        .collect();
    rows.sort_by_key(|(rank, thread)| (Reverse(*rank), thread.pid, thread.tid));
    Trace {
        run: Text::default(),
        start_ns: Ns::new(account.started as f64),
        column_ns: Ns::new(traced.width_ns as f64),
        columns: traced.columns.into(),
        states: palette.states(listed.processes),
        threads: rows.into_iter().map(|(_, thread)| thread).collect(),
        others: palette.rows(&others),
        holders,
    }
}

/// Number of samples in which a thread waited for locks, and number in which it worked.
fn rank(seen: &[ColumnCount<Kind>]) -> (u64, u64) {
    let sum = |of: fn(Kind) -> bool| -> u64 {
        seen.iter().filter(|seen| of(seen.shown)).map(|seen| u64::from(seen.samples)).sum()
    };
    (
        sum(|kind| matches!(kind, Kind::Lock(_) | Kind::OtherLock)),
        sum(|kind| matches!(kind, Kind::Running | Kind::OnCpu | Kind::Runnable | Kind::Io)),
    )
}

struct Kinds<'a> {
    account: &'a Account,
    listed: ListedProcesses<'a>,
    stacks: &'a mut Stacks,
    known: HashMap<(u32, u32), Kind>,
}

impl Kinds<'_> {
    fn all(&mut self, process: Option<u32>, strip: &Strip<SampledState>) -> Vec<ColumnCount<Kind>> {
        let kind = |seen: &ColumnCount<SampledState>| ColumnCount {
            column: seen.column,
            shown: self.kind(process, seen.shown),
            samples: seen.samples,
        };
        strip.seen().iter().map(kind).collect()
    }

    fn kind(&mut self, process: Option<u32>, state: SampledState) -> Kind {
        match state {
            SampledState::Doing(time) => self.doing(process, time),
            SampledState::Lock => Kind::OtherLock,
            SampledState::On { place, lock } => {
                let otherwise = if lock { Kind::OtherLock } else { Kind::Threads };
                let Some(process) = process else { return otherwise };
                if let Some(&kind) = self.known.get(&(process, place)) {
                    return kind;
                }
                let kind = self.waiting_on(process, place).unwrap_or(otherwise);
                self.known.insert((process, place), kind);
                kind
            }
        }
    }

    fn doing(&self, process: Option<u32>, time: Time) -> Kind {
        match time {
            Time::Running => Kind::Running,
            Time::OnCpu => Kind::OnCpu,
            Time::Runnable => Kind::Runnable,
            Time::Io(_) => Kind::Io,
            Time::Threads | Time::OwnPipe => Kind::Threads,
            Time::Idle => Kind::Idle,
            Time::Sleep => Kind::Asleep,
            Time::Other => Kind::Unknown,
            Time::Paging => {
                let process = process.and_then(|process| self.account.process(process));
                let from_disk = process.is_some_and(|process| process.pages_from_disk());
                if from_disk { Kind::Io } else { Kind::Unknown }
            }
        }
    }

    fn waiting_on(&mut self, index: u32, place: u32) -> Option<Kind> {
        let process = self.account.process(index)?;
        let at = self.listed.indices.iter().position(|&other| other == index)?;
        let target = process.targets.get(place as usize)?;
        match target.identity.role() {
            Role::Lock => Some(self.lock((at, place + 1))),
            Role::Idle | Role::Unknown => Some(Kind::Threads),
            Role::Parked => {
                let reasons = Reasons::of(target, self.stacks);
                let others = reasons.idle + reasons.untold;
                if reasons.asleep > others.max(reasons.lock) {
                    return Some(Kind::Asleep);
                }
                if reasons.lock <= others {
                    return Some(Kind::Threads);
                }
                let name = row_name(target, &reasons, self.stacks);
                let mut rows = self.listed.processes.get(at)?.locks.iter();
                let row = rows.find(|lock| lock.kind == LockKind::Parker && *lock.name == *name);
                Some(row.map_or(Kind::OtherLock, |row| self.lock((at, row.id))))
            }
        }
    }

    fn lock(&self, id: LockId) -> Kind {
        let id = self.listed.parts_of.get(&id).copied().unwrap_or(id);
        match self.listed.lock(id) {
            Some(_) => Kind::Lock(id),
            None => Kind::OtherLock,
        }
    }
}

impl<'a> ListedProcesses<'a> {
    fn lock(self, (process, id): LockId) -> Option<&'a Lock> {
        self.processes.get(process)?.locks.iter().find(|lock| lock.id == id)
    }
}

/// The states that occur in a profile, in the order of their rows.
struct Palette(Vec<Kind>);

impl Palette {
    fn of<'a>(all: impl Iterator<Item = &'a ColumnCount<Kind>>) -> Palette {
        let mut samples: BTreeMap<Kind, u64> = BTreeMap::new();
        for seen in all {
            *samples.entry(seen.shown).or_default() += u64::from(seen.samples);
        }
        let is_lock = |kind: &Kind| matches!(kind, Kind::Lock(_));
        let mut locks: Vec<Kind> = samples.keys().copied().filter(is_lock).collect();
        locks.sort_by_key(|kind| (Reverse(samples.get(kind).copied()), *kind));
        if locks.len() > Trace::MAX_LOCKS {
            samples.entry(Kind::OtherLock).or_default();
        }
        locks.truncate(Trace::MAX_LOCKS);
        let others = samples.into_keys().filter(|kind| !is_lock(kind));
        let (first, last): (Vec<Kind>, Vec<Kind>) =
            others.partition(|kind| *kind < Kind::OtherLock);
        Palette([first, locks, last].concat())
    }

    fn place(&self, kind: Kind) -> Option<usize> {
        let place = |kind| self.0.iter().position(|&other| other == kind);
        place(kind).or_else(|| place(Kind::OtherLock))
    }

    fn rows(&self, seen: &[ColumnCount<Kind>]) -> Vec<Vec<u32>> {
        let mut rows = vec![Vec::new(); self.0.len()];
        for seen in seen {
            if let Some(row) = self.place(seen.shown).and_then(|place| rows.get_mut(place)) {
                add(row, seen.column, seen.samples);
            }
        }
        while rows.last().is_some_and(Vec::is_empty) {
            rows.pop();
        }
        rows
    }

    fn states(&self, processes: &[Process]) -> Vec<ThreadState> {
        let state = |&kind: &Kind| match kind {
            Kind::Running => ThreadState::Running,
            Kind::OnCpu => ThreadState::OnCpu,
            Kind::Runnable => ThreadState::Runnable,
            Kind::OtherLock => ThreadState::OtherLock,
            Kind::Io => ThreadState::Io,
            Kind::Threads => ThreadState::Threads,
            Kind::Idle => ThreadState::Idle,
            Kind::Asleep => ThreadState::Asleep,
            Kind::Unknown => ThreadState::Unknown,
            Kind::Lock((process, id)) => {
                let process = processes.get(process);
                let lock =
                    process.and_then(|process| process.locks.iter().find(|lock| lock.id == id));
                ThreadState::Lock {
                    pid: process.map_or(0, |process| process.pid),
                    lock: id,
                    name: lock.map_or_else(Text::default, |lock| lock.name.clone()),
                }
            }
        };
        self.0.iter().map(state).collect()
    }
}

fn add(row: &mut Vec<u32>, column: u16, samples: u32) {
    let column = usize::from(column);
    if row.len() <= column {
        row.resize(column + 1, 0);
    }
    row[column] = row[column].saturating_add(samples);
}

/// Holders of the costliest lock whose holders were seen.
fn holders(
    account: &Account,
    watched: &BTreeMap<u32, Watched>,
    stacks: &Stacks,
    listed: ListedProcesses<'_>,
) -> Option<LockHolders> {
    let mut locks = Vec::new();
    for (at, process) in listed.processes.iter().enumerate() {
        let lived = process.seconds.map_or(0.0, |seconds| seconds.get());
        let waited = process.locks.iter().filter(|lock| lock.queue_max.is_some_and(|it| it > 0));
        locks.extend(waited.map(|lock| {
            let (gain, queue) = lock.cost();
            (gain * lived, queue * lived, at, lock)
        }));
    }
    locks.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1)));
    let mut most = locks.into_iter().take(MAX_TRIED);
    most.find_map(|(_, _, at, lock)| holders_of(lock, at, account, watched, stacks, listed))
}

fn holders_of(
    lock: &Lock,
    at: usize,
    account: &Account,
    watched: &BTreeMap<u32, Watched>,
    stacks: &Stacks,
    listed: ListedProcesses<'_>,
) -> Option<LockHolders> {
    let (&index, place) = (listed.indices.get(at)?, lock.id.checked_sub(1)?);
    let process = account.process(index)?;
    let target = process.targets.get(place as usize).filter(|target| target.is_lock())?;
    let traced = &account.trace;
    let seen = match target.holder.names_owner {
        true => traced.holders(index, place).to_vec(),
        false => target
            .holder
            .at_samples(stacks)
            .into_iter()
            .map(|(due, tid)| ColumnCount {
                column: traced.column(due.saturating_sub(account.started)),
                shown: tid.map_or(HeldBy::NotSeen, HeldBy::Thread),
                samples: 1,
            })
            .collect(),
    };
    let (mut others, mut not_seen) = (Vec::new(), Vec::new());
    let mut by_thread: HashMap<u32, (u64, Vec<u32>)> = HashMap::new();
    for ColumnCount { column, shown, samples } in seen {
        match shown {
            HeldBy::Thread(tid) => {
                let (all, row) = by_thread.entry(tid).or_default();
                *all += u64::from(samples);
                add(row, column, samples);
            }
            HeldBy::Other => add(&mut others, column, samples),
            HeldBy::NotSeen => add(&mut not_seen, column, samples),
        }
    }
    let mut threads: Vec<(u32, (u64, Vec<u32>))> = by_thread.into_iter().collect();
    threads.sort_by_key(|&(tid, (all, _))| (Reverse(all), tid));
    for (_, (_, row)) in threads.drain(threads.len().min(Trace::MAX_HOLDERS)..) {
        for (column, samples) in row.into_iter().enumerate() {
            add(&mut others, column as u16, samples);
        }
    }
    let of = watched.get(&index)?;
    let holding = |(tid, (_, samples))| HoldingThread {
        tid,
        name: Text::from(ThreadName::of(tid, process, of).name),
        samples,
    };
    let threads: Vec<HoldingThread> = threads.into_iter().map(holding).collect();
    let found = !threads.is_empty();
    let (pid, name) = (of.pid, lock.name.clone());
    found.then_some(LockHolders { pid, lock: lock.id, name, threads, others, not_seen })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(column: u16, shown: Kind, samples: u32) -> ColumnCount<Kind> {
        ColumnCount { column, shown, samples }
    }

    #[test]
    fn the_locks_that_are_waited_for_most_are_told_apart() {
        let mut all = vec![seen(0, Kind::Idle, 1), seen(3, Kind::Running, 9)];
        all.extend((0..8).map(|lock| seen(2, Kind::Lock((0, lock)), 10 + lock)));
        let palette = Palette::of(all.iter());
        let locks = (2..8).rev().map(|lock| Kind::Lock((0, lock)));
        let kinds = [Kind::Running].into_iter().chain(locks).chain([Kind::OtherLock, Kind::Idle]);
        assert!(palette.0.iter().copied().eq(kinds), "{:?}", palette.0);
        let rows = palette.rows(&all);
        assert_eq!(rows[0], [0, 0, 0, 9]);
        assert_eq!((&rows[1][..], &rows[7][..]), (&[0, 0, 17][..], &[0, 0, 21][..]));
        assert_eq!(rows[8], [1]);
        assert_eq!(palette.rows(&all[1..2]).len(), 1, "what is empty at the end is left out");
    }

    #[test]
    fn threads_that_wait_for_locks_come_first() {
        let waits = [seen(0, Kind::OtherLock, 3), seen(1, Kind::Running, 1)];
        let works = [seen(0, Kind::Io, 50), seen(9, Kind::Running, 50)];
        let idles = [seen(0, Kind::Idle, 500)];
        assert!(rank(&waits) > rank(&works) && rank(&works) > rank(&idles));
    }
}
