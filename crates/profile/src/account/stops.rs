//! Time for which a process was stopped, by a signal or a debugger.

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stops {
    /// Time of the last check and, if the process was stopped then, the number of times that one of
    /// its threads had left its CPU.
    last: Option<(u64, Option<u64>)>,
    stopped_ns: u64,
    /// True if the process was stopped throughout the time between the last two checks.
    all_along: bool,
}

impl Stops {
    /// Notes a check at `at`. For a stopped process, `stopped` is the number of times that one of
    /// its threads has left its CPU. If this number has grown, the process has run since the last
    /// check.
    pub(crate) fn note(&mut self, stopped: Option<u64>, at: u64) {
        let before = self.last.replace((at, stopped));
        self.all_along = stopped.is_some() && before.is_none_or(|(_, before)| before == stopped);
        if let (true, Some((then, _))) = (self.all_along, before) {
            self.stopped_ns += at.saturating_sub(then);
        }
    }

    pub(crate) fn all_along(&self) -> bool {
        self.all_along
    }

    pub(crate) fn now(&self) -> bool {
        self.last.is_some_and(|(_, stopped)| stopped.is_some())
    }

    pub(crate) fn stopped_ns(&self) -> u64 {
        self.stopped_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_between_two_stops_counts() {
        let mut stops = Stops::default();
        assert!(!stops.now() && !stops.all_along());
        for (stopped, at, all_along, stopped_ns) in [
            (false, 10, false, 0),
            (true, 20, false, 0),
            (true, 30, true, 10),
            (true, 50, true, 30),
            (false, 60, false, 30),
        ] {
            stops.note(stopped.then_some(7), at);
            assert_eq!((stops.all_along(), stops.stopped_ns()), (all_along, stopped_ns), "{at}");
            assert_eq!(stops.now(), stopped);
        }
        let mut stops = Stops::default();
        stops.note(Some(7), 10);
        assert!(stops.all_along());
        // The process ran between two checks, as under a CPU quota.
        stops.note(Some(8), 20);
        assert!(stops.now() && !stops.all_along());
    }
}
