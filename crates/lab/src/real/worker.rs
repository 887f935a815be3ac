//! The two threads of a cell. They are started with the group, placed, and make and touch everything that they need; then
//! they sleep until they are given a job, and again until the next.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{ThreadCounters, ThreadProbe};
use threadtoll_machine::place;

use crate::exchange::{Course, Ends, Follow, Lead, Marks};
use crate::mechanism::{Mechanism, Settings};
use crate::real::MAX_SAMPLES;
use crate::rig::LabError;

/// What a block asks of the two threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) first: u64,
    pub(super) warm_up: u64,
    pub(super) stretches: u64,
    pub(super) per_stretch: u64,
    pub(super) watch: Watch,
}

/// Exchanges between reading the threads' counters and the first mark: reading them takes microseconds, which the first
/// exchange after it would show.
const SETTLE: u64 = 2;

impl Job {
    /// Everything that goes back and forth.
    pub(super) fn round_trips(&self) -> u64 {
        self.warm_up + SETTLE + self.stretches * self.per_stretch
    }

    fn settle_first(&self) -> u64 {
        self.first + self.warm_up
    }

    fn course_first(&self) -> u64 {
        self.settle_first() + SETTLE
    }
}

/// What is noted beside the leading end's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// Nothing.
    Nothing,
    /// When each message arrived at the following end.
    OneWay,
    /// The CPU of both ends at each exchange.
    Cpus,
}

/// What both threads found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) times: Vec<u64>,
    pub(super) cpus: Vec<u32>,
    pub(super) follow_times: Vec<u64>,
    pub(super) follow_cpus: Vec<u32>,
    pub(super) threads: Vec<ThreadCounters>,
    pub(super) wrong: u64,
}

struct Part {
    times: Vec<u64>,
    cpus: Vec<u32>,
    thread: ThreadCounters,
    wrong: u64,
}

enum Message {
    Ready,
    Failed(LabError),
    Done(Part),
}

struct Worker {
    jobs: Sender<Job>,
    answers: Receiver<Message>,
    /// Taken when it has ended; a worker that is stuck is left behind.
    thread: Option<JoinHandle<()>>,
}

/// The threads of a cell: two, or one that is both ends.
pub(super) struct Pair {
    lead: Worker,
    follow: Option<Worker>,
    stuck: bool,
}

impl Pair {
    /// Starts them and waits until everything is made, touched and placed.
    ///
    /// The leading thread makes the mechanism where it runs, so that its memory is at home there.
    pub(super) fn start(
        clock: &Clock,
        mechanism: &'static Mechanism,
        settings: Settings,
        lead_cpus: Vec<u32>,
        follow_cpus: Vec<u32>,
    ) -> Result<Self, LabError> {
        let (give_follow, take_follow) = channel::<Option<Box<dyn Follow>>>();
        let both = Arc::new(Barrier::new(2));
        let clock = *clock;
        let entered = Arc::clone(&both);
        let lead = Worker::start("lead", lead_cpus, move |setup| {
            let ends = mechanism.make(&settings).map_err(|reason| LabError::Unavailable {
                mechanism: mechanism.name.to_string(),
                reason,
            });
            match ends {
                Err(error) => {
                    let _ = give_follow.send(None);
                    setup.fail(error);
                }
                Ok(Ends::One(mut lead)) => {
                    let _ = give_follow.send(None);
                    lead.enter();
                    setup.serve(|job, times, cpus, probe| lead_part(&mut *lead, &clock, job, times, cpus, probe));
                }
                Ok(Ends::Two(mut lead, follow)) => {
                    let _ = give_follow.send(Some(follow));
                    lead.enter();
                    entered.wait();
                    setup.serve(|job, times, cpus, probe| lead_part(&mut *lead, &clock, job, times, cpus, probe));
                }
            }
        })?;
        let follow = match take_follow.recv() {
            Ok(Some(mut follow)) => Some(Worker::start("follow", follow_cpus, move |setup| {
                follow.enter();
                both.wait();
                setup.serve(|job, times, cpus, probe| follow_part(&mut *follow, &clock, job, times, cpus, probe));
            })?),
            // One thread is both, or the leading one has failed and says so itself.
            Ok(None) | Err(_) => None,
        };
        let mut pair = Pair { lead, follow, stuck: false };
        for worker in std::iter::once(&mut pair.lead).chain(&mut pair.follow) {
            match worker.answers.recv() {
                Ok(Message::Ready) => {}
                Ok(Message::Failed(error)) => {
                    pair.stuck = true;
                    return Err(error);
                }
                Ok(Message::Done(_)) | Err(_) => {
                    pair.stuck = true;
                    return Err(LabError::Spawn(std::io::Error::other("it ended at once")));
                }
            }
        }
        Ok(pair)
    }

