use std::fmt;

use crate::choose::{Answers, Model, Options};
use crate::error::{MAX_LOCKS, number};
use crate::{ModelError, Shape, Workload};

/// A change to a lock or to the work under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Halve the hold time: the work is done twice as fast.
    HalveHold,
    /// Move half of the work out of the lock.
    MoveHalfOut,
    /// Stripe the lock into this number of locks; each acquisition takes one at random.
    Stripe(u32),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HalveHold => f.pad("hold/2"),
            Self::MoveHalfOut => f.pad("move-out/2"),
            Self::Stripe(locks) => f.pad(&format!("stripe/{locks}")),
        }
    }
}

/// Effect of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WhatIf {
    /// The change.
    pub change: Change,
    /// The model that answered.
    pub model: Model,
    /// Tasks per second with the change.
    pub throughput_per_s: f64,
    /// Throughput with the change, relative to one thread that never waits *without* the change.
    pub speedup: f64,
    /// Throughput with the change, relative to the same number of threads without the change.
    pub gain: f64,
}

/// The effect of each change on `threads` threads in the long run.
///
/// Shapes are scaled to their new means; a lock that is already striped is striped further.
///
/// ```
/// use threadtoll_model::{Change, Shape, Workload, choose::Options, what_if};
///
/// let workload = Workload::new(Shape::exponential(100.0)?, Shape::exponential(900.0)?);
/// let answer = what_if(&workload, 16, &[Change::HalveHold], Options::default())?[0];
/// assert!(answer.gain > 1.5);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If a figure of the workload is out of range.
pub fn what_if(
    workload: &Workload,
    threads: u32,
    changes: &[Change],
    options: Options,
) -> Result<Vec<WhatIf>, ModelError> {
    let options = Options { tasks: None, ..options };
    let load = workload.load()?;
    let now = Answers::new(workload, options).answer(threads)?.performance.throughput_per_s;
    changes
        .iter()
        .map(|&change| {
            let half = load.hold_ns() / 2.0;
            let mut changed = workload.clone();
            match change {
                Change::HalveHold => changed.hold = workload.hold.with_mean(half)?,
                Change::MoveHalfOut => {
                    changed.hold = workload.hold.with_mean(half)?;
                    changed.think = lengthened(workload, half)?;
                }
                Change::Stripe(locks) => {
                    number("stripes", locks, MAX_LOCKS)?;
                    changed.stripes = workload.stripes.saturating_mul(locks);
                }
            }
            let answer = Answers::new(&changed, options).answer(threads)?;
            let per_s = answer.performance.throughput_per_s;
            Ok(WhatIf {
                change,
                model: answer.choice.model,
                throughput_per_s: per_s,
                speedup: per_s / 1e9 * load.cycle_ns(),
                gain: per_s / now,
            })
        })
        .collect()
}

/// Think times, scaled to a mean that is `more_ns` longer. If think times are zero, hold times
/// scaled to the mean `more_ns`.
fn lengthened(workload: &Workload, more_ns: f64) -> Result<Shape, ModelError> {
    let think = &workload.think;
    if think.mean_ns() == 0.0 {
        return workload.hold.with_mean(more_ns);
    }
    think.with_mean(think.mean_ns() + more_ns)
}
