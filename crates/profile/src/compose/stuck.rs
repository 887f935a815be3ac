//! Standstills: finds threads that do not move, judges the reason, and describes both.

mod names;
mod state_at_end;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use threadtoll_judge::stuck::{never_released, stand_stills};
use threadtoll_record::profile::{Lock, Process, Role, Stuck, StuckKind};
use threadtoll_record::{Seconds, Text};
use threadtoll_stacks::process::{KernelState, ThreadFacts};

use crate::account::{Account, ProcessAccount};
use crate::stacks::Stacks;
use crate::watched::Watched;
use names::Names;
use state_at_end::StateAtEnd;

const MAX_THREADS: usize = 16;
const MAX_STAND_STILLS: usize = 8;

/// A program counts as stopped if it is stopped at the end and was stopped for this many
/// nanoseconds in total, or if it was stopped for this share of the time.
const STOPPED_NS: u64 = 1_000_000_000;
const STOPPED_SHARE: f64 = 0.5;

/// Finds standstills, enters them in the processes, and withdraws the verdicts on the locks
/// concerned. `indices` holds the index of each process.
pub(super) fn enter(
    account: &Account,
    watched: &BTreeMap<u32, Watched>,
    stacks: &mut Stacks,
    indices: &[u32],
    processes: &mut [Process],
) {
    let at_end = StateAtEnd::of(account, watched, stacks, indices);
    let mut told: BTreeMap<u32, Vec<Stuck>> = BTreeMap::new();
    for (&index, record) in indices.iter().zip(processes.iter()) {
        if let Some(process) = account.process(index)
            && let Some(stopped) = stopped(process, record)
        {
            told.entry(index).or_default().push(stopped);
        }
    }
    let never_released = never_released(&at_end.threads, &at_end.locks);
    for stand_still in stand_stills(&at_end.threads, &at_end.locks) {
        let names = Names { account, watched, indices, processes, at_end: &at_end };
        if names.takes_turns(&stand_still, stacks) || names.may_be_woken(&stand_still) {
            continue;
        }
        let (one, concerned) = names.stuck(&stand_still, stacks);
        for index in concerned {
            told.entry(index).or_default().push(names.in_process(&one, &stand_still, index));
        }
    }
    for &place in &never_released {
        let (index, target) = at_end.places[place];
        let record = indices.iter().position(|&other| other == index);
        let Some(record) = record.and_then(|record| processes.get_mut(record)) else { continue };
        for lock in record.locks.iter_mut().filter(|lock| lock.id == target + 1) {
            without_gain(lock);
            without_inferred_holder(lock);
        }
    }
    for (&index, record) in indices.iter().zip(processes.iter_mut()) {
        let Some(all) = told.remove(&index) else { continue };
        for lock in &mut record.locks {
            if all.iter().any(|one| one.locks.contains(&lock.id)) {
                withdraw(lock);
            }
        }
        let mut all = all.into_iter().take(MAX_STAND_STILLS);
        record.stuck = all.next();
        record.also_stuck = all.collect();
    }
}

/// Withdraws the verdict on a lock that no thread gets: samples show only the length of the queue.
fn withdraw(lock: &mut Lock) {
    lock.causes.clear();
    lock.verdict = None;
    (lock.efficiency, lock.efficiency_interval95) = (None, None);
    without_gain(lock);
}

/// Withdraws the gain of a lock that no thread was seen to take: samples do not show what the
/// program does after it takes the lock.
fn without_gain(lock: &mut Lock) {
    lock.never_taken = true;
    (lock.gain, lock.gain_interval95) = (None, None);
    lock.what_if.clear();
    lock.predicted.clear();
    lock.handoff_ns = None;
}

/// Withdraws an inferred holder of a lock that was never free. The inference excludes waiting
/// threads, but the holder may itself wait for the lock again, for example in a signal handler.
fn without_inferred_holder(lock: &mut Lock) {
    if !lock.holders.iter().any(|holder| holder.inferred) {
        return;
    }
    lock.holders.clear();
    lock.causes.clear();
    lock.waits_for.clear();
    lock.sites.retain(|site| !matches!(site.role, Role::Holder | Role::Candidate));
    (lock.holder_not_seen_share, lock.holder_not_seen_interval95) = (Some(1.0.into()), None);
}

fn stopped(process: &ProcessAccount, record: &Process) -> Option<Stuck> {
    let stopped_ns = process.stops.stopped_ns();
    let seconds = process.seconds();
    let share = stopped_ns as f64 / 1e9 / seconds.max(f64::MIN_POSITIVE);
    let now = process.stops.now() && stopped_ns >= STOPPED_NS;
    let long = now || share >= STOPPED_SHARE && stopped_ns > 0;
    if process.ended || !long {
        return None;
    }
    let facts = ThreadFacts::read(process.pid).filter(|_| process.stops.now());
    let by = match &facts {
        Some(ThreadFacts { state: KernelState::Stopped, .. }) => {
            format!("by a signal (`kill -CONT {}` lets it go on)", process.pid)
        }
        Some(ThreadFacts { state: KernelState::Traced, tracer: Some(tracer), .. }) => {
            let name = ThreadFacts::read(*tracer).map(|it| it.name.to_string_lossy().into_owned());
            format!(
                "by {} (PID {tracer}), which traces it",
                name.as_deref().unwrap_or("a debugger")
            )
        }
        _ => "by a signal or a debugger".to_owned(),
    };
    Some(Stuck {
        kind: StuckKind::Stopped,
        seconds: Some(Seconds::new(stopped_ns as f64 / 1e9)),
        locks: record.locks.iter().map(|lock| lock.id).collect(),
        threads: Vec::new(),
        more_threads: 0.into(),
        text: Text::from(words::stopped(process.stops.now(), stopped_ns, seconds, &by)),
        mend: None,
    })
}
