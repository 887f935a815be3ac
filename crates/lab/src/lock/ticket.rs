//! The ticket lock: each thread draws a number and waits until that number is served.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{GrantPolicy, Lock, RawLock, Wrap, each};

pub(super) fn locks<W: Wrap>() -> [Lock; 1] {
    [Lock::ours::<W, _>(
        "ticket",
        GrantPolicy::InOrderSpinning,
        "a ticket lock: never sleeps, and serves in order",
        each(Ticket::default),
    )]
}

/// The numbers may wrap around: there are far fewer threads than numbers.
#[derive(Default)]
struct Ticket {
    next: AtomicU32,
    serving: AtomicU32,
}

impl RawLock for Ticket {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // Relaxed: only uniqueness matters; `serving` provides the ordering.
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: pairs with the previous holder's store.
        while self.serving.load(Ordering::Acquire) != mine {
            spin_loop();
        }
        let done = section();
        self.serving.store(mine.wrapping_add(1), Ordering::Release);
        done
    }
}
