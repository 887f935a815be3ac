//! Ruby's global lock.
//!
//! Source: CRuby 2.7 to 3.4, `thread_pthread.c`.

use super::Family;
use crate::library::LibraryLock;

pub(super) static FAMILY: Family = Family {
    takes_lock: &[
        "thread_sched_to_running",
        "thread_sched_to_running_common",
        "thread_sched_wait_running_turn",
    ],
    library_locks: &[LibraryLock {
        name: "GVL (Ruby)",
        functions: &["gvl_acquire*", "thread_sched_to_running*", "rb_gvl_*"],
        files: &[],
        symbols: &[],
        anywhere: true,
        mend: "One thread at a time runs Ruby: use processes, Ractors, or extensions that release \
                   the lock.",
    }],
    ..Family::NONE
};
