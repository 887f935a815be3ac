//! A cell whose threads stream: a receiver, and one sender or several.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{SystemCounters, ThreadCounters, ThreadProbe, account};
use threadtoll_record::{Placement, PlannedCell};

use crate::gap;
use crate::mechanism::Class;
use crate::queue::{Course, Receives, Sends, Shared, Streams};
use crate::rig::{LabError, Measured};

use super::worker::{Found, Make, Worker};
use super::{Around, MAX_SAMPLES, Opening, PILOT_NS, WARM_UP_FREE_NS, WARM_UP_NS, per_stretch};

/// Messages of a stretch before it is known how fast they come.
const PILOT_STRETCH: u64 = 1024;
/// Courses of a job: one that warms up, and the one that counts.
const COURSES: u64 = 2;

/// What a block asks of the threads.
#[derive(Clone, Copy, Debug)]
struct Job {
    /// Number of the first course.
    course: u64,
    /// How long to stream before anything is counted, in ticks.
    warm_up: u64,
    per_stretch: u64,
    stretches: u64,
    /// How long to go on, in ticks.
    length: u64,
}

/// What the threads found.
struct Report {
    times: Vec<u64>,
    threads: Vec<ThreadCounters>,
    messages: u64,
}

/// The threads of a stream.
struct Crew {
    name: String,
    placement: Placement,
    receiver: Worker<Job>,
    senders: Vec<Worker<Job>>,
    round: u64,
    next_course: u64,
    stuck: bool,
}

impl Crew {
    /// Starts them and waits until everything is made, touched and placed. The receiving thread
    /// makes the queue where it runs.
    fn start(
        clock: &Clock,
        name: &str,
        make: Make<Streams>,
        placement: Placement,
        places: Places,
    ) -> Result<Self, LabError> {
        let clock = *clock;
        let count = places.senders.len();
        let shared = Arc::new(Shared::new(count as u32));
        let all = Arc::new(Barrier::new(count + 1));
        let (give, take) = channel::<Option<(Vec<Box<dyn Sends>>, u64)>>();
        let (of, received, entered) = (name.to_string(), Arc::clone(&shared), Arc::clone(&all));
        let receiver = Worker::start("receive", places.receiver, move |setup| match make() {
            Err(reason) => {
                let _ = give.send(None);
                setup.fail(LabError::Unavailable { mechanism: of, reason });
            }
            Ok(Streams { senders, mut receiver, round }) => {
                let _ = give.send(Some((senders, round)));
                receiver.enter();
                entered.wait();
                setup.serve(|job, times, _, probe| {
                    receive_part(&mut *receiver, &received, &clock, job, times, probe)
                });
            }
        })?;
        let mut crew = Crew {
            name: name.to_string(),
            placement,
            receiver,
            senders: Vec::new(),
            round: 1,
            next_course: 1,
            stuck: false,
        };
        // Without senders the receiver has failed, and says so itself.
        if let Ok(Some((senders, round))) = take.recv() {
            crew.round = round;
            for (index, (mut sender, cpus)) in senders.into_iter().zip(places.senders).enumerate() {
                let (shared, entered) = (Arc::clone(&shared), Arc::clone(&all));
                let worker = Worker::start("send", cpus, move |setup| {
                    sender.enter();
                    entered.wait();
                    setup.serve(|job, _, _, probe| {
                        send_part(&mut *sender, index, &shared, job, probe)
                    });
                });
                match worker {
                    Ok(worker) => crew.senders.push(worker),
                    Err(error) => {
                        crew.stuck = true;
                        return Err(error);
                    }
                }
            }
        }
        if let Err(error) = crew.ready() {
            // Whoever could not be placed never comes to the barrier, at which the others wait.
            crew.stuck = true;
            return Err(error);
        }
        Ok(crew)
    }

