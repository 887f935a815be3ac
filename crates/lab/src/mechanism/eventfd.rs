//! `eventfd(2)` counters with blocking reads, one per direction.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{EventfdFlags, eventfd};

use super::crossed::crossed;
use super::lanes::Lane;
use super::{Class, Ends, Exchange, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new("eventfd", Class::Sleep, "eventfd counters with blocking reads", make)]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let (lead, follow) = Lane::pair(settings);
    let (leads, follows) = crossed(counter()?, counter()?);
    let end = |(to, from), (signal, wait)| EventFd { to, from, signal, wait };
    Ok(Ends::two(end(lead, leads), end(follow, follows)))
}

fn counter() -> Result<File, Unavailable> {
    let opened = eventfd(0, EventfdFlags::CLOEXEC);
    opened.map(File::from).map_err(|error| Unavailable::new("eventfd", error.into()))
}

struct EventFd {
    to: Lane,
    from: Lane,
    signal: Arc<File>,
    wait: Arc<File>,
}

impl Exchange for EventFd {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        // SAFETY: the ends take turns, so the receiver has read the previous message. The counter
        // is stored with release below.
        unsafe { self.to.write(seq) };
        self.to.store(seq, Ordering::Release);
        // An 8-byte write to an eventfd is never partial. If it fails, the message never arrives,
        // which the engine reports.
        let _ = (&*self.signal).write(&1u64.to_ne_bytes());
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        let mut count = [0; 8];
        // A signal handler may interrupt the read.
        while (&*self.wait).read(&mut count).is_err() {}
        let seq = self.from.load(Ordering::Acquire);
        // SAFETY: the sender signals after it writes, so the message is complete; this end has not
        // replied yet.
        unsafe { self.from.read(seq) }
    }
}
