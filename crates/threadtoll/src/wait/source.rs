//! The interface between a `Select` and a receiving end: [`Watch`].
//!
//! A `Select` waits at several queues by the protocol of a task ([`super::task`]), with a single
//! waker for all of them: it sets the bit of each queue, executes one barrier for all, polls each
//! once more, and sleeps.

use std::task::Waker;
use std::time::Duration;

use super::park::{FenceOutcome, barrier_or_nap};
use crate::sync::{Ordering, fence, mutate};

/// Longer than the other end takes to move a waker, unless it is preempted: then a thread that
/// waits for it lets it run.
const RETRY_AFTER: Duration = Duration::from_micros(50);

/// A step between setting bits and polling once more. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    Nothing,
    /// A fence, because the other end fences, too.
    Fence,
    /// The barrier for both ends.
    Barrier,
    /// The end may not be woken, and has to poll again.
    Retry,
}

impl Needs {
    /// Executes one barrier for all ends whose bits were set.
    pub(crate) fn execute(self) -> FenceOutcome {
        match self {
            Needs::Nothing => FenceOutcome::Fenced,
            Needs::Fence => {
                // Pairs with the fences of all the other ends.
                mutate!(fence_for_all, fence(Ordering::SeqCst) => ());
                FenceOutcome::Fenced
            }
            Needs::Barrier => mutate!(barrier_for_all, barrier_or_nap() => FenceOutcome::Fenced),
            Needs::Retry => {
                mutate!(stay_awake, FenceOutcome::NapAtMost(RETRY_AFTER) => FenceOutcome::Fenced)
            }
        }
    }
}

/// A receiving end at which a `Select` can wait.
pub trait Watch {
    /// Returns `true` if a receive would not wait: there is a message, or none will come. May miss
    /// what is being published, unless a barrier came before.
    fn is_ready(&mut self) -> bool;

    /// Prepares for a wait: does what a receive does before it waits. Returns `true` if a receive
    /// would not wait, also because this is a forked child.
    fn settle(&mut self) -> bool;

    /// Makes the other end wake this waker once it publishes something. The caller executes the
    /// step that this returns, and then polls.
    fn watch(&mut self, waker: &Waker) -> Needs;

    /// Returns `true`, once, if [`watch`](Self::watch) must be called again before a sleep. Called
    /// after a poll that found nothing.
    fn is_outdated(&mut self) -> bool {
        false
    }

    /// Ends what [`watch`](Self::watch) began. `unsettled` is true if no barrier came after it.
    fn unwatch(&mut self, unsettled: bool);
}

impl<W: Watch + ?Sized> Watch for &mut W {
    fn is_ready(&mut self) -> bool {
        (**self).is_ready()
    }

    fn settle(&mut self) -> bool {
        (**self).settle()
    }

    fn watch(&mut self, waker: &Waker) -> Needs {
        (**self).watch(waker)
    }

    fn is_outdated(&mut self) -> bool {
        (**self).is_outdated()
    }

    fn unwatch(&mut self, unsettled: bool) {
        (**self).unwatch(unsettled);
    }
}

/// `None` is never ready.
impl<W: Watch> Watch for Option<W> {
    fn is_ready(&mut self) -> bool {
        self.as_mut().is_some_and(W::is_ready)
    }

    fn settle(&mut self) -> bool {
        self.as_mut().is_some_and(W::settle)
    }

    fn watch(&mut self, waker: &Waker) -> Needs {
        self.as_mut().map_or(Needs::Nothing, |end| end.watch(waker))
    }

    fn is_outdated(&mut self) -> bool {
        self.as_mut().is_some_and(W::is_outdated)
    }

    fn unwatch(&mut self, unsettled: bool) {
        if let Some(end) = self {
            end.unwatch(unsettled);
        }
    }
}
