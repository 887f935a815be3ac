//! A cell whose threads stream: a receiver, and one or more senders.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{SystemCounters, ThreadCounters, ThreadProbe, account};
use threadtoll_record::{BlockKind, Placement, PlannedCell};

use crate::LabError;
use crate::backend::OpenCell;
use crate::budget::MAX_BLOCK_SAMPLES;
use crate::error::Make;
use crate::mechanism::Class;
use crate::samples::{BlockSamples, Counters, Samples};
use crate::stalls::stalled_ps;
use crate::stream::{ReceiverLoop, SenderLoop, StreamControl, StreamSpec, Streams};

use super::buffers::SharedBuffers;
use super::displacement::Displacement;
use super::environment::Environment;
use super::exchange::stretches;
use super::pinning::Pinning;
use super::pool::{Pool, Worker, receive_within};
use super::{GroupState, Opening, PILOT_NS, RealCell, WARM_UP_FREE_NS, WARM_UP_NS, per_stretch};

/// Messages per stretch before their rate is known.
const PILOT_STRETCH: u64 = 1024;
/// Approximate limit on the bytes per stretch before their rate is known.
const PILOT_BYTES: u64 = 1 << 20;
/// Number of passes in a job: the warm-up and the measured one.
const PASSES: u64 = 2;

#[derive(Clone, Copy, Debug)]
struct Job {
    pass: u64,
    /// Warm-up time before counting, in ticks.
    warm_up: u64,
    per_stretch: u64,
    stretches: u64,
    /// Time limit, in ticks.
    length: u64,
}

struct ThreadReport {
    times: Vec<u64>,
    counters: ThreadCounters,
    wrong: u64,
    messages: u64,
}

struct Report {
    times: Vec<u64>,
    threads: Vec<ThreadCounters>,
    messages: u64,
}

/// The senders, then the receiver.
struct Threads {
    pool: Pool<Job, ThreadReport>,
    round: u64,
    next_pass: u64,
}

/// Everything needed to start the threads of a stream, as often as required.
struct StreamStart {
    clock: Clock,
    name: String,
    make: Make<Streams>,
    placement: Placement,
    pinning: Pinning,
    buffers: SharedBuffers,
}

impl StreamStart {
    /// Starts the threads and waits until everything is created, touched and placed. The receiving
    /// thread creates the queue, so that its memory is local to it.
    fn start(&self, patience: Duration) -> Result<Threads, LabError> {
        let StreamStart { clock, name, make, placement, pinning, buffers } = self;
        let clock = *clock;
        let count = pinning.others.len();
        let control = Arc::new(StreamControl::new(count as u32));
        let all = Arc::new(Barrier::new(count + 1));
        let (give, take) = channel::<(Vec<Box<dyn SenderLoop>>, u64)>();
        let (of, received, entered) = (name.clone(), Arc::clone(&control), Arc::clone(&all));
        let (make, buffers) = (Arc::clone(make), buffers.clone());
        let receiver = Worker::start("receive", pinning.last.clone(), move |setup| {
            let _displacement = Displacement::random();
            let Streams { senders, mut receiver, round } = match make() {
                Err(reason) => {
                    drop(give);
                    return setup.fail(LabError::Unavailable { mechanism: of, reason });
                }
                Ok(streams) => streams,
            };
            let _ = give.send((senders, round));
            receiver.enter();
            entered.wait();
            buffers.touch();
            let probe = ThreadProbe::new();
            setup.serve(|job| receive(&mut *receiver, &received, &clock, job, &buffers, &probe));
        })?;
        let mut pool = Pool::new(name, *placement);
        // Starts the senders first, so that they are ready for the receiver. There are none if the
        // receiver failed, which it reports itself.
        let (senders, round) = receive_within(&take, patience).unwrap_or((Vec::new(), 1));
        for (index, (mut sender, cpus)) in senders.into_iter().zip(&pinning.others).enumerate() {
            let (control, entered) = (Arc::clone(&control), Arc::clone(&all));
            pool.add(Worker::start("send", cpus.clone(), move |setup| {
                sender.enter();
                entered.wait();
                let probe = ThreadProbe::new();
                setup.serve(|job| send(&mut *sender, index, &control, job, &probe));
            }))?;
        }
        pool.add(Ok(receiver))?;
        pool.ready(patience)?;
        Ok(Threads { pool, round, next_pass: 1 })
    }
}

impl Threads {
    fn run(&mut self, mut job: Job, patience: Duration) -> Result<Report, LabError> {
        job.pass = self.next_pass;
        self.next_pass += PASSES;
        let threads = self.pool.len();
        let mut reports = self.pool.run(std::iter::repeat_n(job, threads), patience)?;
        if reports.iter().any(|report| report.wrong != 0) {
            return Err(self.pool.wrong_message());
        }
        let threads = reports.iter().map(|report| report.counters).collect();
        let Some(received) = reports.pop() else { return Err(self.pool.stuck(patience)) };
        Ok(Report { times: received.times, threads, messages: received.messages })
    }
}

fn receive(
    receiver: &mut dyn ReceiverLoop,
    control: &StreamControl,
    clock: &Clock,
    job: Job,
    buffers: &SharedBuffers,
    probe: &ThreadProbe,
) -> ThreadReport {
    let times = &mut buffers.lock().times;
    let spec = |stretches: u64, length: u64| StreamSpec {
        per_stretch: job.per_stretch,
        stretches,
        until: clock.stamp().saturating_add(length),
    };
    control.begin(job.pass);
    let warmed = receiver.receive(spec(u64::MAX, job.warm_up), control, clock, None);
    let before = probe.sample();
    control.begin(job.pass + 1);
    let received = receiver.receive(spec(job.stretches, job.length), control, clock, Some(times));
    let after = probe.sample_after();
    ThreadReport {
        times: times.clone(),
        counters: after.delta(&before),
        wrong: warmed.wrong | received.wrong,
        messages: received.messages,
    }
}

