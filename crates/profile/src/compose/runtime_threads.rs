//! Recognises threads of a runtime or library that wait for internal work, not for a lock.
//!
//! Based on the sources of HotSpot 8 to 25, V8, Node, libuv, TBB, Qt, OpenBLAS, GLib, jemalloc,
//! tokio, rayon, Asio, MariaDB, RocksDB, LLVM, Redis and memcached.

use threadtoll_primitive::FunctionName;
use threadtoll_primitive::function::Part;

use crate::account::ProcessAccount;
use crate::stacks::Stacks;

/// Functions of threads that only work for their runtime or library. Each entry is the beginning of
/// a name.
const INTERNAL: &[&str] = &[
    "v8::platform::DefaultWorkerThreadsTaskRunner::",
    "node::PlatformWorkerThread",
    "node::(anonymous namespace)::PlatformWorkerThread",
    "node::WorkerThreadsTaskRunner::",
    "node::inspector::(anonymous namespace)::StartIoThreadMain",
    "blas_thread_server",
];

/// Functions of internal threads of the Java virtual machine. Other programs use some of these
/// names, too, so they count only in a Java virtual machine.
const OF_HOTSPOT: &[&str] = &[
    "GangWorker::loop",
    "WorkerThread::run",
    "WorkerTaskDispatcher::worker_run_task",
    "GCTaskManager::get_task",
    "CompileQueue::get",
    "NMethodSweeper::sweeper_loop",
    "VMThread::loop",
    "VMThread::wait_for_vm_operations",
    "WatcherThread::sleep",
    "ServiceThread::service_thread_entry",
    "MonitorDeflationThread::monitor_deflation_thread_entry",
    "NotificationThread::notification_thread_entry",
    "JVM_WaitForReferencePendingList",
    // Implements `Thread.sleep` with a condition variable.
    "JVM_Sleep",
    "G1ConcurrentRefineThread::",
    "G1ServiceThread::",
    "G1YoungRemSetSamplingThread::",
    "G1ConcurrentMarkThread::",
    "G1PrimaryConcurrentRefineThread::",
    "ConcurrentGCThread::run",
    "ShenandoahControlThread::",
    "ZDirector::",
    "ZDriverPort::receive",
    "os::signal_wait",
    "signal_thread_entry",
];

/// Functions in which threads of a pool wait for work, but which also call other code, such as
/// tasks. A thread in such a function waits for work unless the function has called other code.
const POOLS: &[&str] = &[
    "tokio::runtime::blocking::pool::Inner::run",
    "rayon_core::registry::ThreadBuilder::run",
    "rml::internal::private_worker::run",
    "tbb::detail::r1::rml::private_worker::run",
    "boost::asio::detail::scheduler::run",
    "asio::detail::scheduler::run",
    "QThreadPoolThread::run",
    "g_thread_pool_wait_for_new_task",
    "tpool::thread_pool_generic::worker_main",
    "rocksdb::ThreadPoolImpl::Impl::BGThread",
    "llvm::StdThreadPool::processTasks",
    "bioProcessBackgroundJobs",
    "assoc_maintenance_thread",
    "background_thread_entry",
];

/// Functions of pool threads with names that any program may use, each with the function that it
/// calls to wait for work.
const POOLS_THAT_CALL: &[(&str, &str)] = &[("worker", "uv_cond_wait")];

/// Libraries, often without symbols, whose own threads wait for work on condition variables:
/// nothing else is on the stacks of these threads.
const LIBRARIES: &[&str] = &["libjemalloc.so", "libopenblas", "libscipy_openblas"];

const JAVA_THREADS: &[&str] =
    &["Finalizer", "Common-Cleaner", "Reference Handl", "Signal Dispatch", "Attach Listener"];

/// A Go program lacks CPUs if it uses at least the share `FULL` of its CPUs, and if less than
/// `MOST_ELSEWHERE` of its CPU time is spent in the kernel and in Go's runtime and locks.
const FULL: f64 = 0.9;
const MOST_ELSEWHERE: f64 = 0.1;

const MIN_RAN: u64 = 10;

/// Go functions that do not do the program's own work. Each entry is the beginning of a name.
const GO: &[&str] = &["sync.", "internal/", "runtime.", "syscall.", "time."];

/// Returns `true` if a Go program fills its CPUs with work, so that no more threads could run.
pub(super) fn fills_cpus(
    process: &ProcessAccount,
    on_cpu: f64,
    cpus: u32,
    stacks: &mut Stacks,
) -> bool {
    if !process.go || on_cpu < FULL * f64::from(cpus) || process.ran < MIN_RAN {
        return false;
    }
    let is_go = |name: &str| GO.iter().any(|beginning| name.starts_with(beginning));
    let elsewhere = process
        .ran_at
        .iter()
        .filter(|&(&stack, _)| stacks.innermost(stack).is_none_or(|name| is_go(&name)));
    let elsewhere = elsewhere.map(|(_, &seen)| seen).sum::<u64>() as f64 / process.ran as f64;
    process.kernel_share().is_some_and(|kernel| kernel + elsewhere < MOST_ELSEWHERE)
}

