//! Idle states of a CPU.
//!
//! On a virtual machine, these are the guest's states; the states of the host's CPU are hidden.
//!
//! Source: `Documentation/admin-guide/pm/cpuidle.rst`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use threadtoll_record::{IdleBlock, IdleStateBlock, Text};

use crate::sysfs;

/// The kernel's limit (`CPUIDLE_STATE_MAX`).
const MAX_STATES: usize = 10;

/// Reads the counters of a CPU's idle states.
#[derive(Debug)]
pub struct IdleProbe {
    states: Vec<State>,
}

#[derive(Debug)]
struct State {
    name: Text,
    usage: File,
    time: File,
}

/// Counters of a CPU's idle states at one point in time.
#[derive(Clone, Debug)]
pub struct IdleCounters {
    at: Instant,
    /// Time in microseconds and number of entries, by state.
    states: Vec<[u64; 2]>,
}

impl IdleProbe {
    /// Opens the counters of a CPU in the tree under `root`, which is `/sys` on a real machine. If
    /// there are no counters, the probe has no states.
    pub fn new(root: &Path, cpu: u32) -> IdleProbe {
        let folder = root.join(format!("devices/system/cpu/cpu{cpu}/cpuidle"));
        let state = |index: usize| {
            let folder = folder.join(format!("state{index}"));
            Some(State {
                name: sysfs::text(folder.join("name"))?.as_str().into(),
                usage: File::open(folder.join("usage")).ok()?,
                time: File::open(folder.join("time")).ok()?,
            })
        };
        IdleProbe { states: (0..MAX_STATES).map_while(state).collect() }
    }

    /// Reads the counters; `None` if one of them cannot be read.
    pub fn sample(&self) -> Option<IdleCounters> {
        let state = |state: &State| Some([number(&state.time)?, number(&state.usage)?]);
        let states = self.states.iter().map(state).collect::<Option<_>>()?;
        Some(IdleCounters { at: Instant::now(), states })
    }

    /// Time in each state between two samples.
    ///
    /// The kernel counts a stay when it ends, even if the stay began before the first sample. Each
    /// time is therefore capped at the time between the samples.
    pub fn between(&self, before: &IdleCounters, after: &IdleCounters) -> IdleBlock {
        let window_ns = after.at.duration_since(before.at).as_nanos() as u64;
        let counters = before.states.iter().zip(&after.states);
        let states = self.states.iter().zip(counters).map(|(state, (before, after))| {
            let [us, entered] = [0, 1].map(|which| after[which].saturating_sub(before[which]));
            IdleStateBlock {
                name: state.name.clone(),
                time_ns: us.saturating_mul(1000).min(window_ns).into(),
                entered: entered.into(),
            }
        });
        IdleBlock { window_ns: window_ns.into(), states: states.collect() }
    }
}

fn number(file: &File) -> Option<u64> {
    let mut buffer = [0u8; 32];
    let length = file.read_at(&mut buffer, 0).ok()?;
    std::str::from_utf8(&buffer[..length]).ok()?.trim().parse().ok()
}
