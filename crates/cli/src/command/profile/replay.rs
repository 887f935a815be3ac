//! Replays the profiles in a file instead of sampling, to test everything except the sampler.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use threadtoll_record::{Line, Profile};

use super::engine::Engine;
use crate::failure::Failure;

/// Time between two profiles. The longer interval of the command would make replays too long.
const STEP: Duration = Duration::from_millis(20);

pub(super) struct Replay {
    profiles: Vec<Profile>,
    program: Option<Child>,
}

impl Replay {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let unusable = |why: String| Failure::usage(format!("--replay {}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
        let mut trace = None;
        let profiles: Vec<Profile> = text
            .lines()
            .filter_map(|line| match serde_json::from_str(line) {
                Ok(Line::Profile(profile)) => Some(Profile { trace: trace.take(), ..*profile }),
                Ok(Line::Trace(found)) => {
                    trace = Some(found);
                    None
                }
                _ => None,
            })
            .collect();
        if profiles.is_empty() {
            return Err(unusable("it has no profiles".into()));
        }
        Ok(Replay { profiles, program: None })
    }

    pub(super) fn launch(
        mut self,
        program: &OsStr,
        arguments: &[OsString],
    ) -> Result<Self, Failure> {
        let started = Command::new(program).args(arguments).spawn().map_err(|error| {
            let (code, why) = match error.kind() {
                io::ErrorKind::NotFound => (127, "there is no such program".to_string()),
                _ => (126, error.to_string()),
            };
            Failure::program(format!("cannot run {}: {why}", program.display()), code)
        })?;
        self.program = Some(started);
        Ok(self)
    }
}

impl Engine for Replay {
    fn run(
        &mut self,
        length: Option<Duration>,
        every: Duration,
        stop: &AtomicBool,
        each: &mut dyn FnMut(&Profile),
    ) -> Profile {
        let end = length.map(|length| Instant::now() + length);
        let mut shown = 0;
        loop {
            let current = &self.profiles[shown.min(self.profiles.len() - 1)];
            each(current);
            // A run never ends before its last profile, because tests wait for that profile. On a
            // slow machine, `length` may have passed before.
            let all = shown + 1 >= self.profiles.len();
            let over = all && end.is_some_and(|end| Instant::now() >= end);
            if over || stop.load(Ordering::SeqCst) {
                return current.clone();
            }
            if let Some(Ok(Some(_))) = self.program.as_mut().map(Child::try_wait) {
                return current.clone();
            }
            std::thread::sleep(every.min(STEP));
            shown += 1;
        }
    }

    fn forward(&self, signal: i32) {
        let Some(program) = &self.program else { return };
        let pid = i32::try_from(program.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let (Some(pid), Some(signal)) = (pid, rustix::process::Signal::from_named_raw(signal)) {
            // A program that has just ended needs no signal.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    fn try_wait(&mut self) -> Option<u8> {
        match self.program.as_mut()?.try_wait() {
            Ok(status) => status.map(exit_code),
            // The exit status is lost, so the program counts as failed.
            Err(_) => Some(1),
        }
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
