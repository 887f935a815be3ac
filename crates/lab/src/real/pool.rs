//! Threads that start with a group, are placed, and create and touch all that they need. They sleep
//! between jobs.

use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use threadtoll_machine::place;

use crate::LabError;
use crate::error::{WRONG_MESSAGE, stuck};
use crate::program::STACK_BYTES;

/// Number of parts of a wait for reports. If the process is stopped during the wait, by Ctrl-Z for
/// instance, the stop uses up only one part.
const PARTS: u32 = 8;

/// Time of a wait for one worker, after which it is the next worker's turn.
const WAIT: Duration = Duration::from_millis(1);

/// Receives what a starting thread creates. `None` if the thread ends or takes longer than
/// `patience`.
pub(super) fn receive_within<T>(from: &Receiver<T>, patience: Duration) -> Option<T> {
    for _ in 0..PARTS {
        match from.recv_timeout(patience / PARTS) {
            Ok(made) => return Some(made),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    None
}

enum Answer<R> {
    Ready,
    Failed(LabError),
    Done(R),
}

/// A thread that runs jobs of one kind and reports on each.
pub(super) struct Worker<J, R> {
    jobs: Sender<J>,
    answers: Receiver<Answer<R>>,
    thread: Option<JoinHandle<()>>,
}

pub(super) struct Setup<J, R> {
    jobs: Receiver<J>,
    answers: Sender<Answer<R>>,
}

impl<J, R> Setup<J, R> {
    pub(super) fn fail(self, error: LabError) {
        // The pool may have been dropped already.
        let _ = self.answers.send(Answer::Failed(error));
    }

    pub(super) fn serve(self, mut work: impl FnMut(J) -> R) {
        let mut answer = Answer::Ready;
        while self.answers.send(answer).is_ok() {
            let Ok(job) = self.jobs.recv() else { return };
            answer = Answer::Done(work(job));
        }
    }
}

impl<J: Send + 'static, R: Send + 'static> Worker<J, R> {
    /// Starts and places a thread. `body` creates the thread's objects, then calls `Setup::serve`.
    pub(super) fn start(
        name: &str,
        cpus: Vec<u32>,
        body: impl FnOnce(Setup<J, R>) + Send + 'static,
    ) -> Result<Self, LabError> {
        let (jobs, take_jobs) = channel();
        let (answers, take_answers) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("threadtoll-{name}"))
            .stack_size(STACK_BYTES)
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

    /// Returns the result of the setup; `None` if the setup takes longer than `time`;
    /// `Some(Err(None))` if the thread has ended.
    fn ready_within(&self, time: Duration) -> Option<Result<(), Option<LabError>>> {
        Some(match self.answers.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => return None,
            Ok(Answer::Ready) => Ok(()),
            Ok(Answer::Failed(error)) => Err(Some(error)),
            Ok(Answer::Done(_)) | Err(RecvTimeoutError::Disconnected) => Err(None),
        })
    }

    /// Returns the report on the current job, unless it takes longer than `left` times `part`. Each
    /// `part` that passes lowers `left` by one.
    fn report(&self, part: Duration, left: &mut u32) -> Result<R, RecvTimeoutError> {
        loop {
            match self.answers.recv_timeout(part) {
                Ok(Answer::Done(report)) => return Ok(report),
                Ok(Answer::Ready | Answer::Failed(_)) => {
                    return Err(RecvTimeoutError::Disconnected);
                }
                Err(RecvTimeoutError::Timeout) if *left > 1 => *left -= 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

/// Threads that work together. If a job does not end in time, the threads are leaked, because
/// joining a thread that never ends would block.
pub(super) struct Pool<J, R> {
    name: String,
    placement: String,
    workers: Vec<Worker<J, R>>,
    left_behind: bool,
}

impl<J: Send + 'static, R: Send + 'static> Pool<J, R> {
    /// Creates an empty pool. The name and the placement appear in error messages.
    pub(super) fn new(name: &str, placement: impl ToString) -> Self {
        Pool {
            name: name.to_string(),
            placement: placement.to_string(),
            workers: Vec::new(),
            left_behind: false,
        }
    }

    /// Adds a worker. Workers get jobs in order of addition.
    pub(super) fn add(&mut self, worker: Result<Worker<J, R>, LabError>) -> Result<(), LabError> {
        // Other workers may wait for the worker that failed to start, so none is joined.
        self.left_behind |= worker.is_err();
        self.workers.push(worker?);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Waits until all workers are ready, or one has failed. Workers may wait for each other while
    /// they start, so a failure may be the only answer that arrives. A worker that is not ready
    /// after `patience` is stuck in a queue's code, which never returns.
    pub(super) fn ready(&mut self, patience: Duration) -> Result<(), LabError> {
        // Counts waits, not time: if the process is stopped, by Ctrl-Z for instance, the stop uses
        // up only one wait.
        let mut left = patience.div_duration_f64(WAIT).ceil() as u64;
        let mut waiting: Vec<&Worker<J, R>> = self.workers.iter().collect();
        while !waiting.is_empty() {
            let mut late = Vec::new();
            if left == 0 {
                return Err(self.stuck(patience));
            }
            for worker in waiting {
                match worker.ready_within(WAIT) {
                    None => late.push(worker),
                    Some(Ok(())) => {}
                    Some(Err(error)) => {
                        self.left_behind = true;
                        return Err(error.unwrap_or_else(|| self.ended()));
                    }
                }
            }
            left -= 1;
            waiting = late;
        }
        Ok(())
    }

    /// Gives each of these workers a job; fails if one of them has ended.
    pub(super) fn give(
        &mut self,
        workers: Range<usize>,
        jobs: impl IntoIterator<Item = J>,
    ) -> Result<(), LabError> {
        let sent = self.workers[workers]
            .iter()
            .zip(jobs)
            .all(|(worker, job)| worker.jobs.send(job).is_ok());
        if sent { Ok(()) } else { Err(self.ended()) }
    }

    /// Returns the workers' reports, in order; fails if one is late.
    pub(super) fn reports(
        &mut self,
        workers: Range<usize>,
        patience: Duration,
    ) -> Result<Vec<R>, LabError> {
        let (part, mut left) = (patience / PARTS, PARTS);
        let reports: Result<Vec<R>, RecvTimeoutError> =
            self.workers[workers].iter().map(|worker| worker.report(part, &mut left)).collect();
        reports.map_err(|error| match error {
            RecvTimeoutError::Disconnected => self.ended(),
            // Other workers may be waiting for a worker that has ended.
            RecvTimeoutError::Timeout if self.workers.iter().any(Worker::has_ended) => self.ended(),
            RecvTimeoutError::Timeout => self.stuck(patience),
        })
    }

    pub(super) fn run(
        &mut self,
        jobs: impl IntoIterator<Item = J>,
        patience: Duration,
    ) -> Result<Vec<R>, LabError> {
        self.give(0..self.len(), jobs)?;
        self.reports(0..self.len(), patience)
    }

    pub(super) fn wrong_message(&self) -> LabError {
        self.failed(WRONG_MESSAGE)
    }

    /// Returns the error for a worker that has ended. Leaks the other workers, which may wait for
    /// it.
    fn ended(&mut self) -> LabError {
        self.left_behind = true;
        self.failed("one of its threads ended early")
    }

    /// Returns the error for a run without progress within `patience`. Leaks the threads.
    pub(super) fn stuck(&mut self, patience: Duration) -> LabError {
        self.left_behind = true;
        self.failed(stuck(patience))
    }

    fn failed(&self, clause: impl Into<String>) -> LabError {
        let (name, placement) = (self.name.clone(), self.placement.clone());
        LabError::Row { name, placement, clause: clause.into() }
    }
}

impl<J, R> Drop for Pool<J, R> {
    fn drop(&mut self) {
        let threads: Vec<JoinHandle<()>> = self
            .workers
            .drain(..)
            // A thread ends when the channel of its jobs closes.
            .filter_map(|worker| worker.thread)
            .collect();
        if !self.left_behind {
            for thread in threads {
                // If a worker panicked, its block has failed, and the panic has been reported.
                let _ = thread.join();
            }
        }
    }
}
