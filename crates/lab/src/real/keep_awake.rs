//! Keeping CPUs awake: a spinner of the lowest priority on each, so that they never idle while an
//! end sleeps.
//!
//! The kernel's `SCHED_IDLE` class gives way at once to any thread that wakes; what is left of a
//! wake-up's cost is scheduling, and the difference to the same wake-up without the spinner is
//! leaving idle.

use std::hint;

use threadtoll_machine::place;

use crate::LabError;

use super::background_load::BackgroundLoad;

/// Spinners on the CPUs of a cell.
pub(super) fn keep_awake(cpus: &[u32]) -> Result<BackgroundLoad, LabError> {
    BackgroundLoad::start(cpus, |cpu| {
        place::set_idle_priority()
            .map_err(|error| LabError::Place { cpus: vec![cpu], reason: error.to_string() })?;
        Ok(|| (0..64).for_each(|_| hint::spin_loop()))
    })
}
