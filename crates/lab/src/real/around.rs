//! The surroundings of a cell's threads while they are measured.

use threadtoll_machine::disturbance::{SystemCounters, SystemProbe};
use threadtoll_record::Cell;

use crate::LabError;

use super::awake::awake;
use super::load::Load;
use super::neighbour::neighbours;

/// The load next to a cell, and the machine's account.
pub(super) struct Around {
    system: SystemProbe,
    loads: Vec<Load>,
}

impl Around {
    pub(super) fn start(cell: &Cell, allowed: &[u32]) -> Result<Self, LabError> {
        let neighbours = cell.neighbour.map(|kind| neighbours(kind, &cell.cpus, allowed));
        let awake = cell.keep_awake.then(|| awake(&cell.cpus));
        let loads = neighbours.into_iter().chain(awake).collect::<Result<Vec<Load>, LabError>>()?;
        Ok(Around { system: SystemProbe::new(&cell.cpus), loads })
    }

    /// The load begins, and the machine's account is opened.
    pub(super) fn go(&mut self) -> Result<SystemCounters, LabError> {
        self.loads.iter_mut().try_for_each(Load::go)?;
        Ok(self.system.sample())
    }

    /// What happened to the machine since then; the load ends.
    pub(super) fn rest(&mut self, before: &SystemCounters) -> SystemCounters {
        let after = self.system.sample();
        self.loads.iter_mut().rev().for_each(Load::rest);
        after.delta(before)
    }
}
