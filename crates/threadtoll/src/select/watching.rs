//! A wait at several sources.

use std::task::Waker;
use std::time::Duration;

use super::Sources;
use crate::sync::mutate;
use crate::wait::{FenceOutcome, Needs, Probe};

/// Returns the first source that is ready, in the order from `first` to the last, and then from 0.
#[inline]
pub(super) fn find_ready<S: Sources + ?Sized>(sources: &mut S, first: usize) -> Option<usize> {
    find(sources, first, |sources, index| sources.source(index).is_ready())
}

/// As [`find_ready`], but prepares the sources for a wait, and knows a forked child.
pub(super) fn settle(sources: &mut dyn Sources, first: usize) -> Option<usize> {
    find(sources, first, |sources, index| sources.source(index).settle())
}

#[inline]
fn find<S: Sources + ?Sized>(
    sources: &mut S,
    first: usize,
    is_ready: impl Fn(&mut S, usize) -> bool,
) -> Option<usize> {
    let count = sources.count();
    // The last call may have had more sources.
    let first = if first < count { first } else { 0 };
    (first..count).chain(0..first).find(|index| is_ready(sources, *index))
}

/// Result of a poll that ends a call of `wait`.
pub(super) enum Look {
    Ready(usize),
    /// A source must be watched again.
    Outdated,
}

const NO_BARRIER: FenceOutcome = FenceOutcome::NapAtMost(Duration::ZERO);

/// Ends the wait when it is dropped, also by a panic.
pub(super) struct Watching<'a> {
    sources: &'a mut dyn Sources,
    waker: &'a Waker,
    /// The source that is polled first.
    first: usize,
    /// Number of sources that are watched.
    watched: usize,
    /// The barrier after they were watched.
    barrier: FenceOutcome,
}

impl<'a> Watching<'a> {
    pub(super) fn new(sources: &'a mut dyn Sources, waker: &'a Waker, first: usize) -> Self {
        Watching { sources, waker, first, watched: 0, barrier: FenceOutcome::Fenced }
    }

    /// Goes on with a wait that [`keep`](Self::keep) has left at this number of sources.
    #[cfg(target_os = "linux")]
    pub(super) fn resume(
        sources: &'a mut dyn Sources,
        waker: &'a Waker,
        first: usize,
        watched: usize,
    ) -> Self {
        Watching { sources, waker, first, watched, barrier: FenceOutcome::Fenced }
    }

    /// Leaves the marks at the sources.
    #[cfg(target_os = "linux")]
    pub(super) fn keep(mut self) {
        self.watched = 0;
    }

    /// As the function [`settle`].
    #[cfg(target_os = "linux")]
    pub(super) fn settle(&mut self) -> Option<usize> {
        settle(self.sources, self.first)
    }

    /// As [`announce`](Self::announce), but waits for a barrier that is pending. Returns `false` if
    /// the kernel has refused it.
    #[cfg(target_os = "linux")]
    pub(super) fn announce_at_once(&mut self) -> bool {
        let settled = match self.announce() {
            FenceOutcome::Fenced => true,
            FenceOutcome::Pending(barrier) => barrier.force(),
            FenceOutcome::NapAtMost(_) => false,
        };
        if settled {
            self.barrier = FenceOutcome::Fenced;
        }
        settled
    }

    /// Watches all sources, and executes one barrier for all of them. From then on, whoever
    /// publishes something that the next poll misses wakes the waker.
    #[cold]
    pub(super) fn announce(&mut self) -> FenceOutcome {
        if mutate!(watch_afresh, !self.barrier.is_fenced() => false) {
            // Otherwise a source could rely on fences that its other end does not know of.
            self.unwatch();
        }
        self.barrier = NO_BARRIER;
        let mut needs = Needs::Nothing;
        for index in 0..self.sources.count() {
            // If a waker panics, those from the last time are still watched.
            self.watched = self.watched.max(index + 1);
            needs = needs.max(self.sources.source(index).watch(self.waker));
        }
        self.barrier = needs.execute();
        self.barrier
    }

    #[inline]
    pub(super) fn look(&mut self, probe: Probe) -> Option<Look> {
        if let Some(index) = find_ready(self.sources, self.first) {
            return Some(Look::Ready(index));
        }
        let is_last = probe == Probe::Fenced;
        let outdated =
            is_last && (0..self.watched).any(|index| self.sources.source(index).is_outdated());
        outdated.then_some(Look::Outdated)
    }

    #[cold]
    fn unwatch(&mut self) {
        let unsettled = !self.barrier.is_fenced();
        for index in 0..std::mem::take(&mut self.watched) {
            self.sources.source(index).unwatch(unsettled);
        }
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        mutate!(end_watch, self.unwatch() => ());
    }
}
