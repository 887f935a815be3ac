//! Shares of a run, which other processes of this program measure.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadtoll_lab::backend::Backend;
use threadtoll_lab::real::RealBackend;
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_lab::{LabError, Launcher, Task, serve_share};
use threadtoll_machine::clock::Clock;
use threadtoll_record::Plan;

use super::options::{simulated_faults, simulated_machine, twins};
use crate::failure::Failure;
use crate::patience::patience;
use crate::registry::{self, registry};
use crate::this_program::{PATH, this_program};

/// First argument of a process that measures a share of a plan. No command has this name.
pub(crate) const COMMAND: &str = "--measure-share";

/// Starts processes that measure shares of a plan, until `stop` is true.
///
/// The calling process measures the first process's shares itself if there is no `/proc`, or if the
/// machine is simulated and no cell must fail.
pub(super) fn launcher(plan: &Plan, stop: Arc<AtomicBool>) -> Launcher {
    let simulated = simulated_machine(plan).is_some();
    let faulty = !simulated_faults(plan).is_empty();
    Launcher {
        command: || this_program(COMMAND),
        stop,
        every_share: Path::new(PATH).exists() && (!simulated || faulty),
        // A simulated cell takes only milliseconds: a process that is silent for much longer hangs.
        silence: faulty.then(patience),
        patience: patience(),
        peers: registry::added().clone(),
    }
}

/// Measures the share that is described on standard input.
pub(crate) fn serve() -> Result<ExitCode, Failure> {
    serve_share(|task| {
        if twins(&task.plan) {
            registry::add_twins();
        }
        registry::add(task.peers.clone());
        backend(task)
    })
    .map_err(|error| {
        Failure::usage(format!("standard input does not describe a part of a run: {error}"))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn backend(task: &Task) -> Result<Box<dyn Backend>, LabError> {
    let since_start_s = task.share.since_start_s;
    if let Some(seed) = simulated_machine(&task.plan) {
        let backend = SimulatedBackend::new(seed)
            .with_registry(registry().clone())
            .with_faults(simulated_faults(&task.plan));
        return Ok(Box::new(backend.continued(task.share.process, since_start_s)));
    }
    let (clock, facts) = Clock::gate().map_err(|refused| LabError::Clock(refused.to_string()))?;
    let backend = RealBackend::new(clock, facts)
        .with_registry(registry().clone())
        .with_patience(task.patience);
    Ok(Box::new(backend.since(since_start_s)))
}
