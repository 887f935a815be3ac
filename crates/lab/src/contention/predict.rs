//! Model predictions for a cell, made before it is measured.

use threadtoll_model::choose::{Answer, Answers, Options};
use threadtoll_model::{HandOff, ModelError, Policy, Shape, Workload};
use threadtoll_record::{
    Calibrated, Cell, CellPrediction, LockSubject, Placement, PlannedCell, Refusal, Work,
};
use threadtoll_stats::{Z95, normal};

use super::policy::GrantPolicy;
use super::repeated::Part;

/// Calibrated inputs of the models for a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    inputs: Inputs,
    /// One for each batch of repeats. Their spread shows the error of the calibration.
    batches: Vec<Inputs>,
}

impl Calibration {
    /// `None` if any of the inputs is outside the range that the models accept.
    pub(crate) fn by_part(inputs: impl Fn(Part) -> Option<Inputs>) -> Option<Self> {
        Some(Calibration {
            inputs: inputs(Part::All)?,
            batches: Part::batches().map(inputs).collect::<Option<_>>()?,
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inputs {
    pub(crate) workload: Workload,
    figures: Calibrated,
    /// Time from the stamp before the acquisition of a free lock to the stamp after.
    free_ns: f64,
}

impl Inputs {
    fn answer(&self, threads: u32, options: Options) -> Result<Answer, ModelError> {
        Answers::new(&self.workload, options).answer(threads)
    }

    /// The model's speed-up is relative to a single thread that pays for the lock. The measured
    /// speed-up is relative to a thread without the lock.
    fn speedup(&self, answer: &Answer) -> f64 {
        answer.performance.throughput_per_s * self.figures.alone_ns.get() / 1e9
    }

    /// In the models, acquiring a free lock takes no time. A measured thread counts as waiting
    /// until it has the lock's cache line, so this time is added.
    fn queue_mean(&self, answer: &Answer) -> f64 {
        answer.performance.queue_mean + answer.performance.throughput_per_s * self.free_ns / 1e9
    }

    /// Standard errors of the speed-up and of the mean queue, measured over this many acquisitions.
    ///
    /// Threads work whenever they do not wait, so the error of the speed-up follows from that of
    /// the mean queue. The speed-up of a pool is computed from the time of all tasks, so its error
    /// follows from that of the throughput.
    fn sampling_errors(&self, answer: &Answer, acquisitions: f64) -> [f64; 2] {
        let Some(report) = &answer.simulated else { return [0.0; 2] };
        let fewer = (report.acquisitions as f64 / acquisitions.max(1.0)).sqrt() / normal(0.005);
        let queue = report.queue_mean.half_width * fewer;
        let cycle_ns = self.figures.hold_ns.get() + self.figures.think_ns.get();
        let speedup = match (report.total_s, cycle_ns > 0.0) {
            (None, true) => queue * self.figures.alone_ns.get() / cycle_ns,
            _ => report.throughput_per_s.half_width * fewer * self.figures.alone_ns.get() / 1e9,
        };
        [speedup, queue]
    }
}

/// Minimum mean hold time for which the models are valid.
const SHORTEST_HOLD_NS: u64 = 1_000;

/// Reason why no model describes the cell; `None` if one does.
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

pub(crate) fn cpus(cell: &Cell) -> u32 {
    if cell.placement == Placement::SameCpu { 1 } else { cell.cpus.len() as u32 }
}

/// Half-width of the 95% prediction interval for a tenth normally distributed value, as a multiple
/// of the winsorised standard deviation of the first nine. Determined from 400,000 random draws.
const ONE_MORE_95: f64 = 3.33;

/// Error of the models themselves, as a share of the predicted speed-up: they ignore caches, timers
/// and ticks. Determined on quiet machines.
const UNMODELLED: f64 = 0.01;

/// 95% interval for the measured value of a predicted figure. It combines the spread between
/// batches, the standard error of the measurement (`error`), and the half-width for effects that no
/// model describes (`unmodelled`).
///
/// The machine's speed drifts from one second to the next. When the cell is measured, the speed has
/// changed again, as it would for one more batch: this is the prediction interval for one more
/// batch. The lowest and the highest batch are replaced by their neighbours (J. W. Tukey and D. H.
/// McLaughlin, *Sankhyā* A 25, 1963). A single batch during which the host took the CPU away must
/// not widen the interval.
pub(super) fn interval95(predicted: f64, batches: &[f64], error: f64, unmodelled: f64) -> [f64; 2] {
    let calibration = ONE_MORE_95 * winsorised_deviation(batches);
    let half_width = calibration.hypot(Z95 * error).hypot(unmodelled);
    [(predicted - half_width).max(0.0), predicted + half_width]
}

fn winsorised_deviation(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let [_, second, .., last_but_one, _] = sorted[..] else { return 0.0 };
    let values = sorted.iter().map(|value| value.clamp(second, last_but_one));
    let mean = values.clone().sum::<f64>() / sorted.len() as f64;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    (squares / (sorted.len() - 1) as f64).sqrt()
}

/// Hand-offs longer than this multiple of the shortest one went to a thread that was asleep.
const SPINNING: f64 = 3.0;
/// Shortest plausible wake-up of a sleeping thread.
const MIN_WAKE_NS: f64 = 1_000.0;
/// Practically infinite, but still a valid time.
const NEVER_NS: f64 = 1e15;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WaitedHandoff {
    pub(crate) waited_ns: f64,
    /// Time from the release until the waiting thread has the lock.
    pub(crate) took_ns: f64,
    /// Time from the release until the releasing thread continues.
    pub(crate) release_ns: f64,
}

impl WaitedHandoff {
    fn took_ns(&self) -> f64 {
        self.took_ns.max(0.0)
    }
}

/// Fits the hand-off time and the cost of waking as functions of the waiting time.
pub(crate) fn hand_off(handoffs: &[WaitedHandoff]) -> Result<HandOff, ModelError> {
    let points = |ns: fn(&WaitedHandoff) -> f64| -> Vec<(f64, f64)> {
        handoffs.iter().map(|handoff| (handoff.waited_ns, ns(handoff).max(0.0))).collect()
    };
    HandOff::curve(&points(|handoff| handoff.took_ns))?
        .with_wake_cost(&points(|handoff| handoff.release_ns))
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HandoffModel {
    pub(crate) policy: Policy,
    pub(crate) hand_off: HandOff,
    pub(crate) spin_ns: Option<f64>,
    pub(crate) takeover_ns: Option<f64>,
    pub(crate) wake_ns: f64,
    /// Time that the releasing thread spends on waking another thread.
    pub(crate) wake_cost_ns: Option<f64>,
}

impl HandoffModel {
    /// Waiters are assumed to spin up to the waiting time at which hand-off times jump.
    pub(crate) fn of(
        policy: GrantPolicy,
        handoffs: &[WaitedHandoff],
    ) -> Result<HandoffModel, ModelError> {
        if policy == GrantPolicy::NeverWaits || handoffs.is_empty() {
            return Ok(HandoffModel::new(Policy::Barging, HandOff::free()));
        }
        let mut times: Vec<f64> = handoffs.iter().map(WaitedHandoff::took_ns).collect();
        times.sort_by(f64::total_cmp);
        let (takeover_ns, typical) = (times[0], times[times.len() / 2]);
        if policy.spins() {
            let model = if policy.in_order() {
                HandoffModel::new(Policy::Fifo, HandOff::fixed(typical)?)
            } else {
                let policy = Policy::SpinThenPark { spin_ns: NEVER_NS, takeover_ns: typical };
                HandoffModel::new(policy, HandOff::free())
            };
            return Ok(HandoffModel { takeover_ns: Some(typical), ..model });
        }
        let still_spun = |handoff: &&WaitedHandoff| {
            takeover_ns < MIN_WAKE_NS
                && handoff.took_ns() < (SPINNING * takeover_ns).max(MIN_WAKE_NS)
        };
        let spun = handoffs.iter().take_while(still_spun).last().map(|handoff| handoff.waited_ns);
        let slept = handoffs.iter().find(|handoff| !still_spun(handoff));
        let curve = |from: f64| {
            let after = handoffs.iter().filter(|handoff| handoff.waited_ns >= from);
            let shifted = |handoff: &WaitedHandoff| WaitedHandoff {
                waited_ns: handoff.waited_ns - from,
                ..*handoff
            };
            hand_off(&after.map(shifted).collect::<Vec<_>>())
        };
        let model = match (spun, slept) {
            // Threads cannot overtake each other, so the hand-off time depends only on how long the
            // thread has waited, spinning or asleep.
            _ if policy.in_order() => HandoffModel {
                spin_ns: spun.filter(|_| slept.is_some()),
                takeover_ns: spun.map(|_| takeover_ns),
                ..HandoffModel::new(Policy::Fifo, curve(0.0)?)
            },
            (None, _) => HandoffModel::new(Policy::Barging, curve(0.0)?),
            // The thread was still spinning after the longest wait that was measured.
            (Some(_), None) => {
                let policy = Policy::SpinThenPark { spin_ns: NEVER_NS, takeover_ns };
                let model = HandoffModel::new(policy, HandOff::free());
                HandoffModel { takeover_ns: Some(takeover_ns), ..model }
            }
            (Some(spun), Some(slept)) => {
                // The thread fell asleep at some time between these two waiting times.
                let spin_ns = (spun.max(1.0) * slept.waited_ns).sqrt();
                let policy = Policy::SpinThenPark { spin_ns, takeover_ns };
                HandoffModel {
                    spin_ns: Some(spin_ns),
                    takeover_ns: Some(takeover_ns),
                    ..HandoffModel::new(policy, curve(spin_ns)?)
                }
            }
        };
        Ok(HandoffModel {
            wake_ns: slept.map_or(0.0, WaitedHandoff::took_ns),
            wake_cost_ns: slept.map(|slept| slept.release_ns.max(0.0)),
            ..model
        })
    }

    fn new(policy: Policy, hand_off: HandOff) -> HandoffModel {
        HandoffModel {
            policy,
            hand_off,
            spin_ns: None,
            takeover_ns: None,
            wake_ns: 0.0,
            wake_cost_ns: None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ThreadTimes {
    pub(crate) hold: Shape,
    pub(crate) think: Shape,
    /// Mean cycle (hold plus think time) of a thread that runs alone.
    pub(crate) alone_ns: f64,
    /// Factor by which threads slow each other down when they compute at the same time.
    pub(crate) slowdown: Option<f64>,
}

/// Half the cost of an uncontended acquisition and release (`pair_ns`) is added to the hold time,
/// and half to the think time.
pub(crate) fn inputs(
    subject: &LockSubject,
    cpus: u32,
    stripes: u32,
    times: ThreadTimes,
    (pair_ns, free_ns): (f64, f64),
    handoff: &HandoffModel,
) -> Result<Inputs, ModelError> {
    let lengthened = |shape: Shape| {
        shape.with_mean(shape.mean_ns() + pair_ns / 2.0).or_else(|_| Shape::fixed(pair_ns / 2.0))
    };
    let (hold, think) = (lengthened(times.hold)?, lengthened(times.think)?);
    let figures = Calibrated {
        hold_ns: hold.mean_ns().into(),
        think_ns: think.mean_ns().into(),
        alone_ns: times.alone_ns.into(),
        handoff_ns: handoff.wake_ns.into(),
        wake_cost_ns: handoff.wake_cost_ns.map(Into::into),
        spin_ns: handoff.spin_ns.map(Into::into),
        takeover_ns: handoff.takeover_ns.map(Into::into),
        pair_ns: pair_ns.into(),
        slowdown: times.slowdown.map(Into::into),
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
    Ok(Inputs { workload, figures, free_ns })
}

/// A cell, in one attempt at measuring its group.
#[derive(Clone, Debug)]
pub struct CellAttempt<'a> {
    /// ID of the run.
    pub run: &'a str,
    /// Index of the group in the plan.
    pub group: usize,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// Time of the prediction.
    pub at: &'a str,
}

impl CellAttempt<'_> {
    /// The line in the results file for a cell that no model predicts.
    pub fn refuse(&self, why: Refusal, calibration: Option<&Calibration>) -> CellPrediction {
        let from = calibration.map(|calibration| calibration.inputs.figures);
        CellPrediction { refused: Some(why), from, ..self.line() }
    }

    pub(super) fn line(&self) -> CellPrediction {
        CellPrediction {
            run: self.run.into(),
            group: self.group,
            attempt: self.attempt,
            cell: self.cell,
            at: self.at.into(),
            ..CellPrediction::default()
        }
    }

    /// Predicts the cell with the model that suits the question (see [`threadtoll_model::choose`]),
    /// without using anything that was measured in the cell itself.
    ///
    /// # Errors
    ///
    /// If a calibrated figure is outside the range that the models accept.
    pub fn predict(
        &self,
        planned: &PlannedCell,
        subject: &LockSubject,
        calibration: &Calibration,
        seed: u64,
    ) -> Result<CellPrediction, ModelError> {
        let Calibration { inputs, batches } = calibration;
        let options = Options { tasks: subject.tasks, seed, ..Options::default() };
        let answer = inputs.answer(subject.threads, options)?;
        let (speedup, queue_mean) = (inputs.speedup(&answer), inputs.queue_mean(&answer));
        let mut by_batch = (Vec::new(), Vec::new());
        for (batch, inputs) in (1..).zip(batches) {
            let shorter = batches.len() as u32;
            let options = Options { seed: seed.wrapping_add(batch), shorter, ..options };
            let answer = inputs.answer(subject.threads, options)?;
            by_batch.0.push(inputs.speedup(&answer));
            by_batch.1.push(inputs.queue_mean(&answer));
        }
        let rounds = f64::from(planned.budget.rounds);
        let acquisitions = match subject.tasks {
            Some(tasks) => rounds * tasks as f64,
            None => {
                let stamped_s = rounds * planned.budget.stamped_ns as f64 / 1e9;
                answer.performance.throughput_per_s * stamped_s
            }
        };
        let [speedup_error, queue_error] = inputs.sampling_errors(&answer, acquisitions);
        // A thread either works or waits, so the mean queue is off by as much as the speed-up.
        let unmodelled = UNMODELLED * speedup;
        let interval = |predicted: f64, batches: &[f64], error: f64| {
            Some(interval95(predicted, batches, error, unmodelled).map(Into::into))
        };
        let wait_share = queue_mean / f64::from(subject.threads);
        Ok(CellPrediction {
            model: Some(answer.choice.model.name().into()),
            why: Some(answer.choice.why.into()),
            speedup: Some(speedup.into()),
            speedup_interval95: interval(speedup, &by_batch.0, speedup_error),
            wait_share: Some(wait_share.clamp(0.0, 1.0).into()),
            queue_mean: Some(queue_mean.into()),
            queue_mean_interval95: interval(queue_mean, &by_batch.1, queue_error),
            queue_on_entry: Some(answer.performance.queue_on_entry.into()),
            total_s: answer.total_s.map(Into::into),
            from: Some(inputs.figures),
            ..self.line()
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn handoffs<const COUNT: usize>(points: [(f64, f64, f64); COUNT]) -> [WaitedHandoff; COUNT] {
        points.map(|(waited_ns, took_ns, release_ns)| WaitedHandoff {
            waited_ns,
            took_ns,
            release_ns,
        })
    }

    #[test]
    fn spinning_before_sleeping_is_read_off_the_hand_offs() {
        let handoffs = handoffs([
            (500.0, 90.0, 20.0),
            (1e3, 100.0, 20.0),
            (2e3, 110.0, 20.0),
            (4e3, 9e3, 5e3),
            (1e4, 11e3, 6e3),
            (1e5, 20e3, 7e3),
        ]);
        let handoff = HandoffModel::of(GrantPolicy::Barging, &handoffs).unwrap();
        let Policy::SpinThenPark { spin_ns, takeover_ns } = handoff.policy else {
            panic!("{handoff:?}")
        };
        assert!((2e3..4e3).contains(&spin_ns) && takeover_ns == 90.0, "{handoff:?}");
        assert!((handoff.hand_off.after(1e5 - spin_ns) - 20e3).abs() < 1e-6);
        assert!((handoff.hand_off.wake_cost(1e5 - spin_ns) - 7e3).abs() < 1e-6);
        assert_eq!(handoff.hand_off.wake_cost(0.0), 5e3, "a sleeping thread is woken at once");
        assert_eq!(handoff.wake_cost_ns, Some(5e3));
        let handoff = HandoffModel::of(GrantPolicy::InOrder, &handoffs).unwrap();
        assert_eq!((handoff.policy, handoff.hand_off.after(1e5)), (Policy::Fifo, 20e3));
        let costs = [500.0, 1e5].map(|waited| handoff.hand_off.wake_cost(waited));
        assert_eq!(costs, [20.0, 7e3]);
    }

    #[test]
    fn locks_that_sleep_at_once_or_never_have_no_spinning_to_find() {
        let at_once = handoffs([(500.0, 7e3, 2e3), (1e4, 9e3, 3e3)]);
        let handoff = HandoffModel::of(GrantPolicy::Barging, &at_once).unwrap();
        assert_eq!((handoff.policy, handoff.wake_ns), (Policy::Barging, 7e3));
        assert_eq!(handoff.wake_cost_ns, Some(2e3));
        let never = handoffs([(500.0, 80.0, 10.0), (1e4, 90.0, 10.0), (1e5, 85.0, 10.0)]);
        let handoff = HandoffModel::of(GrantPolicy::InOrderSpinning, &never).unwrap();
        assert_eq!((handoff.policy, handoff.takeover_ns), (Policy::Fifo, Some(85.0)));
        assert_eq!(handoff.wake_cost_ns, None);
        assert!(matches!(
            HandoffModel::of(GrantPolicy::BargingSpinning, &never).unwrap().policy,
            Policy::SpinThenPark { takeover_ns: 85.0, .. }
        ));
        assert!(HandoffModel::of(GrantPolicy::Barging, &[]).unwrap().hand_off.is_free());
    }

    #[test]
    fn a_single_batch_that_is_off_does_not_widen_an_interval() {
        let calm = [1.50, 1.52, 1.49, 1.51, 1.50, 1.48, 1.51, 1.50, 1.49];
        let mut spoilt = calm;
        spoilt[3] = 0.7;
        let width = |batches: &[f64]| {
            let [low, high] = interval95(1.5, batches, 0.0, 0.0);
            high - low
        };
        assert!(width(&spoilt) < 1.5 * width(&calm), "{} {}", width(&spoilt), width(&calm));
        spoilt[5] = 0.8;
        assert!(width(&spoilt) > 5.0 * width(&calm), "two batches are no accident");
    }

    #[test]
    fn the_interval_of_normal_batches_holds_one_more_in_95_of_100_cases() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(95);
        // The sum of twelve uniform numbers is nearly normal.
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let held = (0..20_000).filter(|_| {
            let batches: Vec<f64> = (0..9).map(|_| 100.0 + normal()).collect();
            let mean = batches.iter().sum::<f64>() / 9.0;
            let [low, high] = interval95(mean, &batches, 0.0, 0.0);
            (low..=high).contains(&(100.0 + normal()))
        });
        let share = held.count() as f64 / 20_000.0;
        assert!((0.942..0.958).contains(&share), "{share}");
        // Errors of the measured figure and of the model add up as variances do.
        let half = 0.5 * Z95;
        for (error, unmodelled) in [(0.5, 0.0), (0.0, half)] {
            let [low, high] = interval95(10.0, &[10.0; 9], error, unmodelled);
            assert!((high - 10.0 - half).abs() < 1e-9 && (10.0 - low - half).abs() < 1e-9);
        }
    }
}
