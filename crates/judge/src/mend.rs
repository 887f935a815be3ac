//! Gives one sentence of advice per cause, as one colleague would say it to another. The sentence
//! is printed after the cause and does not repeat it.

use super::cause::{Awaited, Cause};

/// Fewer threads help only if the program's threads use at least this share of the CPUs.
const FULL: f64 = 0.8;

/// Names and figures that the advice needs.
#[derive(Clone, Copy, Debug)]
pub struct MendContext<'a> {
    /// Name of the lock.
    pub lock: &'a str,
    /// Name of the system call in which the holder sleeps, if any.
    pub syscall: Option<&'a str>,
    /// The program's function in which the holder sleeps.
    pub sleeper: Option<&'a Sleeper>,
    /// Name of the lock or other wait target for which the holder waits, if any.
    pub awaited: Option<&'a str>,
    /// Number of CPUs that the program may use.
    pub cpus: u32,
    /// Mean number of the program's threads that are on a CPU, or wait for one.
    pub on_cpu: f64,
    /// Number of the program's living threads.
    pub threads: u32,
    /// True if as many threads as there are CPUs are predicted to do nearly as much as all threads.
    pub fewer_do: bool,
    /// The holder's nice value, if it lets other threads take the holder's CPU.
    pub nice: Option<u8>,
    /// True for a readers-writer lock.
    pub read_write: bool,
    /// True for a spinlock: its waiters keep their CPUs.
    pub spins: bool,
    /// True for an interpreter's own lock, which is held while a thread runs interpreted code.
    pub interpreter: bool,
    /// Sentence of advice specific to a library's lock.
    pub library: Option<&'a str>,
}

/// A function of the program in which the holder of a lock sleeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sleeper {
    /// A function called by the function that took the lock.
    Called(String),
    /// The function that took the lock.
    Taker(String),
    /// This function, or one of its callers, took the lock. The text names the function and its
    /// caller.
    Holder(String),
}

/// Advice for a cause, in one sentence.
///
/// ```
/// use threadtoll_judge::cause::Cause;
/// use threadtoll_judge::mend::{MendContext, Sleeper, mend};
///
/// let context = MendContext {
///     lock: "cache_lock",
///     syscall: Some("fsync"),
///     sleeper: Some(&Sleeper::Called("store".to_owned())),
///     awaited: None,
///     cpus: 8,
///     on_cpu: 0.5,
///     fewer_do: false,
///     threads: 16,
///     nice: None,
///     read_write: false,
///     spins: false,
///     interpreter: false,
///     library: None,
/// };
/// assert_eq!(
///     mend(Cause::SleptHolding(74), context),
///     "Release cache_lock before calling store() (fsync), or have one thread do it for all."
/// );
/// ```
pub fn mend(cause: Cause, context: MendContext<'_>) -> String {
    let MendContext { lock, cpus, threads, .. } = context;
    let full = context.on_cpu >= FULL * f64::from(cpus);
    let fills_cpus = full && threads > cpus && context.fewer_do;
    match cause {
        // The program can change a library's own lock only as the library's advice says.
        Cause::SleptHolding(_)
        | Cause::WaitsForThreads(..)
        | Cause::Computing
        | Cause::OnCpu
        | Cause::Convoy
        | Cause::Hog
            if let Some(mend) = context.library =>
        {
            mend.to_owned()
        }
        Cause::Computing | Cause::OnCpu | Cause::Convoy | Cause::Hog if context.interpreter => {
            "One thread at a time runs Python: use processes, C code that releases the lock \
             (NumPy, zlib), or a free-threaded build."
                .to_owned()
        }
        Cause::SleptHolding(number) => slept(number, context),
        Cause::WaitsForLock(_) => match context.awaited {
            Some(other) => {
                format!("Release {lock} before taking {other}, or shorten the holds of {other}.")
            }
            None => format!("Release {lock} before taking the other lock."),
        },
        Cause::WaitsForThreads(kind, _) => awaiting(kind, context),
        Cause::OnCpu if fills_cpus => {
            format!("Do less under {lock}, or run at most {cpus} threads instead of {threads}.")
        }
        Cause::OnCpu => format!("Do less under {lock}, or leave more CPUs to this program."),
        Cause::HeldByReaders => {
            format!("Shorten what readers do under {lock}, or read a snapshot without the lock.")
        }
        Cause::Computing if context.read_write => {
            format!("Do less under {lock}, or read a snapshot without the lock.")
        }
        Cause::Computing if context.spins && cpus <= 1 => {
            format!("Use a mutex for {lock}: its holder cannot run while another thread spins.")
        }
        // Threads that take turns on a single CPU gain nothing from several locks.
        Cause::Computing if cpus <= 1 => {
            format!("Do less under {lock}, or let this program use more than one CPU.")
        }
        Cause::Computing => format!("Do less under {lock}, or stripe it into several locks."),
        Cause::Preempted if context.spins => {
            let fewer = match fills_cpus {
                true => format!(", or at most {cpus} threads instead of {threads}"),
                false => String::new(),
            };
            format!(
                "Use a mutex for {lock}{fewer}: while the holder of a spinlock has no CPU, others \
                 spin."
            )
        }
        Cause::Preempted => match context.nice {
            Some(nice) => format!(
                "Give the holder of {lock} a higher priority: with its nice value of {nice}, other \
                 threads take its CPU."
            ),
            None if fills_cpus => format!(
                "Run at most {cpus} threads instead of {threads}, so that the holder of {lock} \
                 keeps its CPU."
            ),
            None if full && threads > cpus => format!(
                "Leave more CPUs to this program: other threads take the CPU of the holder of \
                 {lock}."
            ),
            None => format!(
                "Leave more CPUs to this program: other threads or programs take the CPU of the \
                 holder of {lock}."
            ),
        },
        Cause::Throttled => {
            "Raise the cgroup's CPU quota, or run no more threads than it allows.".to_owned()
        }
        // The thread for which a waiter would spin needs the same CPU.
        Cause::Convoy if cpus <= 1 => "Each waiter sleeps and has to be woken: do several \
             operations per acquisition, or let this program use more than one CPU."
            .to_owned(),
        // A spinning waiter takes CPU time from the threads that work.
        Cause::Convoy if full => {
            "Each waiter sleeps and has to be woken: do several operations per acquisition."
                .to_owned()
        }
        Cause::Convoy => "Each waiter sleeps and has to be woken: spin before sleeping, or do \
             several operations per acquisition."
            .to_owned(),
        Cause::Herd => format!(
            "If only one of the woken threads finds work, wake one (notify_one, \
             pthread_cond_signal), after releasing {lock}."
        ),
        Cause::Hog => {
            "One thread takes the lock again before the others wake up: use a fair lock, \
             or make that thread yield between acquisitions."
                .to_owned()
        }
        Cause::StarvedWriter => {
            format!("Use a lock that prefers writers, or shorten what readers do under {lock}.")
        }
    }
}

