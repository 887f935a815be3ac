//! Waits that no sample saw; they make a queue uncertain in both directions.

use threadtoll_stats::interval::Estimate;

use super::samples::Figure;

/// Factor by which the estimated odds that an unseen wait was for this lock may be wrong. After
/// unseen sleeps, threads may wait for a CPU for a longer or a shorter time than after other
/// sleeps.
const ODDS: f64 = 3.0;

/// Maximum number of threads that may have ended before they could be read, as a share of the queue
/// (or of one thread, if the queue is shorter). Above this share, the queue is withheld.
const MOST_ENDED: f64 = 0.25;

/// Mean number of threads that wait for a CPU after sleeps that no sample saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unseen {
    /// Number of threads attributed to waits for this lock.
    pub here: f64,
    /// Number of threads attributed to waits for something else.
    pub elsewhere: f64,
    /// Number of threads that cannot be attributed.
    pub anywhere: f64,
    /// Number of threads that had ended before they could be read. As many others have begun
    /// meanwhile, and may wait for this lock.
    pub ended: f64,
}

impl Unseen {
    /// Minimum and maximum number of threads that may wait for this lock.
    fn bounds(self) -> [f64; 2] {
        let all = self.here + self.elsewhere;
        let part = |odds: f64| match self.here {
            0.0 => 0.0,
            here => all * odds * here / (odds * here + self.elsewhere),
        };
        [part(1.0 / ODDS), part(ODDS) + self.anywhere + self.ended]
    }
}

impl Figure {
    /// The figure, with its interval widened because unseen waits may have been attributed wrongly.
    pub fn with_unseen(self, unseen: Unseen) -> Figure {
        match self {
            Self::Known(estimate) if unseen.ended > MOST_ENDED * estimate.value.max(1.0) => {
                Self::Withheld(unseen.ended)
            }
            Self::Known(estimate) => {
                let [least, most] = unseen.bounds();
                let low = (estimate.low - (unseen.here - least)).max(0.0);
                let high = estimate.high + (most - unseen.here);
                Self::Known(Estimate { low, high, ..estimate })
            }
            unknown => unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_waits_leave_a_queue_open_both_ways() {
        let queue = Figure::Known(Estimate { value: 0.5, low: 0.45, high: 0.55 });
        let unseen = Unseen { here: 0.2, elsewhere: 0.2, anywhere: 0.1, ended: 0.0 };
        let Some(open) = queue.with_unseen(unseen).known() else { panic!("withheld") };
        // Estimated odds of 1:1 may really be 1:3 or 3:1.
        assert_eq!(open.value, 0.5);
        assert!((open.low - 0.35).abs() < 1e-9 && (open.high - 0.75).abs() < 1e-9, "{open:?}");
        assert_eq!(queue.with_unseen(Unseen::default()), queue);
        let elsewhere = Unseen { elsewhere: 0.3, ..Unseen::default() };
        assert_eq!(queue.with_unseen(elsewhere), queue);
        assert_eq!(Figure::Withheld(0.2).with_unseen(unseen), Figure::Withheld(0.2));
    }

    #[test]
    fn threads_that_ended_too_soon_leave_a_queue_open_above() {
        let queue = Figure::Known(Estimate { value: 4.0, low: 3.5, high: 4.5 });
        let ended = |ended| queue.with_unseen(Unseen { ended, ..Unseen::default() });
        let Some(open) = ended(0.5).known() else { panic!("withheld") };
        assert_eq!((open.value, open.low, open.high), (4.0, 3.5, 5.0));
        assert_eq!(ended(1.1), Figure::Withheld(1.1));
    }
}
