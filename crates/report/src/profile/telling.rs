//! Selects the locks whose rows are informative. On the first screen, other locks are only counted.

use threadtoll_record::profile::Lock;

use super::{Seen, WORTHWHILE};
use crate::label::plural;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Number of locks for which no thread was seen waiting.
    not_waited_for: usize,
    /// Number of locks whose figures are too imprecise.
    unclear: usize,
}

impl LeftOut {
    /// Adds locks for which few threads were seen waiting, or none.
    pub(crate) fn leave_out(&mut self, locks: &[Seen<'_>]) {
        let unclear = locks.iter().filter(|seen| seen.waited()).count();
        self.unclear += unclear;
        self.not_waited_for += locks.len() - unclear;
    }

    pub(crate) fn sentence(self) -> Option<String> {
        let of = |count: usize, which: &str| {
            (count > 0).then(|| format!("{} {which}", plural(count as u64, "lock")))
        };
        let parts: Vec<String> = [
            of(self.unclear, "with too few samples to judge"),
            of(self.not_waited_for, "that nobody waited for"),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!parts.is_empty()).then(|| format!("Left out: {}.", parts.join(", ")))
    }
}

/// The locks whose rows are informative, and the numbers of omitted locks. If no row is
/// informative, none is omitted.
pub(crate) fn telling<'a>(locks: &[Seen<'a>]) -> (Vec<Seen<'a>>, LeftOut) {
    // The two rows of a readers-writer lock have the same gain. This gain makes a row informative
    // only if the queue of the other row is not informative.
    let other_row = |seen: &Seen<'_>| {
        let same = |other: &&Seen<'_>| {
            other.lock.address == seen.lock.address
                && other.process.pid == seen.process.pid
                && other.lock.id != seen.lock.id
        };
        seen.lock.address.0 != 0 && locks.iter().filter(same).any(|it| queue_tells(it.lock))
    };
    let tells = |seen: &Seen<'_>| {
        let gain = seen.lock.gain.map_or(0.0, |gain| gain.get());
        let gains = gain >= WORTHWHILE && !other_row(seen);
        seen.waited() && (gains || queue_tells(seen.lock))
    };
    let tell: Vec<Seen<'a>> = locks.iter().copied().filter(tells).collect();
    if tell.is_empty() {
        return (locks.to_vec(), LeftOut::default());
    }
    let others: Vec<Seen<'_>> = locks.iter().copied().filter(|seen| !tells(seen)).collect();
    let mut left_out = LeftOut::default();
    left_out.leave_out(&others);
    (tell, left_out)
}

fn queue_tells(lock: &Lock) -> bool {
    match (lock.queue_mean, lock.queue_mean_interval95) {
        (Some(queue), Some(within)) => {
            let half = (within.high().get() - within.low().get()) / 2.0;
            queue.get() > 0.0 && half < queue.get()
        }
        // The figure is withheld or has no interval.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_that_are_left_out_are_counted() {
        let said = |not_waited_for, unclear| LeftOut { not_waited_for, unclear }.sentence();
        assert_eq!(said(0, 0), None);
        assert_eq!(said(1, 0).as_deref(), Some("Left out: 1 lock that nobody waited for."));
        let both =
            "Left out: 2 locks with too few samples to judge, 3 locks that nobody waited for.";
        assert_eq!(said(3, 2).as_deref(), Some(both));
    }
}
