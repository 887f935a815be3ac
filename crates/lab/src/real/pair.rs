//! The two threads of an exchange, or the one that is both ends.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{ThreadCounters, ThreadProbe};
use threadtoll_record::Placement;

use crate::LabError;
use crate::error::Make;
use crate::exchange::{DRAIN_ROUNDS, Ends, Follow, Lead, LoopSpec, Stamps, StopAt};

use super::buffers::{Buffers, SharedBuffers};
use super::displacement::Displacement;
use super::pool::{Pool, Worker, receive_within};

#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) first: u64,
    /// Warm-up time before counting, in ticks.
    pub(super) warm_up: u64,
    /// Maximum number of stretches.
    pub(super) stretches: u64,
    pub(super) per_stretch: u64,
    /// Time limit, in ticks.
    pub(super) length: u64,
    pub(super) watch: Watch,
}

/// Exchanges per stretch of a warm-up: few, so that a slow mechanism does not take too long.
const WARM_UP_STRETCH: u64 = 4;
/// Round trips that the threads' accounting covers on top of those of the block: one that settles
/// both ends after the counters have been read, which takes microseconds that the first mark must
/// not include; and those that end this pass and the next.
const AROUND: u64 = 1 + 2 * DRAIN_ROUNDS;

/// Data recorded in addition to the leading end's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    Nothing,
    /// Arrival time of each message at the following end.
    OneWay,
    /// CPUs of both ends at each exchange.
    Cpus,
}

#[derive(Debug)]
pub(super) struct Report {
    pub(super) times: Vec<u64>,
    pub(super) cpus: Vec<u32>,
    pub(super) follow_times: Vec<u64>,
    pub(super) follow_cpus: Vec<u32>,
    pub(super) threads: Vec<ThreadCounters>,
    pub(super) next: u64,
    /// Round trips covered by the accounting in `threads`.
    pub(super) accounted: u64,
}

struct ThreadReport {
    times: Vec<u64>,
    cpus: Vec<u32>,
    counters: ThreadCounters,
    wrong: u64,
    next: u64,
    /// Only the leading end sets this.
    accounted: u64,
}

/// Everything needed to start the threads of a pair, as often as required.
pub(super) struct PairSpec {
    clock: Clock,
    name: String,
    make: Make<Ends>,
    placement: Placement,
    lead_cpus: Vec<u32>,
    follow_cpus: Vec<u32>,
    lead_buffers: SharedBuffers,
    follow_buffers: SharedBuffers,
}

impl PairSpec {
    pub(super) fn new(
        clock: &Clock,
        name: &str,
        make: Make<Ends>,
        placement: Placement,
        lead_cpus: Vec<u32>,
        follow_cpus: Vec<u32>,
    ) -> Self {
        PairSpec {
            clock: *clock,
            name: name.to_string(),
            make,
            placement,
            lead_cpus,
            follow_cpus,
            lead_buffers: SharedBuffers::default(),
            follow_buffers: SharedBuffers::default(),
        }
    }

    /// Starts the threads and waits until everything is created, touched and placed.
    ///
    /// The leading thread creates the ends, so that their memory is local to it.
    pub(super) fn start(&self, patience: Duration) -> Result<Pair, LabError> {
        let (give_follow, take_follow) = channel::<Option<Box<dyn Follow>>>();
        let both = Arc::new(Barrier::new(2));
        let clock = self.clock;
        let entered = Arc::clone(&both);
        let last = Arc::new(StopAt::default());
        let follow_last = Arc::clone(&last);
        let (of, make) = (self.name.clone(), Arc::clone(&self.make));
        let buffers = self.lead_buffers.clone();
        let lead = Worker::start("lead", self.lead_cpus.clone(), move |setup| {
            let _displacement = Displacement::random();
            let (mut lead, follow) = match make() {
                Err(reason) => {
                    let _ = give_follow.send(None);
                    return setup.fail(LabError::Unavailable { mechanism: of, reason });
                }
                Ok(Ends { lead, follow }) => (lead, follow),
            };
            let two = follow.is_some();
            let _ = give_follow.send(follow);
            lead.enter();
            if two {
                entered.wait();
            }
            buffers.touch();
            let probe = ThreadProbe::new();
            setup.serve(|job| lead_job(&mut *lead, &last, &clock, job, &buffers, &probe));
        })?;
        let mut pool = Pool::new(&self.name, self.placement);
        // Starts the following end first, so that it is ready for the first message. There is none
        // if one thread is both ends, or if the leading thread failed, which it reports itself.
        if let Some(Some(mut follow)) = receive_within(&take_follow, patience) {
            let buffers = self.follow_buffers.clone();
            pool.add(Worker::start("follow", self.follow_cpus.clone(), move |setup| {
                follow.enter();
                both.wait();
                buffers.touch();
                let probe = ThreadProbe::new();
                setup.serve(|job| {
                    follow_job(&mut *follow, &follow_last, &clock, job, &buffers, &probe)
                });
            }))?;
        }
        pool.add(Ok(lead))?;
        pool.ready(patience)?;
        Ok(Pair { pool })
    }
}

