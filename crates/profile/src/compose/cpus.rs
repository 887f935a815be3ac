//! CPUs that processes may use, and idle time of these CPUs.

use rustix::thread::{CpuSet, sched_getaffinity};
use threadtoll_machine::IdleTimes;

/// Minimum fraction of the profile for which a process must have been seen. Otherwise, idle times
/// over the whole profile may not be typical of the process's lifetime.
const MOSTLY_THERE: f64 = 0.8;

/// The profiler's own CPUs, from which those of other processes are inferred.
#[derive(Debug)]
pub(super) struct Cpus<'a> {
    own: u32,
    /// CPU quota of the profiler's control group. The processes are taken to have the same quota.
    quota: Option<u32>,
    idle: [&'a IdleTimes; 2],
    seconds: f64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpusOfProcess {
    pub(super) number: u32,
    /// Mean number of idle CPUs that the process could have used; `None` if unknown.
    pub(super) idle: Option<f64>,
}

impl<'a> Cpus<'a> {
    pub(super) fn of_this_process(idle: [&'a IdleTimes; 2], seconds: f64) -> Cpus<'a> {
        // This call also reads the CPU quota of the control group.
        let available = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        let allowed = sched_getaffinity(None).map_or(available, |cpus| cpus.count());
        let quota = (available < allowed).then_some(available);
        Cpus { own: available, quota, idle, seconds }
    }

    /// `allowed` is the process's CPU set, if known. The process was seen for `seconds` seconds.
    pub(super) fn of(&self, allowed: Option<&CpuSet>, seconds: f64) -> CpusOfProcess {
        let number = allowed.map_or(self.own, CpuSet::count);
        let number = self.quota.map_or(number, |quota| number.min(quota)).max(1);
        // A process under a quota may be unable to use idle CPUs.
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
