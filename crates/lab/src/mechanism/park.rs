//! `std::thread::park` and `unpark`: a counter announces the message, and the park token wakes the
//! thread.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};

use super::crossed::crossed;
use super::lanes::Lane;
use super::{Class, Ends, Exchange, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new("park", Class::Sleep, "std::thread::park and unpark", make)]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let (lead, follow) = Lane::pair(settings);
    let (leads, follows) = crossed(OnceLock::new(), OnceLock::new());
    let end = |(to, from), (own, other)| Park { to, from, own, other, seen: 0 };
    Ok(Ends::two(end(lead, leads), end(follow, follows)))
}

struct Park {
    to: Lane,
    from: Lane,
    own: Arc<OnceLock<Thread>>,
    other: Arc<OnceLock<Thread>>,
    seen: u64,
}

impl Exchange for Park {
    fn enter(&mut self) {
        // `set` fails only if this end has entered before, and then the handle is already right.
        let _ = self.own.set(thread::current());
    }

    #[inline(always)]
    fn send(&mut self, seq: u64) {
        // SAFETY: the ends take turns, so the receiver has read the previous message. The counter
        // is published with release.
        unsafe { self.to.write(seq) };
        self.to.store(seq, Ordering::Release);
        if let Some(other) = self.other.get() {
            other.unpark();
        }
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        let seq = loop {
            let seq = self.from.load(Ordering::Acquire);
            if seq != self.seen {
                break seq;
            }
            thread::park();
        };
        self.seen = seq;
        // SAFETY: the counter was read as `seq` with acquire, and this end has not replied yet.
        unsafe { self.from.read(seq) }
    }
}
