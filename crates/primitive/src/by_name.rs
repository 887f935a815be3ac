//! Locks that are recognised only by the names of their functions: locks built on those of another
//! library, and spinlocks, for which no thread sleeps.

use super::Family;
use crate::function::Part;

pub(super) static FAMILY: Family = Family {
    functions: &[
        // D's runtime.
        ("_d_monitorenter", Part::Lock),
        ("_d_criticalenter", Part::Lock),
        // Boost and oneTBB.
        ("boost::mutex::", Part::Lock),
        ("boost::recursive_mutex::", Part::Lock),
        ("boost::shared_mutex::", Part::Lock),
        ("boost::unique_lock::", Part::Lock),
        ("boost::shared_lock::", Part::Lock),
        ("boost::lock_guard::", Part::Lock),
        ("boost::posix::pthread_mutex", Part::Lock),
        ("boost::condition_variable", Part::Wait),
        ("boost::detail::", Part::Library),
        ("tbb::detail::", Part::Library),
        ("tbb::mutex", Part::Lock),
        ("tbb::spin_mutex", Part::Lock),
        // OpenSSL, APR, GLib, SQLite, libuv, Qt.
        ("CRYPTO_THREAD_", Part::Lock),
        ("apr_thread_mutex", Part::Lock),
        ("apr_thread_rwlock", Part::Lock),
        ("apr_thread_", Part::Wait),
        ("g_cond_", Part::Wait),
        ("g_mutex_", Part::Lock),
        ("g_rec_mutex_", Part::Lock),
        ("g_rw_lock_", Part::Lock),
        ("sqlite3_mutex_", Part::Lock),
        ("pthreadMutexEnter", Part::Lock),
        ("uv_", Part::Library),
        ("uv_cond_", Part::Wait),
        ("uv_mutex_", Part::Lock),
        ("uv_rwlock_", Part::Lock),
        ("uv_sem_", Part::Wait),
        ("QBasicMutex::", Part::Lock),
        ("QMutex::", Part::Lock),
        ("QMutexLocker::", Part::Lock),
        ("QRecursiveMutex::", Part::Lock),
        ("QReadLocker::", Part::Lock),
        ("QReadWriteLock::", Part::Lock),
        ("QWriteLocker::", Part::Lock),
        ("QSemaphore::", Part::Wait),
        ("QtLinuxFutex", Part::Wait),
        ("QWaitCondition::", Part::Wait),
    ],
    rust_functions: &[("dashmap::lock::", Part::Lock), ("spin::", Part::Lock)],
    takes_lock: &[
        // Critical sections of LLVM's OpenMP.
        "__kmpc_critical",
        "__kmpc_critical_with_hint",
        "EnterCriticalSection",
        // SQLite's locks on its files.
        "sqlite3InvokeBusyHandler",
        "sqliteDefaultBusyCallback",
        // PostgreSQL's heavyweight locks.
        "ProcSleep",
    ],
    // PostgreSQL and InnoDB.
    spins: &["s_lock", "ut_delay"],
    ..Family::NONE
};
