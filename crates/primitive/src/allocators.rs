//! Locks inside allocators.
//!
//! Source: jemalloc 5, gperftools.

use super::Family;
use crate::library::LibraryLock;

pub(super) static FAMILY: Family = Family {
    library_locks: &[
        LibraryLock {
            name: "jemalloc arena",
            functions: &["je_*", "_rjem_*", "arena_malloc_hard*", "arena_tcache_fill*"],
            files: &["libjemalloc.so*"],
            symbols: &[],
            anywhere: true,
            mend: "Allow more arenas (MALLOC_CONF=narenas:N), or allocate less often.",
        },
        LibraryLock {
            name: "tcmalloc's lock",
            functions: &["tcmalloc::*"],
            files: &["libtcmalloc*"],
            symbols: &[],
            anywhere: true,
            mend: "Allow larger caches for each thread (TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES), or \
                   allocate less often.",
        },
    ],
    ..Family::NONE
};
