//! Spinning in a wait that has no history of its own, because its channel is used only once.
//!
//! The thread's last waits take the place of the channel's. As with
//! [`Adaptive`](super::Wait::Adaptive), a wait spins for about half a microsecond; then, if this
//! has recently paid off, for as long as a sleep would cost.

use std::cell::Cell;

use super::pause::calibrate_pause;
use super::stats::sleep_cost;
use super::strategy::{POLLS_BEFORE_CLOCK, POLLS_PER_CLOCK_READ, spin_times};
use crate::sync::Instant;

/// Number of waits in a row after which a thread stops spinning, if spinning ended none of them.
const PATIENCE: u8 = 4;
/// A thread that has stopped spinning tries again in one wait out of this many.
const PROBE: u8 = 16;

thread_local! {
    /// Up to [`PATIENCE`]: number of this thread's last waits in a row that spinning did not end.
    /// Above: the same, plus the number of waits in which it did not spin.
    static FUTILE: Cell<u8> = const { Cell::new(0) };
}

/// Polls before the thread falls asleep, but not after `deadline`. Polls at least once.
pub(crate) fn spin_before_sleep<R>(
    deadline: Option<Instant>,
    mut poll: impl FnMut() -> Option<R>,
) -> Option<R> {
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
        return poll();
    }
    calibrate_pause();
    if let Some(found) = spin_times(POLLS_BEFORE_CLOCK, &mut poll) {
        return Some(found);
    }
    if !is_worthwhile() {
        return None;
    }
    let limit = Instant::now() + sleep_cost();
    let until = deadline.map_or(limit, |deadline| deadline.min(limit));
    let mut found = None;
    while found.is_none() && Instant::now() < until {
        found = spin_times(POLLS_PER_CLOCK_READ, &mut poll);
    }
    // If the deadline has ended it, nobody knows how long the wait would have been.
    if found.is_some() || until == limit {
        record(found.is_some());
    }
    found
}

/// Returns `true` if this wait should spin for as long as a sleep would cost.
fn is_worthwhile() -> bool {
    let futile = FUTILE.get();
    if futile < PATIENCE || futile == PATIENCE + PROBE - 1 {
        return true;
    }
    FUTILE.set(futile + 1);
    false
}

fn record(found: bool) {
    FUTILE.set(if found { 0 } else { (FUTILE.get() + 1).min(PATIENCE) });
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests {
    use super::*;

    /// Number of waits, out of this many, that are worth spinning in.
    fn worthwhile(waits: usize, found: bool) -> usize {
        let spins = |_: &usize| {
            let spins = is_worthwhile();
            if spins {
                record(found);
            }
            spins
        };
        (0..waits).filter(spins).count()
    }

    #[test]
    fn a_thread_spins_while_that_ends_its_waits() {
        assert_eq!(worthwhile(1000, true), 1000);
        // The first four, and one of each sixteen after them.
        assert_eq!(worthwhile(4 + 160, false), 4 + 10);
        // The next attempt succeeds.
        assert_eq!(worthwhile(15 + 100, true), 100);
    }
}
