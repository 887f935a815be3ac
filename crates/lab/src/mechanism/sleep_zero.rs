//! Polling with a sleep of zero between looks: a system call, and no more than that.

use std::thread;
use std::time::Duration;

use super::lanes::Lane;
use super::spin_yield::Polled;
use super::{Class, Ends, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new(
        "sleep-zero",
        Class::Poll,
        "a counter that the other end polls, asking for a sleep of 1 ns between looks",
        make,
    )]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let nap = || thread::sleep(Duration::from_nanos(1));
    let (lead, follow) = Lane::pair(settings);
    Ok(Ends::two(Polled::new(lead, nap), Polled::new(follow, nap)))
}
