//! Standstills: threads that cannot go on, and programs that are stopped.

use threadtoll_record::profile::{Process, Profile, Stuck, StuckKind, StuckThread};

use super::stack;
use crate::clean::clean;

const FUNCTIONS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stands<'a> {
    pub(crate) process: &'a Process,
    pub(crate) stuck: &'a Stuck,
}

/// Gravest first.
pub(crate) fn stand_stills(profile: &Profile) -> Vec<Stands<'_>> {
    let mut all: Vec<Stands<'_>> = profile
        .processes
        .iter()
        .flat_map(|process| process.stand_stills().map(move |stuck| Stands { process, stuck }))
        .collect();
    // A standstill of several processes is listed under each of them, but shown once. Its first
    // thread identifies it, because a thread waits for one thing at a time.
    let mut told = std::collections::HashSet::new();
    all.retain(|Stands { stuck, .. }| {
        stuck.threads.first().is_none_or(|first| told.insert((stuck.kind, first.tid)))
    });
    all.sort_by_key(|stands| rank(stands.stuck.kind));
    all
}

fn rank(kind: StuckKind) -> u8 {
    match kind {
        StuckKind::Stopped => 0,
        StuckKind::Deadlock => 1,
        StuckKind::SelfDeadlock => 2,
        StuckKind::LostWakeUp => 3,
        StuckKind::OwnerEnded => 4,
        StuckKind::OwnerElsewhere => 5,
        StuckKind::StandStill => 6,
        StuckKind::Circle => 7,
        StuckKind::NeverReleased => 8,
    }
}

/// Names the process if the profile has several.
pub(crate) fn sentences(stands: Stands<'_>, profile: &Profile) -> String {
    let text = clean(&stands.stuck.text);
    match profile.processes.len() {
        0 | 1 => text,
        _ => format!("PID {}: {text}", stands.process.pid),
    }
}

pub(crate) fn threads(stands: Stands<'_>, most: usize) -> Vec<String> {
    let with_stack = stands.stuck.threads.iter().filter(|thread| !thread.frames.is_empty());
    with_stack.take(most).map(line).collect()
}

fn line(thread: &StuckThread) -> String {
    let name = clean(&thread.name);
    let name = if name.trim().is_empty() { "a thread" } else { &name };
    let stack = stack::of_waiter(&thread.frames);
    let functions: Vec<&str> = stack.split(" ← ").take(FUNCTIONS).collect();
    format!("{name} (TID {}) in {}", thread.tid, functions.join(" ← "))
}

/// Returns `true` if all processes were stopped for at least half of the profiled time, so that
/// little else is known about them.
pub(crate) fn is_stopped(profile: &Profile) -> bool {
    let mut processes = profile.processes.iter().peekable();
    let stopped = |process: &Process| {
        process.stand_stills().any(|stuck| {
            let stopped = stuck.seconds.map_or(0.0, |seconds| seconds.get());
            stuck.kind == StuckKind::Stopped && stopped >= profile.seconds.get() / 2.0
        })
    };
    processes.peek().is_some() && processes.all(stopped)
}

pub(crate) fn concerns(process: &Process, lock: u32) -> bool {
    process.stand_stills().any(|stuck| stuck.locks.contains(&lock))
}
