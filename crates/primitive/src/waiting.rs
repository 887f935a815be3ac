//! Finds the program's function that waits, given a stack.

pub use super::lock_names::asks_about_a_lock;
use super::lock_names::{
    acquires, is_barrier, is_wait_wrapper, takes_lock, takes_lock_inside, waits, waits_at_barrier,
};
use crate::FunctionName;
use crate::function::Part;

/// Maximum number of functions without names between the wait for a library's lock and the exported
/// function that takes the lock. Code that an interrupt runs in an interpreter is deeper.
const MAX_UNNAMED: usize = 4;

/// A frame of a waiter's stack.
#[derive(Clone, Debug)]
pub struct WaitingFrame {
    /// Name of the function.
    pub function: String,
    /// True if the frame's code belongs to the C library or a similar runtime.
    pub in_runtime: bool,
}

/// Waiting functions found on a stack, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiting {
    /// The innermost function that belongs neither to a lock nor to a library that waits.
    pub function: Option<String>,
    /// Between `function` and the wait, the outermost function whose name shows that it takes a
    /// lock.
    pub lock: Option<String>,
    /// True if a name on the stack shows a wait at a barrier.
    pub barrier: bool,
}

impl Waiting {
    /// Evaluates frames, innermost first.
    pub fn of(frames: &[WaitingFrame]) -> Waiting {
        let mut waiting = Waiting::default();
        for (depth, WaitingFrame { function, in_runtime }) in frames.iter().enumerate() {
            let name = FunctionName::parse(function);
            // A function that acquires something by taking a lock may itself be part of the lock.
            let of_lock = waiting.lock.is_some() && waiting.function.is_none() && acquires(&name);
            let inside = || takes_lock_inside(&name) && is_hidden_lock(&frames[..depth]);
            if takes_lock(&name) || of_lock || inside() {
                waiting.lock = Some(function.clone());
                waiting.function = None;
                continue;
            }
            let of_runtime = *in_runtime || name.part() != Part::Program || is_wait_wrapper(&name);
            // The program's own function may be named after another kind of barrier, such as a
            // memory barrier.
            waiting.barrier |= is_barrier(&name) && of_runtime || waits_at_barrier(&name);
            if waiting.function.is_none() && of_runtime {
                continue;
            }
            if waiting.function.is_none() {
                waiting.function = Some(function.clone());
            }
            // A function that waits may be part of a lock, and so may a function without a name.
            if !waits(&name) && !name.path().contains("+0x") {
                break;
            }
        }
        waiting
    }
}

