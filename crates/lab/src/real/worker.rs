//! The two threads of a cell. They are started with the group, placed, and make and touch
//! everything that they need; then they sleep until they are given a job, and again until the next.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{ThreadCounters, ThreadProbe};
use threadtoll_machine::place;
use threadtoll_record::Placement;

use crate::exchange::{CLOSING, Course, Ends, Follow, Last, Lead, Marks};
use crate::mechanism::Unavailable;
use crate::real::MAX_SAMPLES;
use crate::rig::LabError;

/// What a block asks of the two threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// Sequence number of the first message.
    pub(super) first: u64,
    /// How long to exchange before anything is counted, in ticks.
    pub(super) warm_up: u64,
    /// The most stretches.
    pub(super) stretches: u64,
    pub(super) per_stretch: u64,
    /// How long to go on, in ticks.
    pub(super) length: u64,
    pub(super) watch: Watch,
}

/// Exchanges of a stretch while warming up: few, so that a slow mechanism does not take long.
const WARM_UP_STRETCH: u64 = 4;
/// Round trips that the threads' accounts hold beside those of the block: one that settles both
/// ends after the accounts were read, which takes microseconds that the first mark must not show,
/// and those that close this course and the next.
const AROUND: u64 = 1 + 2 * CLOSING;

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
    wrong: u64,
    /// Sequence number for the next job.
    pub(super) next: u64,
    /// Round trips that the accounts in `threads` are of.
    pub(super) accounted: u64,
}

pub(super) struct Part {
    pub(super) times: Vec<u64>,
    cpus: Vec<u32>,
    pub(super) found: Found,
}

/// What a thread found beside its marks.
pub(super) struct Found {
    pub(super) thread: ThreadCounters,
    pub(super) wrong: u64,
    pub(super) next: u64,
    /// Known to the leading end only.
    pub(super) accounted: u64,
}

pub(super) enum Message {
    Ready,
    Failed(LabError),
    Done(Part),
}

/// A thread that does jobs of one kind.
pub(super) struct Worker<J> {
    pub(super) jobs: Sender<J>,
    pub(super) answers: Receiver<Message>,
    /// Taken when it has ended; a worker that is stuck is left behind.
    thread: Option<JoinHandle<()>>,
}

/// What a cell's ends are made by, on the thread where they will run.
pub(super) type Make<T> = Box<dyn FnOnce() -> Result<T, Unavailable> + Send>;

/// The threads of a cell: two, or one that is both ends.
pub(super) struct Pair {
    name: String,
    placement: Placement,
    lead: Worker<Job>,
    follow: Option<Worker<Job>>,
    stuck: bool,
}

impl Pair {
    /// Starts them and waits until everything is made, touched and placed.
    ///
    /// The leading thread makes the ends where it runs, so that their memory is at home there.
    pub(super) fn start(
        clock: &Clock,
        name: &str,
        make: Make<Ends>,
        placement: Placement,
        lead_cpus: Vec<u32>,
        follow_cpus: Vec<u32>,
    ) -> Result<Self, LabError> {
        let (give_follow, take_follow) = channel::<Option<Box<dyn Follow>>>();
        let both = Arc::new(Barrier::new(2));
        let clock = *clock;
        let entered = Arc::clone(&both);
        let last = Arc::new(Last::default());
        let follow_last = Arc::clone(&last);
        let of = name.to_string();
        let lead = Worker::start("lead", lead_cpus, move |setup| match make() {
            Err(reason) => {
                let _ = give_follow.send(None);
                setup.fail(LabError::Unavailable { mechanism: of, reason });
            }
            Ok(Ends::One(mut lead)) => {
                let _ = give_follow.send(None);
                lead.enter();
                setup.serve(|job, times, cpus, probe| {
                    lead_part(&mut *lead, &last, &clock, job, times, cpus, probe)
                });
            }
            Ok(Ends::Two(mut lead, follow)) => {
                let _ = give_follow.send(Some(follow));
                lead.enter();
                entered.wait();
                setup.serve(|job, times, cpus, probe| {
                    lead_part(&mut *lead, &last, &clock, job, times, cpus, probe)
                });
            }
        })?;
        let follow = match take_follow.recv() {
            Ok(Some(mut follow)) => Some(Worker::start("follow", follow_cpus, move |setup| {
                follow.enter();
                both.wait();
                setup.serve(|job, times, cpus, probe| {
                    follow_part(&mut *follow, &follow_last, &clock, job, times, cpus, probe)
                });
            })?),
            // One thread is both, or the leading one has failed and says so itself.
            Ok(None) | Err(_) => None,
        };
        let mut pair = Pair { name: name.to_string(), placement, lead, follow, stuck: false };
        // The following end first: if it cannot be placed, the leading one waits at the barrier and
        // never answers.
        for worker in pair.follow.iter_mut().chain(std::iter::once(&mut pair.lead)) {
            if let Err(error) = worker.ready() {
                pair.stuck = true;
                return Err(error);
            }
        }
        Ok(pair)
    }