    /// Runs a job on both threads; null if it does not end in time.
    pub(super) fn run(&mut self, job: Job, patience: Duration) -> Option<Report> {
        let deadline = Instant::now() + patience;
        // The following end first, so that it is there when the first message comes.
        for worker in self.follow.iter().chain(std::iter::once(&self.lead)) {
            worker.jobs.send(job).ok()?;
        }
        let mut await_part = |worker: &Worker| match worker
            .answers
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            Ok(Message::Done(part)) => Some(part),
            Ok(Message::Ready | Message::Failed(_)) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                self.stuck = true;
                None
            }
        };
        let lead = await_part(&self.lead)?;
        let mut report = Report {
            times: lead.times,
            cpus: lead.cpus,
            follow_times: Vec::new(),
            follow_cpus: Vec::new(),
            threads: vec![lead.thread],
            wrong: lead.wrong,
        };
        if let Some(follow) = &self.follow {
            let part = await_part(follow)?;
            report.follow_times = part.times;
            report.follow_cpus = part.cpus;
            report.threads.push(part.thread);
            report.wrong |= part.wrong;
        }
        Some(report)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for worker in std::iter::once(&mut self.lead).chain(&mut self.follow) {
            // Without jobs to come a worker ends; one that is stuck would never, and is left to the end of the process.
            let (jobs, _) = channel();
            worker.jobs = jobs;
            if let (false, Some(thread)) = (self.stuck, worker.thread.take()) {
                // A panic in a worker was printed when it happened, and the block it was at has failed.
                let _ = thread.join();
            }
        }
    }
}

/// A worker's side of its channels.
struct Setup {
    jobs: Receiver<Job>,
    answers: Sender<Message>,
}

impl Setup {
    fn fail(self, error: LabError) {
        let _ = self.answers.send(Message::Failed(error));
    }

    /// Does jobs until there are no more.
    fn serve(self, mut part: impl FnMut(Job, &mut Vec<u64>, &mut Vec<u32>, &ThreadProbe) -> (ThreadCounters, u64)) {
        let probe = ThreadProbe::new();
        // One page more than any course needs; written once, so that no page is missing when the clock runs.
        let mut times: Vec<u64> = touched(MAX_SAMPLES as usize + 512);
        let mut cpus: Vec<u32> = touched(MAX_SAMPLES as usize + 1024);
        if self.answers.send(Message::Ready).is_err() {
            return;
        }
        while let Ok(job) = self.jobs.recv() {
            times.clear();
            cpus.clear();
            let (thread, wrong) = part(job, &mut times, &mut cpus, &probe);
            // The buffers stay here, touched; what goes out is copied after the clock has stopped.
            let done = Part { times: times.clone(), cpus: cpus.clone(), thread, wrong };
            if self.answers.send(Message::Done(done)).is_err() {
                return;
            }
        }
    }
}

fn touched<T: Clone + Default>(len: usize) -> Vec<T> {
    let mut buffer = Vec::with_capacity(len);
    // Zeroes may come from untouched pages; `extend` writes each element.
    buffer.extend(std::iter::repeat_n(std::hint::black_box(T::default()), len));
    buffer.clear();
    buffer
}

impl Worker {
    fn start(name: &str, cpus: Vec<u32>, body: impl FnOnce(Setup) + Send + 'static) -> Result<Self, LabError> {
        let (jobs, take_jobs) = channel();
        let (answers, take_answers) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("threadtoll-{name}"))
            .spawn(move || {
                let setup = Setup { jobs: take_jobs, answers };
                match place::pin_to(&cpus) {
                    Ok(()) => body(setup),
                    Err(error) => setup.fail(LabError::Place { reason: error.to_string(), cpus }),
                }
            })
            .map_err(LabError::Spawn)?;
        Ok(Worker { jobs, answers: take_answers, thread: Some(thread) })
    }
}

fn lead_part(
    lead: &mut dyn Lead,
    clock: &Clock,
    job: Job,
    times: &mut Vec<u64>,
    cpus: &mut Vec<u32>,
    probe: &ThreadProbe,
) -> (ThreadCounters, u64) {
    let course = |first, stretches, per_stretch| Course { first, stretches, per_stretch };
    let mut wrong = lead.lead(course(job.first, 1, job.warm_up), Marks::None);
    let before = probe.sample();
    wrong |= lead.lead(course(job.settle_first(), 1, SETTLE), Marks::None);
    let marks = match job.watch {
        Watch::Cpus => Marks::TimesAndCpus(clock, times, cpus),
        Watch::Nothing | Watch::OneWay => Marks::Times(clock, times),
    };
    wrong |= lead.lead(course(job.course_first(), job.stretches, job.per_stretch), marks);
    let after = probe.sample();
    (after.delta(&before), wrong)
}

fn follow_part(
    follow: &mut dyn Follow,
    clock: &Clock,
    job: Job,
    times: &mut Vec<u64>,
    cpus: &mut Vec<u32>,
    probe: &ThreadProbe,
) -> (ThreadCounters, u64) {
    let mut wrong = follow.follow(job.first, job.warm_up, Marks::None);
    let before = probe.sample();
    wrong |= follow.follow(job.settle_first(), SETTLE, Marks::None);
    let marks = match job.watch {
        Watch::Nothing => Marks::None,
        Watch::OneWay => Marks::Times(clock, times),
        Watch::Cpus => Marks::TimesAndCpus(clock, times, cpus),
    };
    wrong |= follow.follow(job.course_first(), job.stretches * job.per_stretch, marks);
    let after = probe.sample();
    (after.delta(&before), wrong)
}
