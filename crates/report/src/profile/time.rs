//! Use of the threads' time.

use threadtoll_record::Fraction;
use threadtoll_record::profile::{Interval, IoKind, Profile, ThreadTime};

use crate::table::{Cell, Column, Label, Section};
use crate::units::{percent, range_of_shares};

/// A page has a colour for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spent {
    Cpu,
    Spin,
    Runnable,
    Lock,
    Thread,
    Idle,
    Io(IoKind),
    Sleep,
    Unknown,
}

impl Spent {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Spent::Cpu => "cpu",
            Spent::Spin => "spin",
            Spent::Runnable => "runnable",
            Spent::Lock => "lock",
            Spent::Idle => "idle",
            Spent::Thread => "thread",
            Spent::Io(_) => "io",
            Spent::Sleep => "asleep",
            Spent::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) spent: Spent,
    pub(crate) name: &'static str,
    /// Completes the sentence "its threads …".
    pub(crate) phrase: &'static str,
    pub(crate) share: f64,
    pub(crate) interval: Option<[f64; 2]>,
}

impl Part {
    pub(crate) fn name(&self, profile: &Profile) -> &'static str {
        if self.spent == Spent::Thread { super::others(profile) } else { self.name }
    }
}

/// Largest share first.
pub(crate) fn parts(time: &ThreadTime) -> Vec<Part> {
    let part = |spent, name, phrase, share: Fraction, interval: Option<_>| Part {
        spent,
        name,
        phrase,
        share: share.get(),
        interval: interval.map(ends),
    };
    let within = &time.interval95;
    let mut parts = match (time.running, time.runnable) {
        (Some(running), Some(runnable)) => vec![
            working("running", "ran", running, within.running, time),
            part(
                Spent::Runnable,
                "waiting for a CPU",
                "waited for a CPU",
                runnable,
                within.runnable,
            ),
        ],
        _ => {
            let phrase = "ran or waited for a CPU";
            vec![working("on or waiting for a CPU", phrase, time.on_cpu, within.on_cpu, time)]
        }
    };
    parts.extend([
        part(Spent::Lock, "locks", "waited for locks", time.lock_wait, within.lock_wait),
        part(
            Spent::Thread,
            "other threads",
            "waited for other threads",
            time.thread_wait,
            within.thread_wait,
        ),
        part(Spent::Idle, "idle", "waited for work", time.idle, within.idle),
        part(Spent::Sleep, "sleeping", "slept", time.sleep, within.sleep),
        part(
            Spent::Unknown,
            "other",
            "waited for something that was not recognised",
            time.unknown,
            within.unknown,
        ),
    ]);
    if time.spinning.get() > 0.0 {
        let within = within.spinning;
        parts.push(part(Spent::Spin, "spinning", "spun for locks", time.spinning, within));
    }
    parts.extend(time.io.iter().map(|(kind, share)| {
        let (name, phrase) = io(*kind);
        part(Spent::Io(*kind), name, phrase, *share, within.io.get(kind).copied())
    }));
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    parts
}

fn working(
    name: &'static str,
    phrase: &'static str,
    on_cpu: Fraction,
    within: Option<Interval<Fraction>>,
    time: &ThreadTime,
) -> Part {
    let spinning = time.spinning.get();
    Part {
        spent: Spent::Cpu,
        name,
        phrase,
        share: (on_cpu.get() - spinning).max(0.0),
        interval: within.filter(|_| spinning == 0.0).map(ends),
    }
}

fn ends(interval: Interval<Fraction>) -> [f64; 2] {
    [interval.low().get(), interval.high().get()]
}

pub(crate) fn section(time: &ThreadTime) -> Section {
    let parts = parts(time);
    let columns = vec![
        Column::new("", "share", 0, |part: &Part| Cell::figure(Some(part.share), percent)).main(),
        Column::new("", "95%", 0, |part: &Part| {
            part.interval.map_or_else(Cell::unknown, |[low, high]| {
                Cell::new(Some(low), range_of_shares(low, high))
            })
        }),
    ];
    Section::new("", "threads", columns, &parts, |part| Label::new(part.name))
}

fn io(kind: IoKind) -> (&'static str, &'static str) {
    match kind {
        IoKind::Disk => ("disk", "waited for the disk"),
        IoKind::Socket => ("sockets", "waited for sockets"),
        IoKind::Pipe => ("pipes", "waited for pipes"),
        IoKind::Terminal => ("terminal", "waited for a terminal"),
        IoKind::Child => ("child processes", "waited for child processes"),
        IoKind::Poll => ("polling", "waited for events (poll, select, epoll)"),
        IoKind::Read => ("reading", "waited to read"),
        IoKind::Write => ("writing", "waited to write"),
        IoKind::Other => ("other I/O", "waited for other input or output"),
    }
}
