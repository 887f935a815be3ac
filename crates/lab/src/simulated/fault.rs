//! Cells that fail as a faulty queue would.

use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

use threadtoll_record::{BlockKind, Cell};

use crate::LabError;
use crate::backend::OpenCell;
use crate::budget::PATIENCE;
use crate::contention::predict::Calibration;
use crate::error::{Unavailable, WRONG_MESSAGE, stuck};
use crate::samples::BlockSamples;

/// Number of good blocks before the block that fails.
const SOUND: u32 = 3;

/// Failure of a simulated cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The machine refuses a resource when the cell is opened.
    Refused,
    /// A message is lost, repeated, out of order or wrong.
    WrongMessage,
    /// A thread makes no progress.
    Hung,
    /// The whole process makes no progress.
    Silent,
    /// The process is aborted.
    Aborts,
    /// The process is killed, as if it had used up all memory.
    Killed,
}

impl Fault {
    /// Parses `NAME=FAULT`: the name of a mechanism, queue or lock, and its fault.
    pub fn of_cell(text: &str) -> Option<(String, Fault)> {
        let (name, fault) = text.split_once('=')?;
        let fault = match fault {
            "refused" => Fault::Refused,
            "wrong-message" => Fault::WrongMessage,
            "hung" => Fault::Hung,
            "silent" => Fault::Silent,
            "aborts" => Fault::Aborts,
            "killed" => Fault::Killed,
            _ => return None,
        };
        Some((name.into(), fault))
    }
}

pub(super) struct Faulty {
    cell: Box<dyn OpenCell>,
    name: String,
    placement: String,
    fault: Fault,
    blocks: u32,
}

impl Faulty {
    pub(super) fn open(
        opened: Box<dyn OpenCell>,
        cell: &Cell,
        fault: Fault,
    ) -> Result<Self, LabError> {
        let (name, placement) = (cell.name().to_string(), cell.placement.to_string());
        if fault == Fault::Refused {
            let reason = Unavailable::new("memory", io::Error::from(ErrorKind::OutOfMemory));
            return Err(LabError::Unavailable { mechanism: name, reason });
        }
        Ok(Faulty { cell: opened, name, placement, fault, blocks: 0 })
    }
}

impl OpenCell for Faulty {
    fn calibration(&self) -> Option<Calibration> {
        self.cell.calibration()
    }

    fn reopen(&mut self) -> Result<(), LabError> {
        self.cell.reopen()
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        self.blocks += 1;
        if self.blocks <= SOUND {
            return self.cell.block(kind);
        }
        let (name, placement) = (self.name.clone(), self.placement.clone());
        let failed = |clause| Err(LabError::Row { name, placement, clause });
        match self.fault {
            Fault::WrongMessage => failed(WRONG_MESSAGE.into()),
            Fault::Refused | Fault::Hung => failed(stuck(PATIENCE)),
            Fault::Silent => loop {
                thread::sleep(Duration::from_secs(1));
            },
            Fault::Aborts => std::process::abort(),
            Fault::Killed => loop {
                // SAFETY: `raise` takes a plain number.
                unsafe { libc::raise(libc::SIGKILL) };
            },
        }
    }
}