fn send(
    sender: &mut dyn SenderLoop,
    index: usize,
    control: &StreamControl,
    job: Job,
    probe: &ThreadProbe,
) -> ThreadReport {
    control.await_begin(job.pass);
    sender.send(index, control);
    let before = probe.sample();
    control.await_begin(job.pass + 1);
    let sent = sender.send(index, control);
    let after = probe.sample_after();
    ThreadReport { times: Vec::new(), counters: after.delta(&before), wrong: 0, messages: sent }
}

pub(super) struct Stream {
    planned: PlannedCell,
    clock: Clock,
    class: Class,
    /// True if the queue allocates memory as it fills.
    grows: bool,
    start: StreamStart,
    threads: Threads,
    environment: Environment,
    /// Mean time per message in the latest stretches.
    message_ns: f64,
    stamp_ns: f64,
    patience: Duration,
}

impl Stream {
    pub(super) fn open(
        opening: Opening<'_>,
        make: Make<Streams>,
        class: Class,
        grows: bool,
    ) -> Result<Self, LabError> {
        let Opening { clock, planned, allowed, stamp_ns, patience, .. } = opening;
        let cell = &planned.cell;
        let senders = cell.queue().map_or(1, |queue| queue.senders);
        let pinning = Pinning::of(cell.placement, &cell.cpus, senders as usize);
        let start = StreamStart {
            clock: *clock,
            name: cell.name().to_string(),
            make,
            placement: cell.placement,
            pinning,
            buffers: SharedBuffers::default(),
        };
        let threads = start.start(patience)?;
        Ok(Stream {
            planned: planned.clone(),
            clock: *clock,
            class,
            grows,
            start,
            threads,
            environment: Environment::start(cell, allowed)?,
            message_ns: 100.0,
            stamp_ns,
            patience,
        })
    }

    fn pilot(&mut self) -> Result<(), LabError> {
        let messages = PILOT_BYTES / self.planned.cell.payload_bytes.max(1);
        let stretch = messages.clamp(1, PILOT_STRETCH).next_multiple_of(self.threads.round);
        let report = self.run(PILOT_NS / 2.0, stretch, PILOT_NS)?;
        self.learn(&report, stretch);
        Ok(())
    }

    fn learn(&mut self, report: &Report, per_stretch: u64) {
        let messages = report.times.len().saturating_sub(1) as u64 * per_stretch;
        if let (Some(first), Some(last), 1..) =
            (report.times.first(), report.times.last(), messages)
        {
            let elapsed_ns = self.clock.ns(last.saturating_sub(*first));
            self.message_ns = (elapsed_ns / messages as f64).max(0.01);
        }
    }

    fn run(
        &mut self,
        warm_up_ns: f64,
        per_stretch: u64,
        length_ns: f64,
    ) -> Result<Report, LabError> {
        let job = Job {
            pass: 0,
            warm_up: self.clock.ticks(warm_up_ns),
            per_stretch,
            stretches: MAX_BLOCK_SAMPLES,
            length: self.clock.ticks(length_ns),
        };
        // Includes the time to drain an unbounded queue after the block.
        let patience = self.patience + Duration::from_nanos((length_ns * 10.0) as u64);
        self.threads.run(job, patience)
    }

    fn samples(&self, report: Report, per_stretch: u64, system: SystemCounters) -> BlockSamples {
        let stretches = stretches(&self.clock, &report.times, per_stretch);
        let spins = self.class == Class::Spin;
        let gap_ns = spins.then(|| stalled_ps(&stretches.lengths_ps) / 1000);
        let (cost, disturbance) = account(&report.threads, system, gap_ns);
        BlockSamples {
            counters: Counters {
                cost,
                operations: report.messages,
                disturbance,
                spins,
                grows: self.grows,
            },
            samples: Samples::Stream(stretches),
        }
    }
}

impl RealCell for Stream {
    fn prepare(&mut self, _: &mut GroupState) -> Result<(), LabError> {
        self.pilot()
    }
}

impl OpenCell for Stream {
    fn reopen(&mut self) -> Result<(), LabError> {
        self.threads = self.start.start(self.patience)?;
        Ok(())
    }

    fn block(&mut self, _: BlockKind) -> Result<BlockSamples, LabError> {
        let length_ns = self.planned.budget.stretch_ns as f64;
        // Room for twice the expected number of stretches, in case the machine is faster than
        // before.
        let least = (2.0 * length_ns / self.message_ns / MAX_BLOCK_SAMPLES as f64).ceil() as u64;
        let messages = per_stretch(self.stamp_ns, self.message_ns).max(least);
        let per_stretch = messages.next_multiple_of(self.threads.round);
        let free = self.planned.cell.placement == Placement::Free;
        let warm_up_ns = if free { WARM_UP_FREE_NS } else { WARM_UP_NS };
        let before = self.environment.begin()?;
        let report = self.run(warm_up_ns, per_stretch, length_ns);
        let system = self.environment.end(&before);
        let report = report?;
        self.learn(&report, per_stretch);
        Ok(self.samples(report, per_stretch, system))
    }
}
