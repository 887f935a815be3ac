//! CPU affinity and scheduling policy of threads.
//!
//! Uses raw system calls, because the C library's `cpu_set_t` is limited to 1,024 CPUs.

use std::io;

use thiserror::Error;

use crate::cpulist::MAX_CPUS;

/// Reason why a thread could not be placed.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// No CPUs were given.
    #[error("the list of CPUs is empty; name at least one")]
    NoCpu,
    /// Some CPUs are offline, do not exist, or are outside this process's cpuset.
    #[error("this process may not run on CPU {}; choose among {}", list(.refused), list(.allowed))]
    NotAllowed {
        /// CPUs requested but not available.
        refused: Vec<u32>,
        /// CPUs on which the thread could run before the attempt.
        allowed: Vec<u32>,
    },
    /// The kernel or a sandbox forbids the change.
    #[error("this process may not set {what}: {source}; allow it in the sandbox (seccomp)")]
    Forbidden {
        /// The property that was to be set.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

fn list(cpus: &[u32]) -> String {
    let shown: Vec<String> = cpus.iter().take(16).map(u32::to_string).collect();
    let more = if cpus.len() > 16 { ", …" } else { "" };
    if shown.is_empty() { "none".into() } else { shown.join(", ") + more }
}

const WORD_BITS: usize = u64::BITS as usize;

/// CPUs on which the calling thread may run, in ascending order; never empty.
///
/// If a sandbox hides them, the result is the current CPU.
pub fn allowed_cpus() -> Vec<u32> {
    cpus_of_thread(0)
        .unwrap_or_else(|_| vec![Some(current_cpu()).filter(|&cpu| cpu < MAX_CPUS).unwrap_or(0)])
}

/// Online CPUs on which a thread may run, in ascending order. A TID of 0 means the calling thread.
///
/// # Errors
///
/// The kernel's error: there is no such thread, or a sandbox hides it.
pub fn cpus_of_thread(tid: u32) -> io::Result<Vec<u32>> {
    // Enough for most machines. The kernel returns EINVAL if its own mask is longer.
    let mut words = 1024 / WORD_BITS;
    loop {
        let mut mask = vec![0u64; words];
        // SAFETY: the kernel writes at most `size_of_val(&mask[..])` bytes into `mask`.
        let written = unsafe {
            libc::syscall(
                libc::SYS_sched_getaffinity,
                tid as libc::pid_t,
                size_of_val(&mask[..]),
                mask.as_mut_ptr(),
            )
        };
        if written >= 0 {
            return Ok(cpus_in(&mask));
        }
        let error = io::Error::last_os_error();
        words *= 2;
        if error.raw_os_error() != Some(libc::EINVAL) || words > MAX_CPUS as usize / WORD_BITS {
            return Err(error);
        }
    }
}

/// The kernel's masks are arrays of `unsigned long`. Words of 64 bits read them correctly on 64-bit
/// and on little-endian systems; no others are supported.
fn cpus_in(mask: &[u64]) -> Vec<u32> {
    let set = mask.iter().enumerate().filter(|&(_, &word)| word != 0);
    let bits = set.flat_map(|(index, &word)| {
        let bits = (0..WORD_BITS).filter(move |bit| word >> bit & 1 == 1);
        bits.map(move |bit| index * WORD_BITS + bit)
    });
    bits.map(|bit| bit as u32).collect()
}

/// Binds the calling thread to `cpus`; when this returns, the thread runs on one of them.
///
/// Threads that the calling thread starts inherit the affinity.
///
/// # Errors
///
/// [`PlaceError`]; the affinity is then unchanged. The kernel silently drops CPUs outside the
/// cpuset. Here they are an error, because a figure would otherwise name CPUs that were not used.
pub fn pin_to(cpus: &[u32]) -> Result<(), PlaceError> {
    let mut wanted = cpus.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let Some(&highest) = wanted.last() else { return Err(PlaceError::NoCpu) };
    let before = allowed_cpus();
    let refused = |granted: &[u32]| PlaceError::NotAllowed {
        refused: wanted.iter().copied().filter(|cpu| granted.binary_search(cpu).is_err()).collect(),
        allowed: before.clone(),
    };
    if highest >= MAX_CPUS {
        return Err(refused(&before));
    }
    match write_affinity(&wanted) {
        Ok(()) => {}
        // None of the CPUs is both online and in the cpuset.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Err(refused(&[])),
        Err(source) => return Err(PlaceError::Forbidden { what: "the CPUs of a thread", source }),
    }
    match cpus_of_thread(0) {
        Ok(granted) if granted == wanted => Ok(()),
        Ok(granted) => {
            // The first error is reported, even if the affinity cannot be restored.
            let _ = write_affinity(&before);
            Err(refused(&granted))
        }
        Err(source) => Err(PlaceError::Forbidden { what: "the CPUs of a thread", source }),
    }
}

/// `cpus` must be ascending, below [`MAX_CPUS`], and not empty.
fn write_affinity(cpus: &[u32]) -> io::Result<()> {
    let highest = cpus.last().copied().unwrap_or(0) as usize;
    let mut mask = vec![0u64; highest / WORD_BITS + 1];
    for &cpu in cpus {
        mask[cpu as usize / WORD_BITS] |= 1 << (cpu as usize % WORD_BITS);
    }
    // SAFETY: the kernel reads `size_of_val(&mask[..])` bytes from `mask`. TID 0 is this thread.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&mask[..]), mask.as_ptr())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPU on which the calling thread is running; `u32::MAX` if the kernel does not report it.
#[inline]
pub fn current_cpu() -> u32 {
    // SAFETY: takes no arguments and touches no memory of this process. On failure, -1 becomes
    // u32::MAX.
    let cpu = unsafe { libc::sched_getcpu() };
    cpu as u32
}

/// Makes the calling thread run only when its CPU would otherwise be idle (`SCHED_IDLE`).
///
/// For threads that keep a CPU from idling. Reverting this may need privilege.
///
/// # Errors
///
/// [`PlaceError::Forbidden`] if a sandbox does not allow it.
pub fn set_idle_priority() -> Result<(), PlaceError> {
    // The kernel's sched_param is one int; musl's is longer.
    let no_priority: libc::c_int = 0;
    // musl's `sched_setscheduler` always fails, because in POSIX it applies to the whole process.
    // SAFETY: the kernel reads one int from a live address; 0 is this thread.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const no_priority)
    };
    if result == 0 {
        Ok(())
    } else {
        Err(PlaceError::Forbidden {
            what: "the priority of a thread",
            source: io::Error::last_os_error(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::machine_lock;

    /// Runs `task` on a thread of its own, because pinning must not outlive a test.
    fn apart<T: Send + 'static>(task: impl FnOnce() -> T + Send + 'static) -> T {
        let _alone = machine_lock().unwrap();
        std::thread::spawn(task).join().unwrap()
    }

    #[test]
    fn a_pinned_thread_runs_there_and_nowhere_else() {
        apart(|| {
            for cpu in allowed_cpus() {
                pin_to(&[cpu]).unwrap();
                assert_eq!(current_cpu(), cpu);
                assert_eq!(allowed_cpus(), [cpu]);
                assert_eq!(std::thread::spawn(allowed_cpus).join().unwrap(), [cpu]);
            }
        });
    }

    #[test]
    fn a_thread_may_roam_among_several() {
        apart(|| {
            let all = allowed_cpus();
            let mut backwards = all.clone();
            backwards.reverse();
            backwards.push(all[0]);
            pin_to(&backwards).unwrap();
            assert_eq!(allowed_cpus(), all);
        });
    }

    #[test]
    fn cpus_that_are_not_there_are_refused_and_change_nothing() {
        apart(|| {
            let before = allowed_cpus();
            assert!(matches!(pin_to(&[]), Err(PlaceError::NoCpu)));
            for absent in [8_191, 65_535, 65_536, u32::MAX] {
                for cpus in [vec![absent], vec![before[0], absent]] {
                    match pin_to(&cpus) {
                        Err(PlaceError::NotAllowed { refused, allowed }) => {
                            assert_eq!((refused, allowed), (vec![absent], before.clone()));
                        }
                        other => panic!("{other:?}"),
                    }
                    assert_eq!(allowed_cpus(), before);
                }
            }
        });
    }

    #[test]
    fn errors_name_the_cpus() {
        let error = PlaceError::NotAllowed { refused: vec![9], allowed: (0..20).collect() };
        assert_eq!(
            error.to_string(),
            "this process may not run on CPU 9; choose among 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, …"
        );
    }

    #[test]
    fn idle_priority_is_for_the_calling_thread_only() {
        let policy = || {
            // SAFETY: takes no pointers; 0 is this thread.
            unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
        };
        let before = policy();
        let inside = apart(move || {
            set_idle_priority().unwrap();
            policy()
        });
        assert_eq!(inside, i64::from(libc::SCHED_IDLE));
        assert_eq!(policy(), before);
    }
}
