use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadtoll_stats::median;
use threadtoll_stats::resample::{self, Processes};

use crate::rounding::rounded_ns;
use crate::{Count, Fraction, Ns};

/// Figures of the bursts in a block. Times are medians over these bursts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstBlock {
    /// Number of bursts.
    pub bursts: Count,
    /// Time from when a burst was due until its first message was received, in nanoseconds.
    pub first_ns: Ns,
    /// Time from when a burst was due until its last message was received, in nanoseconds.
    pub last_ns: Ns,
    /// Time from the end of a burst's last send call until its last message was received, in
    /// nanoseconds.
    pub drain_ns: Ns,
    /// Number of bursts that became due only after all messages of the previous burst had been
    /// received.
    pub found_empty: Count,
}

/// Figures of bursts of messages. Times are medians over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Burst {
    /// Time from when a burst was due until its first message was received, in nanoseconds.
    pub first_ns: Option<Ns>,
    /// Time from when a burst was due until its last message was received, in nanoseconds.
    pub last_ns: Option<Ns>,
    /// 95% interval of `last_ns`, from resampling blocks.
    pub last_interval95: Option<[Ns; 2]>,
    /// Time from the end of a burst's last send call until its last message was received, in
    /// nanoseconds.
    pub drain_ns: Option<Ns>,
    /// Fraction of the bursts that became due only after all messages of the previous burst had
    /// been received.
    pub next_found_empty: Option<Fraction>,
}

impl BurstBlock {
    /// Figures of bursts of `size` messages each. Messages before the index `lead` and incomplete
    /// bursts are left out. `None` if no burst remains.
    ///
    /// `times_ps` contains three times of each message: when it was due, when its send call
    /// returned, and when it was received.
    pub fn of(size: usize, lead: usize, times_ps: [&[u64]; 3]) -> Option<Self> {
        let [due_ps, after_ps, received_ps] = times_ps;
        let starts: Vec<usize> = (0..due_ps.len())
            .step_by(size.max(1))
            .filter(|start| *start >= lead && start + size <= due_ps.len())
            .collect();
        let since = |at: u64, origin: u64| at.saturating_sub(origin) as f64 / 1000.0;
        let of_each = |time: &dyn Fn(usize) -> f64| median(starts.iter().map(|start| time(*start)));
        let last = |start: usize| start + size - 1;
        let found_empty =
            starts.iter().filter(|start| received_ps[**start - 1] <= due_ps[**start]).count();
        Some(BurstBlock {
            bursts: (starts.len() as u64).into(),
            first_ns: rounded_ns(of_each(&|start| since(received_ps[start], due_ps[start]))?),
            last_ns: rounded_ns(of_each(&|start| since(received_ps[last(start)], due_ps[start]))?),
            drain_ns: rounded_ns(of_each(&|start| {
                since(received_ps[last(start)], after_ps[last(start)])
            })?),
            found_empty: (found_empty as u64).into(),
        })
    }
}

impl Burst {
    pub(crate) fn of(blocks: impl Iterator<Item = (u32, BurstBlock)>, seed: u64) -> Option<Self> {
        let blocks: Vec<(u32, BurstBlock)> = blocks.collect();
        blocks.first()?;
        let of_process = Processes::of(blocks.iter().map(|(process, _)| *process));
        let median = |of: fn(&BurstBlock) -> Ns| {
            let values: Vec<f64> = blocks.iter().map(|(_, burst)| of(burst).get()).collect();
            resample::median_with_interval(&values, &of_process, seed)
        };
        let figure = |of| median(of).map(|(figure, _)| rounded_ns(figure));
        let sum =
            |of: fn(&BurstBlock) -> Count| blocks.iter().map(|(_, burst)| of(burst)).sum::<Count>();
        let bursts = sum(|burst| burst.bursts).as_f64();
        Some(Burst {
            first_ns: figure(|burst| burst.first_ns),
            last_ns: figure(|burst| burst.last_ns),
            last_interval95: median(|burst| burst.last_ns)
                .and_then(|(_, interval)| interval)
                .map(|interval| interval.map(rounded_ns)),
            drain_ns: figure(|burst| burst.drain_ns),
            next_found_empty: (bursts > 0.0)
                .then(|| (sum(|burst| burst.found_empty).as_f64() / bursts).min(1.0).into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_counted_one_by_one() {
        // Three bursts of two messages: the first does not count, the third finds the queue empty.
        let due_ps = [0, 0, 100, 100, 200, 200].map(|ns| ns * 1000);
        let after_ps = [1, 2, 101, 102, 201, 202].map(|ns| ns * 1000);
        let received_ps = [60, 120, 180, 200, 260, 320].map(|ns| ns * 1000);
        let block = BurstBlock::of(2, 2, [&due_ps, &after_ps, &received_ps]).unwrap();
        assert_eq!((block.bursts.get(), block.found_empty.get()), (2, 1));
        assert_eq!(block.first_ns, 70.0);
        assert_eq!(block.last_ns, 110.0);
        assert_eq!(block.drain_ns, 108.0);
    }
}
