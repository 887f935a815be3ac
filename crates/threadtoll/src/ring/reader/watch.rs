//! Waiting by a `Select`.

use std::ptr;
use std::task::Waker;

use super::{NoEvent, Reader};
use crate::sync::mutate;
use crate::wait::{Needs, Until, Watch};

impl<T> Watch for Reader<T> {
    #[inline]
    fn is_ready(&mut self) -> bool {
        !matches!(self.find(|| Until::Now), Some(NoEvent::Empty))
    }

    fn settle(&mut self) -> bool {
        self.is_ready() || self.progress.is_in_child()
    }

    fn watch(&mut self, waker: &Waker) -> Needs {
        // Otherwise the end has just come further, and a poll finds that.
        let Some(end) = self.behind() else { return Needs::Retry };
        let (needs, watched) = (end.watch(&self.progress, waker), &raw const *end);
        self.watched = if needs == Needs::Retry { ptr::null() } else { watched };
        needs
    }

    fn is_outdated(&mut self) -> bool {
        // The end may have come further without having seen that it is watched. Then this reader
        // waits for another one, or for none: that one has come further since the poll.
        let is_watched = self.behind().is_some_and(|end| ptr::eq(end, self.watched));
        let outdated = !self.watched.is_null() && !is_watched;
        if outdated {
            self.watched = ptr::null();
        }
        mutate!(watch_other, outdated => false)
    }

    fn unwatch(&mut self, _: bool) {
        self.watched = ptr::null();
        self.progress.watcher().withdraw();
    }
}
