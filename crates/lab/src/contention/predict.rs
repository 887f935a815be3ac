//! Model predictions for a cell, made before it is measured.

use threadtoll_model::choose::{Answer, Answers, Options};
use threadtoll_model::{HandOff, ModelError, Policy, Shape, Workload};
use threadtoll_record::{Calibrated, Cell, CellPrediction, LockSubject, Placement, Refusal, Work};

use crate::lock::GrantPolicy;

use super::repeated::Part;

/// Calibration of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Inputs from all that was measured.
    inputs: Inputs,
    /// Inputs from each batch of the repeats: their spread is the error of the calibration.
    batches: Vec<Inputs>,
}

impl Calibration {
    /// Evaluates the inputs for all repeats and for each batch.
    ///
    /// `None` if any of them is outside the range that the models accept.
    pub(crate) fn by_part(inputs: impl Fn(Part) -> Option<Inputs>) -> Option<Self> {
        Some(Calibration {
            inputs: inputs(Part::All)?,
            batches: Part::batches().map(inputs).collect::<Option<_>>()?,
        })
    }
}

/// Inputs of the models.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inputs {
    /// The lock's times and policy.
    pub(crate) workload: Workload,
    /// Summary figures for the prediction record.
    figures: Calibrated,
}

impl Inputs {
    fn answer(&self, threads: u32, options: Options) -> Result<Answer, ModelError> {
        Answers::new(&self.workload, options).answer(threads)
    }

    /// A model's speed-up is relative to a single thread that pays for the lock; the measured one
    /// is relative to a thread without it.
    fn speedup(&self, answer: &Answer) -> f64 {
        answer.performance.throughput_per_s * self.figures.alone_ns.get() / 1e9
    }
}

/// Shortest mean hold time that models describe.
const SHORTEST_HOLD_NS: u64 = 1_000;

/// Reason why no model describes the cell.
pub fn refusal(cell: &Cell) -> Option<Refusal> {
    let subject = cell.lock()?;
    if subject.hold_ns < SHORTEST_HOLD_NS {
        Some(Refusal::Below1us)
    } else if subject.work == Work::Spin && subject.threads > cpus(cell) {
        Some(Refusal::OversubscribedSpin)
    } else {
        None
    }
}

/// Number of CPUs that the cell's threads run on.
pub(crate) fn cpus(cell: &Cell) -> u32 {
    if cell.placement == Placement::SameCpu { 1 } else { cell.cpus.len() as u32 }
}

/// Student's t for 95% and one degree of freedom fewer than there are batches.
const STUDENT_95: f64 = 2.306;

