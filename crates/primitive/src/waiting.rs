//! Finds the program's function that waits, given a stack.

pub use super::lock_names::asks_about_a_lock;
use super::lock_names::{
    acquires, is_barrier, is_wait_wrapper, takes_lock, waits, waits_at_barrier,
};
use crate::FunctionName;
use crate::function::Part;

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
        for WaitingFrame { function, in_runtime } in frames {
            let name = FunctionName::parse(function);
            // A function that acquires something by taking a lock may itself be part of the lock.
            let of_lock = waiting.lock.is_some() && waiting.function.is_none() && acquires(&name);
            if takes_lock(&name) || of_lock {
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
