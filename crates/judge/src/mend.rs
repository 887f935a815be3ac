//! One sentence for each cause: the mend, as one colleague tells another. It is printed after the
//! cause, which it does not repeat.

use super::cause::{Awaited, Cause};

/// The names that a mend needs.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Name of the lock.
    pub lock: &'a str,
    /// Name of the system call in which the holder sleeps, if it does.
    pub syscall: Option<&'a str>,
    /// CPUs that the program may use.
    pub cpus: u32,
    /// Threads of the program that are alive.
    pub threads: u32,
    /// The lock is one of readers and writers.
    pub read_write: bool,
    /// The lock is an interpreter's own: who runs its code holds it.
    pub interpreter: bool,
}

/// The mend of a cause, one sentence.
///
/// ```
/// use threadtoll_judge::cause::Cause;
/// use threadtoll_judge::mend::{Context, mend};
///
/// let context = Context {
///     lock: "cache_lock",
///     syscall: Some("fsync"),
///     cpus: 8,
///     threads: 16,
///     read_write: false,
///     interpreter: false,
/// };
/// assert_eq!(
///     mend(Cause::SleptHolding(74), context),
///     "Release cache_lock before fsync, or have one thread do it for all."
/// );
/// ```
pub fn mend(cause: Cause, context: Context<'_>) -> String {
    let Context { lock, syscall, cpus, threads, read_write, interpreter } = context;
    match cause {
        Cause::Computing | Cause::OnCpu | Cause::Convoy if interpreter => {
            "One thread at a time runs Python: use processes, C code that releases the lock \
             (NumPy, zlib), or a free-threaded build."
                .to_owned()
        }
        Cause::SleptHolding(number) => {
            let call = syscall.map_or_else(|| format!("system call {number}"), str::to_owned);
            match syscall {
                Some("nanosleep" | "clock_nanosleep" | "poll" | "select" | "epoll_wait") => {
                    format!("Release {lock} before {call}.")
                }
                _ => format!("Release {lock} before {call}, or have one thread do it for all."),
            }
        }
        Cause::WaitsForThreads(Awaited::Join, _) => format!("Release {lock} before joining."),
        Cause::WaitsForThreads(..) => {
            format!("Release {lock} before waiting for other threads.")
        }
        Cause::OnCpu if threads > cpus => {
            format!("Do less under {lock}, or run at most {cpus} threads instead of {threads}.")
        }
        Cause::OnCpu => format!("Do less under {lock}, or leave more CPUs to this program."),
        Cause::HeldByReaders => {
            format!("Shorten what readers do under {lock}, or read a snapshot without the lock.")
        }
        Cause::Computing if read_write => {
            format!("Do less under {lock}, or read a snapshot without the lock.")
        }
        Cause::Computing => format!("Do less under {lock}, or stripe it into several locks."),
        Cause::Preempted if threads > cpus => format!(
            "Run at most {cpus} threads instead of {threads}, so that the holder of {lock} keeps \
             its CPU."
        ),
        Cause::Preempted => {
            format!("Leave more CPUs to this program: others take that of the holder of {lock}.")
        }
        Cause::Throttled => {
            "Raise the cgroup's CPU quota, or run no more threads than it pays for.".to_owned()
        }
        Cause::Convoy => "Each waiter sleeps and has to be woken: spin before sleeping, or do \
             several operations per acquisition."
            .to_owned(),
        Cause::Herd => format!(
            "Wake one thread instead of all (notify_one, pthread_cond_signal), and wake it after \
             releasing {lock}."
        ),
        Cause::Hog => "It takes the lock again before the others wake up: use a fair lock, or \
             make that thread yield between acquisitions."
            .to_owned(),
        Cause::StarvedWriter => {
            format!("Use a lock that prefers writers, or shorten what readers do under {lock}.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mend_is_one_sentence_that_fits_two_lines() {
        let causes = [
            Cause::SleptHolding(230),
            Cause::WaitsForThreads(Awaited::Condvar, None),
            Cause::WaitsForThreads(Awaited::Join, Some(3)),
            Cause::Computing,
            Cause::OnCpu,
            Cause::Preempted,
            Cause::Throttled,
            Cause::Convoy,
            Cause::Herd,
            Cause::Hog,
            Cause::StarvedWriter,
            Cause::HeldByReaders,
        ];
        for cause in causes {
            for (threads, read_write, interpreter) in
                [(4, false, false), (64, true, false), (4, false, true)]
            {
                let lock = "queue_lock";
                let (syscall, cpus) = (None, 4);
                let context = Context { lock, syscall, cpus, threads, read_write, interpreter };
                let sentence = mend(cause, context);
                assert!(sentence.len() <= 160 && sentence.ends_with('.'), "{sentence}");
                assert_eq!(sentence.matches(". ").count(), 0, "{sentence}");
            }
        }
    }
}
