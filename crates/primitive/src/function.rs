//! Functions on stacks: those of the program, and those that lie between it and its locks.
//!
//! One table of the beginnings of names, from the sources of the libraries that are named there.
//! The longest one that fits decides.

/// Part that a function plays on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It takes or frees a lock, or is part of that.
    Lock,
    /// It sleeps, waits otherwise, or wraps a system call.
    Wait,
    /// It belongs to a language's or a common library, or to a virtual machine.
    Library,
    /// Code that a virtual machine has made.
    Generated,
    /// It starts threads or the program.
    Start,
    /// It is the program's own, as far as is known.
    Program,
}

use Part::{Generated, Library, Lock, Start, Wait};

use crate::FunctionName;

/// Beginnings of names; those with a `$` are whole names.
const BEGINNINGS: &[(&str, Part)] = &[
    // glibc and musl.
    ("__lll_", Lock),
    ("lll_", Lock),
    ("__GI___lll_", Lock),
    ("___pthread_mutex", Lock),
    ("__pthread_mutex", Lock),
    ("__GI___pthread_mutex", Lock),
    ("pthread_mutex", Lock),
    ("___pthread_rwlock", Lock),
    ("__pthread_rwlock", Lock),
    ("__GI___pthread_rwlock", Lock),
    ("pthread_rwlock", Lock),
    ("pthread_spin_", Lock),
    ("__pthread_spin_", Lock),
    ("__libc_lock_lock", Lock),
    ("mtx_lock", Lock),
    ("mtx_timedlock", Lock),
    ("mtx_unlock", Lock),
    ("__lockfile$", Lock),
    ("flockfile$", Lock),
    ("___pthread_", Wait),
    ("__pthread_", Wait),
    ("__GI___pthread_", Wait),
    ("pthread_", Wait),
    ("__GI___futex", Wait),
    ("__GI___nanosleep", Wait),
    ("__GI___clock_nanosleep", Wait),
    ("__GI_", Wait),
    ("__futex", Wait),
    ("futex_", Wait),
    ("__new_sem_", Wait),
    ("sem_clockwait", Wait),
    ("sem_timedwait", Wait),
    ("sem_wait", Wait),
    ("cnd_", Wait),
    ("__timedwait", Wait),
    ("__syscall", Wait),
    ("__internal_syscall", Wait),
    ("syscall", Wait),
    // C++: libstdc++, libc++, Boost, TBB.
    ("__gthread", Lock),
    ("__glibcxx_rwlock", Lock),
    ("std::mutex::", Lock),
    ("std::timed_mutex::", Lock),
    ("std::recursive_mutex::", Lock),
    ("std::recursive_timed_mutex::", Lock),
    ("std::__recursive_mutex_base", Lock),
    ("std::__mutex_base", Lock),
    ("std::__1::mutex::", Lock),
    ("std::lock_guard::", Lock),
    ("std::unique_lock::", Lock),
    ("std::scoped_lock::", Lock),
    ("std::shared_lock::", Lock),
    ("std::shared_mutex::", Lock),
    ("std::shared_timed_mutex::", Lock),
    ("std::__shared_mutex", Lock),
    ("std::__shared_timed_mutex", Lock),
    ("std::lock", Lock),
    ("boost::mutex::", Lock),
    ("boost::recursive_mutex::", Lock),
    ("boost::shared_mutex::", Lock),
    ("boost::unique_lock::", Lock),
    ("boost::shared_lock::", Lock),
    ("boost::lock_guard::", Lock),
    ("boost::posix::pthread_mutex", Lock),
    ("boost::condition_variable", Wait),
    ("boost::detail::", Library),
    ("tbb::detail::", Library),
    ("tbb::mutex", Lock),
    ("tbb::spin_mutex", Lock),
    ("std::", Library),
    ("__invoke", Start),
    ("_M_invoke", Library),
    ("_M_run$", Library),
    ("libstdc++.so", Library),
    ("libc.so", Library),
    ("libpthread", Library),
    // Common libraries, and what they are made for.
    ("absl::Mutex::", Lock),
    ("absl::MutexLock::", Lock),
    ("absl::ReaderMutexLock::", Lock),
    ("absl::WriterMutexLock::", Lock),
    ("absl::base_internal::SpinLock", Lock),
    ("absl::", Wait),
    ("AbslInternal", Wait),
    ("CRYPTO_THREAD_", Lock),
    ("PyCOND_", Wait),
    ("PyThread_", Wait),
    ("apr_thread_mutex", Lock),
    ("apr_thread_rwlock", Lock),
    ("apr_thread_", Wait),
    ("g_cond_", Wait),
    ("g_mutex_", Lock),
    ("g_rec_mutex_", Lock),
    ("g_rw_lock_", Lock),
    ("sqlite3_mutex_", Lock),
    ("pthreadMutexEnter", Lock),
    ("uv_cond_", Wait),
    ("uv_mutex_", Lock),
    ("uv_rwlock_", Lock),
    ("uv_sem_", Wait),
    ("QBasicMutex::", Lock),
    ("QMutex::", Lock),
    ("QMutexLocker::", Lock),
    ("QRecursiveMutex::", Lock),
    ("QReadLocker::", Lock),
    ("QReadWriteLock::", Lock),
    ("QWriteLocker::", Lock),
    ("QSemaphore::", Wait),
    ("QtLinuxFutex", Wait),
    ("QWaitCondition::", Wait),
    ("runtime.futex", Wait),
    ("runtime.note", Wait),
    // The virtual machine of Java, around the program and in its own waits.
    ("JavaCalls::", Start),
    ("JavaThread::", Start),
    ("Thread::call_run", Start),
    ("thread_entry$", Start),
    ("thread_native_entry$", Start),
    ("Monitor::wait", Wait),
    ("Mutex::lock", Lock),
    ("ObjectMonitor::", Lock),
    ("ObjectSynchronizer::", Lock),
    ("Parker::park", Wait),
    ("PosixSemaphore::", Wait),
    ("Runtime1::", Library),
    ("Semaphore::", Wait),
    ("SharedRuntime::", Library),
    ("os::Platform", Wait),
    ("[generated code]", Generated),
    // Starts of threads and programs.
    ("start_thread$", Start),
    ("clone$", Start),
    ("clone3$", Start),
    ("__clone", Start),
    ("__GI___clone", Start),
    ("_start$", Start),
    ("__libc_start", Start),
    ("std::thread::", Start),
    ("std::__invoke", Start),
    ("std::_Invoke", Start),
    ("execute_native_thread_routine$", Start),
];

