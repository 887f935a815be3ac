//! System V semaphores as locks: *kernel* locks in the sense of *Locks aren't slow* (J. Preshing,
//! 2011).

use std::sync::Arc;

use crate::error::Unavailable;
use crate::mechanism::sysv_semaphore::{IDLE_S, Set, remove_leftovers};

use super::{GrantPolicy, Lock, RawLock, Wrap};

pub(super) fn locks<W: Wrap>() -> [Lock; 1] {
    [Lock::ours::<W, _>(
        "sysv-semaphore",
        GrantPolicy::InOrder,
        "a System V semaphore: a kernel lock, every operation a system call",
        SysVSemaphore::make,
    )]
}

struct SysVSemaphore {
    set: Arc<Set>,
    semaphore: u16,
}

impl SysVSemaphore {
    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        remove_leftovers(IDLE_S);
        let set = Arc::new(Set::new(count as u16)?);
        (0..count as u16)
            .map(|semaphore| {
                // Semaphores start at zero, which is locked.
                if set.operate(semaphore, 1) {
                    Ok(SysVSemaphore { set: Arc::clone(&set), semaphore })
                } else {
                    Err(Unavailable::last("semop"))
                }
            })
            .collect()
    }
}

impl RawLock for SysVSemaphore {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // If another process removes the set, the lock is open to all, and the row's figures are
        // meaningless.
        self.set.operate(self.semaphore, -1);
        let done = section();
        self.set.operate(self.semaphore, 1);
        done
    }
}
