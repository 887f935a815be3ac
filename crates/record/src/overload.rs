use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::duration;
use crate::{Count, Fraction, Histogram, Lateness, Ns, PerSecond, Ratio, Scale};

/// Maximum number of slices of a block for which files have a mean queue.
const MAX_SLICES: usize = 1000;

/// Load of a lock at which callers arrive from outside, at random times. For a while, more arrive
/// than it can serve.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Overload {
    /// Number of callers that arrive during a hold time, in the overload: the rate of arrivals as a
    /// multiple of the lock's capacity.
    pub arrivals: Scale,
    /// Number of callers that may wait; any further one is refused. Null without a limit.
    pub bound: Option<u32>,
    /// Time from its arrival in which a caller must get the lock, in nanoseconds.
    pub deadline_ns: u64,
    /// True if callers give up at their deadline.
    pub gives_up: bool,
    /// True if the lock itself refuses callers beyond the bound; otherwise, they are counted in
    /// front of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_lock: bool,
}

impl Overload {
    pub(crate) fn validate(&self) -> Result<(), String> {
        if !(1..=Count::MAX.get()).contains(&self.deadline_ns) {
            return Err(format!("a deadline of {} ns is out of range", self.deadline_ns));
        }
        if self.bound.is_some() && self.gives_up {
            return Err("callers may be refused or give up, but not both".into());
        }
        Ok(())
    }

    pub(crate) fn label(&self) -> String {
        let deadline = duration(self.deadline_ns);
        let rule = match self.bound {
            Some(bound) => format!("bound {bound}, deadline {deadline}"),
            None if self.gives_up => format!("gives up after {deadline}"),
            None => format!("no bound, deadline {deadline}"),
        };
        format!(", arrivals {} × capacity, {rule}", self.arrivals.value())
    }
}

/// Figures of a block in which a lock was overloaded. Unless stated otherwise, callers are those
/// who arrived during the overload. The block's values are the times from the arrival of a caller
/// until it had the lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverloadBlock {
    /// Number of callers.
    pub arrived: Count,
    /// Number of callers who had the lock before their deadline.
    pub in_time: Count,
    /// Number of callers who had the lock only after their deadline.
    pub late: Count,
    /// Number of callers who were refused.
    pub refused: Count,
    /// Number of callers who gave up.
    pub gave_up: Count,
    /// Number of callers for whom no thread was free when they arrived, so that they waited in
    /// front of the lock.
    pub in_front: Count,
    /// Number of waiting callers, averaged over the overload.
    pub queue_mean: Ratio,
    /// Largest number of callers who waited at once, in the whole block.
    pub queue_max: u32,
    /// Time from the end of the overload until nobody waited, in nanoseconds; null if somebody
    /// waited until the end of the block.
    pub recovery_ns: Option<Ns>,
    /// Mean hold time of all callers, in nanoseconds.
    pub hold_ns: Ns,
    /// Begin and end of the overload, in nanoseconds since the block began.
    pub overload_ns: [Count; 2],
    /// Length of the block, in nanoseconds.
    pub length_ns: Count,
    /// Number of waiting callers, averaged over each of some equal slices of the block.
    pub queue: Vec<Ratio>,
    /// Delay with which sleeping threads noticed that their callers had arrived.
    pub lateness: Histogram,
}

impl OverloadBlock {
    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        let fates: Count = [self.in_time, self.late, self.refused, self.gave_up].into_iter().sum();
        if fates != self.arrived || self.in_front > self.arrived {
            return Err("the callers of the overload do not add up");
        }
        if !(1..=MAX_SLICES).contains(&self.queue.len()) {
            return Err("the overload has no queue, or too many slices of it");
        }
        let [from, until] = self.overload_ns;
        if from >= until || until > self.length_ns {
            return Err("the overload does not lie within its block");
        }
        Ok(())
    }
}

/// Figures of a cell with an overloaded lock. Unless stated otherwise, callers are those who
/// arrived during the overload, and shares are of these callers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverloadFigures {
    /// Number of callers in all blocks.
    pub arrived: Count,
    /// Number of callers per second.
    pub arrived_per_s: PerSecond,
    /// Share of the callers who had the lock before their deadline.
    pub in_time_share: Fraction,
    /// 95% interval of `in_time_share`, from resampling blocks.
    pub in_time_interval95: Option<[Fraction; 2]>,
    /// Share of the callers who had the lock only after their deadline.
    pub late_share: Fraction,
    /// Share of the callers who were refused.
    pub refused_share: Fraction,
    /// Share of the callers who gave up.
    pub gave_up_share: Fraction,
    /// Share of the work that was wasted: callers who were late, of all who had the lock. Null if
    /// nobody had it.
    pub wasted_share: Option<Fraction>,
    /// Share of the callers for whom no thread was free when they arrived.
    pub in_front_share: Fraction,
    /// Number of waiting callers, averaged over the overload.
    pub queue_mean: Ratio,
    /// 95% interval of `queue_mean`, from resampling blocks.
    pub queue_mean_interval95: Option<[Ratio; 2]>,
    /// Largest number of callers who waited at once, in the whole block.
    pub queue_max: u32,
    /// Time from the end of the overload until nobody waited, in nanoseconds, median over blocks;
    /// null if somebody waited until the end of most blocks.
    pub recovery_ns: Option<Ns>,
    /// 95% interval of `recovery_ns`, from resampling blocks.
    pub recovery_interval95: Option<[Ns; 2]>,
    /// Mean hold time of all callers, in nanoseconds.
    pub hold_ns: Ns,
    /// Begin and end of the overload, in nanoseconds since the block began.
    pub overload_ns: [Count; 2],
    /// Length of a block, in nanoseconds.
    pub length_ns: Count,
    /// Number of waiting callers, averaged over each of some equal slices of the blocks.
    pub queue: Vec<Ratio>,
    /// Delay with which sleeping threads noticed that their callers had arrived.
    pub lateness: Lateness,
}

