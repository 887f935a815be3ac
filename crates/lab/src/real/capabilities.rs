//! Capabilities of this machine, found out before a plan is made: a sandbox without networking or
//! System V semaphores costs rows of the ladder, each with its reason, and not the run.

use std::thread;

use threadtoll_machine::place;
use threadtoll_record::{Layout, Pause};

use crate::mechanism::{Mechanisms, Settings};
use crate::plan::Missing;

/// Tries to make every mechanism once, and a thread that keeps a CPU awake. Takes a few
/// milliseconds.
pub fn missing_capabilities(mechanisms: &Mechanisms) -> Missing {
    let settings = Settings { payload_bytes: 8, layout: Layout::Own, pause: Pause::Off };
    let mechanisms = mechanisms.all().filter_map(|mechanism| {
        let reason = mechanism.make(&settings).err()?;
        Some((mechanism.name.clone(), format!("this machine refuses it: {reason}")))
    });
    // On a thread of its own, which without privilege could not get its priority back.
    let awake = match thread::Builder::new()
        .spawn(place::set_idle_priority)
        .map(thread::JoinHandle::join)
    {
        Ok(Ok(Err(error))) => Some(error.to_string()),
        // What else can fail will fail again, and louder, when it is measured.
        _ => None,
    };
    Missing { mechanisms: mechanisms.collect(), awake }
}
