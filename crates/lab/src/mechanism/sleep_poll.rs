//! Polls with sleeps of 1 µs. The kernel adds its timer slack (50 µs by default), so a message
//! waits about 60 µs on average on most machines.

use std::thread;
use std::time::Duration;

use super::lanes::Lane;
use super::spin_yield::Polled;
use super::{Class, Ends, Mechanism, Settings, Unavailable};

const NAP: Duration = Duration::from_micros(1);

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new(
        "sleep-poll",
        Class::Poll,
        "a counter that the waiting thread polls, sleeping a microsecond between polls",
        make,
    )]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let (lead, follow) = Lane::pair(settings);
    Ok(Ends::two(
        Polled::new(lead, || thread::sleep(NAP)),
        Polled::new(follow, || thread::sleep(NAP)),
    ))
}
