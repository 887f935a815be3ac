//! Waits for anything but a known lock, over all processes, grouped by kind of time and by function
//! of the program.

use std::collections::BTreeMap;

use threadtoll_primitive::waiting::asks_about_a_lock;
use threadtoll_record::Text;
use threadtoll_record::profile::{
    HoldingProcess, IoKind, Meanwhile, Profile, Runtime, Site, StateShare, StateThen, ThreadTime,
    Wait, WaitFor, WaitKind,
};
use threadtoll_stats::Z95;

use super::time::{self, Spent};
use super::{semaphores, stack};
use crate::table::{Cell, Column, Label, Section};
use crate::units::{percent, range, time as duration};

/// A kind of time gets a line if it takes at least this share of the threads' time. Time of unknown
/// purpose needs only the lower share.
const WORTH_A_LINE: f64 = 0.1;
const UNKNOWN_WORTH_A_LINE: f64 = 0.05;

/// Maximum number of lines for kinds of time, and of functions on a line.
const MAX_LINES: usize = 3;
const MAX_FUNCTIONS: usize = 3;

/// A function is named on a line if at least this share of the line's threads wait in it.
const WORTH_NAMING: f64 = 0.05;

const LONGEST_PATH: usize = 40;

/// With fewer samples than this, a mean number of threads has no decimal.
const FEW: u64 = 30;

/// The length of sleeps is a range if its relative 95% error is at least this.
const ROUGH: f64 = 0.3;

/// The processes that hold a lock are named if they hold it for at least this share of the waiting.
const MOSTLY_HELD: f64 = 0.6;

/// Threads whose waits have the same kind and are in the same function.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    /// A wait of the group, from the first process that has one.
    pub(crate) wait: &'a Wait,
    /// Runtime of the wait's process.
    pub(crate) runtime: Option<Runtime>,
    /// Mean number of threads, over the whole profile.
    pub(crate) threads: f64,
    /// Processes that held the file lock, or the semaphore, for which the threads wait.
    held_by: Vec<HoldingProcess>,
}

