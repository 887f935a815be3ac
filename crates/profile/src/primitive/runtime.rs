//! Files and functions of runtimes: the code between a program and its locks.

/// A file that belongs to the C or C++ library, to the loader or to OpenMP.
pub(crate) fn is_runtime_file(name: &str) -> bool {
    const STARTS: [&str; 16] = [
        "libc.so",
        "libc-",
        "libm.so",
        "libm-",
        "libdl",
        "librt",
        "libresolv",
        "libpthread",
        "ld-linux",
        "libstdc++",
        "libc++",
        "libgcc",
        "libgomp",
        "libomp",
        "libiomp",
        "[vdso]",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
}

/// A function that implements locking or sleeping, or is generated around the program's own.
pub(crate) fn is_runtime_function(name: &str) -> bool {
    const STARTS: &[&str] = &[
        "std::",
        "core::",
        "alloc::",
        "<std::",
        "<core::",
        "<alloc::",
        "parking_lot",
        "<parking_lot",
        "lock_api::",
        "__pthread",
        "pthread_",
        "__gthread",
        "__lll_",
        "__futex",
        "futex_",
        "syscall",
        "___pthread",
        "__GI_",
        "__new_sem_",
        "lll_",
        "sem_clockwait",
        "sem_timedwait",
        "sem_wait",
        // Locks of common libraries, and of what they are made for.
        "CRYPTO_THREAD_",
        "PyCOND_",
        "PyThread_",
        "absl::",
        "apr_thread_",
        "g_cond_",
        "g_mutex_",
        "g_rw_lock_",
        "runtime.futex",
        "runtime.note",
        "sqlite3_mutex_",
        "uv_cond_",
        "uv_mutex_",
        "uv_rwlock_",
        "uv_sem_",
        // The virtual machine of Java, around the program and in its own waits.
        "JavaCalls::",
        "JavaThread::",
        "Monitor::wait",
        "Mutex::lock",
        "ObjectMonitor::",
        "ObjectSynchronizer::",
        "Parker::park",
        "PosixSemaphore::",
        "Runtime1::",
        "Semaphore::",
        "SharedRuntime::",
        "Thread::call_run",
        "[generated code]",
        "os::PlatformEvent::",
        "os::PlatformMonitor::",
        "os::PlatformMutex::",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_the_program_s_own() {
        for runtime in [
            "lll_mutex_lock_optimized",
            "___pthread_mutex_lock",
            "sqlite3_mutex_enter",
            "CRYPTO_THREAD_write_lock",
            "os::PlatformMonitor::wait(long)",
            "[generated code]",
            "runtime.futex",
        ] {
            assert!(is_runtime_function(runtime), "{runtime}");
        }
        for own in ["sqlite3_step", "take_gil", "CompileQueue::get()", "Unsafe_Park", "semantics"] {
            assert!(!is_runtime_function(own), "{own}");
        }
    }
}
