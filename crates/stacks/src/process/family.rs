//! Follows a process and, on request, its descendants as they fork, execute programs and end.
//!
//! New processes are found in `/proc` by their parent's PID. To save listings, `/proc` is listed
//! only if the kernel has assigned a PID since the listing before last; `/proc/loadavg` contains
//! the last PID. If a process's parent ends before the listing, as a daemon's does, the process is
//! missed unless the caller reports it with [`Family::follow`].

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitStatus;

use rustix::fs::CWD;

use super::files::{self, ShortPath};
use super::stat::Stat;
use super::{Process, ProcessError, ProgramImage};

/// Maximum length of a thread name that the kernel keeps, in bytes.
const MAX_NAME: usize = 15;

/// A process and its descendants.
#[derive(Debug)]
pub struct Family {
    members: Vec<Member>,
    descendants: Option<Descendants>,
    only: Option<OsString>,
}

#[derive(Debug)]
struct Member {
    process: Process,
    parent: Option<u32>,
    image: Option<ProgramImage>,
    /// True while the process counts as started; `--only` may exclude it.
    reported: bool,
}

/// A change in a family.
#[derive(Debug)]
pub enum FamilyEvent {
    /// A process was found.
    Started {
        /// PID of the process.
        pid: u32,
        /// [Start time](Process::start_time) of the process.
        start_time: u64,
        /// PID of the member that forked the process; `None` for the first member.
        parent: Option<u32>,
    },
    /// A process has executed another program: addresses learned from the old program are invalid.
    Replaced {
        /// PID of the process.
        pid: u32,
        /// [Start time](Process::start_time) of the process.
        start_time: u64,
    },
    /// A process has ended, or has executed a program that `--only` does not select.
    Ended {
        /// PID of the process.
        pid: u32,
        /// Exit status of the process, if the kernel reports it.
        status: Option<ExitStatus>,
    },
    /// A descendant cannot be observed.
    Unseen {
        /// PID of the process.
        pid: u32,
        /// Reason why the process cannot be observed.
        error: ProcessError,
    },
}

impl Family {
    /// Follows a process without its descendants.
    pub fn alone(process: Process) -> Family {
        Family { members: vec![Member::new(process, None)], descendants: None, only: None }
    }

    /// Follows a process and its descendants. If `only` is given, reports only processes with this
    /// name, or with a program file of this name.
    ///
    /// # Errors
    ///
    /// If `/proc` cannot be read.
    pub fn with_descendants(process: Process, only: Option<OsString>) -> io::Result<Family> {
        let members = vec![Member::new(process, None)];
        Ok(Family { members, descendants: Some(Descendants::new()?), only })
    }

