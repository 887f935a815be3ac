//! Recognises functions that take a lock or wait, by the words in their names.
//!
//! A name is evidence, not proof. If the futex word does not show the reason for a wait, the name
//! shows only that it is *probably* a lock.

use crate::{FAMILIES, FunctionName};

/// Words in the names of functions that take a lock.
const TAKES: &[&str] = &[
    "lock",
    "rlock",
    "wlock",
    "rdlock",
    "wrlock",
    "lockf",
    "timedlock",
    "timedrdlock",
    "timedwrlock",
    "clocklock",
    "clockrdlock",
    "clockwrlock",
];

/// Words that mean locks. A function that acquires something takes a lock only if its name or its
/// type has one of them, because semaphores, connections and samples can be acquired, too.
const ACQUIRED: &[&str] =
    &["lock", "rlock", "wlock", "rwlock", "spinlock", "mutex", "gil", "gvl", "monitor"];

/// Words that rule a function out, even if its name contains one of the words above.
const BUT_NOT: &[&str] = &[
    "daemon",
    "dequeue",
    "enqueue",
    "extend",
    "free",
    "guard",
    "holding",
    "init",
    "keepalive",
    "pop",
    "push",
    "receive",
    "recv",
    "refresh",
    "release",
    "renew",
    "renewal",
    "send",
    "under",
    "unlock",
    "watchdog",
    "while",
    "with",
    "without",
];

/// Last words in the names of functions that a thread runs all its life.
const RUNS: &[&str] = &["loop", "main", "thread"];

/// Last parts of the paths of library functions that wait for whatever their caller waits for.
const WRAPPERS: &[&str] = &[
    "wait",
    "wait_for",
    "wait_until",
    "wait_timeout",
    "wait_while",
    "do_wait",
    "do_wait_for",
    "do_wait_until",
    "timed_wait",
    "wait_until_internal",
    "wait_until_cold",
    "park",
    "park_timeout",
    "park_until",
    "block_on",
    "sleep",
    "sleep_for",
    "sleep_until",
    "usleep",
    "WaitEventSetWaitBlock",
    "WaitEventSetWait",
    "WaitLatch",
    "WaitLatchOrSocket",
    "WaitOnLock",
    "rb_native_cond_wait",
    "rb_native_cond_timedwait",
    "native_sleep",
    "native_cond_sleep",
    "sleep_forever",
    "os_event_wait",
];

/// Functions that make system calls, in statically linked programs.
const STUBS: &[&str] = &[
    "accept",
    "accept4",
    "clock_nanosleep",
    "connect",
    "epoll_pwait",
    "epoll_wait",
    "fcntl",
    "fdatasync",
    "flock",
    "fsync",
    "mmap",
    "mprotect",
    "munmap",
    "nanosleep",
    "pause",
    "poll",
    "ppoll",
    "pselect",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmsg",
    "select",
    "semop",
    "semtimedop",
    "send",
    "sendmsg",
    "sendto",
    "sigsuspend",
    "sigtimedwait",
    "sigwait",
    "sigwaitinfo",
    "syscall_cp",
    "syscall_cp_asm",
    "syscall_cp_c",
    "wait4",
    "waitid",
    "waitpid",
    "write",
    "writev",
];

/// Last words in the names of functions that wait. The search for a lock continues with their
/// callers.
const WAITS: &[&str] = &["wait", "sleep", "park", "forever", "timedwait", "slow", "internal"];

/// Returns `true` if the function takes a lock in other functions of its library.
pub(crate) fn takes_lock_inside(function: &FunctionName) -> bool {
    FAMILIES.iter().any(|family| family.takes_lock_inside.contains(&function.path()))
}

pub(crate) fn takes_lock(function: &FunctionName) -> bool {
    if FAMILIES.iter().any(|family| family.takes_lock.contains(&function.last())) {
        return true;
    }
    let words = function.words();
    let has = |of: &[&str]| words.iter().any(|word| of.contains(&word.as_str()));
    let of_type = || function.words_of_type();
    let acquires = || {
        acquires(function)
            && (has(ACQUIRED) || of_type().iter().any(|word| ACQUIRED.contains(&word.as_str())))
    };
    let runs = words.last().is_some_and(|word| RUNS.contains(&word.as_str()));
    (has(TAKES) || acquires()) && !has(BUT_NOT) && !runs
}

