//! The profiled programs: they start and end, load libraries, and have static locks.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use threadtoll_record::profile::Ended;
use threadtoll_stacks::image::Image;
use threadtoll_stacks::process::{FamilyEvent, Process, ProcessError, Switches, ThreadFacts};

use super::Profiler;
use super::throttle::Throttle;
use crate::account::{Presence, ProcessAccount};
use crate::clock::{now, since_boot};
use crate::sample::Order;
use crate::watched::Watched;

const STATIC_LOCKS_SHARE: f64 = 0.1;

const MAX_TIMED: usize = 4;

const LOADING: Duration = Duration::from_millis(200);

impl Profiler {
    pub(super) fn watch(
        &mut self,
        pid: u32,
        start_time: u64,
        parent: Option<u32>,
        image: u32,
    ) -> Result<(), ProcessError> {
        let open = || Process::open_again(pid, start_time);
        let (own, process) = (open()?, open()?);
        // Read first: anything read earlier might belong to the program that the process executed
        // before.
        let run = process.program_run();
        let index = self.next_index;
        self.next_index += 1;
        let command = own.command_line().unwrap_or_default();
        let (followed, to_follow) = (Vec::new(), VecDeque::new());
        let (names, ended) = (HashMap::new(), None);
        self.stacks.table.open(index, &own);
        let mut account = ProcessAccount::new(pid);
        account.presence = Presence::awaited();
        account.found_after_s = self.lived_s(start_time);
        account.go = self.stacks.table.any_image(index, |image| image.has_section(".go.buildinfo"));
        let path = own.program().unwrap_or_default();
        let program = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        // The program's name decides as well, because the libraries of a launched program are not
        // mapped yet.
        account.jvm = program == "java" || self.stacks.table.any_image(index, is_jvm);
        account.foreign_libc = self.stacks.table.any_image(index, |image| {
            image.name().starts_with("ld-musl-")
                || image.name() == "libc.so"
                || image.name() == program && is_static_without_glibc(image)
        });
        account.major_faults = [own.major_faults().unwrap_or(0); 2];
        self.account.add(index, account);
        let watched = Watched {
            pid,
            is_32_bit: own.is_32_bit().unwrap_or(false),
            process: Some(own),
            command,
            program: path,
            image,
            parent,
            ended,
            signal: None,
            names,
            strangers: HashMap::new(),
            listed: Vec::new(),
            cpus_listed: None,
            replaced: None,
            started: self.launched.as_ref().map(|_| Instant::now()),
            followed,
            to_follow,
            held_back: 0,
            ended_soon: 0,
        };
        self.watched.insert(index, watched);
        self.throttle.get_or_insert_with(|| Throttle::of_process(pid));
        _ = self.orders.send(Order::Follow(index, Box::new(process), run));
        self.declare_static_locks();
        Ok(())
    }

    /// Age in seconds of a process that started at `start_time`, in clock ticks since boot. Returns
    /// `None` if the process started before the profile.
    fn lived_s(&self, start_time: u64) -> Option<f64> {
        let start_s = start_time as f64 / rustix::param::clock_ticks_per_second() as f64;
        let lived = (since_boot() as f64 / 1e9 - start_s).max(0.0);
        (lived < self.began.elapsed().as_secs_f64()).then_some(lived)
    }

    /// Lists the mappings of launched programs again after they have loaded their libraries, as the
    /// budget for static locks allows.
    pub(super) fn list_libraries(&mut self) {
        let allowed = self.allowed(STATIC_LOCKS_SHARE);
        let has_loaded =
            |watched: &Watched| watched.started.is_some_and(|at| at.elapsed() >= LOADING);
        for (&index, watched) in self.watched.iter_mut().filter(|(_, watched)| has_loaded(watched))
        {
            if self.declaring >= allowed {
                break;
            }
            watched.started = None;
            let Some(process) = &watched.process else { continue };
            let began = Instant::now();
            self.stacks.table.list(index, process);
            if let Some(account) = self.account.living(index) {
                account.jvm |= self.stacks.table.any_image(index, is_jvm);
            }
            self.declaring += began.elapsed();
        }
    }

    pub(super) fn declare_static_locks(&mut self) {
        let allowed = self.allowed(STATIC_LOCKS_SHARE);
        let began = Instant::now();
        let left = allowed.saturating_sub(self.declaring);
        let at = now();
        let mut words: HashMap<u32, Vec<_>> = HashMap::new();
        for (index, lock) in self.static_locks.find(&mut self.stacks.table, began + left) {
            let Some(account) = self.account.living(index) else { continue };
            // Debug information only names the type. C libraries other than glibc have another
            // layout.
            if account.foreign_libc && lock.name().starts_with("glibc") {
                continue;
            }
            words.entry(index).or_default().extend(account.declare(lock, at));
        }
        for (index, words) in words {
            _ = self.orders.send(Order::Watch(index, words));
        }
        self.declaring += began.elapsed();
    }

