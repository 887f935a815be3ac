//! Waiting by a `Select`.

use std::task::Waker;

use super::*;
use crate::wait::{Needs, Watch};

impl<T> Watch for Receiver<T> {
    #[inline]
    fn is_ready(&mut self) -> bool {
        if self.poll() {
            return true;
        }
        self.publish_passed();
        self.shared.is_forked() || is_closed(&self.shared, self.reader.head)
    }

    fn settle(&mut self) -> bool {
        self.is_ready() || self.shared.parker(RECEIVER).is_forked()
    }

    fn watch(&mut self, waker: &Waker) -> Needs {
        if self.shared.parker(RECEIVER).watch(waker).is_none() {
            return Needs::Retry;
        }
        let mut waiting = Waiting::new(&self.shared, &mut self.reader, &mut self.announced);
        if waiting.park_or_say_behind() { self.shared.needs_behind() } else { Needs::Nothing }
    }

    fn is_outdated(&mut self) -> bool {
        // See `Waiting::look`.
        let passed = self.announced.ticket.take_if(|ticket| *ticket != self.reader.head);
        mutate!(watch_anew, passed.is_some() => false)
    }

    fn unwatch(&mut self, _: bool) {
        drop(self.stop_watching());
    }
}
