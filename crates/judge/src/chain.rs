//! Chains of locks, in which the holder of one lock waits for another.
//!
//! If the holder of lock A waits for lock B, the threads that wait for A really wait for B:
//! shortening the holds of A in any other way would help nobody. So this part of A's queue is
//! attributed to B, and so on down to the root of the chain. The rest of A's queue is attributed to
//! A itself.

use threadtoll_stats::interval::Estimate;

/// Maximum number of locks along which a queue is passed on. A cycle, which is a deadlock, has no
/// end.
const MAX_LENGTH: usize = 8;

/// A lock whose holder waits for another lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Index of the first lock.
    pub from: usize,
    /// Index of the lock for which the first lock's holder waits.
    pub to: usize,
    /// Share of time in which a thread waits for the first lock while the first lock's holder waits
    /// for the second.
    pub share: f64,
}

/// For each lock, the mean number of threads that would be freed if nobody waited for it any more:
/// threads in its own queue, and threads in other queues that are due to this lock. `queues`
/// contains the mean queue of each lock.
///
/// ```
/// use threadtoll_judge::chain::{Link, freed};
/// use threadtoll_stats::interval::Estimate;
///
/// // Four threads wait for an index whose holder waits for the disk's lock.
/// let queues = [Estimate::exact(4.0), Estimate::exact(1.0)];
/// let freed = freed(&queues, &[Link { from: 0, to: 1, share: 1.0 }]);
/// assert_eq!((freed[0].value, freed[1].value), (0.0, 5.0));
/// ```
pub fn freed(queues: &[Estimate], links: &[Link]) -> Vec<Estimate> {
    let links: Vec<Link> = links
        .iter()
        .copied()
        .filter(|link| link.from < queues.len() && link.to < queues.len() && link.from != link.to)
        .collect();
    let mut passed_on = vec![0.0; queues.len()];
    for link in &links {
        passed_on[link.from] += link.share.clamp(0.0, 1.0);
    }
    // Rounded shares of several locks may add up to more than one.
    let scale: Vec<f64> = passed_on.iter().map(|sum: &f64| sum.max(1.0).recip()).collect();
    let of = |part: fn(Estimate) -> f64| {
        let mut flow: Vec<f64> = queues.iter().map(|&queue| part(queue).max(0.0)).collect();
        let mut freed = vec![0.0; queues.len()];
        for _ in 0..MAX_LENGTH {
            let mut next = vec![0.0; queues.len()];
            for link in &links {
                next[link.to] += flow[link.from] * link.share.clamp(0.0, 1.0) * scale[link.from];
            }
            for lock in 0..queues.len() {
                freed[lock] += flow[lock] * (1.0 - passed_on[lock] * scale[lock]);
            }
            flow = next;
        }
        freed.iter().zip(flow).map(|(freed, rest)| freed + rest).collect::<Vec<f64>>()
    };
    let (low, value, high) = (of(|of| of.low), of(|of| of.value), of(|of| of.high));
    let ends = low.into_iter().zip(value).zip(high);
    ends.map(|((low, value), high)| Estimate { value, low, high }).collect()
}

/// For each of `locks` locks, the share of time in which its holder waits for the lock `root`,
/// directly or through other locks.
///
/// ```
/// use threadtoll_judge::chain::{Link, behind};
///
/// let link = |from, to| Link { from, to, share: 0.5 };
/// assert_eq!(behind(2, 3, &[link(0, 1), link(1, 2)]), [0.25, 0.5, 0.0]);
/// ```
pub fn behind(root: usize, locks: usize, links: &[Link]) -> Vec<f64> {
    let is_valid = |link: &&Link| {
        link.from < locks && link.to < locks && link.from != link.to && link.from != root
    };
    let mut behind = vec![0.0; locks];
    for _ in 0..MAX_LENGTH {
        let mut next = vec![0.0; locks];
        for link in links.iter().filter(is_valid) {
            let rest = if link.to == root { 1.0 } else { behind[link.to] };
            next[link.from] += link.share.clamp(0.0, 1.0) * rest;
        }
        behind = next.into_iter().map(|share: f64| share.min(1.0)).collect();
    }
    behind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(queues: &[f64], links: &[(usize, usize, f64)]) -> Vec<f64> {
        let queues: Vec<Estimate> = queues.iter().map(|&queue| Estimate::exact(queue)).collect();
        let link = |&(from, to, share)| Link { from, to, share };
        let links: Vec<Link> = links.iter().map(link).collect();
        freed(&queues, &links).into_iter().map(|freed| freed.value).collect()
    }

    #[test]
    fn the_root_of_a_chain_frees_all_that_wait_behind_it() {
        assert_eq!(values(&[3.0, 1.0, 2.0], &[]), [3.0, 1.0, 2.0]);
        assert_eq!(values(&[4.0, 1.0], &[(0, 1, 0.75)]), [1.0, 4.0]);
        assert_eq!(values(&[2.0, 1.0, 1.0], &[(0, 1, 1.0), (1, 2, 1.0)]), [0.0, 0.0, 4.0]);
        // A holder may wait for different locks at different times.
        assert_eq!(values(&[4.0, 0.0, 0.0], &[(0, 1, 0.5), (0, 2, 0.5)]), [0.0, 2.0, 2.0]);
    }

    #[test]
    fn circles_and_nonsense_lose_no_thread() {
        let circle = values(&[3.0, 2.0], &[(0, 1, 1.0), (1, 0, 1.0)]);
        assert!((circle.iter().sum::<f64>() - 5.0).abs() < 1e-9, "{circle:?}");
        let over = values(&[4.0, 1.0, 1.0], &[(0, 1, 0.9), (0, 2, 0.9)]);
        assert!((over.iter().sum::<f64>() - 6.0).abs() < 1e-9, "{over:?}");
        assert_eq!(values(&[4.0], &[(0, 0, 1.0), (0, 7, 1.0)]), [4.0]);
    }

    #[test]
    fn a_holder_waits_for_the_end_of_its_chain() {
        let link = |(from, to, share)| Link { from, to, share };
        let chain = |links: &[(usize, usize, f64)], root| {
            let links: Vec<Link> = links.iter().copied().map(link).collect();
            behind(root, 4, &links)
        };
        let of_three = [(0, 1, 0.5), (1, 2, 0.5), (2, 3, 1.0)];
        assert_eq!(chain(&of_three, 3), [0.25, 0.5, 1.0, 0.0]);
        assert_eq!(chain(&of_three, 1), [0.5, 0.0, 0.0, 0.0]);
        // Two ways to the same lock.
        assert_eq!(chain(&[(0, 1, 0.5), (0, 2, 0.5), (1, 3, 1.0), (2, 3, 1.0)], 3)[0], 1.0);
        let circle = chain(&[(0, 1, 1.0), (1, 0, 1.0), (1, 2, 0.5), (9, 2, 1.0)], 2);
        assert!(circle.iter().all(|share| (0.0..=1.0).contains(share)), "{circle:?}");
    }
}
