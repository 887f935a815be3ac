//! Keeping CPUs awake: a spinner of the lowest priority on each, so that they never idle while an
//! end sleeps.
//!
//! The kernel's `SCHED_IDLE` class gives way at once to any thread that wakes; what is left of a
//! wake-up's cost is scheduling, and the difference to the same wake-up without the spinner is
//! leaving idle.

use std::hint;

use threadtoll_machine::place;

use crate::rig::LabError;

use super::resting::Resting;

/// Spinners on the CPUs of a cell.
pub(super) struct Awake(Resting);

impl Awake {
    pub(super) fn start(cpus: &[u32]) -> Result<Self, LabError> {
        let refused = |cpu: u32| {
            move |error: place::PlaceError| LabError::Place {
                cpus: vec![cpu],
                reason: error.to_string(),
            }
        };
        Resting::start(cpus.to_vec(), move |cpu| {
            place::pin_to(&[cpu]).map_err(refused(cpu))?;
            place::set_idle_priority().map_err(refused(cpu))?;
            Ok(|| (0..64).for_each(|_| hint::spin_loop()))
        })
        .map(Awake)
    }

    pub(super) fn go(&self) {
        self.0.go();
    }

    pub(super) fn rest(&self) {
        self.0.rest();
    }
}