    /// Processes that were reported as started, but not as ended.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.members.iter().filter(|member| member.reported).map(|member| &member.process)
    }

    /// Like [`processes`](Family::processes), but mutable, to [refresh](Process::refresh) them.
    pub fn processes_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        self.members.iter_mut().filter(|member| member.reported).map(|member| &mut member.process)
    }

    #[cfg(test)]
    pub(super) fn members(&self) -> impl Iterator<Item = &Process> {
        self.members.iter().map(|member| &member.process)
    }

    /// Returns `true` as long as any process of the family runs, even one that is not reported.
    pub fn is_running(&self) -> bool {
        self.members.iter().any(|member| member.process.is_running())
    }

    /// Checks for changes since the last call. The first call reports all processes.
    ///
    /// # Errors
    ///
    /// If `/proc` cannot be read.
    pub fn refresh(&mut self, report: &mut dyn FnMut(FamilyEvent)) -> io::Result<()> {
        // Searched before ended members are removed: their children may still name them as parents.
        let found = match &mut self.descendants {
            Some(descendants) => {
                let parents = self.members.iter().map(|member| member.process.pid());
                descendants.find(parents.collect())?
            }
            None => Vec::new(),
        };
        self.members.retain_mut(|member| {
            let running = member.process.is_running();
            if !running && member.reported {
                let status = member.process.ending();
                report(FamilyEvent::Ended { pid: member.process.pid(), status });
            }
            running
        });
        for FoundProcess { pid, parent, start_time } in found {
            self.open(pid, parent, Some(start_time), report);
        }
        for member in &mut self.members {
            member.compare(self.only.as_deref(), report);
        }
        Ok(())
    }

    /// Checks one member for changes. Call this if the member is known to have executed another
    /// program.
    pub fn check(&mut self, pid: u32, report: &mut dyn FnMut(FamilyEvent)) {
        let member = self.members.iter_mut().rfind(|member| member.process.pid() == pid);
        if let Some(member) = member {
            member.compare(self.only.as_deref(), report);
        }
    }

    /// Adds a process that the caller knows to be a descendant, for instance from a kernel event.
    /// Does nothing if the process has ended or is already a member.
    pub fn follow(&mut self, pid: u32, parent: u32, report: &mut dyn FnMut(FamilyEvent)) {
        let known = |member: &Member| member.process.pid() == pid && member.process.is_running();
        if !self.members.iter().any(known) {
            self.open(pid, parent, None, report);
        }
    }

    /// Makes the next refresh check all processes, not only new ones. Call this after a process was
    /// found late: its children may have been listed already, but not recognised as descendants.
    pub fn check_all(&mut self) {
        if let Some(descendants) = &mut self.descendants {
            descendants.forget();
        }
    }

    fn open(
        &mut self,
        pid: u32,
        parent: u32,
        start_time: Option<u64>,
        report: &mut dyn FnMut(FamilyEvent),
    ) {
        let opened = match start_time {
            Some(start_time) => Process::open_again(pid, start_time),
            None => Process::open(pid),
        };
        match opened {
            Ok(process) => self.members.push(Member::new(process, Some(parent))),
            Err(ProcessError::NotFound(_) | ProcessError::Ended(_)) => {}
            Err(error) => report(FamilyEvent::Unseen { pid, error }),
        }
    }
}

impl Member {
    fn new(process: Process, parent: Option<u32>) -> Member {
        Member { image: process.image().ok(), process, parent, reported: false }
    }

    /// Reports the process if it is new, has executed another program, or has changed its name.
    fn compare(&mut self, only: Option<&OsStr>, report: &mut dyn FnMut(FamilyEvent)) {
        let image = match self.process.image() {
            // The process is about to end or to execute a program, or its main thread has ended.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return,
            // The process now belongs to another user.
            Err(_) => None,
            Ok(image) => Some(image),
        };
        let replaced = self.image != image;
        self.image = image;
        let pid = self.process.pid();
        if !self.reported {
            self.reported = only.is_none_or(|name| self.is_called(name));
            if self.reported {
                let (start_time, parent) = (self.process.start_time(), self.parent);
                report(FamilyEvent::Started { pid, start_time, parent });
            }
        } else if replaced {
            self.reported = only.is_none_or(|name| self.is_called(name));
            report(match self.reported {
                true => FamilyEvent::Replaced { pid, start_time: self.process.start_time() },
                false => FamilyEvent::Ended { pid, status: None },
            });
        }
    }

    fn is_called(&self, name: &OsStr) -> bool {
        let kept = &name.as_bytes()[..name.len().min(MAX_NAME)];
        let own = self.process.name().is_ok_and(|own| own.as_bytes() == kept);
        own || self.process.program().is_ok_and(|program| program.file_name() == Some(name))
    }
}

#[derive(Debug)]
struct Descendants {
    proc: OwnedFd,
    /// `/proc/loadavg`; `None` if a container replaces it with a file of its own.
    load: Option<OwnedFd>,
    last_pid: Option<u32>,
    /// True if no PID was assigned between the last two listings.
    settled: bool,
    /// All processes in the last listing, in ascending order.
    known: Vec<u32>,
    listing: Vec<u32>,
}

#[derive(Debug)]
struct FoundProcess {
    pid: u32,
    parent: u32,
    start_time: u64,
}