    /// Runs a job on both threads.
    ///
    /// # Errors
    ///
    /// If it does not end in time, or a message was not the one that was due.
    pub(super) fn run(&mut self, job: Job, patience: Duration) -> Result<Report, LabError> {
        let (mechanism, placement) = (self.name.clone(), self.placement.to_string());
        match self.answered(job, patience) {
            None => Err(LabError::Stuck { mechanism, placement, seconds: patience.as_secs() }),
            Some(report) if report.wrong != 0 => {
                Err(LabError::WrongMessage { mechanism, placement })
            }
            Some(report) => Ok(report),
        }
    }

    /// What both threads found; nothing if they do not answer in time.
    fn answered(&mut self, job: Job, patience: Duration) -> Option<Report> {
        let deadline = Instant::now() + patience;
        // The following end first, so that it is there when the first message comes.
        for worker in self.follow.iter().chain(std::iter::once(&self.lead)) {
            worker.jobs.send(job).ok()?;
        }
        let mut await_part = |worker: &Worker<Job>| {
            let part = worker.part(deadline);
            self.stuck |= part.is_none();
            part
        };
        let lead = await_part(&self.lead)?;
        let mut report = Report {
            times: lead.times,
            cpus: lead.cpus,
            follow_times: Vec::new(),
            follow_cpus: Vec::new(),
            threads: vec![lead.found.thread],
            wrong: lead.found.wrong,
            next: lead.found.next,
            accounted: lead.found.accounted,
        };
        if let Some(follow) = &self.follow {
            let part = await_part(follow)?;
            report.follow_times = part.times;
            report.follow_cpus = part.cpus;
            report.threads.push(part.found.thread);
            report.wrong |= part.found.wrong;
        }
        Some(report)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for worker in std::iter::once(&mut self.lead).chain(&mut self.follow) {
            worker.end(self.stuck);
        }
    }
}

/// A worker's side of its channels.
pub(super) struct Setup<J> {
    jobs: Receiver<J>,
    answers: Sender<Message>,
}