impl Group<'_> {
    fn spent(&self) -> Spent {
        match self.wait.kind {
            WaitKind::Thread => Spent::Thread,
            WaitKind::Idle => Spent::Idle,
            WaitKind::Io => Spent::Io(self.wait.io.unwrap_or(IoKind::Other)),
            WaitKind::Sleep => Spent::Sleep,
            WaitKind::Unknown => Spent::Unknown,
        }
    }

    fn site(&self) -> Option<&Site> {
        self.wait.sites.first()
    }

    /// The program's function that waits, and its caller.
    pub(crate) fn place(&self) -> String {
        match (&self.wait.function, self.site()) {
            (Some(function), _) => {
                let mut of_sites =
                    self.wait.sites.iter().map(|site| stack::from_function(&site.frames, function));
                let alone = stack::from_function(&[], function);
                // If stacks show different callers, the caller is omitted.
                match of_sites.next() {
                    Some(first) if of_sites.all(|other| other == first) => first,
                    _ => alone,
                }
            }
            (None, Some(site)) => stack::outermost(site),
            (None, None) => "code that was not seen".into(),
        }
    }

    /// [`Group::place`], preceded by the function whose name suggests a lock, if there is one.
    pub(crate) fn place_with_lock(&self) -> String {
        match &self.wait.lock_function {
            Some(lock) if self.wait.what != WaitFor::LibraryLock => {
                format!("{} ← {}", stack::short_name(lock), self.place())
            }
            _ => self.place(),
        }
    }

    /// The noun for what the threads wait for, followed by its name if it has one.
    pub(crate) fn thing(&self) -> String {
        let noun = self.noun();
        if let Some(object) = self.file().or_else(|| semaphores::name(self.wait)) {
            return format!("{noun}, {object}");
        }
        match (&self.wait.name, self.library()) {
            (Some(name), _) if self.wait.what == WaitFor::LibraryLock => crate::clean::clean(name),
            (Some(name), _) => format!("{noun} {}", stack::short_name(name)),
            (None, Some(library)) => format!("{noun} in {library}"),
            (None, None) => noun,
        }
    }

    /// The path of a locked file, or the end of a long path.
    pub(crate) fn file(&self) -> Option<String> {
        let path = self.wait.name.as_deref().filter(|_| self.wait.what == WaitFor::FileLock)?;
        let path = crate::clean::clean(path);
        let beyond = path.chars().count().saturating_sub(LONGEST_PATH);
        let end = path.char_indices().nth(beyond).map_or("", |(at, _)| &path[at..]);
        Some(if beyond > 0 { format!("…{end}") } else { path })
    }

    /// The processes that held the lock, such as `held by make (PID 7)`. `None` if for most of the
    /// time it is not known who held it.
    pub(crate) fn holding_processes(&self) -> Option<String> {
        let all = &self.held_by;
        let name = |held: &HoldingProcess| {
            format!("{} (PID {})", crate::clean::clean(&held.name), held.pid)
        };
        let share = |most: usize| all.iter().take(most).map(|held| held.share.get()).sum::<f64>();
        let (first, second) = (all.first()?, all.get(1));
        match second {
            _ if share(1) >= MOSTLY_HELD => Some(format!("held by {}", name(first))),
            Some(second) if share(2) >= MOSTLY_HELD => {
                Some(format!("held in turn by {} and {}", name(first), name(second)))
            }
            _ if share(all.len()) >= MOSTLY_HELD => {
                Some(format!("held in turn by {} and others", name(first)))
            }
            _ => None,
        }
    }

    /// The function in which another thread was during the waits, such as ` while another was in
    /// write_log`.
    pub(crate) fn while_one(&self) -> String {
        let Some(of_one) = &self.wait.meanwhile else { return String::new() };
        let left = if of_one.is_like_a_lock { ", and went on one at a time" } else { "" };
        format!(" while another was in {}{left}", place(of_one))
    }

    /// Sentence about the activities of the thread that [`Group::while_one`] names.
    fn meanwhile(&self) -> Option<String> {
        let of_one = self.wait.meanwhile.as_ref()?;
        let states: Vec<String> = of_one
            .states
            .iter()
            .map(|of| format!("{} {}", state(of, &of_one.function), percent(of.share.get())))
            .collect();
        Some(format!(
            "While they waited, another thread was in {}: {}",
            place(of_one),
            states.join(", ")
        ))
    }

    pub(crate) fn is_for_same_object(&self, other: &Group<'_>) -> bool {
        (self.wait.what, &self.wait.name) == (other.wait.what, &other.wait.name)
    }

    /// Returns `true` for a lock whose holding processes mostly wait for work.
    pub(crate) fn takes_turns(&self) -> bool {
        let sum =
            |share: fn(&HoldingProcess) -> f64| -> f64 { self.held_by.iter().map(share).sum() };
        sum(|held| held.waiting_for_work.get()) > 0.5 * sum(|held| held.share.get())
    }

    /// For a futex wait of unknown purpose, the library (without symbols) that the program's
    /// function called.
    fn library(&self) -> Option<String> {
        let function = self.wait.function.as_deref().filter(|_| self.wait.what == WaitFor::Word)?;
        let frames = &self.site()?.frames;
        let inner = frames.iter().take_while(|frame| &***frame != function);
        let of_file = inner.filter_map(|frame| frame.split_once("+0x")).map(|(file, _)| file);
        of_file.filter(|file| file.contains(".so")).last().map(crate::clean::clean)
    }

    /// Length of the sleeps, such as `about 3 ms`, or `2–7 ms` if few samples show it.
    pub(crate) fn length(&self) -> Option<String> {
        let length = self.wait.sleep_ns?.get();
        // The logarithm of the length has a standard error of 1 / √samples.
        let error = Z95 / (self.samples() as f64).max(1.0).sqrt();
        Some(match error < ROUGH {
            true => format!("about {}", rough(length)),
            false => range(length * (-error).exp(), length * error.exp()),
        })
    }

    /// Mean number of threads, without a decimal if there are few samples.
    fn number(&self) -> String {
        match self.samples() < FEW && self.threads >= 1.5 {
            true => format!("~{:.0}", self.threads),
            false => decimal(self.threads),
        }
    }

    /// Number of samples with a stack in the process whose wait stands for the group.
    fn samples(&self) -> u64 {
        self.wait.sites.iter().map(|site| site.samples.get()).sum()
    }

    pub(crate) fn noun(&self) -> String {
        if let Some(length) = self.length() {
            return format!("{length} at a time");
        }
        let thing = match self.wait.what {
            WaitFor::ConditionVariable => "condition variable",
            WaitFor::Semaphore => "semaphore",
            WaitFor::Barrier => "barrier",
            WaitFor::Join => "end of a thread",
            WaitFor::Once => "initialisation",
            WaitFor::LibraryLock => "lock",
            WaitFor::Parker => "unparking",
            WaitFor::Word => "futex",
            WaitFor::Memory if self.wait.syscall.is_none() => "page fault",
            WaitFor::Other if self.wait.kind == WaitKind::Sleep => "time to pass",
            WaitFor::FileLock
            | WaitFor::SysvSemaphore
            | WaitFor::Message
            | WaitFor::Signal
            | WaitFor::Descriptor
            | WaitFor::Pipe
            | WaitFor::Memory
            | WaitFor::Other => "system call",
        };
        let call = self.wait.syscall.as_deref().map_or_else(|| thing.into(), crate::clean::clean);
        if self.wait.what == WaitFor::Pipe { format!("{call} of its own pipe") } else { call }
    }

    /// Returns `true` if the wait is known not to be for a lock: threads wait for the end of
    /// others, at a barrier, for an initialisation, for a signal, or inside a runtime.
    pub(crate) fn is_explained(&self) -> bool {
        self.wait.of_runtime
            || matches!(
                self.wait.what,
                WaitFor::Join | WaitFor::Barrier | WaitFor::Once | WaitFor::Signal
            )
    }

    /// Returns `true` if the name of a function, or the system call, suggests a wait for a lock.
    pub(crate) fn names_a_lock(&self) -> bool {
        // A function that acquires something by sleeping may be a rate limiter.
        let of_lock = |name: &str| {
            let name = name.to_ascii_lowercase();
            self.wait.kind != WaitKind::Sleep || name.contains("lock") || name.starts_with("sqlite")
        };
        let asks = self.asks_about_a_lock();
        let named = self.wait.lock_function.as_deref().is_some_and(of_lock) && !self.is_explained();
        let kind = matches!(self.wait.kind, WaitKind::Thread | WaitKind::Sleep | WaitKind::Unknown);
        let like = self.is_like_a_lock();
        kind && named && !asks
            || like && !self.is_explained()
            || matches!(self.wait.what, WaitFor::FileLock | WaitFor::LibraryLock)
            || semaphores::lock(self.wait).is_some()
    }

    /// Returns `true` if the threads were seen to leave as threads leave a lock.
    fn is_like_a_lock(&self) -> bool {
        self.wait.meanwhile.as_ref().is_some_and(|of_one| of_one.is_like_a_lock)
    }

    /// Returns `true` if the group sleeps or polls in a function whose name suggests that it tests
    /// a lock, or waits until the lock is free.
    pub(crate) fn asks_about_a_lock(&self) -> bool {
        let polls = self.wait.kind == WaitKind::Sleep || self.wait.what == WaitFor::Descriptor;
        polls && self.wait.lock_function.as_deref().is_some_and(asks_about_a_lock)
    }

    fn add(&mut self, other: Group<'_>) {
        let all = self.threads + other.threads;
        let mut held: BTreeMap<u32, HoldingProcess> = BTreeMap::new();
        for (threads, held_by) in
            [(self.threads, std::mem::take(&mut self.held_by)), (other.threads, other.held_by)]
        {
            let part = if all > 0.0 { threads / all } else { 0.0 };
            for holder in held_by {
                let (share, idle) = (holder.share.get(), holder.waiting_for_work.get());
                let none = || HoldingProcess {
                    share: 0.0.into(),
                    waiting_for_work: 0.0.into(),
                    ..holder.clone()
                };
                let of = held.entry(holder.pid).or_insert_with(none);
                of.share = (of.share.get() + part * share).into();
                of.waiting_for_work = (of.waiting_for_work.get() + part * idle).into();
            }
        }
        self.held_by = held.into_values().collect();
        self.held_by.sort_by(|one, other| other.share.get().total_cmp(&one.share.get()));
        self.threads = all;
    }

    fn is_like(&self, other_group: &Group<'_>) -> bool {
        let of = |wait: &Wait| (wait.kind, wait.io, wait.what);
        let (one, other) = (self.wait, other_group.wait);
        of(one) == of(other)
            && (&one.name, one.of_runtime) == (&other.name, other.of_runtime)
            && one.syscall == other.syscall
            && (one.what == WaitFor::LibraryLock
                || (&one.function, &one.lock_function) == (&other.function, &other.lock_function))
            // Sleeps in the same function may differ in length, so each caller has its own group.
            && (one.kind != WaitKind::Sleep || self.place() == other_group.place())
    }
}

