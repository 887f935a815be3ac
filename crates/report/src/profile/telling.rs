//! Locks whose rows tell something: the others are counted on the first screen.

use threadtoll_record::profile::Lock;

use super::Seen;

/// Gain from which a lock is listed however wide its intervals are.
const WORTHWHILE: f64 = 0.05;

/// The locks whose rows tell something, and the number of those that were waited for and whose
/// figures tell too little. Where no lock was waited for, all are listed.
pub(crate) fn telling<'a, 'b>(locks: &'b [Seen<'a>]) -> (Vec<Seen<'a>>, usize) {
    // The two rows of a lock of readers and writers have one gain.
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
    let unclear = locks.iter().filter(|seen| seen.waited() && !tells(seen)).count();
    match tell.is_empty() {
        true => (locks.to_vec(), 0),
        false => (tell, unclear),
    }
}

fn queue_tells(lock: &Lock) -> bool {
    match (lock.queue_mean, lock.queue_mean_interval95) {
        (Some(queue), Some(within)) => {
            let half = (within.high().get() - within.low().get()) / 2.0;
            queue.get() > 0.0 && half < queue.get()
        }
        // Withheld, or without an interval.
        _ => true,
    }
}
