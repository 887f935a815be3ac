//! Threads that work only while a block is measured, and sleep in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use crate::rig::LabError;

/// Threads that work while they are told to.
pub(super) struct Resting {
    state: Arc<State>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    go: AtomicBool,
    over: AtomicBool,
    working: AtomicUsize,
}

impl Resting {
    /// Starts a thread for each of `places`. `prepare` runs on it once; what it returns does a
    /// short piece of work.
    pub(super) fn start<P, W>(
        places: Vec<P>,
        prepare: impl Fn(P) -> Result<W, LabError> + Clone + Send + 'static,
    ) -> Result<Self, LabError>
    where
        P: Send + 'static,
        W: FnMut() + 'static,
    {
        let state = Arc::new(State::default());
        let mut resting = Resting { state: Arc::clone(&state), threads: Vec::new() };
        let (ready, prepared) = std::sync::mpsc::channel();
        for place in places {
            let (state, prepare, ready) = (Arc::clone(&state), prepare.clone(), ready.clone());
            let thread = thread::Builder::new()
                .name("threadtoll-load".into())
                .spawn(move || match prepare(place) {
                    Ok(mut work) => {
                        let _ = ready.send(Ok(()));
                        run(&state, &mut work);
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                })
                .map_err(LabError::Spawn)?;
            resting.threads.push(thread);
        }
        drop(ready);
        for _ in 0..resting.threads.len() {
            match prepared.recv() {
                Ok(outcome) => outcome?,
                Err(_) => return Err(LabError::Spawn(std::io::Error::other("it ended at once"))),
            }
        }
        Ok(resting)
    }

    /// Sets them to work and waits until all are at it.
    pub(super) fn go(&self) {
        self.state.go.store(true, Ordering::Release);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
        while self.state.working.load(Ordering::Acquire) < self.threads.len() {
            thread::yield_now();
        }
    }

    /// Lets them sleep, and waits until all do.
    pub(super) fn rest(&self) {
        self.state.go.store(false, Ordering::Release);
        while self.state.working.load(Ordering::Acquire) > 0 {
            thread::yield_now();
        }
    }
}

fn run(state: &State, work: &mut impl FnMut()) {
    while !state.over.load(Ordering::Acquire) {
        if !state.go.load(Ordering::Acquire) {
            thread::park();
            continue;
        }
        state.working.fetch_add(1, Ordering::AcqRel);
        while state.go.load(Ordering::Acquire) {
            work();
        }
        state.working.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::Release);
        self.state.go.store(false, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A panic there was printed, and these threads hold nothing that the figures depend on.
            let _ = thread.join();
        }
    }
}
