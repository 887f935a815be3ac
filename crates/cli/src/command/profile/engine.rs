//! Interface between the command and the sampler.

use std::ffi::{OsStr, OsString};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use threadtoll_profile::{Options, Profiler};
use threadtoll_record::Profile;

use crate::failure::Failure;

/// Samples a running program, or a program that the engine has launched.
pub(super) trait Engine {
    /// Samples until `length` has passed, `stop` is true or the program has ended. About once per
    /// `every`, calls `each` with everything seen so far.
    fn run(
        &mut self,
        length: Option<Duration>,
        every: Duration,
        stop: &AtomicBool,
        each: &mut dyn FnMut(&Profile),
    ) -> Profile;

    /// Sends a signal to a launched program.
    fn forward(&self, signal: i32);

    /// Exit code of a launched program that has ended; 128+S if signal S ended it.
    fn try_wait(&mut self) -> Option<u8>;
}

pub(super) fn attach(pid: u32, sampling: &Options) -> Result<Box<dyn Engine>, Failure> {
    let profiler = Profiler::attach(pid, sampling).map_err(|error| {
        let failure = Failure::usage(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    Ok(Box::new(profiler))
}

pub(super) fn launch(
    program: &OsStr,
    arguments: &[OsString],
    sampling: &Options,
) -> Result<Box<dyn Engine>, Failure> {
    let profiler = Profiler::launch(program, arguments, sampling)
        .map_err(|error| Failure::program(error.to_string(), error.exit_code()))?;
    Ok(Box::new(profiler))
}

impl Engine for Profiler {
    fn run(
        &mut self,
        length: Option<Duration>,
        every: Duration,
        stop: &AtomicBool,
        each: &mut dyn FnMut(&Profile),
    ) -> Profile {
        Profiler::run(self, length, every, stop, each)
    }

    fn forward(&self, signal: i32) {
        Profiler::forward(self, signal);
    }

    fn try_wait(&mut self) -> Option<u8> {
        Profiler::try_wait(self)
    }
}