/// Returns `true` if the frames show a wait on a condition variable in a few functions without
/// names.
fn is_hidden_lock(inner: &[WaitingFrame]) -> bool {
    let mut unnamed = 0;
    let mut on_condvar = false;
    for WaitingFrame { function, in_runtime } in inner {
        on_condvar |= function.trim_start_matches('_').starts_with("pthread_cond_");
        let name = FunctionName::parse(function);
        if *in_runtime || name.part() != Part::Program || is_wait_wrapper(&name) {
            continue;
        }
        if !function.contains("+0x") {
            return false;
        }
        unnamed += 1;
    }
    on_condvar && unnamed <= MAX_UNNAMED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(frames: &[&str]) -> (Option<String>, Option<String>) {
        let frame = |name: &&str| WaitingFrame {
            function: (*name).to_owned(),
            in_runtime: name.contains("libc"),
        };
        let waiting = Waiting::of(&frames.iter().map(frame).collect::<Vec<_>>());
        (waiting.function, waiting.lock)
    }

    fn some(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[test]
    fn the_program_s_function_follows_those_of_its_locks() {
        let frames = [
            "syscall",
            "parking_lot_core::parking_lot::park",
            "dashmap::lock::RawRwLock::lock_exclusive_slow",
            "dashmap::DashMap<K, V>::entry",
            "count_hit",
            "worker",
        ];
        let lock = some("dashmap::lock::RawRwLock::lock_exclusive_slow");
        assert_eq!(of(&frames), (some("dashmap::DashMap<K, V>::entry"), lock));

        let frames = [
            "___pthread_cond_wait",
            "boost::condition_variable::wait(boost::unique_lock<boost::mutex>&)",
            "boost::shared_mutex::lock()",
            "update_catalog",
        ];
        assert_eq!(of(&frames), (some("update_catalog"), some("boost::shared_mutex::lock()")));

        let frames = [
            "epoll_wait",
            "WaitEventSetWaitBlock",
            "WaitEventSetWait",
            "WaitLatch",
            "ProcSleep",
            "postgres+0x45d95c",
            "LockAcquireExtended",
            "heap_update",
        ];
        assert_eq!(of(&frames), (some("heap_update"), some("LockAcquireExtended")));

        // make(1) waits for a token of its job server.
        let frames = ["__pselect64", "jobserver_acquire", "new_job", "main"];
        assert_eq!(of(&frames), (some("jobserver_acquire"), None));
        let frames = ["___pthread_cond_wait", "acquire_samples", "filter"];
        assert_eq!(of(&frames), (some("acquire_samples"), None));
        let acquire = "std::counting_semaphore<1l>::acquire()";
        assert_eq!(of(&["syscall", acquire, "fetch", "user"]), (some("fetch"), None));
        let frames = ["futex_wait", "PyThread_acquire_lock_timed", "acquire", "work"];
        assert_eq!(of(&frames).0, some("work"));

        let frames = ["___pthread_cond_timedwait", "lock_wait(que_thr_t*)", "row_upd_step"];
        assert_eq!(of(&frames), (some("row_upd_step"), some("lock_wait(que_thr_t*)")));
    }

    #[test]
    fn ruby_without_symbols_takes_its_lock_when_a_time_slice_ends() {
        let taker = "rb_threadptr_execute_interrupts";
        let frames = [
            "libc:futex_wait",
            "pthread_cond_wait",
            "rb_native_cond_wait",
            "libruby-3.1.so.3.1.2+0x20f772",
            "libruby-3.1.so.3.1.2+0x211121",
            taker,
            "libruby-3.1.so.3.1.2+0x2524b4",
            "rb_vm_exec",
        ];
        assert_eq!(of(&frames).1.as_deref(), Some(taker));
        // A system call without the lock, and a handler of an interrupt that waits on its own.
        assert_eq!(of(&["libc:read", "libruby.so+0x10", "rb_nogvl", "rb_vm_exec"]).1, None);
        let handler: Vec<String> = (0..6).map(|at| format!("libruby.so+0x{at}")).collect();
        let frames: Vec<&str> = ["pthread_cond_wait"]
            .into_iter()
            .chain(handler.iter().map(String::as_str))
            .chain([taker])
            .collect();
        assert_eq!(of(&frames).1, None);
        assert_eq!(of(&["pthread_cond_wait", "next_job", "rb_nogvl"]).1, None);
    }

    #[test]
    fn a_queue_s_function_is_no_lock() {
        let frames = ["___pthread_cond_wait", "queue_pop", "worker", "acquire_license", "clone3"];
        assert_eq!(of(&frames), (some("queue_pop"), None));
        let frames = ["___pthread_cond_wait", "wait_for_reply_wait", "call", "lock_all"];
        assert_eq!(of(&frames), (some("wait_for_reply_wait"), None));
        assert_eq!(of(&["syscall", "std::thread::park"]), (None, None));
        assert_eq!(of(&["syscall", "a.out+0x12", "a.out+0x34"]), (some("a.out+0x12"), None));
        assert_eq!(of(&[]), (None, None));
        let waiting = Waiting::of(&[
            WaitingFrame { function: "syscall".into(), in_runtime: true },
            WaitingFrame { function: "gomp_team_barrier_wait_end".into(), in_runtime: false },
        ]);
        assert!(waiting.barrier);
    }
}
