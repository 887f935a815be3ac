//! Ruby's global lock.
//!
//! Each thread that waits for this lock (the GVL) sleeps on a condition variable of its own, as in
//! any other wait of Ruby's. So functions must identify the waits for the lock. In a library
//! without symbols, these functions have no names, but their exported callers do.
//!
//! Source: CRuby 2.7 to 3.4, `thread_pthread.c`.

use super::Family;
use crate::library::LibraryLock;

/// Exported functions that take the lock: when a time slice ends, after a blocking call, and on
/// calls back into Ruby. None of the blocking calls that Ruby itself makes here waits on a
/// condition variable.
const EXPORTED: &[&str] = &[
    "rb_threadptr_execute_interrupts",
    "rb_thread_schedule",
    "rb_thread_check_ints",
    "rb_nogvl",
    "rb_thread_call_without_gvl",
    "rb_thread_call_without_gvl2",
    "rb_thread_call_with_gvl",
    "rb_thread_io_blocking_region",
];

pub(super) static FAMILY: Family = Family {
    takes_lock: &[
        "thread_sched_to_running",
        "thread_sched_to_running_common",
        "thread_sched_wait_running_turn",
    ],
    takes_lock_inside: EXPORTED,
    library_locks: &[LibraryLock {
        name: "GVL (Ruby)",
        functions: &[
            "gvl_acquire*",
            "thread_sched_to_running*",
            "thread_sched_wait_running_turn",
            "rb_gvl_*",
        ],
        files: &[],
        symbols: &[],
        anywhere: true,
        mend: "One thread at a time runs Ruby: use processes, Ractors, or extensions that release \
                   the lock.",
    }],
    ..Family::NONE
};
