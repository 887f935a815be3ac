//! The bare futex system call: the cost of sleeping and waking. See `futex(2)`.
//!
//! The receiver sleeps until the word differs from the value that it last saw. The sender changes
//! the word and wakes one sleeper. It always makes the system call, because it cannot tell if a
//! thread sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cache_padded::CachePadded;
use crate::wrap::{Unwrapped, Wrap};

use super::crossed::crossed;
use super::lanes::Lane;
use super::{Class, Ends, Exchange, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [futex::<Unwrapped>()]
}

pub(crate) fn futex<W: Wrap>() -> Mechanism {
    Mechanism::new(
        "futex",
        Class::Sleep,
        "the bare futex system call: waits while the word is unchanged, and wakes one thread",
        make::<W>,
    )
}

fn make<W: Wrap>(settings: &Settings) -> Result<Ends, Unavailable> {
    let (lead, follow) = Lane::pair(settings);
    let (leads, follows) = crossed(Word::default(), Word::default());
    let end = |(to, from), (wake, wait)| W::end(Futex { to, from, wake, wait, seen: 0 });
    Ok(Ends::two(end(lead, leads), end(follow, follows)))
}

type Word = CachePadded<AtomicU32>;

struct Futex {
    to: Lane,
    from: Lane,
    wake: Arc<Word>,
    wait: Arc<Word>,
    seen: u32,
}

impl Exchange for Futex {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        // SAFETY: the ends take turns, so the receiver has read the previous message. The word is
        // published with release below.
        unsafe { self.to.write(seq) };
        self.to.store(seq, Ordering::Relaxed);
        self.wake.0.store(seq as u32, Ordering::Release);
        wake_one(&self.wake.0);
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        loop {
            let word = self.wait.0.load(Ordering::Acquire);
            if word != self.seen {
                self.seen = word;
                break;
            }
            wait_while(&self.wait.0, word);
        }
        let seq = self.from.load(Ordering::Relaxed);
        // SAFETY: the acquire load of the word saw the sender's release store, and this end has not
        // replied yet.
        unsafe { self.from.read(seq) }
    }
}

/// Sleeps while `word` equals `value`. May wake spuriously.
///
/// Never inlined: its callers are also compiled in another crate, which cannot inline this
/// function. Both copies of a caller must consist of the same instructions.
#[inline(never)]
fn wait_while(word: &AtomicU32, value: u32) {
    // SAFETY: the word is valid for the whole call, and a null timeout means none.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            std::ptr::null::<libc::timespec>(),
        )
    };
}

/// Never inlined, for the same reason as [`wait_while`].
#[inline(never)]
fn wake_one(word: &AtomicU32) {
    // SAFETY: the word is valid for the whole call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
}