fn place(of_one: &Meanwhile) -> String {
    let frames = of_one.states.first().map_or(&[][..], |state| &state.frames[..]);
    stack::from_function(frames, &of_one.function)
}

/// Activity of a thread inside `function`, with the functions that `function` called.
fn state(of: &StateShare, function: &str) -> String {
    let inner: Vec<Text> =
        of.frames.iter().take_while(|frame| &***frame != function).cloned().collect();
    let called = if inner.is_empty() { None } else { Some(stack::of_holder(&inner)) };
    let within = |did: &str| match &called {
        Some(called) => format!("{did} in {called}"),
        None => did.to_owned(),
    };
    match (of.state, &of.syscall) {
        (StateThen::Running, _) => within("running"),
        (StateThen::Runnable, _) => "waiting for a CPU".into(),
        (StateThen::Lock, _) => within("waiting for a lock"),
        (StateThen::Asleep, None) => within("asleep"),
        (StateThen::Asleep, Some(call)) => called.unwrap_or_else(|| crate::clean::clean(call)),
    }
}

pub(crate) fn groups(profile: &Profile) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let whole = profile.seconds.get();
    for process in &profile.processes {
        let part = process.seconds.filter(|_| whole > 0.0);
        let part = part.map_or(1.0, |seconds| (seconds.get() / whole).min(1.0));
        for wait in &process.waits {
            let threads = wait.queue_mean.get() * part;
            let held_by = wait.held_by.clone();
            let new = Group { wait, runtime: process.runtime, threads, held_by };
            match groups.iter_mut().find(|group| group.is_like(&new)) {
                Some(group) => group.add(new),
                None => groups.push(new),
            }
        }
    }
    groups.sort_by(|one, other| other.threads.total_cmp(&one.threads));
    groups
}

