//! Lists of threads.
//!
//! Lists are renewed from time to time. A list that may be [out of date](super::super::churn) is
//! renewed just before a sample. If many threads come and go, each sample instead draws some of the
//! threads that are alive at that time.

use std::sync::mpsc::Sender;

use threadtoll_stacks::process::{Thread, ThreadSample};

use super::super::budget::Effort;
use super::super::chunk::{Chunk, Listing};
use super::super::churn::{MOST_LISTED, MOST_READ};
use super::{Report, SampledProcess, Sampler};
use crate::clock::{now, thread_cpu};

/// Share of the budget for listing threads; and maximum time in nanoseconds between two listings,
/// for few threads and for thousands of threads.
const SHARE: f64 = 0.1;
const LEAST_NS: u64 = 100_000_000;
const LONG_NS: u64 = 1_000_000_000;
const FEW: u32 = 4;

/// A listing that takes this many nanoseconds lists thousands of threads.
const LONG_TOOK_NS: u64 = 1_000_000;

impl Sampler {
    pub(super) fn until_next_listing(&self, took_ns: f64) -> u64 {
        let most = if took_ns < LONG_TOOK_NS as f64 { LEAST_NS } else { LONG_NS };
        most.min((took_ns / (SHARE * self.budget.share())) as u64)
    }

    pub(super) fn follow(&mut self, mut followed: SampledProcess, to: &Sender<Report>) {
        let began = thread_cpu();
        // If one listing fails, the next one finds the changes.
        _ = followed.list();
        followed.tell(to);
        self.followed.push(followed);
        self.list_own();
        self.spent.listing_ns += thread_cpu() - began;
    }

    pub(super) fn leave(&mut self, which: impl Fn(&SampledProcess) -> bool) {
        let left = self.followed.extract_if(.., |followed| which(followed));
        self.left.extend(left.map(|followed| followed.index));
        self.list_own();
    }

    /// Lists the threads of all processes. Returns the CPU time spent, in nanoseconds.
    pub(super) fn list_threads(&mut self, to: &Sender<Report>) -> u64 {
        let began = thread_cpu();
        let mut changed = false;
        for followed in &mut self.followed {
            // If a listing fails, the known threads remain. Samples notice if some have ended.
            changed |= followed.list();
            followed.ended |= !followed.process.is_running();
            changed |= followed.ended;
            match followed.ended {
                true => _ = to.send(Report::Ended(followed.index)),
                false => followed.tell(to),
            }
        }
        if changed {
            self.leave(|followed| followed.ended);
        }
        let took = thread_cpu() - began;
        self.spent.listing_ns += took;
        took
    }

    pub(super) fn list_own(&mut self) {
        self.threads.clear();
        for (place, followed) in self.followed.iter().enumerate() {
            let threads = 0..followed.threads();
            self.threads.extend(threads.map(|thread| (place as u32, thread)));
        }
        let come_and_go = self.followed.iter().any(|followed| followed.churn.come_and_go());
        let few = (self.threads.len() as u32).min(MOST_READ);
        self.budget.read_at_least(if come_and_go { few } else { few.min(FEW) });
        // Without this, each sample would read only one thread until the first stretch has ended,
        // and would show little.
        let effort = self.budget.effort(self.words(), self.threads.len() as u32);
        self.effort = Effort { rate_per_s: self.effort.rate_per_s, ..effort };
    }

    pub(super) fn list_before(&mut self, chunk: &mut Chunk) {
        let began = now();
        let mut changed = false;
        self.left.drain(..).for_each(|process| chunk.push_left(process));
        for followed in &mut self.followed {
            let drawn_of = followed.drawn_of.take();
            let known = followed.process.threads().len();
            if followed.churn.is_list_old(known, began) {
                if known <= MOST_LISTED {
                    followed.process.list_anew();
                    changed |= followed.list();
                } else {
                    followed.drawn_of = Some(followed.process.threads_now() as u32);
                }
            }
            changed |= followed.drawn_of != drawn_of;
            if std::mem::take(&mut followed.unnoted) {
                chunk.push_listing(Listing {
                    process: followed.index,
                    threads: followed.tids(),
                    inner: followed.process.inner_tids().cloned(),
                });
            }
        }
        if changed {
            self.list_own();
        }
        chunk.tick().listing_ns = now() - began;
    }

    /// Discards what this sample saw of processes that now execute another program. Such a process
    /// is followed again once its new program is known.
    pub(super) fn forget_replaced(&mut self, chunk: &mut Chunk, to: &Sender<Report>) {
        let mut left = false;
        chunk.processes_seen(&mut self.seen);
        for followed in self.followed.iter_mut().filter(|it| self.seen.contains(&it.index)) {
            if followed.run.as_ref().is_some_and(|run| !run.goes_on()) {
                chunk.forget_process(followed.index);
                let tick = chunk.tick();
                tick.threads_alive = tick.threads_alive.saturating_sub(followed.threads());
                followed.ended = true;
                left = true;
                _ = to.send(match followed.process.is_running() {
                    true => Report::Replaced(followed.index),
                    false => Report::Ended(followed.index),
                });
            }
        }
        if left {
            self.leave(|followed| followed.ended);
            self.left.drain(..).for_each(|process| chunk.push_left(process));
        }
    }
}

impl SampledProcess {
    fn threads(&self) -> u32 {
        self.drawn_of.unwrap_or(self.process.threads().len() as u32)
    }

    fn tids(&self) -> Vec<u32> {
        self.process.threads().iter().map(Thread::tid).collect()
    }

    fn list(&mut self) -> bool {
        let changed = self.process.refresh().unwrap_or(false);
        self.churn.listed(self.process.births(), now());
        self.unnoted |= changed;
        self.untold |= changed;
        changed
    }

    fn tell(&mut self, to: &Sender<Report>) {
        if std::mem::take(&mut self.untold) {
            _ = to.send(Report::Threads(self.index, self.tids()));
        }
    }

    /// Examines the thread with this index, which must be less than [`Self::threads`].
    pub(super) fn sample_place(&self, place: u32) -> (u32, ThreadSample) {
        if self.drawn_of.is_none() {
            let thread = &self.process.threads()[place as usize];
            return (thread.tid(), thread.sample());
        }
        match self.process.thread_at(place as usize) {
            Some(tid) => (tid, self.sample(tid)),
            None => (0, ThreadSample::Gone),
        }
    }

    pub(super) fn sample(&self, tid: u32) -> ThreadSample {
        let known = self.process.thread(tid).map_or(ThreadSample::Gone, Thread::sample);
        match known {
            // A thread that is not listed yet may have the TID of an earlier, listed thread.
            ThreadSample::Gone if self.churn.come_and_go() => self.process.unlisted(tid).sample(),
            known => known,
        }
    }
}
