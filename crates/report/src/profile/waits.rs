//! Tables of waits that are not for a lock, and of processes.

use threadtoll_record::profile::{Ended, IdleWait, Process, Profile};

use super::locks::shortened;
use super::words;
use crate::clean::clean;
use crate::table::{Cell, Column, Label, Section};
use crate::units::{digits_within, share};

pub(crate) struct Waiting<'a> {
    pub(crate) process: &'a Process,
    pub(crate) what: &'static str,
    pub(crate) wait: &'a IdleWait,
}

impl Waiting<'_> {
    pub(crate) fn name(&self) -> String {
        let name = clean(&self.wait.name);
        if name.trim().is_empty() { self.wait.address.to_string() } else { name }
    }
}

/// Waits with the most threads come first.
pub(crate) fn waits(profile: &Profile) -> Vec<Waiting<'_>> {
    let mut waits: Vec<Waiting<'_>> = profile
        .processes
        .iter()
        .flat_map(|process| {
            let kinds = [
                ("condition variable", &process.condvars),
                ("semaphore", &process.semaphores),
                ("barrier", &process.barriers),
                ("end of a thread", &process.joins),
                ("initialisation", &process.onces),
                ("unparking", &process.parkers),
                ("unknown", &process.unknown),
            ];
            kinds.into_iter().flat_map(move |(what, waits)| {
                waits.iter().map(move |wait| Waiting { process, what, wait })
            })
        })
        .collect();
    waits.sort_by(|a, b| b.wait.queue_mean.get().total_cmp(&a.wait.queue_mean.get()));
    waits
}

pub(crate) fn section(waits: &[Waiting<'_>], max_name: usize) -> Section {
    let columns = vec![
        Column::new("", "for", 0, |row: &Waiting<'_>| Cell::text(row.what)),
        Column::new("", "waiting", 0, |row: &Waiting<'_>| {
            let interval =
                row.wait.queue_mean_interval95.map(|it| [it.low().get(), it.high().get()]);
            Cell::figure(Some(row.wait.queue_mean), |mean| digits_within(mean, interval))
        }),
        Column::new("", "most", 1, |row: &Waiting<'_>| {
            // A maximum below the mean is a lower bound: samples of only some of the threads miss
            // some waiting threads.
            let in_part = row.wait.queue_mean.get() > f64::from(row.wait.queue_max);
            let bound = if in_part { "≥" } else { "" };
            Cell::figure(Some(row.wait.queue_max), |most| format!("{bound}{most:.0}"))
        }),
        Column::new("", "threads", 2, |row: &Waiting<'_>| {
            Cell::figure(Some(row.wait.threads), |threads| format!("{threads:.0}"))
        }),
    ];
    Section::new("", "waits for other threads", columns, waits, |row| {
        Label::new(shortened(&row.name(), max_name))
    })
}

pub(crate) fn processes(profile: &Profile) -> Section {
    let part = |name: &'static str, of: fn(&threadtoll_record::profile::ThreadTime) -> f64| {
        Column::new("", name, 2, move |row: &&Process| {
            Cell::figure(row.time.as_ref().map(of), share)
        })
    };
    let columns = vec![
        Column::new("", "PID", 0, |row: &&Process| {
            Cell::figure(Some(row.pid), |pid| format!("{pid:.0}"))
        }),
        Column::new("", "threads", 1, |row: &&Process| {
            Cell::figure(Some(row.threads_max), |threads| format!("{threads:.0}"))
        }),
        part("on a CPU", |time| time.on_cpu.get()),
        part("locks", |time| time.lock_wait.get()),
        part("other threads", |time| time.thread_wait.get()),
        part("idle", |time| time.idle.get()),
        part("I/O", |time| time.io_total().min(1.0)),
        Column::new("", "ended", 1, |row: &&Process| Cell::text(ended(row))),
    ];
    let rows: Vec<&Process> = profile.processes.iter().collect();
    Section::new("", "process", columns, &rows, |row| {
        Label::new(shortened(&words(&row.command), 40))
    })
}

fn ended(process: &Process) -> String {
    match (process.ended, process.signal) {
        (Ended::Exit, _) => "exit".into(),
        (Ended::Exec, _) => "exec".into(),
        (Ended::Signal, Some(signal)) => format!("signal {signal}"),
        (Ended::Signal, None) => "signal".into(),
        (Ended::Running, _) => "–".into(),
    }
}
