//! Cores that threads share in time slices.

use std::collections::VecDeque;

use super::{Engine, NOBODY, Phase};
use crate::simulate::Cores;

#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) core: u32,
    /// Work left in the thread's phase, in nanoseconds.
    pub(super) remaining: f64,
    /// The part of `remaining` that is planned as an event. That part began at `started`.
    planned: f64,
    pub(super) started: f64,
    pub(super) slice_left: f64,
}

/// Empty if the number of cores is not limited.
#[derive(Debug)]
pub(super) struct Scheduler {
    slice: f64,
    preempts: bool,
    running: Vec<u32>,
    /// Idle cores, with the time when each became idle; the latest comes last.
    pub(super) idle: Vec<(u32, f64)>,
    pub(super) ready: VecDeque<u32>,
    /// Woken threads. If they may preempt, they go first.
    pub(super) woken: VecDeque<u32>,
    /// Index at which the next search for a thread to preempt starts.
    cursor: usize,
    pub(super) runs: Vec<Run>,
}

impl<const LIMITED: bool> Engine<LIMITED> {
    /// Returns `true` if the event ends the phase, and `false` if it only ends a slice.
    pub(super) fn work_is_done(&mut self, id: u32) -> bool {
        if !matches!(
            self.threads[id as usize].phase,
            Phase::Thinking | Phase::Holding | Phase::Spinning
        ) {
            return true;
        }
        let run = &mut self.scheduler.runs[id as usize];
        run.slice_left -= run.planned;
        if run.planned >= run.remaining {
            run.remaining = 0.0;
            return true;
        }
        run.remaining -= run.planned;
        self.resume(id);
        false
    }

    /// Runs a thread until its work or its slice ends.
    pub(super) fn resume(&mut self, id: u32) {
        let scheduler = &mut self.scheduler;
        let others = !(scheduler.ready.is_empty() && scheduler.woken.is_empty());
        let run = &mut scheduler.runs[id as usize];
        if run.slice_left <= 0.0 {
            if others {
                if self.threads[id as usize].phase == Phase::Spinning {
                    self.stop_spinning(id);
                    self.park(id);
                } else {
                    self.leave_core(id);
                    self.scheduler.ready.push_back(id);
                }
                return;
            }
            run.slice_left = scheduler.slice;
        }
        run.planned = run.remaining.min(run.slice_left);
        run.started = self.now;
        let planned = run.planned;
        self.plan(id, planned);
    }

    pub(super) fn leave_core(&mut self, id: u32) {
        let run = &mut self.scheduler.runs[id as usize];
        if run.core != NOBODY {
            self.scheduler.running[run.core as usize] = NOBODY;
            self.scheduler.idle.push((run.core, self.now));
            run.core = NOBODY;
        }
    }

    /// Gives idle cores to ready threads, and cores of thinking threads to woken threads that may
    /// preempt.
    pub(super) fn dispatch(&mut self) {
        loop {
            let scheduler = &mut self.scheduler;
            if scheduler.woken.is_empty() && scheduler.ready.is_empty() {
                return;
            }
            if scheduler.idle.is_empty() {
                if !scheduler.preempts || scheduler.woken.is_empty() || !self.preempt() {
                    return;
                }
                continue;
            }
            if !scheduler.preempts {
                // Without preemption, woken threads queue behind the ready ones.
                scheduler.ready.append(&mut scheduler.woken);
            }
            let Some(id) = scheduler.woken.pop_front().or_else(|| scheduler.ready.pop_front())
            else {
                return;
            };
            let Some((core, _)) = scheduler.idle.pop() else { return };
            scheduler.running[core as usize] = id;
            let run = &mut scheduler.runs[id as usize];
            run.core = core;
            run.slice_left = scheduler.slice;
            match self.threads[id as usize].phase {
                Phase::Asking => self.request(id),
                Phase::Entering => self.enter(id),
                Phase::Trying => self.try_again(id),
                _ => self.resume(id),
            }
        }
    }

    /// Takes the core of a thinking thread; returns `false` if none has a core.
    fn preempt(&mut self) -> bool {
        let cores = self.scheduler.running.len();
        for step in 0..cores {
            let core = (self.scheduler.cursor + step) % cores;
            let id = self.scheduler.running[core];
            if id != NOBODY && self.threads[id as usize].phase == Phase::Thinking {
                self.scheduler.cursor = (core + 1) % cores;
                self.threads[id as usize].planned = 0;
                let run = &mut self.scheduler.runs[id as usize];
                run.remaining = (run.remaining - (self.now - run.started)).max(0.0);
                self.leave_core(id);
                self.scheduler.ready.push_front(id);
                return true;
            }
        }
        false
    }
}

impl Scheduler {
    pub(super) fn new(cores: Option<Cores>, threads: usize) -> Self {
        let (count, slice, preempts) = match cores {
            Some(cores) => (cores.count.min(threads as u32), cores.slice_ns, cores.wake_preempts),
            None => (0, 0.0, false),
        };
        let run = Run { core: NOBODY, remaining: 0.0, planned: 0.0, started: 0.0, slice_left: 0.0 };
        Self {
            slice,
            preempts,
            running: vec![NOBODY; count as usize],
            idle: (0..count).map(|core| (core, 0.0)).collect(),
            ready: VecDeque::new(),
            woken: VecDeque::new(),
            cursor: 0,
            runs: if cores.is_some() { vec![run; threads] } else { Vec::new() },
        }
    }
}
