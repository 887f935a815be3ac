//! `eventfd(2)` counters with blocking reads, one for each direction.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    // SAFETY: plain numbers.
    let number = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if number < 0 {
        return Err(Unavailable::last("eventfd"));
    }
    // SAFETY: just opened, and nobody else's.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(number) }))
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
        // A write of eight bytes to an eventfd is whole or an error; an error would show as a
        // message that never comes.
        let _ = (&*self.signal).write(&1u64.to_ne_bytes());
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        let mut count = [0; 8];
        // A signal handler interrupts the wait, so it is repeated.
        while (&*self.wait).read(&mut count).is_err() {}
        let seq = self.from.load(Ordering::Acquire);
        // SAFETY: the read ended because of the signal that followed the write; the reply comes
        // after this.
        unsafe { self.from.read(seq) }
    }
}
