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
        // SAFETY: called in turn; the counter is stored with release below.
        unsafe { self.to.write(seq) };
        self.to.store(seq, Ordering::Release);
        // An eight-byte write to an eventfd succeeds completely or fails; a failure shows up as a
        // message that never arrives.
        let _ = (&*self.signal).write(&1u64.to_ne_bytes());
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        let mut count = [0; 8];
        // The read is repeated if a signal handler interrupts it.
        while (&*self.wait).read(&mut count).is_err() {}
        let seq = self.from.load(Ordering::Acquire);
        // SAFETY: the read returned because of the signal after the write; the reply comes later.
        unsafe { self.from.read(seq) }
    }
}
