//! Describes this machine for the first line of a results file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use threadtoll_record::{Count, Machine};

use crate::cgroup::CpuGroups;
use crate::clock::{Clock, ClockRefused};
use crate::disturbance::{SystemProbe, ThreadCounters};
use crate::facts;
use crate::grade::{Findings, grade};
use crate::noise::{Watched, watch_all};
use crate::place::allowed_cpus;
use crate::topology::Topology;

/// Options of [`inspect`].
#[derive(Clone, Debug)]
pub struct InspectOptions {
    /// Root of the tree that shows the topology: `/sys`, or the root of a synthetic tree.
    pub sysfs_root: PathBuf,
    /// Total time for measuring the CPUs' noise; zero skips it.
    pub noise: Duration,
    /// ID of the run.
    pub run: String,
    /// Start of the run, RFC 3339 UTC.
    pub at: String,
    /// The program with its commit and compiler.
    pub tool: String,
}

/// Chooses this machine's clock, watches its CPUs for noise, and grades it.
///
/// Takes about 50 ms plus the time for measuring noise, which keeps all watched CPUs busy.
/// Registers the process for membarrier.
///
/// # Errors
///
/// [`ClockRefused`] if no clock can be trusted. Anything else that cannot be determined is `None`.
pub fn inspect(options: InspectOptions) -> Result<(Machine, Clock), ClockRefused> {
    let (clock, clock_facts) = Clock::gate()?;
    let (sys, proc) = (Path::new("/sys"), Path::new("/proc"));
    let topology = Topology::read(&options.sysfs_root);
    let allowed = if topology.synthetic {
        topology.places.iter().map(|place| place.cpu).collect()
    } else {
        allowed_cpus()
    };
    // Read before the watch for noise, which loads the CPUs.
    let load_per_cpu = facts::load(proc).map(|load| load / topology.places.len().max(1) as f64);
    let stillness = if topology.synthetic || options.noise.is_zero() {
        Stillness::default()
    } else {
        Stillness::watch(&allowed, options.noise, &clock)
    };
    let siblings = topology
        .places
        .iter()
        .filter(|place| allowed.contains(&place.cpu))
        .any(|place| place.smt.iter().filter(|cpu| allowed.contains(cpu)).count() > 1);

    let mut machine = Machine {
        run: options.run.into(),
        at: options.at.into(),
        tool: options.tool.into(),
        simulated: false,
        synthetic: topology.synthetic,
        cpu: facts::cpu_model(proc).into(),
        arch: rustix::system::uname().machine().to_string_lossy().into_owned().into(),
        cpus: u32::try_from(topology.places.len()).unwrap_or(u32::MAX),
        topology: topology.places,
        quota_cpus: CpuGroups::of_this_process(proc).quota_cpus().map(Into::into),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned().into(),
        governor: facts::governor(sys, &allowed).map(Into::into),
        boost: facts::boost(sys),
        virtualised: facts::hypervisor(sys, proc).map(Into::into),
        idle_driver: facts::idle_driver(sys).map(Into::into),
        // The kernel accepts any slack. One that is too large for the file counts as unknown.
        timer_slack_ns: facts::timer_slack_ns()
            .map(Count::from)
            .filter(|slack_ns| *slack_ns <= Count::MAX),
        membarrier: facts::membarrier(),
        clock: clock_facts,
        noise: stillness.watched.iter().map(|watched| watched.noise.clone()).collect(),
        allowed,
        grade: threadtoll_record::Grade::D,
        warnings: Vec::new(),
    };
    (machine.grade, machine.warnings) = grade(&Findings {
        clock: &machine.clock,
        cpus: machine.topology.len(),
        allowed: machine.allowed.len(),
        siblings,
        topology_readable: topology.readable,
        synthetic: machine.synthetic,
        quota_cpus: machine.quota_cpus.map(f64::from),
        governor: machine.governor.as_deref(),
        boost: machine.boost,
        virtualised: machine.virtualised.as_deref(),
        timer_slack_ns: machine.timer_slack_ns.map(u64::from),
        membarrier: machine.membarrier,
        schedstat: ThreadCounters::now().run_queue_ns.is_some(),
        noise: &machine.noise,
        steal_share: stillness.steal_share,
        queued_share: stillness.queued_share(),
        load_per_cpu,
    });
    Ok((machine, clock))
}

#[derive(Default)]
struct Stillness {
    watched: Vec<Watched>,
    steal_share: Option<f64>,
}

impl Stillness {
    fn watch(allowed: &[u32], budget: Duration, clock: &Clock) -> Stillness {
        let mut probe = SystemProbe::new(allowed);
        let before = probe.sample();
        let watched = watch_all(allowed, budget, clock);
        let stolen = probe.sample().delta(&before).steal_ns;
        let time: u64 = watched.iter().map(|watched| watched.noise.watched_ns.get()).sum();
        // The first tick may include steal from before the watch, so one tick per CPU is
        // subtracted.
        let steal_share = stolen.filter(|_| time > 0).map(|ns| {
            ns.saturating_sub(probe.tick_ns() * watched.len() as u64) as f64 / time as f64
        });
        Stillness { watched, steal_share }
    }

    /// Share of their time that the watching threads were queued behind others.
    fn queued_share(&self) -> Option<f64> {
        let queued: u64 =
            self.watched.iter().map(|watched| watched.run_queue_ns).sum::<Option<u64>>()?;
        let time: u64 = self.watched.iter().map(|watched| watched.noise.watched_ns.get()).sum();
        (time > 0).then(|| queued as f64 / time as f64)
    }
}

#[cfg(test)]
mod tests {
    use threadtoll_record::Grade;

    use super::*;
    use crate::topology::synthetic::Synthetic;

    fn options(sysfs_root: &Path, noise: Duration) -> InspectOptions {
        let (run, at, tool) = ("r".into(), "2026-11-21T10:00:00.000Z".into(), "threadtoll".into());
        InspectOptions { sysfs_root: sysfs_root.to_owned(), noise, run, at, tool }
    }

    #[test]
    fn this_machine_is_described() {
        let _alone = crate::lock::machine_lock().unwrap();
        let (machine, clock) =
            inspect(options(Path::new("/sys"), Duration::from_millis(20))).unwrap();
        assert!(!machine.synthetic && !machine.simulated);
        assert_eq!(machine.cpus as usize, machine.topology.len());
        assert_eq!(machine.allowed, allowed_cpus());
        assert!(!machine.cpu.is_empty() && !machine.kernel.is_empty() && !machine.arch.is_empty());
        assert!(!machine.noise.is_empty());
        assert!(clock.recheck(&machine.clock).is_ok());
        assert!(machine.differs_from(&machine).is_none());
    }

    #[test]
    fn a_machine_that_is_not_here_is_described_and_not_watched() {
        let root = tempfile::tempdir().unwrap();
        Synthetic::HybridLaptop.write(root.path()).unwrap();
        let (machine, _) = inspect(options(root.path(), Duration::from_secs(3600))).unwrap();
        assert!(machine.synthetic);
        assert_eq!((machine.cpus, machine.allowed.len(), machine.noise.len()), (16, 16, 0));
        assert_eq!(machine.grade, Grade::D);
        assert_eq!(machine.warnings[0].code, "synthetic-topology");
    }
}