pub(crate) fn acquires(function: &FunctionName) -> bool {
    function.words().iter().any(|word| word == "acquire")
}

/// Returns `true` if a function that sleeps or polls, such as `fe_wait_lock` or `get_lock_status`,
/// probably asks about a lock instead of taking it.
pub fn asks_about_a_lock(function: &str) -> bool {
    const BEFORE: &[&str] = &["wait", "for", "has", "get", "is", "check", "until", "await"];
    let words = FunctionName::parse(function).words();
    let Some(lock) = words.iter().position(|word| TAKES.contains(&word.as_str())) else {
        return false;
    };
    words[..lock].iter().any(|word| BEFORE.contains(&word.as_str()))
}

/// Name of a system call, without the C library's prefixes and suffix.
fn stub(function: &FunctionName) -> &str {
    let stub = function.path().trim_start_matches('_');
    stub.trim_start_matches("GI_").trim_start_matches('_').trim_end_matches("64")
}

pub(crate) fn is_wait_wrapper(function: &FunctionName) -> bool {
    // A C++ function of the program may have the name of a system call, too.
    let is_stub = function.may_be_rust() && STUBS.contains(&stub(function));
    is_stub || WRAPPERS.contains(&function.last())
}

pub(crate) fn waits(function: &FunctionName) -> bool {
    function.words().last().is_some_and(|word| WAITS.contains(&word.as_str()))
}

pub(crate) fn is_barrier(function: &FunctionName) -> bool {
    function.words().iter().any(|word| word == "barrier")
}

pub(crate) fn waits_at_barrier(function: &FunctionName) -> bool {
    let waits = function.words().iter().any(|word| WAITS.contains(&word.as_str()));
    waits && is_barrier(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_take_a_lock_are_known_by_name() {
        let takes_lock = |name| takes_lock(&FunctionName::parse(name));
        let is_wait_wrapper = |name| is_wait_wrapper(&FunctionName::parse(name));
        let is_barrier = |name| is_barrier(&FunctionName::parse(name));
        for name in [
            "dashmap::lock::RawRwLock::lock_exclusive_slow",
            "QBasicMutex::lockInternal()",
            "QReadWriteLock::lockForWrite()",
            "boost::shared_mutex::lock_shared()",
            "RWLock::lock()",
            "pthread_rwlock_timedwrlock",
            "gvl_acquire",
            "do_mutex_lock",
            "lock_wait(que_thr_t*)",
            "LockAcquireExtended",
            "PGSemaphoreLock",
            "GOMP_critical_start",
            "gomp_mutex_lock_slow",
            "omp_set_lock",
            "PyThread_acquire_lock_timed",
            "rlock_acquire",
            "_PyMutex_LockTimed",
            "tbb::detail::d1::mutex::lock",
            "LWLockAcquire",
            "acquire_spin_lock",
            "FileLock::acquire()",
        ] {
            assert!(takes_lock(name), "{name}");
        }
        for name in [
            "pthread_cond_wait",
            "Queue::pop_with_lock",
            "LockFreeQueue::pop(int)",
            "block_until_ready",
            "clock_nanosleep",
            "unlock_slow",
            "release_lock",
            "wait_locked",
            "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
            "deadlock_check",
            "lock_renewal_loop",
            "lock_wait_timeout_thread",
            "acquire_samples",
            "std::counting_semaphore<1l>::acquire()",
            "Semaphore::acquire",
            "jobserver_acquire",
            "ConnectionPool::acquireConnection(int)",
            "main",
            "",
        ] {
            assert!(!takes_lock(name), "{name}");
        }
        assert!(
            is_wait_wrapper("__GI___poll") && is_wait_wrapper("boost::condition_variable::wait()")
        );
        for name in ["Link::read(int)", "read(int)", "wait_for_reply"] {
            assert!(!is_wait_wrapper(name), "{name}");
        }
        for name in ["fe_wait_lock", "wait_for_lock", "get_lock_status", "Tuner::hasLock()"] {
            assert!(asks_about_a_lock(name), "{name}");
        }
        for name in ["lock_wait", "pthread_mutex_lock", "lock_for_write", "wait_for_reply"] {
            assert!(!asks_about_a_lock(name), "{name}");
        }
        assert!(is_barrier("gomp_team_barrier_wait_end") && !is_barrier("barricade"));
    }
}
