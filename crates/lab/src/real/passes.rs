//! Threads that run passes: a warm-up, then stretches of messages, with a stamp after each stretch.

use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{SystemCounters, ThreadCounters};

use crate::LabError;
use crate::mechanism::Class;
use crate::samples::{Counters, Stretches};
use crate::stalls::stalled_ps;

use super::buffers::{Buffers, SharedBuffers};
use super::counters;
use super::start::{Start, Threads};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pass {
    /// Warm-up time before counting, in ticks.
    pub(super) warm_up: u64,
    /// Maximum number of stretches.
    pub(super) stretches: u64,
    pub(super) per_stretch: u64,
    /// Time limit, in ticks.
    pub(super) length: u64,
    pub(super) watch: Watch,
}

/// Data recorded in addition to the stamps of the last thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Watch {
    #[default]
    Nothing,
    /// Arrival time of each message at the following end.
    OneWay,
    /// CPUs of both ends at each exchange.
    Cpus,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    /// Bits that were wrong in any message; 0 if none were.
    pub(super) wrong: u64,
    /// Number of round trips or messages that the counters cover. Only the last thread reports it.
    pub(super) operations: u64,
}

/// Result of a pass of all threads.
#[derive(Debug)]
pub(super) struct Report {
    /// Stamps of the last thread.
    pub(super) lead: Buffers,
    /// Stamps of the following end, if there is one.
    pub(super) follow: Buffers,
    pub(super) threads: Vec<ThreadCounters>,
    pub(super) operations: u64,
}

pub(super) struct Passes {
    start: Start<Pass, Passed>,
    threads: Threads<Pass, Passed>,
    /// Buffers of the last thread and of the following end, if there is one.
    buffers: [SharedBuffers; 2],
}

impl Passes {
    pub(super) fn open(
        start: Start<Pass, Passed>,
        buffers: [SharedBuffers; 2],
        patience: Duration,
    ) -> Result<Self, LabError> {
        Ok(Passes { threads: start.start(patience)?, start, buffers })
    }

    pub(super) fn reopen(&mut self, patience: Duration) -> Result<(), LabError> {
        self.threads = self.start.start(patience)?;
        Ok(())
    }

    /// Runs a pass on all threads; fails if a report is late or a message is wrong.
    pub(super) fn run(&mut self, pass: Pass, patience: Duration) -> Result<Report, LabError> {
        let passes = std::iter::repeat_n(pass, self.threads.len());
        let reports = self.threads.run(passes, patience)?;
        let (passed, threads): (Vec<Passed>, Vec<ThreadCounters>) = reports.into_iter().unzip();
        if passed.iter().any(|passed| passed.wrong != 0) {
            return Err(self.threads.wrong_message());
        }
        let [lead, follow] = self.buffers.each_ref().map(SharedBuffers::contents);
        let operations = passed.last().map_or(0, |last| last.operations);
        Ok(Report { lead, follow, threads, operations })
    }
}

impl Report {
    pub(super) fn stretches(&self, clock: &Clock, operations_each: u64) -> Stretches {
        let pairs = self.lead.times.windows(2);
        let lengths_ps = pairs.map(|pair| clock.ps(pair[1].saturating_sub(pair[0])));
        Stretches { lengths_ps: lengths_ps.collect(), operations_each }
    }

    /// Returns the mean time of a round trip or message; `None` if no stretch was completed.
    pub(super) fn mean_ns(&self, clock: &Clock, per_stretch: u64) -> Option<f64> {
        let times = &self.lead.times;
        let operations = times.len().saturating_sub(1) as u64 * per_stretch;
        let (first, last) = (times.first()?, times.last()?);
        (operations > 0).then(|| clock.ns(last.saturating_sub(*first)) / operations as f64)
    }

    pub(super) fn counters(
        &self,
        stretches: &Stretches,
        class: Class,
        system: SystemCounters,
    ) -> Counters {
        let spins = class == Class::Spin;
        let gap_ns = spins.then(|| stalled_ps(&stretches.lengths_ps) / 1000);
        counters(&self.threads, system, gap_ns, self.operations)
    }
}