impl<J: Send + 'static> Setup<J> {
    pub(super) fn fail(self, error: LabError) {
        let _ = self.answers.send(Message::Failed(error));
    }

    /// Does jobs until there are no more.
    pub(super) fn serve(
        self,
        mut part: impl FnMut(J, &mut Vec<u64>, &mut Vec<u32>, &ThreadProbe) -> Found,
    ) {
        let probe = ThreadProbe::new();
        // One page more than any course needs; written once, so that no page is missing when the
        // clock runs.
        let mut times: Vec<u64> = touched(MAX_SAMPLES as usize + 512);
        let mut cpus: Vec<u32> = touched(MAX_SAMPLES as usize + 1024);
        if self.answers.send(Message::Ready).is_err() {
            return;
        }
        while let Ok(job) = self.jobs.recv() {
            times.clear();
            cpus.clear();
            let found = part(job, &mut times, &mut cpus, &probe);
            // The buffers stay here, touched; what goes out is copied after the clock has stopped.
            let done = Part { times: times.clone(), cpus: cpus.clone(), found };
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

impl<J: Send + 'static> Worker<J> {
    /// Starts a thread and places it; `body` makes what it needs there, and serves.
    pub(super) fn start(
        name: &str,
        cpus: Vec<u32>,
        body: impl FnOnce(Setup<J>) + Send + 'static,
    ) -> Result<Self, LabError> {
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

    /// Waits until everything is made, touched and placed.
    pub(super) fn ready(&self) -> Result<(), LabError> {
        match self.answers.recv() {
            Ok(Message::Ready) => Ok(()),
            Ok(Message::Failed(error)) => Err(error),
            Ok(Message::Done(_)) | Err(_) => {
                Err(LabError::Spawn(std::io::Error::other("it ended at once")))
            }
        }
    }

    /// The same, looked at for so long; nothing if nothing is known by then.
    pub(super) fn ready_within(&self, time: Duration) -> Option<Result<(), LabError>> {
        Some(match self.answers.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => return None,
            Ok(Message::Ready) => Ok(()),
            Ok(Message::Failed(error)) => Err(error),
            Ok(Message::Done(_)) | Err(RecvTimeoutError::Disconnected) => {
                Err(LabError::Spawn(std::io::Error::other("it ended at once")))
            }
        })
    }

    /// What it found in the job that it was given; nothing if that does not come in time.
    pub(super) fn part(&self, deadline: Instant) -> Option<Part> {
        match self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Message::Done(part)) => Some(part),
            Ok(Message::Ready | Message::Failed(_))
            | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Lets it end. Without jobs to come a worker ends; one that is stuck would never, and is left
    /// to the end of the process.
    pub(super) fn end(&mut self, stuck: bool) {
        let (jobs, _) = channel();
        self.jobs = jobs;
        if let (false, Some(thread)) = (stuck, self.thread.take()) {
            // A panic in a worker was printed when it happened, and the block it was at has failed.
            let _ = thread.join();
        }
    }
}

fn lead_part(
    lead: &mut dyn Lead,
    last: &Last,
    clock: &Clock,
    job: Job,
    times: &mut Vec<u64>,
    cpus: &mut Vec<u32>,
    probe: &ThreadProbe,
) -> Found {
    let warm_up = Course {
        first: job.first,
        stretches: u64::MAX,
        per_stretch: WARM_UP_STRETCH,
        until: clock.stamp() + job.warm_up,
    };
    let warmed = lead.lead(warm_up, last, Marks::Clock(clock));
    let before = probe.sample();
    let settle = Course { first: warmed.next, stretches: 1, per_stretch: 1, until: u64::MAX };
    let settled = lead.lead(settle, last, Marks::None);
    let marks = match job.watch {
        Watch::Cpus => Marks::TimesAndCpus(clock, times, cpus),
        Watch::Nothing | Watch::OneWay => Marks::Times(clock, times),
    };
    let course = Course {
        first: settled.next,
        stretches: job.stretches,
        per_stretch: job.per_stretch,
        until: clock.stamp().saturating_add(job.length),
    };
    let led = lead.lead(course, last, marks);
    let after = probe.sample_after();
    let stretches = times.len().saturating_sub(1) as u64;
    Found {
        thread: after.delta(&before),
        wrong: warmed.wrong | settled.wrong | led.wrong,
        next: led.next,
        accounted: stretches * job.per_stretch + AROUND,
    }
}

fn follow_part(
    follow: &mut dyn Follow,
    last: &Last,
    clock: &Clock,
    job: Job,
    times: &mut Vec<u64>,
    cpus: &mut Vec<u32>,
    probe: &ThreadProbe,
) -> Found {
    let warmed = follow.follow(job.first, last, Marks::None);
    let before = probe.sample();
    let settled = follow.follow(warmed.next, last, Marks::None);
    let marks = match job.watch {
        Watch::Nothing => Marks::None,
        Watch::OneWay => Marks::Times(clock, times),
        Watch::Cpus => Marks::TimesAndCpus(clock, times, cpus),
    };
    let followed = follow.follow(settled.next, last, marks);
    let after = probe.sample_after();
    Found {
        thread: after.delta(&before),
        wrong: warmed.wrong | settled.wrong | followed.wrong,
        next: followed.next,
        accounted: 0,
    }
}
