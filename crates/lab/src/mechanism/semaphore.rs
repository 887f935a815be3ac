//! POSIX semaphores, one per direction. Posting makes a system call only if a thread sleeps.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cache_padded::CachePadded;

use super::crossed::crossed;
use super::lanes::Lane;
use super::{Class, Ends, Exchange, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new("semaphore", Class::Sleep, "POSIX semaphores: sem_post and sem_wait", make)]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let (lead, follow) = Lane::pair(settings);
    let (leads, follows) = crossed(Semaphore::new()?, Semaphore::new()?);
    let end = |(to, from), (post, wait)| Posting { to, from, post, wait };
    Ok(Ends::two(end(lead, leads), end(follow, follows)))
}

struct Semaphore(Box<CachePadded<UnsafeCell<libc::sem_t>>>);

// SAFETY: semaphores may be shared by threads, and only the C library accesses them.
unsafe impl Send for Semaphore {}
// SAFETY: as for `Send`.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    fn new() -> Result<Self, Unavailable> {
        // SAFETY: a `sem_t` is plain bytes, and it is initialised before any other use.
        let bytes = unsafe { std::mem::zeroed() };
        let semaphore = Semaphore(Box::new(CachePadded(UnsafeCell::new(bytes))));
        // SAFETY: the semaphore stays in its box until it is destroyed.
        if unsafe { libc::sem_init(semaphore.0.0.get(), 0, 0) } != 0 {
            return Err(Unavailable::last("sem_init"));
        }
        Ok(semaphore)
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: the semaphore is initialised. Both ends are gone, so no thread waits on it.
        unsafe { libc::sem_destroy(self.0.0.get()) };
    }
}

struct Posting {
    to: Lane,
    from: Lane,
    post: Arc<Semaphore>,
    wait: Arc<Semaphore>,
}

impl Exchange for Posting {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        // SAFETY: the ends take turns. The other end's wait returns after the post below.
        unsafe { self.to.write(seq) };
        self.to.store(seq, Ordering::Relaxed);
        // SAFETY: the semaphore is initialised, and this end keeps it alive.
        unsafe { libc::sem_post(self.post.0.0.get()) };
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        // SAFETY: the semaphore is initialised, and this end keeps it alive. The wait is repeated
        // if a signal handler interrupts it.
        while unsafe { libc::sem_wait(self.wait.0.0.get()) } != 0 {}
        let seq = self.from.load(Ordering::Relaxed);
        // SAFETY: the sender posts after it writes, so the message is complete; this end has not
        // replied yet.
        unsafe { self.from.read(seq) }
    }
}
