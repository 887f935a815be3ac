//! Background load and machine counters while a cell's threads are measured.

use threadtoll_machine::disturbance::{SystemCounters, SystemProbe};
use threadtoll_record::Cell;

use crate::LabError;

use super::background_load::BackgroundLoad;
use super::keep_awake::keep_awake;
use super::neighbour::neighbours;

pub(super) struct Environment {
    system: SystemProbe,
    loads: Vec<BackgroundLoad>,
}

impl Environment {
    pub(super) fn start(cell: &Cell, allowed: &[u32]) -> Result<Self, LabError> {
        let neighbours = cell.neighbour.map(|kind| neighbours(kind, &cell.cpus, allowed));
        let awake = cell.keep_awake.then(|| keep_awake(&cell.cpus));
        let loads = neighbours
            .into_iter()
            .chain(awake)
            .collect::<Result<Vec<BackgroundLoad>, LabError>>()?;
        Ok(Environment { system: SystemProbe::new(&cell.cpus), loads })
    }

    pub(super) fn begin(&mut self) -> Result<SystemCounters, LabError> {
        self.loads.iter_mut().try_for_each(BackgroundLoad::begin)?;
        Ok(self.system.sample())
    }

    pub(super) fn end(&mut self, before: &SystemCounters) -> SystemCounters {
        let after = self.system.sample();
        self.loads.iter_mut().rev().for_each(BackgroundLoad::end);
        after.delta(before)
    }
}