impl Descendants {
    fn new() -> io::Result<Descendants> {
        let proc = files::open_directory(CWD, &ShortPath::new(format_args!("/proc")))?;
        let load = files::open(&proc, &ShortPath::new(format_args!("loadavg"))).ok();
        let of_the_kernel = |file: &OwnedFd| {
            rustix::fs::fstatfs(file)
                .is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC)
        };
        Ok(Descendants {
            proc,
            load: load.filter(of_the_kernel),
            last_pid: None,
            settled: false,
            known: Vec::new(),
            listing: Vec::new(),
        })
    }

    /// Makes the next search check all processes, not only new ones.
    fn forget(&mut self) {
        self.last_pid = None;
        self.settled = false;
        self.known.clear();
    }

    /// Finds processes that are new since the last call and descend from `parents`.
    fn find(&mut self, mut parents: Vec<u32>) -> io::Result<Vec<FoundProcess>> {
        let last_pid = self.load.as_ref().and_then(last_pid);
        // The kernel assigns a PID shortly before it lists the process. So a listing is complete
        // only if an earlier listing already saw the same last PID.
        let same = last_pid.is_some() && last_pid == self.last_pid;
        if same && self.settled {
            return Ok(Vec::new());
        }
        self.settled = same;
        if last_pid < self.last_pid {
            // PIDs have wrapped around, so known PIDs may belong to new processes.
            self.known.clear();
        }
        self.last_pid = last_pid;
        files::list_numbers(&self.proc, &mut self.listing)?;
        let is_new = |pid: &u32| self.known.binary_search(pid).is_err() && !parents.contains(pid);
        let mut others: Vec<FoundProcess> = self
            .listing
            .iter()
            .copied()
            .filter(is_new)
            .filter_map(|pid| {
                let stat =
                    Stat::read(&self.proc, &ShortPath::new(format_args!("{pid}/stat"))).ok()?;
                Some(FoundProcess { pid, parent: stat.parent, start_time: stat.start_time })
            })
            .collect();
        std::mem::swap(&mut self.known, &mut self.listing);
        // A parent may have a higher PID than its child, so one pass may not find all descendants.
        let mut found = Vec::new();
        loop {
            let before = found.len();
            found.extend(others.extract_if(.., |other| parents.contains(&other.parent)));
            if found.len() == before {
                return Ok(found);
            }
            parents.extend(found[before..].iter().map(|found| found.pid));
        }
    }
}

/// Number of processes whose parent is the process `pid`; 0 if `/proc` cannot be read.
pub fn number_of_children(pid: u32) -> u32 {
    if let Some(children) = children_of_threads(pid) {
        return children;
    }
    let found = Descendants::new().and_then(|mut all| all.find(vec![pid]));
    found.map_or(0, |found| found.iter().filter(|one| one.parent == pid).count() as u32)
}

/// The kernel's own lists, one per thread. `None` if the process has so many threads that listing
/// all processes is hardly slower, or if the kernel was built without these lists.
fn children_of_threads(pid: u32) -> Option<u32> {
    const MAX_THREADS: usize = 64;
    const MAX_LIST: usize = 64 << 10;
    let path = ShortPath::new(format_args!("/proc/{pid}/task"));
    let tasks = files::open_directory(CWD, &path).ok()?;
    let mut threads = Vec::new();
    files::list_numbers(&tasks, &mut threads).ok()?;
    if threads.is_empty() || threads.len() > MAX_THREADS {
        return None;
    }
    let children = threads.iter().map(|tid| {
        let path = ShortPath::new(format_args!("{tid}/children"));
        let list = files::read(&tasks, &path, MAX_LIST).ok()?;
        Some(list.split(|byte| *byte == b' ').filter(|pid| !pid.is_empty()).count() as u32)
    });
    children.sum()
}

fn last_pid(load: &OwnedFd) -> Option<u32> {
    let mut line = [0; 128];
    let length = rustix::io::pread(load, &mut line, 0).ok()?;
    std::str::from_utf8(&line[..length]).ok()?.trim_end().rsplit(' ').next()?.parse().ok()
}