/// Time of the kind `spent` in the groups that satisfy `which`, as a share of the threads' time.
pub(crate) fn share_of(
    time: &ThreadTime,
    groups: &[Group<'_>],
    spent: Spent,
    which: impl Fn(&Group<'_>) -> bool,
) -> f64 {
    let part = time::parts(time).into_iter().find(|part| part.spent == spent);
    let share = part.map_or(0.0, |part| part.share);
    let of_kind = || groups.iter().filter(|group| group.spent() == spent);
    let all: f64 = of_kind().map(|group| group.threads).sum();
    let some: f64 = of_kind().filter(|group| which(group)).map(|group| group.threads).sum();
    if all > 0.0 { share * some / all } else { 0.0 }
}

pub(crate) fn lines(profile: &Profile, time: &ThreadTime, groups: &[Group<'_>]) -> Vec<String> {
    let waits =
        |spent: Spent| !matches!(spent, Spent::Cpu | Spent::Spin | Spent::Runnable | Spent::Lock);
    let parts = time::parts(time).into_iter();
    let least = |spent: Spent| match spent {
        Spent::Unknown => UNKNOWN_WORTH_A_LINE,
        _ => WORTH_A_LINE,
    };
    let worth = parts.filter(|part| waits(part.spent) && part.share >= least(part.spent));
    let mut lines = Vec::new();
    for part in worth.take(MAX_LINES) {
        lines.extend(line(profile, &part, groups));
        if part.spent == Spent::Thread {
            let most = groups.iter().find(|group| group.spent() == Spent::Thread);
            lines.extend(most.and_then(Group::meanwhile));
        }
    }
    lines
}

fn line(profile: &Profile, part: &time::Part, groups: &[Group<'_>]) -> Option<String> {
    let (unit, others) = (super::unit(profile), super::others(profile));
    let of_kind: Vec<&Group<'_>> =
        groups.iter().filter(|group| group.spent() == part.spent).collect();
    let all: f64 = of_kind.iter().map(|group| group.threads).sum();
    let named = of_kind.iter().filter(|group| group.threads >= WORTH_NAMING * all);
    let items: Vec<String> = named
        .take(MAX_FUNCTIONS)
        .enumerate()
        .map(|(nth, group)| {
            let threads = group.number();
            let unit = if nth == 0 { format!(" {unit}") } else { String::new() };
            format!("{} {threads}{unit} ({})", group.place_with_lock(), group.thing())
        })
        .collect();
    let title = match part.spent {
        Spent::Thread => format!("Waiting for {others}"),
        _ => capital(part.name),
    };
    (!items.is_empty()).then(|| format!("{title} {}: {}", percent(part.share), items.join("; ")))
}

pub(crate) fn rough(ns: f64) -> String {
    let scale = 10_f64.powf(ns.max(1.0).log10().floor() - 1.0);
    let text = duration((ns / scale).round() * scale);
    // Text such as `2.00 ms`.
    let (value, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let value = match value.contains('.') {
        true => value.trim_end_matches('0').trim_end_matches('.'),
        false => value,
    };
    format!("{value} {unit}")
}

/// A mean number of threads, with the one decimal that samples support.
pub(crate) fn decimal(threads: f64) -> String {
    format!("{:.1}", threads.min(1e9))
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

pub(crate) fn section(groups: &[Group<'_>], max_name: usize) -> Section {
    let columns = vec![
        Column::new("", "for", 0, |row: &Group<'_>| Cell::text(row.noun())),
        Column::new("", "waiting", 0, |row: &Group<'_>| Cell::figure(Some(row.threads), decimal)),
    ];
    Section::new("", "waits for other threads in", columns, groups, |row| {
        Label::new(super::locks::shortened(&row.place_with_lock(), max_name))
    })
}

/// Groups that wait for other threads. Returns none if a line for that kind of time names them all.
pub(crate) fn not_on_lines<'a>(time: Option<&ThreadTime>, groups: &[Group<'a>]) -> Vec<Group<'a>> {
    let has_line = time.is_some_and(|time| time.thread_wait.get() >= WORTH_A_LINE);
    let waits = for_threads(groups);
    if has_line && waits.len() <= MAX_FUNCTIONS { Vec::new() } else { waits }
}

fn for_threads<'a>(groups: &[Group<'a>]) -> Vec<Group<'a>> {
    groups.iter().filter(|group| group.wait.kind == WaitKind::Thread).cloned().collect()
}
