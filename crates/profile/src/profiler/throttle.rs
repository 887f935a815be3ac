//! CPU quota of a control group.

use threadtoll_machine::{ThrottleCounter, Throttled};

#[derive(Debug)]
pub(super) struct Throttle {
    counter: ThrottleCounter,
    last: Option<Throttled>,
    moved: bool,
}

impl Throttle {
    pub(super) fn of_process(pid: u32) -> Throttle {
        let counter = ThrottleCounter::of_process(pid);
        let last = counter.read();
        Throttle { counter, last, moved: false }
    }

    pub(super) fn read(&mut self) {
        let now = self.counter.read();
        self.moved = now.is_some() && self.last.is_some() && now != self.last;
        self.last = now;
    }

    /// Returns `true` if the group ran out of quota between the last two readings.
    pub(super) fn moved(&self) -> bool {
        self.moved
    }
}