/// Beginnings of names that Rust gives, and that programs in C++ may give to what is theirs.
const RUST: &[(&str, Part)] = &[
    ("std::sys::sync::mutex", Lock),
    ("std::sys::sync::rwlock", Lock),
    ("std::sys::sync::condvar", Wait),
    ("std::sys::sync::once", Wait),
    ("std::sys::sync::thread_parking", Wait),
    ("std::sys::locks::", Lock),
    ("std::sys_common::mutex", Lock),
    ("std::sync::mutex::", Lock),
    ("std::sync::poison::mutex::", Lock),
    ("std::sync::rwlock::", Lock),
    ("std::sync::poison::rwlock::", Lock),
    ("parking_lot::raw_mutex", Lock),
    ("parking_lot::raw_rwlock", Lock),
    ("parking_lot::raw_fair_mutex", Lock),
    ("parking_lot", Wait),
    ("lock_api::", Lock),
    ("dashmap::lock::", Lock),
    ("spin::", Lock),
    ("core::", Library),
    ("alloc::", Library),
    ("alloc[", Library),
    ("core[", Library),
    ("std[", Library),
    ("__rust_", Start),
    ("std::rt::", Start),
    ("std::panic", Start),
    ("std::sys::backtrace", Start),
    ("std::sys::thread", Start),
    ("std::sys::pal::unix::thread", Start),
    ("std::sys_common::backtrace", Start),
    ("core::ops::function", Start),
    ("alloc::boxed::Box", Start),
];

/// Part that a function plays.
pub fn part(function: &str) -> Part {
    FunctionName::parse(function).part()
}

/// [Path](FunctionName::path) of a function.
pub fn plain(function: &str) -> String {
    FunctionName::parse(function).path().to_owned()
}

impl FunctionName {
    /// Part that the function plays.
    pub fn part(&self) -> Part {
        let fits = |&(beginning, _): &&(&str, Part)| match beginning.strip_suffix('$') {
            Some(whole) => self.path() == whole,
            None => self.path().starts_with(beginning),
        };
        let of_rust = RUST.iter().filter(|_| self.may_be_rust());
        let fitting = BEGINNINGS.iter().chain(of_rust).filter(fits);
        fitting.max_by_key(|(beginning, _)| beginning.len()).map_or(Part::Program, |&(_, part)| part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_between_a_program_and_its_locks_are_known() {
        for (name, expected) in [
            ("__lll_lock_wait_private", Lock),
            ("___pthread_mutex_lock", Lock),
            ("__GI___pthread_mutex_unlock_usercnt", Lock),
            ("__gthread_mutex_lock(pthread_mutex_t*)", Lock),
            ("std::lock_guard<std::mutex>::lock_guard(std::mutex&)", Lock),
            ("std::unique_lock<std::mutex>::lock()", Lock),
            ("std::sys::sync::mutex::futex::Mutex::lock_contended", Lock),
            ("<parking_lot::raw_mutex::RawMutex as lock_api::mutex::RawMutex>::lock", Lock),
            ("absl::Mutex::LockSlowLoop(absl::SynchWaitParams*, int)", Lock),
            ("sqlite3_mutex_enter", Lock),
            ("QBasicMutex::lockInternal()", Lock),
            ("__syscall6", Wait),
            ("__syscall_cp_c", Wait),
            ("___pthread_cond_wait", Wait),
            ("pthread_join", Wait),
            ("absl::CondVar::WaitCommon", Wait),
            ("os::PlatformMonitor::wait(long)", Wait),
            ("runtime.futex", Wait),
            ("std::vector<int>::push_back", Library),
            ("core::ptr::drop_in_place", Library),
            ("start_thread", Start),
            ("std::thread::Builder::spawn_unchecked_", Start),
            ("[generated code]", Generated),
        ] {
            assert_eq!(part(name), expected, "{name}");
        }
        for own in [
            "sqlite3_step",
            "take_gil",
            "CompileQueue::get()",
            "Unsafe_Park",
            "semantics",
            "clone_it",
            // Namespaces of C++ that crates of Rust have, too.
            "core::Engine::step(int)",
            "void alloc::refill<Pool>(Pool&)",
            "spin::Wheel::turn() const",
        ] {
            assert_eq!(part(own), Part::Program, "{own}");
        }
    }
}