    /// Waits until all are at it, or one of them says why it is not.
    fn ready(&self) -> Result<(), LabError> {
        // All wait for each other, so the first answer of anybody is a failure, or there will be
        // none.
        let workers = || self.senders.iter().chain(std::iter::once(&self.receiver));
        let mut waiting: Vec<&Worker<Job>> = workers().collect();
        while !waiting.is_empty() {
            let mut left = Vec::new();
            for worker in waiting {
                match worker.ready_within(Duration::from_millis(1)) {
                    None => left.push(worker),
                    Some(Ok(())) => {}
                    Some(Err(error)) => return Err(error),
                }
            }
            waiting = left;
        }
        Ok(())
    }

    /// Runs a job on all threads.
    fn run(&mut self, mut job: Job, patience: Duration) -> Result<Report, LabError> {
        job.course = self.next_course;
        self.next_course += COURSES;
        let deadline = Instant::now() + patience;
        let (mechanism, placement) = (self.name.clone(), self.placement.to_string());
        let stuck = LabError::Stuck {
            mechanism: mechanism.clone(),
            placement: placement.clone(),
            seconds: patience.as_secs(),
        };
        // The senders first, so that they are there when the receiver begins.
        let workers = || self.senders.iter().chain(std::iter::once(&self.receiver));
        let sent = workers().all(|worker| worker.jobs.send(job).is_ok());
        let parts: Option<Vec<_>> = workers().map(|worker| worker.part(deadline)).collect();
        let Some(mut parts) = parts.filter(|_| sent) else {
            self.stuck = true;
            return Err(stuck);
        };
        if parts.iter().any(|part| part.found.wrong != 0) {
            return Err(LabError::WrongMessage { mechanism, placement });
        }
        let threads = parts.iter().map(|part| part.found.thread).collect();
        let Some(received) = parts.pop() else { return Err(stuck) };
        Ok(Report { times: received.times, threads, messages: received.found.accounted })
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for worker in self.senders.iter_mut().chain(std::iter::once(&mut self.receiver)) {
            worker.end(self.stuck);
        }
    }
}

fn receive_part(
    receiver: &mut dyn Receives,
    shared: &Shared,
    clock: &Clock,
    job: Job,
    times: &mut Vec<u64>,
    probe: &ThreadProbe,
) -> Found {
    let course = |stretches: u64, length: u64| Course {
        per_stretch: job.per_stretch,
        stretches,
        until: clock.stamp().saturating_add(length),
    };
    shared.begin(job.course);
    let warmed = receiver.receive(course(u64::MAX, job.warm_up), shared, clock, None);
    let before = probe.sample();
    shared.begin(job.course + 1);
    let received = receiver.receive(course(job.stretches, job.length), shared, clock, Some(times));
    let after = probe.sample_after();
    Found {
        thread: after.delta(&before),
        wrong: warmed.wrong | received.wrong,
        next: 0,
        accounted: received.messages,
    }
}

fn send_part(
    sender: &mut dyn Sends,
    index: usize,
    shared: &Shared,
    job: Job,
    probe: &ThreadProbe,
) -> Found {
    shared.await_begin(job.course);
    sender.send(index, shared);
    let before = probe.sample();
    shared.await_begin(job.course + 1);
    let sent = sender.send(index, shared);
    let after = probe.sample_after();
    Found { thread: after.delta(&before), wrong: 0, next: 0, accounted: sent }
}

/// On which CPUs the threads run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Places {
    senders: Vec<Vec<u32>>,
    receiver: Vec<u32>,
}

impl Places {
    /// Pinned, the receiver has the last CPU for itself, and senders share the others in turns.
    fn of(placement: Placement, cpus: &[u32], senders: u32) -> Self {
        match (placement, cpus) {
            (Placement::Pinned, [own @ .., receiver]) if !own.is_empty() => Places {
                senders: (0..senders as usize).map(|index| vec![own[index % own.len()]]).collect(),
                receiver: vec![*receiver],
            },
            (_, cpus) => {
                Places { senders: vec![cpus.to_vec(); senders as usize], receiver: cpus.to_vec() }
            }
        }
    }
}

/// A cell whose threads stream.
pub(super) struct Streaming {
    planned: PlannedCell,
    clock: Clock,
    class: Class,
    /// Whether the queue takes memory as it fills.
    grows: bool,
    crew: Crew,
    around: Around,
    /// The time per message as the last stretches found it.
    message_ns: f64,
    stamp_ns: f64,
    patience: Duration,
}

