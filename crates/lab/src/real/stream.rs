//! A cell whose threads stream: a receiver, and one or more senders.

use std::sync::Arc;
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_record::{BlockKind, Placement};

use crate::LabError;
use crate::backend::OpenCell;
use crate::budget::MAX_BLOCK_SAMPLES;
use crate::error::Make;
use crate::program::StreamProgram;
use crate::samples::{BlockSamples, Counters, Samples};
use crate::stream::{ReceiverLoop, SenderLoop, StreamControl, StreamSpec, Streams};
use crate::thread_group::Role;

use super::buffers::SharedBuffers;
use super::passes::{Pass, Passed, Passes, Report, Watch};
use super::pinning::Pinning;
use super::start::{Roles, Start};
use super::{CellContext, GroupState, PILOT_NS, RealCell, per_stretch};

/// Number of messages per stretch while their rate is still unknown.
const PILOT_STRETCH: u64 = 1024;
/// Approximate maximum number of bytes per stretch while the rate is still unknown.
const PILOT_BYTES: u64 = 1 << 20;

struct Receiver {
    end: Box<dyn ReceiverLoop>,
    control: Arc<StreamControl>,
    buffers: SharedBuffers,
    /// Number of the latest pass through the queue. A block has two passes: the warm-up and the
    /// measured pass.
    number: u64,
    /// Bits that were wrong in any message of the warm-up.
    wrong: u64,
    pass: Pass,
}

impl Receiver {
    fn spec(&self, clock: &Clock, stretches: u64, length: u64) -> StreamSpec {
        let until = clock.stamp().saturating_add(length);
        StreamSpec { per_stretch: self.pass.per_stretch, stretches, until }
    }
}

impl Role<Pass, Passed> for Receiver {
    fn enter(&mut self) {
        self.end.enter();
        self.buffers.touch();
    }

    fn prepare(&mut self, pass: Pass, clock: &Clock) {
        self.pass = pass;
        self.number += 1;
        self.control.begin(self.number);
        let spec = self.spec(clock, u64::MAX, pass.warm_up);
        self.wrong = self.end.receive(spec, &self.control, clock, None).wrong;
    }

    fn work(&mut self, clock: &Clock) -> Passed {
        let times = &mut self.buffers.cleared().times;
        self.number += 1;
        self.control.begin(self.number);
        let spec = self.spec(clock, self.pass.stretches, self.pass.length);
        let received = self.end.receive(spec, &self.control, clock, Some(times));
        Passed { wrong: self.wrong | received.wrong, operations: received.messages }
    }
}

struct Sender {
    end: Box<dyn SenderLoop>,
    index: usize,
    control: Arc<StreamControl>,
    number: u64,
}

impl Sender {
    fn send(&mut self) {
        self.number += 1;
        self.control.await_begin(self.number);
        self.end.send(self.index, &self.control);
    }
}

impl Role<Pass, Passed> for Sender {
    fn enter(&mut self) {
        self.end.enter();
    }

    fn prepare(&mut self, _: Pass, _: &Clock) {
        self.send();
    }

    fn work(&mut self, _: &Clock) -> Passed {
        self.send();
        Passed::default()
    }
}

/// Returns the senders' roles, then the receiver's.
fn roles(streams: Streams, buffers: &SharedBuffers) -> Roles<Pass, Passed> {
    let Streams { senders, receiver } = streams;
    let control = Arc::new(StreamControl::new(senders.len() as u32));
    let sender = |(index, end)| -> Box<dyn Role<Pass, Passed>> {
        Box::new(Sender { end, index, control: Arc::clone(&control), number: 0 })
    };
    let mut roles: Roles<Pass, Passed> = senders.into_iter().enumerate().map(sender).collect();
    roles.push(Box::new(Receiver {
        end: receiver,
        control,
        buffers: buffers.clone(),
        number: 0,
        wrong: 0,
        pass: Pass::default(),
    }));
    roles
}

