//! The programs that are profiled.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use rustix::thread::{CpuSet, Pid, sched_getaffinity};
use threadtoll_record::profile::Ended;
use threadtoll_stacks::process::{
    ContendedFileLock, FileId, PipeEnd, Process, SemaphoreId, SemaphoreState, SemaphoreWait,
    Sockets, SystemCall, ThreadFacts, contended_file_locks,
};

use crate::lookups::Lookups;
use crate::occupation::{Device, EventSet, Occupation, Polled};

/// Maximum number of descriptors of a process that are searched for pipes with both ends in the
/// process, and for locks on files.
const MAX_ENDS: usize = 1024;

/// Maximum number of threads of a process whose CPUs are looked up, and number after which the
/// lookup ends if all threads may use the same CPUs.
const MAX_PLACED: usize = 512;
const ALIKE: usize = 16;

/// A program that a process executes, from the process's start or last `exec` on.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) pid: u32,
    /// `None` once the files of an ended process have been closed: a profiled build, for example,
    /// starts more processes than the profiler may have open files.
    pub(crate) process: Option<Process>,
    pub(crate) is_32_bit: bool,
    pub(crate) command: Vec<OsString>,
    pub(crate) program: PathBuf,
    /// Number of programs that the process has executed, including this one.
    pub(crate) image: u32,
    pub(crate) parent: Option<u32>,
    pub(crate) ended: Option<Ended>,
    pub(crate) signal: Option<u8>,
    /// Names of threads that use locks, or whose states over time are kept.
    pub(crate) names: HashMap<u32, String>,
    /// PID and name of each thread of another process that uses locks of this process.
    pub(crate) strangers: HashMap<u32, (u32, String)>,
    /// Time at which the program was started; `None` once the mappings have been listed again, with
    /// the program's libraries.
    pub(crate) started: Option<Instant>,
    /// Threads at the last listing, in ascending order.
    pub(crate) listed: Vec<u32>,
    /// CPUs that the threads in `listed` were allowed to use at the last listing.
    pub(crate) cpus_listed: Option<CpuSet>,
    /// Time at which the process was found to have executed another program.
    pub(crate) replaced: Option<Instant>,
    pub(crate) followed: Vec<u32>,
    pub(crate) to_follow: VecDeque<u32>,
    /// Number of threads, at the end of `to_follow`, that are followed only if they are still alive
    /// at the next listing. Most end before it.
    pub(crate) held_back: usize,
    /// Number of threads that had ended by the next listing, up to a small maximum.
    pub(crate) ended_soon: u32,
}

impl Watched {
    /// Notes the present threads, in ascending order.
    pub(crate) fn list(&mut self, threads: Vec<u32>) {
        self.cpus_listed = allowed(&threads).or(self.cpus_listed.take());
        self.listed = threads;
    }

    /// CPUs that the threads may use or, after the process has ended, could use at the last
    /// listing.
    pub(crate) fn cpus(&self) -> Option<CpuSet> {
        allowed(&self.listed).or(self.cpus_listed)
    }
}

fn allowed(threads: &[u32]) -> Option<CpuSet> {
    let mut all: Option<CpuSet> = None;
    let mut alike = true;
    for (nth, &tid) in threads.iter().take(MAX_PLACED).enumerate() {
        if nth >= ALIKE && alike {
            break;
        }
        let Some(Ok(set)) = Pid::from_raw(tid as i32).map(|pid| sched_getaffinity(Some(pid)))
        else {
            continue;
        };
        match &mut all {
            Some(all) if *all != set => {
                alike = false;
                let more = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
                more.for_each(|cpu| all.set(cpu));
            }
            Some(_) => {}
            None => all = Some(set),
        }
    }
    all
}

impl Lookups for BTreeMap<u32, Watched> {
    fn device(&self, process: u32, descriptor: u32) -> Device {
        let Some(process) = process_of(self, process) else { return Device::Other };
        match link(process, descriptor) {
            // A named pipe looks like a file.
            Device::Disk if process.is_pipe(descriptor).is_ok_and(|pipe| pipe) => Device::Pipe,
            device => device,
        }
    }

