//! Keeps CPUs from idling while a measured thread sleeps. A spinner of the lowest priority runs on
//! each CPU.
//!
//! A `SCHED_IDLE` thread yields at once to any thread that wakes. The remaining cost of a wake-up
//! is scheduling. A wake-up without the spinner costs more, and the difference is the cost of
//! leaving idle.

use std::hint;

use threadtoll_machine::place;

use crate::LabError;

use super::background_load::BackgroundLoad;

pub(super) fn keep_awake(cpus: &[u32]) -> Result<BackgroundLoad, LabError> {
    BackgroundLoad::start(cpus, |cpu| {
        place::set_idle_priority()
            .map_err(|error| LabError::Place { cpus: vec![cpu], reason: error.to_string() })?;
        Ok(|| (0..64).for_each(|_| hint::spin_loop()))
    })
}