pub(super) fn threads(
    clock: &Clock,
    name: &str,
    make: &Make<Streams>,
    placement: Placement,
    pinning: Pinning,
    patience: Duration,
) -> Result<Passes, LabError> {
    let buffers = <[SharedBuffers; 2]>::default();
    let (make, own) = (Arc::clone(make), buffers[0].clone());
    let start = Start {
        clock: *clock,
        name: name.to_string(),
        placement,
        pinning,
        make: Arc::new(move || Ok(roles(make()?, &own))),
        meet: false,
    };
    Passes::open(start, buffers, patience)
}

pub(super) struct Stream {
    context: CellContext,
    program: StreamProgram,
    threads: Passes,
    /// Mean time per message in the latest stretches.
    message_ns: f64,
}

impl Stream {
    pub(super) fn open(context: CellContext, program: StreamProgram) -> Result<Self, LabError> {
        let CellContext { clock, planned, patience, .. } = &context;
        let (cell, make) = (&planned.cell, &program.make);
        let senders = cell.queue().map_or(1, |queue| queue.senders);
        let pinning = Pinning::of(cell.placement, &cell.cpus, senders as usize);
        let threads = threads(clock, cell.name(), make, cell.placement, pinning, *patience)?;
        Ok(Stream { context, program, threads, message_ns: 100.0 })
    }

    fn learn(&mut self, report: &Report, per_stretch: u64) {
        if let Some(mean_ns) = report.mean_ns(&self.context.clock, per_stretch) {
            self.message_ns = mean_ns.max(0.01);
        }
    }

    fn run(
        &mut self,
        warm_up_ns: f64,
        per_stretch: u64,
        length_ns: f64,
    ) -> Result<Report, LabError> {
        let CellContext { clock, patience, .. } = &self.context;
        let pass = Pass {
            warm_up: clock.ticks(warm_up_ns),
            per_stretch,
            stretches: MAX_BLOCK_SAMPLES,
            length: clock.ticks(length_ns),
            watch: Watch::Nothing,
        };
        // The time limit includes time to drain an unbounded queue after the block.
        self.threads.run(pass, *patience + Duration::from_nanos((length_ns * 10.0) as u64))
    }
}

impl RealCell for Stream {
    /// Estimates the time per message.
    fn prepare(&mut self, _: &mut GroupState) -> Result<(), LabError> {
        let messages = PILOT_BYTES / self.context.planned.cell.payload_bytes.max(1);
        let stretch = messages.clamp(1, PILOT_STRETCH).next_multiple_of(self.program.round);
        let report = self.run(PILOT_NS / 2.0, stretch, PILOT_NS)?;
        self.learn(&report, stretch);
        Ok(())
    }
}

impl OpenCell for Stream {
    fn reopen(&mut self) -> Result<(), LabError> {
        self.threads.reopen(self.context.patience)
    }

    fn block(&mut self, _: BlockKind) -> Result<BlockSamples, LabError> {
        let length_ns = self.context.planned.budget.stretch_ns as f64;
        // There is room for twice the expected number of stretches, because the machine may be
        // faster than before.
        let least = (2.0 * length_ns / self.message_ns / MAX_BLOCK_SAMPLES as f64).ceil() as u64;
        let messages = per_stretch(self.context.stamp_ns, self.message_ns).max(least);
        let per_stretch = messages.next_multiple_of(self.program.round);
        let warm_up_ns = self.context.warm_up_ns();
        let before = self.context.environment.begin()?;
        let report = self.run(warm_up_ns, per_stretch, length_ns);
        let system = self.context.environment.end(&before);
        let report = report?;
        self.learn(&report, per_stretch);
        let stretches = report.stretches(&self.context.clock, per_stretch);
        let counters = report.counters(&stretches, self.program.class, system);
        let counters = Counters { grows: self.program.grows, ..counters };
        Ok(BlockSamples { counters, samples: Samples::Stream(stretches) })
    }
}