impl Streaming {
    pub(super) fn open(
        opening: Opening<'_>,
        make: Make<Streams>,
        class: Class,
        grows: bool,
    ) -> Result<Self, LabError> {
        let Opening { clock, planned, allowed, stamp_ns, patience } = opening;
        let cell = &planned.cell;
        let senders = cell.queue().map_or(1, |queue| queue.senders);
        let places = Places::of(cell.placement, &cell.cpus, senders);
        Ok(Streaming {
            planned: planned.clone(),
            clock: *clock,
            class,
            grows,
            crew: Crew::start(clock, cell.name(), make, cell.placement, places)?,
            around: Around::start(cell, allowed)?,
            message_ns: 100.0,
            stamp_ns,
            patience,
        })
    }

    /// Finds out roughly how long a message takes.
    pub(super) fn pilot(&mut self) -> Result<(), LabError> {
        let stretch = PILOT_STRETCH.next_multiple_of(self.crew.round);
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
            course: 0,
            warm_up: self.clock.ticks(warm_up_ns),
            per_stretch,
            stretches: MAX_SAMPLES,
            length: self.clock.ticks(length_ns),
        };
        // What is left in an unbounded queue when a block ends takes its time too.
        let patience = self.patience + Duration::from_nanos((length_ns * 10.0) as u64);
        self.crew.run(job, patience)
    }

    pub(super) fn block(&mut self, start_ticks: u64) -> Result<Measured, LabError> {
        let length_ns = self.planned.budget.stretch_ns as f64;
        // Twice as many stretches fit as are foreseen, should the machine be faster than it was.
        let least = (2.0 * length_ns / self.message_ns / MAX_SAMPLES as f64).ceil() as u64;
        let messages = per_stretch(self.stamp_ns, self.message_ns).max(least);
        let per_stretch = messages.next_multiple_of(self.crew.round);
        let free = self.planned.cell.placement == Placement::Free;
        let warm_up_ns = if free { WARM_UP_FREE_NS } else { WARM_UP_NS };
        let before = self.around.go();
        let report = self.run(warm_up_ns, per_stretch, length_ns);
        let system = self.around.rest(&before);
        let report = report?;
        self.learn(&report, per_stretch);
        Ok(self.measured(report, per_stretch, system, start_ticks))
    }

    fn measured(
        &self,
        report: Report,
        per_stretch: u64,
        system: SystemCounters,
        start_ticks: u64,
    ) -> Measured {
        let stretches_ps: Vec<u64> = report
            .times
            .windows(2)
            .map(|pair| self.clock.ps(pair[1].saturating_sub(pair[0])))
            .collect();
        let spins = self.class == Class::Spin;
        let gap_ns = spins.then(|| gap::vanished_ps(&stretches_ps) / 1000);
        let (cost, disturbance) = account(&report.threads, system, gap_ns);
        let began = report.times.first().map_or(0, |first| first.saturating_sub(start_ticks));
        Measured {
            per_stretch,
            accounted_round_trips: report.messages,
            began_s: self.clock.ns(began) / 1e9,
            lead_cpus: vec![self.planned.cell.cpus[0]],
            cost,
            disturbance,
            spins,
            grows: self.grows,
            stretches_ps,
            ..Measured::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_has_a_cpu_for_itself_and_senders_share_the_others() {
        let pinned = Places::of(Placement::Pinned, &[4, 5, 6], 3);
        assert_eq!(pinned, Places { senders: vec![vec![4], vec![5], vec![4]], receiver: vec![6] });
        let free = Places::of(Placement::Free, &[0, 1], 2);
        assert_eq!(free, Places { senders: vec![vec![0, 1], vec![0, 1]], receiver: vec![0, 1] });
        let same = Places::of(Placement::SameCpu, &[3], 1);
        assert_eq!(same, Places { senders: vec![vec![3]], receiver: vec![3] });
    }
}