    fn in_set(&self, process: u32, set: EventSet) -> Option<Vec<Polled>> {
        let process = process_of(self, process)?;
        match set {
            EventSet::Epoll(descriptor) => {
                let watched = process.watched_by_epoll(descriptor).ok()?.into_iter();
                Some(watched.map(|it| Polled::new(it.descriptor, it.events)).collect())
            }
            set => set.descriptors(process.memory()),
        }
    }

    fn own_pipes(&self, process: u32) -> (HashSet<u32>, usize) {
        let Some(process) = process_of(self, process) else { return Default::default() };
        let mut descriptors = process.descriptors().unwrap_or_default();
        descriptors.truncate(MAX_ENDS);
        let end = |&descriptor: &u32| Some((descriptor, process.pipe_end(descriptor).ok()??));
        let ends: Vec<(u32, PipeEnd)> = descriptors.iter().filter_map(end).collect();
        let own = |(_, end): &&(u32, PipeEnd)| {
            let mut same = ends.iter().map(|(_, other)| other).filter(|it| it.pipe == end.pipe);
            same.any(|other| other.reads && !end.reads || other.writes && !end.writes)
        };
        (ends.iter().filter(own).map(|&(descriptor, _)| descriptor).collect(), descriptors.len())
    }

    fn sockets(&self, process: u32) -> Sockets {
        process_of(self, process).map(Process::sockets).unwrap_or_default()
    }

    fn socket(&self, process: u32, descriptor: u32) -> Option<u64> {
        process_of(self, process)?.socket(descriptor).ok()?
    }

    fn file(&self, process: u32, descriptor: u32) -> Option<(FileId, PathBuf)> {
        let process = process_of(self, process)?;
        process.file(descriptor).ok().zip(process.descriptor_target(descriptor).ok())
    }

    fn contended_file_locks(&self) -> Vec<ContendedFileLock> {
        contended_file_locks().unwrap_or_default()
    }

    fn pid(&self, process: u32) -> Option<u32> {
        self.get(&process).map(|watched| watched.pid)
    }

    fn has_locked(&self, file: FileId) -> Option<u32> {
        let has = |process: &Process| process.has_locked(file, MAX_ENDS).is_ok_and(|has| has);
        let has = |watched: &&Watched| watched.process.as_ref().is_some_and(has);
        self.values().find(has).map(|watched| watched.pid)
    }

    fn semaphore_wait(&self, tid: u32, call: &SystemCall) -> Option<SemaphoreWait> {
        SemaphoreWait::of_call(tid, call)
    }

    fn shares_semaphores(&self, process: u32) -> bool {
        process_of(self, process).is_some_and(Process::shares_semaphores)
    }

    fn semaphore(&self, id: SemaphoreId) -> Option<SemaphoreState> {
        id.state().ok()
    }

    fn key_of_semaphores(&self, id: SemaphoreId) -> Option<u32> {
        id.key()
    }

    fn waits_for_semaphore(&self, pid: u32, id: SemaphoreId) -> Option<bool> {
        ThreadFacts::activity_of(pid)?;
        Some(SemaphoreWait::of(pid).is_some_and(|wait| wait.semaphore == id))
    }

    fn cpu_ns(&self, process: u32, tid: u32) -> Option<u64> {
        process_of(self, process)?.cpu_ns(tid)
    }

    fn name_of_process(&self, pid: u32) -> String {
        let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
    }

    fn waits_for_work(&self, pid: u32) -> bool {
        let activity = ThreadFacts::activity_of(pid);
        let occupation = activity.as_ref().map(Occupation::of);
        matches!(occupation, Some(Occupation::Idle | Occupation::Events(_)))
    }
}

fn process_of(all: &BTreeMap<u32, Watched>, process: u32) -> Option<&Process> {
    all.get(&process)?.process.as_ref()
}

fn link(process: &Process, descriptor: u32) -> Device {
    let target = process.descriptor_target(descriptor);
    target.map_or(Device::Other, |target| Device::of_link(target.as_os_str().as_encoded_bytes()))
}
