//! Detects the machine's capabilities before a plan is made. In a sandbox without networking or
//! event descriptors, a run then lacks some rows, each with its reason, and does not fail.

use std::thread;

use threadtoll_machine::place;
use threadtoll_record::{Layout, Pause};

use crate::mechanism::{Mechanisms, Settings};
use crate::plan::Missing;

/// Tries to create every mechanism once, and to start a thread that keeps a CPU awake. Takes a few
/// milliseconds.
pub fn missing_capabilities(mechanisms: &Mechanisms) -> Missing {
    let settings = Settings { payload_bytes: 8, layout: Layout::Own, pause: Pause::Off };
    let here = mechanisms.all().filter(|mechanism| !mechanism.is_elsewhere());
    let mechanisms = here.filter_map(|mechanism| {
        let reason = mechanism.make(&settings).err()?;
        Some((mechanism.name.clone(), format!("this machine refuses: {reason}")))
    });
    // A new thread tries this, because an unprivileged thread cannot restore its priority
    // afterwards.
    let awake = match thread::Builder::new()
        .spawn(place::set_idle_priority)
        .map(thread::JoinHandle::join)
    {
        Ok(Ok(Err(error))) => Some(error.to_string()),
        // Any other failure will recur, and is reported when the cell is measured.
        _ => None,
    };
    Missing { mechanisms: mechanisms.collect(), awake }
}