pub(super) struct Pair {
    pool: Pool<Job, ThreadReport>,
}

impl Pair {
    /// Runs a job on both threads; fails if a report is late or a message is wrong.
    pub(super) fn run(&mut self, job: Job, patience: Duration) -> Result<Report, LabError> {
        let threads = self.pool.len();
        let mut reports = self.pool.run(std::iter::repeat_n(job, threads), patience)?;
        if reports.iter().any(|report| report.wrong != 0) {
            return Err(self.pool.wrong_message());
        }
        let Some(lead) = reports.pop() else { return Err(self.pool.stuck(patience)) };
        let mut report = Report {
            times: lead.times,
            cpus: lead.cpus,
            follow_times: Vec::new(),
            follow_cpus: Vec::new(),
            threads: vec![lead.counters],
            next: lead.next,
            accounted: lead.accounted,
        };
        if let Some(follow) = reports.pop() {
            report.follow_times = follow.times;
            report.follow_cpus = follow.cpus;
            report.threads.push(follow.counters);
        }
        Ok(report)
    }
}

fn lead_job(
    lead: &mut dyn Lead,
    last: &StopAt,
    clock: &Clock,
    job: Job,
    buffers: &SharedBuffers,
    probe: &ThreadProbe,
) -> ThreadReport {
    let mut buffers = buffers.lock();
    let Buffers { times, cpus } = &mut *buffers;
    let warm_up = LoopSpec {
        first: job.first,
        stretches: u64::MAX,
        per_stretch: WARM_UP_STRETCH,
        until: clock.stamp() + job.warm_up,
    };
    let warmed = lead.lead(warm_up, last, Stamps::Clock(clock));
    let before = probe.sample();
    let settle = LoopSpec { first: warmed.next, stretches: 1, per_stretch: 1, until: u64::MAX };
    let settled = lead.lead(settle, last, Stamps::None);
    let marks = match job.watch {
        Watch::Cpus => Stamps::TimesAndCpus(clock, times, cpus),
        Watch::Nothing | Watch::OneWay => Stamps::Times(clock, times),
    };
    let spec = LoopSpec {
        first: settled.next,
        stretches: job.stretches,
        per_stretch: job.per_stretch,
        until: clock.stamp().saturating_add(job.length),
    };
    let led = lead.lead(spec, last, marks);
    let after = probe.sample_after();
    let stretches = times.len().saturating_sub(1) as u64;
    ThreadReport {
        times: times.clone(),
        cpus: cpus.clone(),
        counters: after.delta(&before),
        wrong: warmed.wrong | settled.wrong | led.wrong,
        next: led.next,
        accounted: stretches * job.per_stretch + AROUND,
    }
}

fn follow_job(
    follow: &mut dyn Follow,
    last: &StopAt,
    clock: &Clock,
    job: Job,
    buffers: &SharedBuffers,
    probe: &ThreadProbe,
) -> ThreadReport {
    let mut buffers = buffers.lock();
    let Buffers { times, cpus } = &mut *buffers;
    let warmed = follow.follow(job.first, last, Stamps::None);
    let before = probe.sample();
    let settled = follow.follow(warmed.next, last, Stamps::None);
    let marks = match job.watch {
        Watch::Nothing => Stamps::None,
        Watch::OneWay => Stamps::Times(clock, times),
        Watch::Cpus => Stamps::TimesAndCpus(clock, times, cpus),
    };
    let followed = follow.follow(settled.next, last, marks);
    let after = probe.sample_after();
    ThreadReport {
        times: times.clone(),
        cpus: cpus.clone(),
        counters: after.delta(&before),
        wrong: warmed.wrong | settled.wrong | followed.wrong,
        next: followed.next,
        accounted: 0,
    }
}
