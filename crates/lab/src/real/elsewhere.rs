//! A cell that a program in another language measures, in a process of its own. Nothing in this
//! process runs during a block.

use std::time::{Duration, Instant};

use threadtoll_record::{BlockKind, OwnProgram, PlannedCell};

use crate::LabError;
use crate::backend::OpenCell;
use crate::foreign::program::{Program, Request, Usage};
use crate::program_file::ProgramFile;
use crate::samples::{BlockSamples, Counters};

use super::{CellContext, GroupState, RealCell, counters};

/// Maximum time of a preparation that is repeated before each round. A runtime that compiles would
/// otherwise spend all its time on preparations.
const SHORT: Duration = Duration::from_millis(100);

pub(super) struct Elsewhere {
    context: CellContext,
    program: Program,
    request: Request,
    warm_up_ms: Option<u64>,
    prepared_in: Duration,
}

impl Elsewhere {
    pub(super) fn open(context: CellContext, file: &ProgramFile) -> Result<Self, LabError> {
        let planned = &context.planned;
        let failed = |clause: String| failure(planned, clause);
        let request = Request::of(planned)
            .ok_or_else(|| LabError::unknown("queue", &planned.cell.label()))?;
        let path = file.unchanged().map_err(failed)?;
        let mut program =
            Program::start(path, request.roams(), context.patience).map_err(failed)?;
        let begun = Instant::now();
        let warm_up_ms = program.prepare(&request).map_err(failed)?;
        let prepared_in = begun.elapsed();
        Ok(Elsewhere { context, program, request, warm_up_ms, prepared_in })
    }
}

fn failure(planned: &PlannedCell, clause: String) -> LabError {
    let cell = &planned.cell;
    LabError::Row { name: cell.name().into(), placement: cell.placement.to_string(), clause }
}

impl RealCell for Elsewhere {
    fn prepare(&mut self, _: &mut GroupState) -> Result<(), LabError> {
        Ok(())
    }
}

impl OpenCell for Elsewhere {
    fn reopen(&mut self) -> Result<(), LabError> {
        if self.prepared_in > SHORT {
            return Ok(());
        }
        let begun = Instant::now();
        let prepared = self.program.prepare(&self.request);
        self.warm_up_ms = prepared.map_err(|clause| failure(&self.context.planned, clause))?;
        self.prepared_in = begun.elapsed();
        Ok(())
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let length_ns = self.context.planned.budget.length_ns(kind);
        let system_before = self.context.environment.begin()?;
        let before = Usage::of(self.program.pid());
        let measured = self.program.block(&self.request, kind, length_ns);
        let after = Usage::of(self.program.pid());
        let system = self.context.environment.end(&system_before);
        let measured = measured.map_err(|clause| failure(&self.context.planned, clause))?;
        let used = after.since(&before, measured.settling_ns);
        // Gaps cannot be detected, because the program's stamps are not in order.
        let counters = counters(&[used], system, None, measured.operations);
        // The program's runtime touches new memory while it runs, so page faults are normal.
        let counters = Counters { grows: true, ..counters };
        Ok(BlockSamples { counters, samples: measured.samples })
    }

    fn own_program(&self) -> Option<OwnProgram> {
        Some(OwnProgram { warm_up_ms: self.warm_up_ms.map(Into::into) })
    }
}