fn slept(number: u32, context: MendContext<'_>) -> String {
    let MendContext { lock, syscall, sleeper, .. } = context;
    let call = syscall.map_or_else(|| format!("system call {number}"), str::to_owned);
    let release = match sleeper {
        Some(Sleeper::Called(name)) => {
            format!("Release {lock} before calling {name}() ({call})")
        }
        Some(Sleeper::Taker(name)) => format!("In {name}(), release {lock} before {call}"),
        Some(Sleeper::Holder(at)) => {
            format!("Release {lock} before its holder sleeps in {at} ({call})")
        }
        None => format!("Release {lock} before {call}"),
    };
    match syscall {
        _ if context.interpreter => {
            format!("{release}: C code does this with Py_BEGIN_ALLOW_THREADS.")
        }
        _ if context.spins => format!("{release}, or use a mutex, whose waiters sleep."),
        Some("fsync" | "fdatasync" | "msync" | "write") => {
            format!("{release}, or have one thread do it for all.")
        }
        _ => format!("{release}."),
    }
}

fn awaiting(kind: Awaited, context: MendContext<'_>) -> String {
    let MendContext { lock, sleeper, awaited, .. } = context;
    let other = match kind {
        Awaited::Join => "a thread to end",
        _ => awaited.unwrap_or("other threads"),
    };
    match sleeper {
        Some(Sleeper::Called(name)) => {
            format!("Release {lock} before calling {name}(), which waits for {other}.")
        }
        Some(Sleeper::Taker(name)) => {
            format!("In {name}(), release {lock} before waiting for {other}.")
        }
        Some(Sleeper::Holder(at)) => {
            format!("Release {lock} before its holder waits for {other} in {at}.")
        }
        None => format!("Release {lock} before waiting for {other}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: MendContext<'_> = MendContext {
        lock: "queue_lock",
        syscall: None,
        sleeper: None,
        awaited: None,
        cpus: 4,
        on_cpu: 4.0,
        fewer_do: true,
        threads: 4,
        nice: None,
        read_write: false,
        spins: false,
        interpreter: false,
        library: None,
    };

    #[test]
    fn each_mend_is_one_sentence_that_fits_two_lines() {
        let causes = [
            Cause::SleptHolding(230),
            Cause::WaitsForLock(2),
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
        let sleeper = Sleeper::Called("Cache::rebuild".to_owned());
        let contexts = [
            PLAIN,
            MendContext { threads: 64, read_write: true, ..PLAIN },
            MendContext { interpreter: true, nice: Some(19), ..PLAIN },
            MendContext { spins: true, threads: 64, ..PLAIN },
            MendContext { spins: true, cpus: 1, syscall: Some("clock_nanosleep"), ..PLAIN },
            MendContext { sleeper: Some(&sleeper), awaited: Some("journal_lock"), ..PLAIN },
        ];
        for cause in causes {
            for context in contexts {
                let sentence = mend(cause, context);
                assert!(sentence.len() <= 160 && sentence.ends_with('.'), "{sentence}");
                assert_eq!(sentence.matches(". ").count(), 0, "{sentence}");
            }
        }
    }

    #[test]
    fn fewer_threads_help_only_if_they_fill_the_cpus() {
        let threads = MendContext { threads: 16, ..PLAIN };
        let said = mend(Cause::Preempted, threads);
        assert!(said.starts_with("Run at most 4 threads instead of 16"), "{said}");
        let said = mend(Cause::Preempted, MendContext { on_cpu: 0.1, ..threads });
        assert!(said.contains("other threads or programs take the CPU"), "{said}");
        let said = |cause| mend(cause, MendContext { fewer_do: false, ..threads });
        assert!(!said(Cause::OnCpu).contains("run at most"), "{}", said(Cause::OnCpu));
        let preempted = said(Cause::Preempted);
        assert!(preempted.contains("other threads take the CPU"), "{preempted}");
        let said = mend(Cause::Preempted, MendContext { nice: Some(19), ..threads });
        assert!(said.starts_with("Give the holder of queue_lock a higher priority"), "{said}");
    }

    #[test]
    fn nobody_spins_where_no_cpu_is_idle() {
        let said = |cpus, on_cpu| mend(Cause::Convoy, MendContext { cpus, on_cpu, ..PLAIN });
        assert!(said(2, 0.5).contains("spin before sleeping"), "{}", said(2, 0.5));
        assert!(!said(2, 2.4).contains("spin"), "{}", said(2, 2.4));
        assert!(!said(1, 0.5).contains("spin"), "{}", said(1, 0.5));
        let said = mend(Cause::Computing, MendContext { cpus: 1, ..PLAIN });
        assert!(!said.contains("several locks"), "{said}");
    }

    #[test]
    fn a_mend_names_the_function_that_sleeps() {
        let said = |sleeper: Sleeper| {
            let context =
                MendContext { syscall: Some("clock_nanosleep"), sleeper: Some(&sleeper), ..PLAIN };
            mend(Cause::SleptHolding(230), context)
        };
        assert_eq!(
            said(Sleeper::Called("rebuild".to_owned())),
            "Release queue_lock before calling rebuild() (clock_nanosleep)."
        );
        assert_eq!(
            said(Sleeper::Taker("work".to_owned())),
            "In work(), release queue_lock before clock_nanosleep."
        );
        assert_eq!(
            said(Sleeper::Holder("reload".to_owned())),
            "Release queue_lock before its holder sleeps in reload (clock_nanosleep)."
        );
    }

    #[test]
    fn no_thread_should_spin_while_the_holder_does_not_run() {
        let spins = MendContext { spins: true, syscall: Some("nanosleep"), threads: 16, ..PLAIN };
        assert_eq!(
            mend(Cause::SleptHolding(35), spins),
            "Release queue_lock before nanosleep, or use a mutex, whose waiters sleep."
        );
        assert_eq!(
            mend(Cause::Preempted, spins),
            "Use a mutex for queue_lock, or at most 4 threads instead of 16: while the holder of a \
             spinlock has no CPU, others spin."
        );
        let said = mend(Cause::Preempted, MendContext { on_cpu: 0.1, ..spins });
        assert!(said.starts_with("Use a mutex for queue_lock: while"), "{said}");
    }

    #[test]
    fn a_library_s_lock_has_a_mend_of_its_own() {
        let library = Some("Allocate less.");
        let context = MendContext { library, ..PLAIN };
        assert_eq!(mend(Cause::Convoy, context), "Allocate less.");
        assert!(mend(Cause::Throttled, context).starts_with("Raise the cgroup"));
    }
}
