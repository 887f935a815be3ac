//! Waiting by a `Select`.

use std::task::Waker;

use super::*;
use crate::wait::{Needs, Watch};

impl<T> Watch for Receiver<T> {
    #[inline]
    fn is_ready(&mut self) -> bool {
        if !self.cursor.has_news() {
            return self.state() & ALIVE == 0;
        }
        !matches!(self.find(|| Until::Now), Some(NoMessage::Empty))
    }

    fn settle(&mut self) -> bool {
        let found = self.find(|| Until::Now);
        !matches!(found, Some(NoMessage::Empty)) || self.shared.parker(RECEIVER, 0).is_forked()
    }

    fn watch(&mut self, waker: &Waker) -> Needs {
        let (shared, taken) = (&**self.shared, self.cursor.taken());
        let parker = shared.parker(RECEIVER, shared.sticky_fence_bit(taken));
        let before = parker.watch(waker);
        before.map_or(Needs::Retry, |state| shared.needs_of_receiver(state, taken))
    }

    fn unwatch(&mut self, unsettled: bool) {
        drop(self.shared.parker(RECEIVER, FENCE_FOR_NOW).unwatch(unsettled));
    }
}
