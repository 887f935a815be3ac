//! Threads of a runtime or library that wait for internal work, which is not a lock.
//!
//! From the sources of HotSpot 8 to 25, V8, TBB, Qt, OpenBLAS, GLib, jemalloc and tokio.

use threadtoll_primitive::function::plain;

use crate::account::ProcessAccount;
use crate::stacks::Stacks;

/// Beginnings of the plain names of functions in which threads wait for internal work.
const FUNCTIONS: &[&str] = &[
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
    // `Thread.sleep`, implemented with a condition variable.
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
    "v8::platform::DefaultWorkerThreadsTaskRunner::",
    "node::PlatformWorkerThread",
    "node::WorkerThreadsTaskRunner::",
    "rml::internal::private_worker::run",
    "tbb::detail::r1::rml::private_worker::run",
    "QThreadPoolThread::run",
    "blas_thread_server",
    "g_thread_pool_wait_for_new_task",
    "background_thread_entry",
];

/// Functions that also call the program's own code: a thread waits for internal work only if it
/// waits directly in one of them.
const CALLERS: &[&str] = &["tokio::runtime::blocking::pool::Inner::run"];

/// Names of Java virtual machine threads that run Java code internally.
const JAVA_THREADS: &[&str] =
    &["Finalizer", "Common-Cleaner", "Reference Handl", "Signal Dispatch", "Attach Listener"];

/// Parked threads of a Go program are taken to lack a CPU if the program uses at least this share
/// of the CPUs, and at most this share of its CPU time goes into the kernel and Go's runtime and
/// locks.
const FULL: f64 = 0.9;
const MOST_ELSEWHERE: f64 = 0.1;

/// Minimum number of samples of running threads on which this judgement may rest.
const MIN_RAN: u64 = 10;

/// Functions of Go that are not the program's own work, by the beginning of their names.
const GO: &[&str] = &["sync.", "internal/", "runtime.", "syscall.", "time."];

/// Returns `true` if a Go program fills its CPUs with work: more threads could not run, whatever
/// they wait for.
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

/// Returns `true` if a thread waits for internal work of its runtime. `stack` has the innermost
/// function first; `function` is the one in which the thread waits.
pub(super) fn waits_for_work(stack: &[String], function: Option<&str>) -> bool {
    let is_one_of = |name: &str, functions: &[&str]| {
        let name = plain(name);
        functions.iter().any(|function| name.starts_with(function))
    };
    stack.iter().any(|name| is_one_of(name, FUNCTIONS))
        || function.is_some_and(|function| is_one_of(function, CALLERS))
}

/// Returns `true` if a thread of this name belongs to the Java virtual machine.
pub(super) fn is_of_java(name: &str) -> bool {
    JAVA_THREADS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_runtimes_are_known_by_their_functions() {
        let waits = |stack: &[&str]| {
            let stack: Vec<String> = stack.iter().map(|&name| name.into()).collect();
            waits_for_work(&stack, stack.get(1).map(String::as_str))
        };
        assert!(waits(&["PosixSemaphore::wait()", "GangWorker::loop()", "Thread::call_run()"]));
        assert!(waits(&["Monitor::wait(long)", "CompileQueue::get()"]));
        // Tokio's pool runs its workers, too.
        let pool = "tokio::runtime::blocking::pool::Inner::run";
        assert!(waits(&["Condvar::wait_timeout", pool]));
        assert!(!waits(&["clock_nanosleep", "render", pool]));
        // Java code waits for an operation of the virtual machine.
        assert!(!waits(&["Monitor::wait(long)", "VMThread::execute(VM_Operation*)"]));
        assert!(!waits(&["ObjectMonitor::wait(long, bool, JavaThread*)", "JVM_MonitorWait"]));
        assert!(is_of_java("Common-Cleaner") && !is_of_java("worker"));
    }
}
