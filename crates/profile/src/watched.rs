//! The programs that are profiled.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use threadtoll_record::profile::Ended;
use threadtoll_stacks::process::Process;

use crate::occupation::{Descriptors, Device};

/// A program of a process, from its start or the process's last `exec` on.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) pid: u32,
    /// `None` some time after it has ended: a build has more processes than there are descriptors.
    pub(crate) process: Option<Process>,
    pub(crate) is_32_bit: bool,
    pub(crate) command: Vec<OsString>,
    /// The file of the program.
    pub(crate) program: PathBuf,
    /// Number of programs that the process has executed, this one included.
    pub(crate) image: u32,
    pub(crate) parent: Option<u32>,
    pub(crate) ended: Option<Ended>,
    pub(crate) signal: Option<u8>,
    /// Names of the threads that use locks, as they were when that was first seen.
    pub(crate) names: HashMap<u32, String>,
    /// Threads of other processes that use locks of this one, with their processes and names.
    pub(crate) strangers: HashMap<u32, (u32, String)>,
    /// When it was started, until its mappings are listed once more with its libraries.
    pub(crate) started: Option<Instant>,
    /// Its threads when they were last listed, ascending.
    pub(crate) listed: Vec<u32>,
    /// It executes another program by now, which has been known since then.
    pub(crate) replaced: Option<Instant>,
    pub(crate) followed: Vec<u32>,
    /// Threads whose events are not open yet.
    pub(crate) to_follow: VecDeque<u32>,
    /// The last of these, which are to be listed once more before: most threads end by then.
    pub(crate) held_back: usize,
    /// Threads that ended between two listings, up to a few.
    pub(crate) ended_soon: u32,
}

impl Descriptors for BTreeMap<u32, Watched> {
    fn device(&self, process: u32, descriptor: u32) -> Device {
        let process = self.get(&process).and_then(|watched| watched.process.as_ref());
        let target = process.and_then(|process| process.descriptor_target(descriptor).ok());
        let target = target.as_ref().map(|target| target.as_os_str().as_encoded_bytes());
        target.map_or(Device::Other, Device::of_link)
    }
}
