//! Functions that take a lock or wait, by the words of their names.
//!
//! A name is evidence, no proof: it tells of a wait whose word does not show what it is for that
//! it is *probably* one for a lock.

/// Words of a function that takes a lock.
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
    "acquire",
];

/// Words of a function that does something else although such a word is in its name.
const BUT_NOT: &[&str] = &[
    "dequeue", "enqueue", "free", "guard", "holding", "init", "pop", "push", "receive", "recv",
    "release", "send", "under", "unlock", "while", "with", "without",
];

/// Functions that take a lock by other names: OpenMP's critical sections (GCC's and LLVM's),
/// Ruby's global lock, PostgreSQL's heavyweight locks.
const KNOWN: &[&str] = &[
    "GOMP_critical_start",
    "GOMP_critical_name_start",
    "__kmpc_critical",
    "__kmpc_critical_with_hint",
    "EnterCriticalSection",
    "thread_sched_to_running",
    "thread_sched_to_running_common",
    "thread_sched_wait_running_turn",
    "ProcSleep",
];

/// Functions of libraries that wait for whatever their caller waits for, by the last part of their
/// paths.
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

/// System calls, as the functions that make them are called in programs that are linked statically.
const STUBS: &[&str] = &[
    "accept",
    "accept4",
    "clock_nanosleep",
    "connect",
    "epoll_pwait",
    "epoll_wait",
    "fcntl",
    "fcntl64",
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

/// Last words of functions that wait, through which a lock is looked for further out.
const WAITS: &[&str] = &["wait", "sleep", "park", "forever", "timedwait", "slow", "internal"];

/// A function that takes a lock, by its demangled name.
pub(crate) fn takes_lock(function: &str) -> bool {
    let name = last_part(function);
    if KNOWN.contains(&name) {
        return true;
    }
    let words = words(name);
    let has = |of: &[&str]| words.iter().any(|word| of.contains(&word.as_str()));
    has(TAKES) && !has(BUT_NOT)
}

/// A function that waits for whatever its caller waits for.
pub(crate) fn is_wait_wrapper(function: &str) -> bool {
    let stub = function.trim_start_matches('_').trim_start_matches("GI_").trim_start_matches('_');
    WRAPPERS.contains(&last_part(function)) || STUBS.contains(&stub)
}

/// A function that waits, by the end of its name.
pub(crate) fn waits(function: &str) -> bool {
    words(last_part(function)).last().is_some_and(|word| WAITS.contains(&word.as_str()))
}

/// A function of a barrier.
pub(crate) fn is_barrier(function: &str) -> bool {
    words(last_part(function)).iter().any(|word| word == "barrier")
}

/// A function that waits at a barrier.
pub(crate) fn waits_at_barrier(function: &str) -> bool {
    let waits = words(last_part(function)).iter().any(|word| WAITS.contains(&word.as_str()));
    waits && is_barrier(function)
}

/// A function's path without the type that it returns, which demangled names of templates begin
/// with.
pub(crate) fn without_return_type(function: &str) -> &str {
    let (mut depth, mut start) = (0_usize, 0);
    for (at, c) in function.char_indices() {
        match c {
            '(' if depth == 0 && at > start => break,
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && !function[..at].ends_with("operator") => start = at + 1,
            _ => {}
        }
    }
    function.get(start..).unwrap_or(function)
}

/// The last part of a function's path, without arguments, closures and what compilers append.
fn last_part(function: &str) -> &str {
    let mut depth = 0_usize;
    let (mut start, mut end) = (0, function.len());
    let mut before = 0..0;
    for (at, c) in function.char_indices() {
        match c {
            '<' => {
                // Generic arguments end a name; a path may begin with `<Type as Trait>`.
                if depth == 0 && at > start && end == function.len() {
                    end = at;
                }
                depth += 1;
            }
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && at > start => {
                end = end.min(at);
                break;
            }
            ':' if depth == 0 && function[at..].starts_with("::") => {
                before = start..end.min(at);
                (start, end) = (at + 2, function.len());
            }
            _ => {}
        }
    }
    let mut part = function.get(start..end).unwrap_or_default();
    if part.starts_with("{{") || is_hash(part) {
        part = last_part_of(function, before);
    }
    part.split(['.', ' ', '@']).next().unwrap_or_default()
}

/// The part before a closure's, or before a hash.
fn last_part_of(function: &str, before: std::ops::Range<usize>) -> &str {
    let end = before.end;
    let part = function.get(before).unwrap_or_default();
    match part.starts_with("{{") {
        true => function.get(..end).and_then(|path| path.rsplit("::").nth(1)).unwrap_or_default(),
        false => part,
    }
}

fn is_hash(part: &str) -> bool {
    part.len() == 17
        && part.starts_with('h')
        && part[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The words of a name, in lower case: `lockForWrite`, `LWLockAcquire` and `lock_exclusive_slow`
/// alike.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let letters: Vec<char> = name.chars().collect();
    for (at, &c) in letters.iter().enumerate() {
        if !c.is_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let lower_before = at > 0 && !letters[at - 1].is_uppercase();
        let lower_after = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (lower_before || lower_after) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_words() {
        assert_eq!(words("LWLockAcquire"), ["lw", "lock", "acquire"]);
        assert_eq!(words("lock_exclusive_slow"), ["lock", "exclusive", "slow"]);
        assert_eq!(words("__pthread_rwlock_wrlock64"), ["pthread", "rwlock", "wrlock64"]);
        assert_eq!(words("lockForWrite"), ["lock", "for", "write"]);
        for (function, last) in [
            ("boost::shared_mutex::lock_shared()", "lock_shared"),
            (
                "<dashmap::lock::RawRwLock as lock_api::RawRwLock>::lock_exclusive_slow",
                "lock_exclusive_slow",
            ),
            ("Cache<std::string>::get<int>(int) const", "get"),
            ("(anonymous namespace)::refresh(Cache&)", "refresh"),
            ("server::touch::{{closure}}::{{closure}}", "touch"),
            ("server::Pool::lock::h0123456789abcdef", "lock"),
            ("lock_wait.part.0", "lock_wait"),
            ("w._omp_fn.0", "w"),
            ("", ""),
        ] {
            assert_eq!(last_part(function), last, "{function}");
        }
    }

    #[test]
    fn templates_are_known_without_the_type_that_they_return() {
        for (function, path) in [
            (
                "void std::call_once<void (&)()>(std::once_flag&)",
                "std::call_once<void (&)()>(std::once_flag&)",
            ),
            ("std::map<int, int>& get<int>(int, char)", "get<int>(int, char)"),
            ("(anonymous namespace)::refresh(Cache&)", "(anonymous namespace)::refresh(Cache&)"),
            ("Flag::operator bool() const", "Flag::operator bool() const"),
            ("<a::B as c::D>::next", "<a::B as c::D>::next"),
            ("main", "main"),
            ("", ""),
        ] {
            assert_eq!(without_return_type(function), path);
        }
    }

    #[test]
    fn functions_that_take_a_lock_are_known_by_name() {
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
            "main",
            "",
        ] {
            assert!(!takes_lock(name), "{name}");
        }
        assert!(
            is_wait_wrapper("__GI___poll") && is_wait_wrapper("boost::condition_variable::wait()")
        );
        assert!(!is_wait_wrapper("Link::read(int)") && !is_wait_wrapper("wait_for_reply"));
        assert!(is_barrier("gomp_team_barrier_wait_end") && !is_barrier("barricade"));
    }
}