/// Returns `true` if a thread with this stack (innermost function first) waits for internal work of
/// its runtime, or for work in the thread pool of a well-known library.
pub(super) fn waits_for_work(stack: &[String], jvm: bool) -> bool {
    let names: Vec<FunctionName> = stack.iter().map(|name| FunctionName::parse(name)).collect();
    let begins = |name: &FunctionName, all: &[&str]| {
        all.iter().any(|beginning| name.path().starts_with(beginning))
    };
    if names.iter().any(|name| begins(name, INTERNAL) || jvm && begins(name, OF_HOTSPOT)) {
        return true;
    }
    let mut own = names.iter().filter(|name| name.part() == Part::Program).peekable();
    let waits = names.iter().any(|name| name.path().starts_with("pthread_cond_"));
    let is_whole = names.iter().any(|name| name.part() == Part::Start);
    if waits && is_whole && own.peek().is_some() && own.all(|name| begins(name, LIBRARIES)) {
        return true;
    }
    let calls = |pair: &[FunctionName]| {
        POOLS_THAT_CALL
            .iter()
            .any(|&(pool, waits)| [waits, pool] == [pair[0].path(), pair[1].path()])
    };
    let Some(at) = names.iter().position(|name| begins(name, POOLS)) else {
        return names.windows(2).any(calls);
    };
    let library = names[at].path().split("::").next().unwrap_or_default();
    let is_of_pool = |name: &FunctionName| {
        name.part() != Part::Program || name.path().split("::").next() == Some(library)
    };
    names[..at].iter().all(is_of_pool)
}

pub(super) fn is_of_java(name: &str) -> bool {
    JAVA_THREADS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_runtimes_are_known_by_their_functions() {
        let waits_in = |stack: &[&str], jvm| {
            let stack: Vec<String> = stack.iter().map(|&name| name.into()).collect();
            waits_for_work(&stack, jvm)
        };
        let of_java = |stack: &[&str]| waits_in(stack, true);
        assert!(of_java(&["PosixSemaphore::wait()", "GangWorker::loop()", "Thread::call_run()"]));
        assert!(of_java(&["Monitor::wait(long)", "CompileQueue::get()"]));
        // Java code that waits for an operation of the virtual machine does not wait for work.
        assert!(!of_java(&["Monitor::wait(long)", "VMThread::execute(VM_Operation*)"]));
        assert!(!of_java(&["ObjectMonitor::wait(long, bool, JavaThread*)", "JVM_MonitorWait"]));
        let waits = |stack: &[&str]| waits_in(stack, false);
        assert!(!waits(&["pthread_cond_wait", "next_job()", "WorkerThread::run()"]));
        let node = "node::(anonymous namespace)::PlatformWorkerThread(void*)";
        assert!(waits(&["pthread_cond_wait", "uv_cond_wait", node, "start_thread"]));
        assert!(waits(&["pthread_cond_wait", "uv_cond_wait", "worker", "start_thread"]));
        assert!(!waits(&["pthread_cond_wait", "worker", "start_thread"]));
        assert!(is_of_java("Common-Cleaner") && !is_of_java("worker"));
    }

    #[test]
    fn threads_of_a_library_without_symbols_wait_for_work() {
        let waits = |stack: &[&str]| {
            let stack: Vec<String> = stack.iter().map(|&name| name.into()).collect();
            waits_for_work(&stack, false)
        };
        let (wait, start) = ("pthread_cond_timedwait", "start_thread");
        let jemalloc = ["libjemalloc.so.2+0x39a46", "libjemalloc.so.2+0x3a0ea"];
        assert!(waits(&[wait, jemalloc[0], jemalloc[1], start, "__GI___clone3"]));
        assert!(!waits(&[wait, jemalloc[0], "malloc", "parse", start]));
        assert!(!waits(&["pthread_mutex_lock", jemalloc[0], start]));
        assert!(!waits(&[wait, jemalloc[0], jemalloc[1]]));
        assert!(!waits(&[wait, start]));
    }

    #[test]
    fn threads_of_a_pool_wait_for_work_unless_they_run_other_code() {
        let waits = |stack: &[&str]| {
            let stack: Vec<String> = stack.iter().map(|&name| name.into()).collect();
            waits_for_work(&stack, false)
        };
        let tokio = "tokio::runtime::blocking::pool::Inner::run";
        assert!(waits(&["std::sync::poison::condvar::Condvar::wait_timeout", tokio]));
        assert!(!waits(&["clock_nanosleep", "render", tokio]));
        let asio = "boost::asio::detail::scheduler::run(boost::system::error_code&)";
        let event = "boost::asio::detail::posix_event::wait<scoped_lock<posix_mutex> >(lock&)";
        assert!(waits(&["pthread_cond_wait", event, asio, "main"]));
        assert!(!waits(&["pthread_cond_wait", "Session::flush()", asio, "main"]));
        let rayon = "rayon_core::registry::ThreadBuilder::run";
        assert!(waits(&["syscall", "rayon_core::sleep::Sleep::sleep", rayon]));
        let join = "rayon_core::registry::WorkerThread::wait_until_cold";
        assert!(!waits(&["syscall", join, "image::resize", rayon]));
    }
}
