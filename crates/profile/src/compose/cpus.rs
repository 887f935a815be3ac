//! The CPUs that processes may use, and how idle they were.

use rustix::thread::{CpuSet, sched_getaffinity};
use threadtoll_machine::IdleTimes;

/// Minimum fraction of the profile for which a process must have been seen. Otherwise, the idle
/// time of its CPUs over the whole profile may not be typical of the time for which it ran.
const MOSTLY_THERE: f64 = 0.8;

/// The CPUs that the profiler may use, from which those of other processes are inferred.
#[derive(Debug)]
pub(super) struct Cpus<'a> {
    /// Number of CPUs that the profiler may use.
    own: u32,
    /// Quota of the profiler's control group; the processes are taken to have the same.
    quota: Option<u32>,
    /// Idle times when the profile began, and now.
    idle: [&'a IdleTimes; 2],
    /// Duration of the profile so far.
    seconds: f64,
}

/// The CPUs that a process may use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpusOfProcess {
    /// Their number.
    pub(super) number: u32,
    /// Mean number of these CPUs that were idle and could have been used; `None` if unknown.
    pub(super) idle: Option<f64>,
}

impl<'a> Cpus<'a> {
    /// `idle` are the idle times when the profile began, and now, `seconds` later.
    pub(super) fn of_this_process(idle: [&'a IdleTimes; 2], seconds: f64) -> Cpus<'a> {
        // Also reads the quota from files of the control group.
        let available = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        let allowed = sched_getaffinity(None).map_or(available, |cpus| cpus.count());
        let quota = (available < allowed).then_some(available);
        Cpus { own: available, quota, idle, seconds }
    }

    /// The CPUs of a process that could use `allowed`, if that is known, and was seen for `seconds`
    /// seconds.
    pub(super) fn of(&self, allowed: Option<&CpuSet>, seconds: f64) -> CpusOfProcess {
        let number = allowed.map_or(self.own, CpuSet::count);
        let number = self.quota.map_or(number, |quota| number.min(quota)).max(1);
        // Idle time beyond a quota is of no use.
        let told = self.quota.is_none() && seconds >= MOSTLY_THERE * self.seconds;
        let idle = allowed.filter(|_| told).and_then(|allowed| {
            let [before, now] = self.idle;
            now.idle_since(before, |cpu| {
                (cpu as usize) < CpuSet::MAX_CPU && allowed.is_set(cpu as usize)
            })
        });
        CpusOfProcess { number, idle }
    }
}
