//! The control group's quota.

use threadtoll_machine::{ThrottleCounter, Throttled};

/// The quota of the control group of a process.
#[derive(Debug)]
pub(super) struct Throttle {
    counter: ThrottleCounter,
    last: Option<Throttled>,
}

impl Throttle {
    pub(super) fn of_process(pid: u32) -> Throttle {
        let counter = ThrottleCounter::of_process(pid);
        let last = counter.read();
        Throttle { counter, last }
    }

    /// The group has been out of quota since the last call.
    pub(super) fn moved(&mut self) -> bool {
        let now = self.counter.read();
        let moved = now.is_some() && self.last.is_some() && now != self.last;
        self.last = now;
        moved
    }
}