    /// Notes the CPU time and the switches of some processes, of those with locks first.
    pub(super) fn note_cpu_time(&mut self) {
        let mut timed: Vec<(u32, &mut ProcessAccount)> = self.account.all_living().collect();
        let machine = Switches::on_machine();
        timed.sort_by_key(|(_, account)| !(account.waits_for_locks() || account.go));
        for (index, account) in timed.into_iter().take(MAX_TIMED) {
            let process = self.watched.get(&index).and_then(|watched| watched.process.as_ref());
            if let Some(ticks) = process.and_then(|process| process.cpu_ticks().ok()) {
                account.note_cpu_ticks(ticks);
            }
            let Some(machine) = machine else { continue };
            let pid = account.pid;
            let switches = |tid| {
                let facts = ThreadFacts::read(tid).filter(|facts| facts.process == pid)?;
                Some((tid, facts.switches?))
            };
            let threads = account.count_next().into_iter();
            let counted: Vec<(u32, Switches)> = threads.filter_map(switches).collect();
            account.note_switches(&counted, machine, now());
        }
    }

    pub(super) fn count_major_faults(&mut self) {
        for (index, account) in self.account.all_living().filter(|(_, of)| of.has_paged()) {
            let process = self.watched.get(&index).and_then(|watched| watched.process.as_ref());
            if let Some(faults) = process.and_then(|process| process.major_faults().ok()) {
                account.major_faults[1] = faults;
            }
        }
    }

    pub(super) fn refresh_family(&mut self) {
        let mut changes = Vec::new();
        // If one listing fails, the next one finds the changes.
        _ = self.family.refresh(&mut |event| changes.push(event));
        self.change_family(changes);
    }

    /// Follows processes that were reported as forked: the parent may end before its children are
    /// listed.
    pub(super) fn follow_forks(&mut self, forks: &[(u32, u32)]) {
        let mut changes = Vec::new();
        if self.launched.is_some() {
            for &(pid, parent) in forks {
                self.family.follow(pid, parent, &mut |event| changes.push(event));
            }
        }
        self.change_family(changes);
    }

    pub(super) fn change_family(&mut self, changes: Vec<FamilyEvent>) {
        for change in changes {
            match change {
                FamilyEvent::Started { pid, start_time, parent } => {
                    self.watch_or_say(pid, start_time, parent, 1);
                }
                FamilyEvent::Replaced { pid, start_time } => {
                    let before = self.leave(pid, Ended::Exec);
                    let before = before.and_then(|before| self.watched.get(&before));
                    let parent = before.and_then(|before| before.parent);
                    let image = before.map_or(1, |before| before.image + 1);
                    self.watch_or_say(pid, start_time, parent, image);
                }
                FamilyEvent::Ended { pid, status } => {
                    _ = self.leave(pid, Ended::Exit);
                    let exited = |watched: &&mut Watched| {
                        watched.pid == pid && watched.ended == Some(Ended::Exit)
                    };
                    if let Some(signal) = status.and_then(|status| status.signal())
                        && let Some(watched) = self.watched.values_mut().rev().find(exited)
                    {
                        watched.ended = Some(Ended::Signal);
                        watched.signal = u8::try_from(signal).ok();
                    }
                }
                FamilyEvent::Unseen { pid, error } => self.unseen.process(pid, &error),
            }
        }
    }

    pub(super) fn watch_or_say(
        &mut self,
        pid: u32,
        start_time: u64,
        parent: Option<u32>,
        image: u32,
    ) {
        match self.watch(pid, start_time, parent, image) {
            Ok(()) | Err(ProcessError::NotFound(_) | ProcessError::Ended(_)) => {}
            Err(error) => self.unseen.process(pid, &error),
        }
    }

    pub(super) fn leave(&mut self, pid: u32, ended: Ended) -> Option<u32> {
        let alive = |watched: &Watched| watched.pid == pid && watched.ended.is_none();
        let (&index, _) = self.watched.iter().rfind(|(_, watched)| alive(watched))?;
        self.end(index, ended);
        _ = self.orders.send(Order::Leave(index));
        Some(index)
    }

    /// Handles the end of a process. Closes the events of its threads, because the ends of the
    /// threads may not have been reported.
    pub(super) fn end(&mut self, index: u32, ended: Ended) {
        let Some(watched) = self.watched.get_mut(&index) else { return };
        watched.ended.get_or_insert(ended);
        if let Some(account) = self.account.living(index) {
            account.ended = true;
        }
        watched.to_follow.clear();
        let followed = std::mem::take(&mut watched.followed);
        if let Ok(events) = &mut self.events.open {
            followed.into_iter().for_each(|tid| events.forget(tid));
        }
    }

    /// Closes the files of processes that have ended, once their last samples have been folded.
    pub(super) fn close_ended(&mut self) {
        for (&index, watched) in self.watched.iter_mut().filter(|(_, of)| of.ended.is_some()) {
            if watched.process.take().is_some() {
                self.stacks.table.close(index);
            }
        }
    }
}

fn is_jvm(image: &Image) -> bool {
    image.name() == "libjvm.so"
}

/// Returns `true` for a static program without glibc. With glibc, a static program has a note that
/// names the oldest kernel on which it runs. Go programs do not count, because Go's runtime does
/// not use a C library.
fn is_static_without_glibc(program: &Image) -> bool {
    let has = |name| program.has_section(name);
    has(".text") && !has(".interp") && !has(".note.ABI-tag") && !has(".go.buildinfo")
}