/// 95% interval for a figure that is measured as it was predicted, from predictions by batches.
///
/// The error of the whole calibration, and of its simulation, is that of a mean of batches. A cell
/// is measured for about as long as its inputs, on the same machine, so that its figure is off by
/// about as much again.
fn interval95(predicted: f64, batches: &[f64]) -> [f64; 2] {
    let count = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / count;
    let squares: f64 = batches.iter().map(|batch| (batch - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let half_width = STUDENT_95 * std::f64::consts::SQRT_2 * error;
    [(predicted - half_width).max(0.0), predicted + half_width]
}

/// Hand-offs within this factor of the shortest went to a thread that was still spinning.
const SPINNING: f64 = 3.0;
/// Shortest plausible wake-up of a sleeping thread.
const MIN_WAKE_NS: f64 = 1_000.0;
/// Practically infinite, but still a valid time.
const NEVER_NS: f64 = 1e15;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HandoffModel {
    pub(crate) policy: Policy,
    pub(crate) hand_off: HandOff,
    pub(crate) spin_ns: Option<f64>,
    pub(crate) takeover_ns: Option<f64>,
    pub(crate) wake_ns: f64,
}

impl HandoffModel {
    /// Order and sleeping follow from the policy; the spin time is read off the jump in hand-off
    /// times.
    pub(crate) fn of(
        policy: GrantPolicy,
        handoffs: &[(f64, f64)],
    ) -> Result<HandoffModel, ModelError> {
        let shortest = handoffs.iter().map(|(_, took)| *took).fold(f64::INFINITY, f64::min);
        let takeover_ns = if shortest.is_finite() { shortest.max(0.0) } else { 0.0 };
        if policy == GrantPolicy::NeverWaits || handoffs.is_empty() {
            return Ok(HandoffModel {
                policy: Policy::Barging,
                hand_off: HandOff::free(),
                spin_ns: None,
                takeover_ns: None,
                wake_ns: 0.0,
            });
        }
        let typical = {
            let mut all: Vec<f64> = handoffs.iter().map(|(_, took)| took.max(0.0)).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        if policy.spins() {
            return Ok(match policy.in_order() {
                true => HandoffModel {
                    policy: Policy::Fifo,
                    hand_off: HandOff::fixed(typical)?,
                    spin_ns: None,
                    takeover_ns: Some(typical),
                    wake_ns: 0.0,
                },
                false => HandoffModel {
                    policy: Policy::SpinThenPark { spin_ns: NEVER_NS, takeover_ns: typical },
                    hand_off: HandOff::free(),
                    spin_ns: None,
                    takeover_ns: Some(typical),
                    wake_ns: 0.0,
                },
            });
        }
        let curve = |from: f64| -> Result<HandOff, ModelError> {
            let points: Vec<(f64, f64)> = handoffs
                .iter()
                .filter(|(waited, _)| *waited >= from)
                .map(|(waited, took)| (waited - from, took.max(0.0)))
                .collect();
            HandOff::curve(&points)
        };
        let still_spun = |took: f64| {
            takeover_ns < MIN_WAKE_NS && took < (SPINNING * takeover_ns).max(MIN_WAKE_NS)
        };
        let spun = handoffs
            .iter()
            .take_while(|(_, took)| still_spun(*took))
            .last()
            .map(|(waited, _)| *waited);
        let slept = handoffs.iter().find(|(_, took)| !still_spun(*took)).copied();
        let wake_ns = slept.map_or(0.0, |(_, took)| took.max(0.0));
        match (spun, slept) {
            // No overtaking: hand-off time depends on the time waited, asleep or not.
            _ if policy.in_order() => Ok(HandoffModel {
                policy: Policy::Fifo,
                hand_off: curve(0.0)?,
                spin_ns: spun.filter(|_| slept.is_some()),
                takeover_ns: spun.map(|_| takeover_ns),
                wake_ns,
            }),
            (None, _) => Ok(HandoffModel {
                policy: Policy::Barging,
                hand_off: curve(0.0)?,
                spin_ns: None,
                takeover_ns: None,
                wake_ns,
            }),
            // The waiting thread was still spinning after the longest wait.
            (Some(_), None) => Ok(HandoffModel {
                policy: Policy::SpinThenPark { spin_ns: NEVER_NS, takeover_ns },
                hand_off: HandOff::free(),
                spin_ns: None,
                takeover_ns: Some(takeover_ns),
                wake_ns,
            }),
            (Some(spun), Some((asleep, _))) => {
                // It went to sleep between these two waits.
                let spin_ns = (spun.max(1.0) * asleep).sqrt();
                Ok(HandoffModel {
                    policy: Policy::SpinThenPark { spin_ns, takeover_ns },
                    hand_off: curve(spin_ns)?,
                    spin_ns: Some(spin_ns),
                    takeover_ns: Some(takeover_ns),
                    wake_ns,
                })
            }
        }
    }
}

/// `hold` and `think` are without a lock; half the cost of an uncontended acquisition and release
/// (`pair_ns`) is added to each. `alone_ns` is the sum on a single thread.
pub(crate) fn inputs(
    subject: &LockSubject,
    cpus: u32,
    stripes: u32,
    (hold, think): (Shape, Shape),
    alone_ns: f64,
    pair_ns: f64,
    handoff: &HandoffModel,
) -> Result<Inputs, ModelError> {
    let lengthened = |shape: Shape| {
        shape.with_mean(shape.mean_ns() + pair_ns / 2.0).or_else(|_| Shape::fixed(pair_ns / 2.0))
    };
    let (hold, think) = (lengthened(hold)?, lengthened(think)?);
    let figures = Calibrated {
        hold_ns: hold.mean_ns().into(),
        think_ns: think.mean_ns().into(),
        alone_ns: alone_ns.into(),
        handoff_ns: handoff.wake_ns.into(),
        spin_ns: handoff.spin_ns.map(Into::into),
        takeover_ns: handoff.takeover_ns.map(Into::into),
        pair_ns: pair_ns.into(),
    };
    let short_of_cores = subject.work == Work::Spin && subject.threads > cpus;
    let workload = Workload {
        hand_off: handoff.hand_off.clone(),
        policy: handoff.policy,
        read_share: subject.read_share.map_or(0.0, |share| share.value()),
        stripes,
        cores: short_of_cores.then_some(cpus),
        ..Workload::new(hold, think)
    };
    Ok(Inputs { workload, figures })
}

/// The cell that a prediction is for, at one attempt to measure its group.
#[derive(Clone, Debug)]
pub struct CellAttempt<'a> {
    /// Identifier of the run.
    pub run: &'a str,
    /// Index of the group in the plan.
    pub group: usize,
    /// Attempt to measure the group.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// Time of the prediction.
    pub at: &'a str,
}

impl CellAttempt<'_> {
    /// The line of a cell that no model predicts.
    pub fn refuse(&self, why: Refusal, calibration: Option<&Calibration>) -> CellPrediction {
        CellPrediction {
            run: self.run.into(),
            group: self.group,
            attempt: self.attempt,
            cell: self.cell,
            at: self.at.into(),
            refused: Some(why),
            model: None,
            why: None,
            speedup: None,
            speedup_interval95: None,
            wait_share: None,
            queue_mean: None,
            queue_mean_interval95: None,
            queue_on_entry: None,
            total_s: None,
            from: calibration.map(|calibration| calibration.inputs.figures),
        }
    }

    /// Predicts the cell with the model that suits the question (see
    /// [`threadtoll_model::choose`]), from nothing that was measured in the cell itself.
    ///
    /// # Errors
    ///
    /// If a figure is outside the range that the models accept.
    pub fn predict(
        &self,
        subject: &LockSubject,
        calibration: &Calibration,
        seed: u64,
    ) -> Result<CellPrediction, ModelError> {
        let Calibration { inputs, batches } = calibration;
        let options = Options { tasks: subject.tasks, seed, ..Options::default() };
        let answer = inputs.answer(subject.threads, options)?;
        let (performance, speedup) = (answer.performance, inputs.speedup(&answer));
        let mut by_batch = (Vec::new(), Vec::new());
        for (batch, inputs) in (1..).zip(batches) {
            // All batches together simulate as much as the prediction itself, so that their spread
            // is also that of its simulation.
            let shorter = batches.len() as u32;
            let options = Options { seed: seed.wrapping_add(batch), shorter, ..options };
            let answer = inputs.answer(subject.threads, options)?;
            by_batch.0.push(inputs.speedup(&answer));
            by_batch.1.push(answer.performance.queue_mean);
        }
        let interval =
            |predicted: f64, batches: &[f64]| Some(interval95(predicted, batches).map(Into::into));
        Ok(CellPrediction {
            run: self.run.into(),
            group: self.group,
            attempt: self.attempt,
            cell: self.cell,
            at: self.at.into(),
            refused: None,
            model: Some(answer.choice.model.name().into()),
            why: Some(answer.choice.why.into()),
            speedup: Some(speedup.into()),
            speedup_interval95: interval(speedup, &by_batch.0),
            wait_share: Some(performance.wait_share.clamp(0.0, 1.0).into()),
            queue_mean: Some(performance.queue_mean.into()),
            queue_mean_interval95: interval(performance.queue_mean, &by_batch.1),
            queue_on_entry: Some(performance.queue_on_entry.into()),
            total_s: answer.total_s.map(Into::into),
            from: Some(inputs.figures),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_before_sleeping_is_read_off_the_hand_offs() {
        let handoffs =
            [(500.0, 90.0), (1e3, 100.0), (2e3, 110.0), (4e3, 9e3), (1e4, 11e3), (1e5, 20e3)];
        let handoff = HandoffModel::of(GrantPolicy::Barging, &handoffs).unwrap();
        let Policy::SpinThenPark { spin_ns, takeover_ns } = handoff.policy else {
            panic!("{handoff:?}")
        };
        assert!((2e3..4e3).contains(&spin_ns) && takeover_ns == 90.0, "{handoff:?}");
        assert!((handoff.hand_off.after(1e5 - spin_ns) - 20e3).abs() < 1e-6);
        let handoff = HandoffModel::of(GrantPolicy::InOrder, &handoffs).unwrap();
        assert_eq!((handoff.policy, handoff.hand_off.after(1e5)), (Policy::Fifo, 20e3));
    }

    #[test]
    fn locks_that_sleep_at_once_or_never_have_no_spinning_to_find() {
        let at_once = [(500.0, 7e3), (1e4, 9e3)];
        let handoff = HandoffModel::of(GrantPolicy::Barging, &at_once).unwrap();
        assert_eq!((handoff.policy, handoff.wake_ns), (Policy::Barging, 7e3));
        let never = [(500.0, 80.0), (1e4, 90.0), (1e5, 85.0)];
        let handoff = HandoffModel::of(GrantPolicy::InOrderSpinning, &never).unwrap();
        assert_eq!((handoff.policy, handoff.takeover_ns), (Policy::Fifo, Some(85.0)));
        assert!(matches!(
            HandoffModel::of(GrantPolicy::BargingSpinning, &never).unwrap().policy,
            Policy::SpinThenPark { takeover_ns: 85.0, .. }
        ));
        assert!(HandoffModel::of(GrantPolicy::Barging, &[]).unwrap().hand_off.longest_ns() == 0.0);
    }
}
