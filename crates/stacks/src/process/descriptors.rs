//! The limit on open files (`RLIMIT_NOFILE`, getrlimit(2)).
//!
//! A thread with an open descriptor can be sampled with a single system call. The soft limit is
//! usually 1,024, for the sake of programs that use select(2); the hard limit is often half a
//! million.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Eighths of the limit that descriptors of threads may use. `EVENTS` is the share of the threads'
/// perf events. The rest is for processes, programs to symbolise, and output files.
const THREADS: u64 = 3;
const EVENTS: u64 = 4;

#[derive(Debug)]
struct Limits {
    original: Rlimit,
    current: u64,
}

impl Limits {
    fn eighths(&self, eighths: u64) -> u64 {
        self.current / 8 * eighths
    }
}

static LIMITS: OnceLock<Limits> = OnceLock::new();
static IN_USE: AtomicU64 = AtomicU64::new(0);

fn limits() -> &'static Limits {
    LIMITS.get_or_init(|| {
        let original = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: original.maximum, maximum: original.maximum };
        let current = match setrlimit(Resource::Nofile, raised) {
            Ok(()) => raised.current,
            Err(_) => original.current,
        };
        Limits { original, current: current.unwrap_or(u64::MAX) }
    })
}

/// Raises the soft limit of this process to the hard one, once.
pub fn raise_limit() {
    limits();
}

/// Maximum number of descriptors for perf events of threads.
pub fn for_events() -> usize {
    usize::try_from(limits().eighths(EVENTS)).unwrap_or(usize::MAX)
}

/// Limit with which this process was started, to be restored in programs that it launches.
pub(crate) fn original_limit() -> Rlimit {
    LIMITS.get().map_or_else(|| getrlimit(Resource::Nofile), |limits| limits.original)
}

#[derive(Debug)]
pub(crate) struct Permit(());

impl Permit {
    pub(crate) fn take() -> Option<Permit> {
        let threads = limits().eighths(THREADS);
        // `Relaxed`: the count guards no other memory.
        IN_USE
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (used < threads).then_some(used + 1)
            })
            .ok()
            .map(|_| Permit(()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        IN_USE.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_events_leave_descriptors_for_other_files() {
        for current in [64, 1_024, 1 << 20, u64::MAX] {
            let limits = Limits { original: getrlimit(Resource::Nofile), current };
            let used = limits.eighths(THREADS) + limits.eighths(EVENTS);
            assert!(used <= current - current / 8, "{used} of {current}");
        }
    }
}
