use threadtoll_record::{Layout, Pause, PlannedCell, Subject};

use crate::LabError;
use crate::lock::Locks;
use crate::mechanism::{Mechanisms, Settings};
use crate::program::Program;
use crate::queue::Queues;

/// The mechanisms, queues and locks that can be measured.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// Mechanisms.
    pub mechanisms: Mechanisms,
    /// Queues.
    pub queues: Queues,
    /// Locks.
    pub locks: Locks,
}

impl Registry {
    pub(crate) fn program(&self, planned: &PlannedCell) -> Result<Program, LabError> {
        let cell = &planned.cell;
        match &cell.subject {
            Subject::Mechanism { mechanism, .. } => {
                let found = self.mechanisms.find(mechanism);
                let mechanism = found.ok_or_else(|| LabError::unknown("mechanism", mechanism))?;
                Ok(mechanism.program(Settings {
                    payload_bytes: cell.payload_bytes as usize,
                    layout: cell.line.unwrap_or(Layout::Own),
                    pause: cell.pause.unwrap_or(Pause::Off),
                }))
            }
            Subject::Queue(queue) => {
                let program = self.queues.program(planned, queue);
                program.ok_or_else(|| LabError::unknown("queue", &cell.label()))
            }
            Subject::Lock(lock) => match self.locks.parse(&lock.lock) {
                Ok(spec) => {
                    let file = spec.elsewhere().cloned();
                    let here = Program::Contention(Box::new(spec), lock.clone());
                    Ok(here.or_elsewhere(file.as_ref()))
                }
                Err(_) => Err(LabError::unknown("lock", &lock.lock)),
            },
        }
    }
}
