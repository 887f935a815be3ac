//! Perf events of threads, opened as the budget allows.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::Profiler;
use crate::clock::thread_cpu;
use crate::perf::{self, Events, PerfRefused, SampleOptions, SwitchCosts, calibration};
use crate::sample::Order;

/// CPU time in nanoseconds between two samples of a running thread, and bytes of stack per sample.
const SAMPLE_NS: u64 = 20_000_000;
const SAMPLED_STACK: u32 = 4 << 10;

/// Share of the budget for opening events. With many threads, the events of some are opened late.
/// The states of these threads are unknown until then.
const FOLLOWING_SHARE: f64 = 0.1;

/// Share of one CPU that perf events may cost the threads.
const EVENTS_SHARE: f64 = 0.01;

/// Once this many threads of a process have ended, new threads are followed only if they are still
/// alive at the next listing.
const MANY_ENDED: u32 = 16;

/// Minimum time between two checks of the CPUs that followed threads may use: `REFRESH`, or
/// `REFRESH_THREAD` per followed thread if that is longer.
const REFRESH: Duration = Duration::from_secs(1);
const REFRESH_THREAD: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct ThreadEvents {
    pub(super) open: Result<Events, PerfRefused>,
    pub(super) inherited: bool,
    /// CPU time for opening events, and for closing them later.
    spent: Duration,
    /// True if the events of some threads were not open from the start.
    not_all: bool,
    refreshed: Instant,
    /// Where the costs on this machine will arrive; `None` as long as they do not matter.
    calibration: Option<Receiver<SwitchCosts>>,
}

impl ThreadEvents {
    pub(super) fn new(open: Result<Events, PerfRefused>, inherited: bool) -> ThreadEvents {
        let (spent, refreshed) = (Duration::ZERO, Instant::now());
        ThreadEvents { open, inherited, spent, not_all: false, refreshed, calibration: None }
    }

    pub(super) fn keep_within_budget(&mut self) {
        let Ok(events) = &mut self.open else { return };
        if let Some(Ok(costs)) = self.calibration.as_ref().map(Receiver::try_recv) {
            events.set_costs(costs);
        }
        if events.keep_within(EVENTS_SHARE) && self.calibration.is_none() {
            self.calibration = Some(calibration::begin(events.options()));
        }
    }

    pub(super) fn refused(&self) -> Option<String> {
        self.open.as_ref().err().map(ToString::to_string)
    }
}

impl Profiler {
    pub(super) fn refresh_events(&mut self) {
        self.follow_threads();
        // Refreshing takes a system call per thread.
        let followed: usize = self.watched.values().map(|watched| watched.followed.len()).sum();
        let every = REFRESH.max(REFRESH_THREAD * followed as u32);
        if let Ok(events) = &mut self.events.open
            && self.events.refreshed.elapsed() >= every
        {
            events.refresh();
            self.events.refreshed = Instant::now();
        }
    }

    pub(super) fn threads(&mut self, index: u32, threads: Vec<u32>) {
        let Some(watched) = self.watched.get_mut(&index) else { return };
        if let (Ok(events), false) = (&mut self.events.open, self.events.inherited) {
            let before = std::mem::take(&mut watched.listed);
            let alive = |tid: &u32| threads.binary_search(tid).is_ok();
            let ended = before.iter().filter(|tid| !alive(tid)).take(MANY_ENDED as usize).count();
            watched.ended_soon = MANY_ENDED.min(watched.ended_soon + ended as u32);
            let waiting = watched.to_follow.len();
            watched.to_follow.retain(alive);
            self.unseen.not_followed += waiting - watched.to_follow.len();
            let known = watched.to_follow.len();
            let new = threads.iter().copied().filter(|tid| before.binary_search(tid).is_err());
            watched.to_follow.extend(new);
            watched.held_back = match watched.ended_soon {
                MANY_ENDED => watched.to_follow.len() - known,
                _ => 0,
            };
            watched.followed.retain(|tid| {
                let alive = alive(tid);
                if !alive {
                    events.forget(*tid);
                }
                alive
            });
        }
        watched.list(threads);
        self.follow_threads();
    }

    pub(super) fn follow_threads(&mut self) {
        let allowed = self.allowed(FOLLOWING_SHARE);
        let Ok(events) = &mut self.events.open else { return };
        for watched in self.watched.values_mut().filter(|watched| watched.ended.is_none()) {
            while self.events.spent < allowed
                && watched.to_follow.len() > watched.held_back
                && let Some(tid) = watched.to_follow.pop_front()
            {
                let began = thread_cpu();
                if events.follow_thread(tid).is_ok() {
                    watched.followed.push(tid);
                }
                // The TID may belong to another process by now.
                if watched.process.as_ref().is_some_and(|process| !process.has_thread(tid)) {
                    watched.followed.retain(|&followed| followed != tid);
                    events.forget(tid);
                }
                // Closing the events will cost as much as opening them.
                self.events.spent += 2 * Duration::from_nanos(thread_cpu() - began);
            }
        }
        if self.watched.values().any(|watched| !watched.to_follow.is_empty())
            && !self.events.not_all
        {
            self.events.not_all = true;
            _ = self.orders.send(Order::RecordDelays);
        }
    }
}

pub(super) fn open_events() -> Result<Events, PerfRefused> {
    Events::open(perf::EventOptions { switches: true, samples: Some(samples()) })
}

/// Options for the kernel's samples of running threads. Only samples close to one of the profiler's
/// own are useful, but the kernel chooses the times. So up to 200 samples are taken per second, on
/// all CPUs together.
fn samples() -> SampleOptions {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    SampleOptions { period_ns: SAMPLE_NS * cpus.div_ceil(4), stack_bytes: SAMPLED_STACK }
}
