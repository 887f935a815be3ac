//! The machine to measure on, real or simulated.

use std::time::Duration;

use threadtoll_lab::backend::Backend;
use threadtoll_lab::real::RealBackend;
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_machine::lock::{MachineLock, try_machine_lock};
use threadtoll_machine::place::allowed_cpus;
use threadtoll_machine::topology::Topology;
use threadtoll_record::{Machine, Warning};
use threadtoll_report::cpus;

use super::args::{MeasureArgs, MeasureRequest};
use crate::failure::Failure;
use crate::inspect::inspect;
use crate::registry::registry;

/// Warning that a second threadtoll is running. `threadtoll check` does not explain it.
pub(super) const ANOTHER: &str = "another-measurement";
/// Duration of the noise test before the measurement.
const NOISE: Duration = Duration::from_millis(300);

pub(super) struct Testbed {
    pub(super) machine: Machine,
    pub(super) topology: Topology,
    pub(super) rig: Box<dyn Backend>,
    /// While this lock is held, a second threadtoll warns about this one.
    _lock: Option<MachineLock>,
}

impl Testbed {
    pub(super) fn prepare(
        args: &MeasureArgs,
        common: &MeasureRequest,
        simulated: Option<u64>,
    ) -> Result<Self, Failure> {
        if let Some(seed) = simulated {
            let topology = match args.common.other_sysfs() {
                Some(root) => Topology::read(root),
                None => SimulatedBackend::topology(),
            };
            check_cpus(common, &topology, &all(&topology))?;
            let rig = SimulatedBackend::new(seed)
                .with_topology(topology.clone())
                .with_registry(registry().clone());
            let machine = rig.machine();
            return Ok(Testbed { machine, topology, rig: Box::new(rig), _lock: None });
        }
        let topology = Topology::read(&args.common.sysfs());
        let allowed = if topology.synthetic { all(&topology) } else { allowed_cpus() };
        check_cpus(common, &topology, &allowed)?;
        let lock = try_machine_lock();
        let noise = if args.plan { Duration::ZERO } else { NOISE };
        let (mut machine, clock) = inspect(&args.common, noise)?;
        if let Ok(None) = lock {
            machine.warnings.push(Warning::new(
                ANOTHER,
                "Another threadtoll is measuring on this machine, and each disturbs the other. Run \
                 one at a time.",
            ));
        }
        let rig = Box::new(
            RealBackend::new(clock, machine.clock.clone()).with_registry(registry().clone()),
        );
        Ok(Testbed { machine, topology, rig, _lock: lock.ok().flatten() })
    }
}

fn all(topology: &Topology) -> Vec<u32> {
    topology.places.iter().map(|place| place.cpu).collect()
}

/// Rejects unusable `--cpus` before the noise test, which takes a while.
fn check_cpus(
    common: &MeasureRequest,
    topology: &Topology,
    allowed: &[u32],
) -> Result<(), Failure> {
    let Some(cpu) = common.cpus.iter().flatten().find(|cpu| !allowed.contains(cpu)) else {
        return Ok(());
    };
    let why = match topology.place(*cpu) {
        Some(_) => "this process may not use it",
        None => "no such CPU is online",
    };
    Err(Failure::usage(format!("--cpus: CPU {cpu}: {why}"))
        .hint(format!("usable CPUs: {}", cpus(allowed))))
}