impl OverloadFigures {
    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        let [from, until] = self.overload_ns;
        if from >= until || until > self.length_ns || self.queue.len() > MAX_SLICES {
            return Err("the record's overload does not lie within its blocks");
        }
        Ok(())
    }

    /// Number of callers per second who had the lock before their deadline, and its interval.
    pub fn in_time_per_s(&self) -> (f64, Option<[f64; 2]>) {
        let per_s = |share: Fraction| share.get() * self.arrived_per_s.get();
        (per_s(self.in_time_share), self.in_time_interval95.map(|ends| ends.map(per_s)))
    }
}

/// Prediction for a cell with an overloaded lock, before it is measured, for the very arrivals of
/// its blocks. Shares are of the callers who arrive during the overload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedOverload {
    /// Share of the callers who get the lock before their deadline.
    pub in_time_share: Fraction,
    /// Interval that should contain the measured share with 95% probability.
    pub in_time_interval95: [Fraction; 2],
    /// Share of the callers who get the lock only after their deadline.
    pub late_share: Fraction,
    /// Share of the callers who are refused.
    pub refused_share: Fraction,
    /// Share of the callers who give up.
    pub gave_up_share: Fraction,
    /// Time from the end of the overload until nobody waits, in nanoseconds; null if somebody waits
    /// until the end of most blocks.
    pub recovery_ns: Option<Ns>,
    /// Interval that should contain the measured `recovery_ns` with 95% probability.
    pub recovery_interval95: Option<[Ns; 2]>,
    /// Number of waiting callers, averaged over each of some equal slices of the blocks.
    pub queue: Vec<Ratio>,
    /// Inputs of the simulation.
    pub from: CalibratedOverload,
}

/// Inputs of the simulation of an overloaded lock, measured before the group's predictions are
/// made, and separately from the predicted cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedOverload {
    /// Mean hold time, in nanoseconds.
    pub hold_ns: Ns,
    /// Time from a release until a waiting thread has the lock, in nanoseconds, after a wait of one
    /// hold time.
    pub handoff_ns: Ns,
    /// Share of the releases after which a thread that asks at once gets the lock before those that
    /// wait: 0 if the lock serves in order.
    pub overtaken_share: Fraction,
    /// Delay with which a sleeping thread notices that its caller has arrived, in nanoseconds.
    pub late_ns: Ns,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Overload = Overload {
        arrivals: Scale::ONE,
        bound: None,
        deadline_ns: 50_000_000,
        gives_up: false,
        by_lock: false,
    };

    #[test]
    fn labels_tell_the_rules_apart() {
        let bounded = Overload { bound: Some(8), ..LOAD };
        let impatient = Overload { gives_up: true, ..LOAD };
        assert_eq!(LOAD.label(), ", arrivals 1 × capacity, no bound, deadline 50ms");
        assert_eq!(bounded.label(), ", arrivals 1 × capacity, bound 8, deadline 50ms");
        assert_eq!(impatient.label(), ", arrivals 1 × capacity, gives up after 50ms");
        assert!([LOAD, bounded, impatient].iter().all(|load| load.validate().is_ok()));
    }

    #[test]
    fn rules_that_exclude_each_other_are_refused() {
        assert!(Overload { bound: Some(8), gives_up: true, ..LOAD }.validate().is_err());
        assert!(Overload { deadline_ns: 0, ..LOAD }.validate().is_err());
        assert!(Overload { deadline_ns: u64::MAX, ..LOAD }.validate().is_err());
    }

    #[test]
    fn blocks_whose_callers_do_not_add_up_are_refused() {
        let block = OverloadBlock {
            arrived: 10.into(),
            in_time: 4.into(),
            late: 3.into(),
            refused: 2.into(),
            gave_up: 1.into(),
            in_front: 5.into(),
            queue_mean: 1.5.into(),
            queue_max: 3,
            recovery_ns: None,
            hold_ns: 7.0.into(),
            overload_ns: [10.into(), 20.into()],
            length_ns: 30.into(),
            queue: vec![1.0.into(); 3],
            lateness: Histogram::new(),
        };
        assert_eq!(block.validate(), Ok(()));
        let spoilt = |change: &dyn Fn(&mut OverloadBlock)| {
            let mut block = block.clone();
            change(&mut block);
            block.validate().is_err()
        };
        assert!(spoilt(&|block| block.late = 4.into()));
        assert!(spoilt(&|block| block.in_front = 11.into()));
        assert!(spoilt(&|block| block.queue.clear()));
        assert!(spoilt(&|block| block.queue = vec![0.0.into(); 1001]));
        assert!(spoilt(&|block| block.overload_ns = [20.into(), 20.into()]));
        assert!(spoilt(&|block| block.length_ns = 19.into()));
    }
}
