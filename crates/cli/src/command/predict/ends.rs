//! Intervals of a prediction whose times have intervals: the least and the largest figure of the
//! predictions with the times themselves and with the times at both ends of their intervals.

use threadtoll_model::choose::Options;
use threadtoll_model::simulate::{Estimate, Report};
use threadtoll_model::{Change, ModelError, Prediction, Row, WhatIf, Workload, predict, what_if};

/// Predictions with the times at both ends of their intervals.
#[derive(Debug)]
pub(super) struct Ends {
    predictions: [Prediction; 2],
    what_if: [Vec<WhatIf>; 2],
}

impl Ends {
    /// The effects of changes are those for the largest number of threads.
    pub(super) fn new(
        [least, most]: &[Workload; 2],
        threads: &[u32],
        changes: &[Change],
        options: Options,
    ) -> Result<Self, ModelError> {
        let largest = threads.iter().copied().max().unwrap_or(1);
        let what_if = |workload| what_if(workload, largest, changes, options);
        Ok(Self {
            predictions: [predict(least, threads, options)?, predict(most, threads, options)?],
            what_if: [what_if(least)?, what_if(most)?],
        })
    }

    pub(super) fn knee(&self) -> Option<[f64; 2]> {
        let [least, most] = &self.predictions;
        Some(sorted([least.knee?, most.knee?]))
    }

    pub(super) fn recommended_threads(&self) -> Option<[u32; 2]> {
        let [least, most] = &self.predictions;
        let (one, other) = (least.recommended_threads?, most.recommended_threads?);
        Some([one.min(other), one.max(other)])
    }

    /// Interval of the speed-up in row `nth`, which is `row` with the times themselves.
    pub(super) fn speedup(&self, nth: usize, row: &Row) -> [f64; 2] {
        self.of_rows(nth, row, |row| row.speedup, |report| report.speedup)
    }

    pub(super) fn queue_mean(&self, nth: usize, row: &Row) -> [f64; 2] {
        self.of_rows(nth, row, |row| row.queue_mean, |report| report.queue_mean)
    }

    pub(super) fn gain(&self, nth: usize, change: &WhatIf) -> [f64; 2] {
        let ends = self.what_if.iter().filter_map(|changes| changes.get(nth));
        widest(ends.chain([change]).map(|change| [change.gain; 2]))
    }

    fn of_rows(
        &self,
        nth: usize,
        row: &Row,
        figure: fn(&Row) -> f64,
        simulated: fn(&Report) -> Estimate,
    ) -> [f64; 2] {
        let ends = self.predictions.iter().filter_map(|prediction| prediction.rows.get(nth));
        widest(ends.chain([row]).map(|row| match &row.simulated {
            Some(report) => {
                let Estimate { value, half_width } = simulated(report);
                [value - half_width, value + half_width]
            }
            None => [figure(row); 2],
        }))
    }
}

fn widest(intervals: impl Iterator<Item = [f64; 2]>) -> [f64; 2] {
    intervals.fold([f64::INFINITY, f64::NEG_INFINITY], |all, one| {
        [all[0].min(one[0]), all[1].max(one[1])]
    })
}

fn sorted([one, other]: [f64; 2]) -> [f64; 2] {
    [one.min(other), one.max(other)]
}
