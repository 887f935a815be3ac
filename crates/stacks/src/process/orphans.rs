//! Finds processes that a program has left behind: daemons and other background processes.
//!
//! Once the parent of such a process has ended, the kernel no longer knows the parent's PID. The
//! process is recognised by its start time, its process group or session, and its program.

use std::fmt::Display;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::files::{self, ShortPath};
use super::stat::Stat;

const MOST_ANCESTORS: usize = 64;

/// Maximum number of bytes read of `/proc/PID/cgroup`, which has a line for each of a dozen
/// controllers.
const MAX_CGROUPS: usize = 64 << 10;

/// A family of processes that has ended.
#[derive(Debug)]
pub struct Former<'a> {
    /// [Start time](super::Process::start_time) of the family's first process.
    pub since: u64,
    /// PIDs of the family's processes.
    pub pids: &'a [u32],
    /// The files of the programs that the family executed.
    pub programs: &'a [PathBuf],
}

/// PIDs of processes that probably belong to the family `former`: orphans, and other members of the
/// family's process groups and sessions.
pub fn orphans(former: &Former<'_>) -> Vec<u32> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(proc) = rustix::fs::openat(CWD, "/proc", flags, Mode::empty()) else {
        return Vec::new();
    };
    let mut pids = Vec::new();
    if files::list_numbers(&proc, &mut pids).is_err() {
        return Vec::new();
    }
    let reapers = reapers();
    let own = Origin::of(&proc, "self");
    pids.retain(|&pid| {
        let path = |file| ShortPath::new(format_args!("{pid}/{file}"));
        let Ok(stat) = Stat::read(&proc, &path("stat")) else { return false };
        if stat.ended() || stat.start_time < former.since || pid == std::process::id() {
            return false;
        }
        let is_former = |pid: u32| former.pids.contains(&pid);
        // Another user or a service manager may have started the same program.
        let is_daemon = || {
            reapers.contains(&stat.parent)
                && Origin::of(&proc, pid).is_some_and(|origin| {
                    own.as_ref().is_some_and(|own| origin.may_be_left_by(own))
                })
        };
        let program = || {
            let link = rustix::fs::readlinkat(&proc, path("exe").as_str(), Vec::new()).ok()?;
            link.into_string().ok()
        };
        let is_of_program =
            |program: String| former.programs.iter().any(|former| former == Path::new(&program));
        is_former(stat.group)
            || is_former(stat.session)
            || is_daemon() && program().is_some_and(is_of_program)
    });
    pids
}

/// Properties that tell where a daemon comes from. A daemon has another session than the process
/// that started it, but the same cgroups and, usually, the same user.
#[derive(PartialEq, Eq)]
struct Origin {
    session: u32,
    user: u32,
    cgroups: Vec<u8>,
}

impl Origin {
    fn of(proc: impl AsFd + Copy, process: impl Display) -> Option<Origin> {
        let path = |file| ShortPath::new(format_args!("{process}/{file}"));
        let stat = path("stat");
        let owner = rustix::fs::statat(proc, stat.as_str(), AtFlags::empty()).ok()?;
        let session = Stat::read(proc, &stat).ok()?.session;
        let cgroups = files::read(proc, &path("cgroup"), MAX_CGROUPS).unwrap_or_default();
        Some(Origin { session, user: owner.st_uid, cgroups })
    }

    /// Returns `true` if this process could be a daemon that `other` started. A daemon started by
    /// root may have changed its user.
    fn may_be_left_by(&self, other: &Origin) -> bool {
        self.session != other.session
            && self.cgroups == other.cgroups
            && (self.user == other.user || other.user == 0)
    }
}

/// Session of this process; 0 if the session belongs to another PID namespace.
pub fn own_session() -> Option<u32> {
    let path = ShortPath::new(format_args!("/proc/self/stat"));
    Stat::read(CWD, &path).ok().map(|stat| stat.session)
}

/// PIDs of processes that may adopt an orphan: PID 1, and the ancestors of this process, any of
/// which may be a subreaper (`PR_SET_CHILD_SUBREAPER`, prctl(2)).
fn reapers() -> Vec<u32> {
    let mut reapers = vec![1];
    let mut next = Some(std::os::unix::process::parent_id());
    while let Some(pid) = next.filter(|&pid| pid > 1 && reapers.len() < MOST_ANCESTORS) {
        reapers.push(pid);
        let path = ShortPath::new(format_args!("/proc/{pid}/stat"));
        next = Stat::read(CWD, &path).ok().map(|stat| stat.parent);
    }
    reapers
}
