//! Programs with several processes: the process in the title, and the process of a lock.

use std::collections::HashSet;

use threadtoll_record::profile::{Ended, Process, Profile};

use super::short_command;
use crate::label::plural;

pub(super) fn process(process: &Process) -> String {
    match process.ended {
        // A process keeps its PID when it executes another program.
        Ended::Exec => format!("PID {}, program {}", process.pid, process.image),
        _ => format!("PID {}", process.pid),
    }
}

/// Returns `true` if the title names a different process, or a different program of the same
/// process.
pub(super) fn is_another(profile: &Profile, process: &Process) -> bool {
    let of = |process: &Process| (process.pid, process.image);
    named(profile).is_some_and(|(named, _)| of(named) != of(process))
}

pub(super) fn lived(profile: &Profile, process: &Process) -> f64 {
    let all = profile.seconds.get();
    match process.seconds {
        Some(seconds) if all > 0.0 => (seconds.get() / all).min(1.0),
        _ => 1.0,
    }
}

/// The given or launched process, represented by the program that it executed for the longest time,
/// and the number of other processes.
fn named(profile: &Profile) -> Option<(&Process, usize)> {
    let first = profile.processes.first()?;
    let programs = profile.processes.iter().filter(|process| process.pid == first.pid);
    let seconds = |process: &Process| process.seconds.map_or(0.0, |seconds| seconds.get());
    let longest = programs.max_by(|a, b| seconds(a).total_cmp(&seconds(b)))?;
    let pids: HashSet<u32> = profile.processes.iter().map(|process| process.pid).collect();
    Some((longest, pids.len() - 1))
}

pub(super) fn title(profile: &Profile) -> Vec<String> {
    let Some((named, others)) = named(profile) else {
        return vec![short_command(&profile.program)];
    };
    if others == 0 && named.time.is_none() {
        return vec![short_command(&profile.program)];
    }
    let program = format!("{} (PID {})", short_command(&named.command), named.pid);
    match others {
        0 => vec![program, plural(named.threads_max.into(), "thread")],
        1 => vec![format!("{program} and 1 other process")],
        others => vec![format!("{program} and {others} other processes")],
    }
}
