//! Predicts speed-ups with other numbers of threads, and the gain from changes, based on samples.
//!
//! Of the `U` users of a lock, on average `held` hold it, `queue` wait for it, and the rest work
//! without it. So the ratio of hold time to think time (time outside the lock) is `held` to
//! `U − held − queue`, whatever the distributions of these times. The models need only this ratio.
//! Hand-off costs are estimated from the time for which threads are being woken while no thread
//! holds the lock. If few hand-offs are seen, a usual length is assumed.
//!
//! # The shape of hold and think times
//!
//! Near the knee of the speed-up curve, the shape of the distributions matters: threads with fixed
//! times fall into step and never wait, while threads with exponential times reach an eighth less
//! throughput. Samples do not show the times themselves, but their effect: at the same ratio,
//! steadier times mean a shorter queue. So shapes, from fixed to bursty times, are weighted by how
//! well they explain the observed queue. A prediction is the weighted mean. Its interval covers the
//! shapes that remain possible.
//!
//! # Intervals
//!
//! Intervals also cover the sampling error, the variance between stretches of the run, and the
//! error of the models themselves ([`MODEL_ERROR`], [`STRIPES_ERROR`]).

use threadtoll_model::takacs::Takacs;
use threadtoll_model::{Load, ModelError, Shape, bounds, mva, repairman};
use threadtoll_stats::interval::Estimate;

use super::samples::Means;

/// Relative error of the models themselves, apart from sampling error and shape.
pub const MODEL_ERROR: f64 = 0.03;

/// Like [`MODEL_ERROR`], for striped locks.
pub const STRIPES_ERROR: f64 = 0.08;

/// Relative difference above which two predictions lead to different advice.
pub const SAME_ADVICE: f64 = 0.05;

/// Think time in the models, in nanoseconds. Its value is arbitrary: the models depend on ratios
/// only.
const THINK_NS: f64 = 1e6;

const MAX_RATIO: f64 = 1e6;

/// Prior mean and standard error of the hand-off time, relative to the hold time. Holds that are
/// long enough to be sampled last at least ten times as long as waking a thread.
const EXPECTED_HAND_OFF: (f64, f64) = (0.03, 0.04);

/// Number of interpolation steps from one distribution to the next.
const STEPS: usize = 10;

/// The users of a lock, and their current load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Present {
    /// Held share, queue and hand-offs.
    pub means: Means,
    /// Number of threads that use the lock.
    pub users: u32,
    /// Demand for CPUs; `None` if CPUs are no limit.
    pub cpu: Option<CpuDemand>,
}

/// Demand of a lock's users for CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuDemand {
    /// Mean number of users on a CPU.
    pub on_cpu: f64,
    /// Number of CPUs that the users may use.
    pub cpus: u32,
}

/// A change to predict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Halve the time for which the lock is held.
    HalveHold,
    /// Move this share of the work under the lock out of the lock.
    MoveOut(f64),
    /// Stripe the lock into this number of locks.
    Stripe(u32),
    /// Use this number of threads.
    Threads(u32),
}

/// Effect of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WhatIf {
    /// The change.
    pub change: Change,
    /// Number of threads that use the lock after the change.
    pub threads: u32,
    /// Throughput after the change, relative to one thread that never waits, before the change.
    pub speedup: Estimate,
    /// Throughput relative to the present.
    pub gain: Estimate,
}

/// Distributions of hold and think times, from fixed to highly variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    /// Fixed hold and think times: threads fall into step.
    Fixed,
    /// Fixed hold, exponential think times.
    FixedHold,
    /// Exponential hold times.
    Exponential,
    /// Hold times with twice the standard deviation of exponential ones.
    Bursty,
}

const FAMILY: [Member; 4] = [Member::Fixed, Member::FixedHold, Member::Exponential, Member::Bursty];

/// Squared coefficient of variation of hold times in [`Member::Bursty`].
const BURSTY: f64 = 4.0;

/// Weight of shapes more variable than exponential, which are rarer in programs.
const BURSTY_WEIGHT: f64 = 0.3;

#[derive(Clone, Copy, Debug)]
struct Ratios {
    /// Hold time divided by think time.
    hold: f64,
    /// Hand-off time divided by think time.
    hand_off: f64,
}

/// A possible current load of one thread.
#[derive(Clone, Copy, Debug)]
struct PresentLoad {
    ratios: Ratios,
    /// Throughput of the users, for each distribution.
    throughput: [f64; FAMILY.len()],
}

/// Solution of a model, in units of the current think time.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// Acquisitions per think time.
    throughput: f64,
    /// Mean number of threads that wait or are being woken.
    queue: f64,
}

impl Member {
    fn variation(self) -> f64 {
        match self {
            Self::Fixed | Self::FixedHold => 0.0,
            Self::Exponential => 1.0,
            Self::Bursty => BURSTY,
        }
    }

    /// Solves the model for `threads` threads on `stripes` locks. The hand-off to a thread that had
    /// to wait also occupies the lock.
    fn solve(
        self,
        ratios: Ratios,
        think: f64,
        threads: u32,
        stripes: u32,
    ) -> Result<Answer, ModelError> {
        let hold_ns = ratios.hold * THINK_NS;
        let think_ns = think * THINK_NS;
        let hand_off_ns = ratios.hand_off * THINK_NS;
        let (mut waits, mut answer) = (0.0, None);
        for _ in 0..if hand_off_ns > 0.0 { 8 } else { 1 } {
            let taken_ns = hold_ns + hand_off_ns * waits;
            let load = Load::new(taken_ns, think_ns)?;
            let performance = if stripes != 1 {
                mva::striped_by_variation(load, stripes, threads, self.variation())?
            } else {
                match self {
                    Self::Fixed => bounds::fixed_times(load, threads)?,
                    Self::Exponential => repairman::solve(load, threads)?,
                    Self::FixedHold => {
                        Takacs::new(&Shape::fixed(taken_ns)?, think_ns, threads)?.solve(threads)?
                    }
                    Self::Bursty => {
                        let shape = Shape::hyperexponential(taken_ns, BURSTY)?;
                        Takacs::new(&shape, think_ns, threads)?.solve(threads)?
                    }
                }
            };
            let per_ns = performance.throughput_per_s / 1e9;
            answer = Some(Answer {
                throughput: per_ns * THINK_NS,
                queue: performance.queue_mean + per_ns * hand_off_ns * waits,
            });
            let found_busy = match self {
                _ if threads == 1 => 0.0,
                // Threads in step all wait, or none of them waits.
                Self::Fixed => f64::from(u8::from(performance.queue_mean > 0.0)),
                _ if stripes > 1 => performance.utilisation / f64::from(stripes),
                _ => repairman::solve(load, threads - 1)?.utilisation,
            };
            waits = (waits + found_busy.min(1.0)) / 2.0;
        }
        answer.ok_or(ModelError::NoTime)
    }
}

/// Predictor for a lock. It weights shapes by how well they explain the users' current load.
#[derive(Clone, Debug)]
pub struct Predictor {
    present: Present,
    /// Held share, queue, and hand-off time (relative to the hold time).
    values: [f64; 3],
    /// Covariance of `values`.
    covariance: [[f64; 3]; 3],
    /// Weights of the shapes at equal steps between the first distribution and the last.
    weights: Vec<f64>,
    /// Loads of one thread: first the load that follows from `values`, then two loads for each
    /// independent error, with `values` moved by that error down and up.
    present_loads: Vec<PresentLoad>,
}

impl Predictor {
    /// Fits the weights to the samples of a lock.
    ///
    /// # Errors
    ///
    /// If the lock has no users, or is never held.
    pub fn new(present: Present) -> Result<Self, ModelError> {
        let Means { values: [held, queue, _], mut covariance, .. } = present.means;
        // The hand-off time has an error of its own.
        covariance[2] = [0.0; 3];
        covariance.iter_mut().for_each(|row| row[2] = 0.0);
        let mut predictor = Self {
            present,
            values: [held, queue, 0.0],
            covariance,
            weights: vec![1.0; (FAMILY.len() - 1) * STEPS + 1],
            present_loads: Vec::new(),
        };
        let (hand_off, error) = predictor.hand_off()?;
        predictor.values[2] = hand_off;
        predictor.covariance[2][2] = error.powi(2);
        predictor.weigh_shapes()?;
        predictor.present_loads = predictor.present_loads()?;
        Ok(predictor)
    }

    fn present_loads(&self) -> Result<Vec<PresentLoad>, ModelError> {
        let load = |values: [f64; 3]| {
            let ratios = self.ratios(values)?;
            let mut throughput = [0.0; FAMILY.len()];
            for (throughput, member) in throughput.iter_mut().zip(FAMILY) {
                *throughput = member.solve(ratios, 1.0, self.present.users, 1)?.throughput;
            }
            Ok(PresentLoad { ratios, throughput })
        };
        let mut loads = vec![load(self.values)?];
        let factor = self.present.means.factor;
        let directions = directions(self.covariance).into_iter();
        for direction in directions.filter(|direction| *direction != [0.0; 3]) {
            for sign in [-factor, factor] {
                let mut values = self.values;
                for (value, step) in values.iter_mut().zip(direction) {
                    *value += sign * step;
                }
                loads.push(load(self.possible(values))?);
            }
        }
        Ok(loads)
    }

    /// Hand-off time relative to the hold time, estimated from the samples and the prior, with its
    /// standard error.
    fn hand_off(&self) -> Result<(f64, f64), ModelError> {
        let (expected, expected_error) = EXPECTED_HAND_OFF;
        let means = self.present.means;
        let [held, queue, waking] = means.values;
        let variance = means.covariance[2][2];
        if self.present.users < 2 || variance <= 0.0 {
            return Ok((expected, expected_error));
        }
        let (mut hand_off, mut error) = (expected, expected_error);
        for _ in 0..8 {
            let ratios = self.ratios([held, queue, hand_off])?;
            let load = Load::new((ratios.hold + ratios.hand_off) * THINK_NS, THINK_NS)?;
            let waits = repairman::solve(load, self.present.users - 1)?.utilisation;
            // Threads in step wait more rarely than threads with random times. The observed queue,
            // divided by the queue of random times, shows how much more rarely.
            let random = Member::FixedHold.solve(ratios, 1.0, self.present.users, 1)?.queue;
            let waits = waits * (queue / random.max(f64::MIN_POSITIVE)).clamp(1e-6, 1.0);
            // Little's law: waking = acquisitions × waits × hand-off; held = acquisitions × hold.
            let (seen, seen_error) = (waking / (held * waits), variance.sqrt() / (held * waits));
            let (precise, expected_precise) =
                (seen_error.powi(-2), expected_error.max(f64::MIN_POSITIVE).powi(-2).min(1e18));
            let next =
                (seen * precise + expected * expected_precise) / (precise + expected_precise);
            hand_off = (hand_off + next) / 2.0;
            error = (precise + expected_precise).powf(-0.5);
        }
        Ok((hand_off, error))
    }

    fn weigh_shapes(&mut self) -> Result<(), ModelError> {
        let ratios = self.ratios(self.values)?;
        let users = self.present.users;
        let mut queues = [0.0; FAMILY.len()];
        for (queue, member) in queues.iter_mut().zip(FAMILY) {
            *queue = member.solve(ratios, 1.0, users, 1)?.queue;
        }
        let queues = self.steps(queues);
        let exponential = queues[2 * STEPS];
        let variance = self.covariance[1][1] + (MODEL_ERROR * exponential).powi(2) + 1e-12;
        let distances: Vec<f64> =
            queues.iter().map(|of| (of - self.values[1]).powi(2) / (2.0 * variance)).collect();
        let nearest = distances.iter().copied().fold(f64::INFINITY, f64::min);
        for (step, (weight, distance)) in self.weights.iter_mut().zip(distances).enumerate() {
            let prior = if step > 2 * STEPS { BURSTY_WEIGHT } else { 1.0 };
            *weight = prior * (nearest - distance).exp();
        }
        let total: f64 = self.weights.iter().sum();
        self.weights.iter_mut().for_each(|weight| *weight /= total);
        Ok(())
    }

    /// Speed-up of `threads` over one thread that never waits.
    ///
    /// # Errors
    ///
    /// If the number of threads is zero, or too large for the models.
    pub fn speedup(&self, threads: u32) -> Result<Estimate, ModelError> {
        let [speedup] = self.predict(MODEL_ERROR, |ratios, member, now| {
            let answer = member.solve(ratios, 1.0, threads, 1)?;
            // The CPUs can do at least as much as they do now.
            let limit = self.cpu_limit().max(now * (1.0 + ratios.hold));
            Ok([(answer.throughput * (1.0 + ratios.hold)).min(limit)])
        })?;
        Ok(speedup.map(|speedup| speedup.min(f64::from(threads))))
    }

    /// Effect of a change on the throughput of the lock's users.
    ///
    /// # Errors
    ///
    /// If the number in the change is zero, or too large for the models.
    pub fn what_if(&self, change: Change) -> Result<WhatIf, ModelError> {
        let users = self.present.users;
        let threads = if let Change::Threads(threads) = change { threads } else { users };
        let error = if let Change::Stripe(_) = change { STRIPES_ERROR } else { MODEL_ERROR };
        let changed = |ratios: Ratios, member: Member| {
            Ok(match change {
                Change::HalveHold => {
                    let halved = Ratios { hold: ratios.hold / 2.0, ..ratios };
                    member.solve(halved, 1.0, users, 1)?
                }
                Change::MoveOut(share) => {
                    let moved = share.clamp(0.0, 1.0) * ratios.hold;
                    let rest = Ratios { hold: ratios.hold - moved, ..ratios };
                    member.solve(rest, 1.0 + moved, users, 1)?
                }
                Change::Stripe(stripes) => member.solve(ratios, 1.0, users, stripes)?,
                Change::Threads(threads) => member.solve(ratios, 1.0, threads, 1)?,
            })
        };
        let [gain, speedup] = self.predict(error, |ratios, member, now| {
            let mut then = changed(ratios, member)?.throughput;
            if !matches!(change, Change::Threads(_)) {
                // An error of approximation must not turn an improvement into a loss.
                then = then.max(now);
            }
            let then = then.min((self.cpu_limit() / (1.0 + ratios.hold)).max(now));
            Ok([then / now, then * (1.0 + ratios.hold)])
        })?;
        Ok(WhatIf { change, threads, speedup, gain })
    }

    /// Derives the ratios by Little's law.
    fn ratios(&self, [held, queue, hand_off]: [f64; 3]) -> Result<Ratios, ModelError> {
        let thinking = (f64::from(self.present.users) - held - queue).max(held / MAX_RATIO);
        let hold = held / thinking;
        if self.present.users == 0 || hold <= 0.0 || !hold.is_finite() {
            return Err(ModelError::NoTime);
        }
        Ok(Ratios { hold, hand_off: hand_off.max(0.0) * hold })
    }

    /// Largest speed-up that the CPUs allow.
    fn cpu_limit(&self) -> f64 {
        let Some(cpu) = self.present.cpu else { return f64::INFINITY };
        let working = f64::from(self.present.users) - self.values[1];
        if cpu.on_cpu <= 0.0 { f64::INFINITY } else { f64::from(cpu.cpus) * working / cpu.on_cpu }
    }

    /// Interpolates a figure, given for each distribution, at all steps between the distributions.
    fn steps(&self, members: [f64; FAMILY.len()]) -> Vec<f64> {
        let between = |step: usize| {
            let (whole, rest) = (step / STEPS, (step % STEPS) as f64 / STEPS as f64);
            let next = members[(whole + 1).min(members.len() - 1)];
            members[whole] + rest * (next - members[whole])
        };
        (0..self.weights.len()).map(between).collect()
    }

    /// Weighted means of figures over shapes, and their intervals. `figures` computes the figures
    /// for a load and a distribution; its last argument is the current throughput with these.
    fn predict<const FIGURES: usize>(
        &self,
        model_error: f64,
        figures: impl Fn(Ratios, Member, f64) -> Result<[f64; FIGURES], ModelError>,
    ) -> Result<[Estimate; FIGURES], ModelError> {
        // For each figure and each load, the values of all distributions.
        let mut solved = [const { Vec::new() }; FIGURES];
        for load in &self.present_loads {
            let mut members = [[0.0; FAMILY.len()]; FIGURES];
            for (index, (member, now)) in FAMILY.into_iter().zip(load.throughput).enumerate() {
                let figures = figures(load.ratios, member, now)?;
                for (members, figure) in members.iter_mut().zip(figures) {
                    members[index] = figure;
                }
            }
            for (solved, members) in solved.iter_mut().zip(members) {
                solved.push(self.steps(members));
            }
        }
        Ok(solved.map(|loads| self.estimate(model_error, &loads)))
    }

    /// Weighted mean of a figure over shapes, and its interval. `loads` contains the figure at all
    /// interpolation steps, for each load.
    fn estimate(&self, model_error: f64, loads: &[Vec<f64>]) -> Estimate {
        let weighted = |steps: &[f64]| -> f64 {
            steps.iter().zip(&self.weights).map(|(value, weight)| value * weight).sum()
        };
        let (steps, ends) = (&loads[0], &loads[1..]);
        let value = weighted(steps);
        let [low_shape, high_shape] = self.quantiles(steps);
        let own = model_error * value;
        let mut below = (value - low_shape).powi(2) + own.powi(2);
        let mut above = (high_shape - value).powi(2) + own.powi(2);
        for ends in ends.chunks_exact(2) {
            let [one, other] = [0, 1].map(|end| weighted(&ends[end]) - value);
            below += one.min(other).min(0.0).powi(2);
            above += one.max(other).max(0.0).powi(2);
        }
        Estimate { value, low: (value - below.sqrt()).max(0.0), high: value + above.sqrt() }
    }

    /// Moves values into the range that is possible for a lock.
    fn possible(&self, [held, queue, hand_off]: [f64; 3]) -> [f64; 3] {
        let held = held.clamp(self.values[0] / 100.0, 1.0);
        let others = (f64::from(self.present.users) - held).max(0.0);
        [held, queue.clamp(0.0, others), hand_off.max(0.0)]
    }

    /// Bounds of the middle 95% of a figure over the weighted shapes.
    fn quantiles(&self, steps: &[f64]) -> [f64; 2] {
        let mut order: Vec<(f64, f64)> =
            steps.iter().copied().zip(self.weights.iter().copied()).collect();
        order.sort_by(|one, other| one.0.total_cmp(&other.0));
        let at = |share: f64| {
            let mut passed = 0.0;
            let found = order.iter().find(|(_, weight)| {
                passed += weight;
                passed >= share
            });
            found.or(order.last()).map_or(0.0, |&(value, _)| value)
        };
        [at(0.025), at(0.975)]
    }
}

/// Returns `true` if two predictions lead to different advice, so that both are shown.
pub fn differ(one: Estimate, other: Estimate) -> bool {
    (one.value - other.value).abs() > SAME_ADVICE * one.value.abs().min(other.value.abs())
}

/// Columns of the Cholesky factor: independent directions, each with a length of one standard
/// error.
fn directions(covariance: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let mut factor = [[0.0f64; 3]; 3];
    for i in 0..3 {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
            let rest = covariance[i][j] - known;
            factor[i][j] = if i == j {
                rest.max(0.0).sqrt()
            } else if factor[j][j] > 0.0 {
                rest / factor[j][j]
            } else {
                0.0
            };
        }
    }
    std::array::from_fn(|column| std::array::from_fn(|row| factor[row][column]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use threadtoll_model::{HandOff, simulate};

    use super::*;
    use crate::sample::LockSample;
    use crate::samples::LockSamples;
    use crate::simulated::{Program, Times, at};
    use threadtoll_stats::Z95;

    fn profiled(program: Program, seconds: f64, seed: u64) -> Present {
        let run = program.run(seconds, seed);
        let mut samples = LockSamples::default();
        for time in run.instants(1000.0, seed) {
            let waiting = (0..program.threads).filter(|&id| run.waiting(id, time)).count();
            let waking = at(&run.hand_offs, time).is_some();
            let sample = LockSample {
                held: Some(at(&run.holds, time).is_some()),
                queue: Some(waiting as f64),
                waking: Some(f64::from(u8::from(waking))),
                waiter: 1.0,
                time: 1.0,
                late: false,
            };
            samples.add(time as u64, sample, 1);
        }
        Present { means: samples.means().unwrap(), users: program.threads, cpu: None }
    }

    /// Long-run throughput of a program whose lock is split into `stripes` locks.
    fn throughput(program: Program, stripes: u32) -> f64 {
        let shape = |times: Times, mean: f64| match times {
            Times::Fixed => Shape::fixed(mean * 1e9).unwrap(),
            Times::Jittered(share) => {
                let (low, high) = (mean * (1.0 - share) * 1e9, mean * (1.0 + share) * 1e9);
                Shape::uniform(low, high).unwrap()
            }
            Times::Exponential => Shape::exponential(mean * 1e9).unwrap(),
        };
        let system = simulate::System {
            threads: program.threads,
            think: shape(program.think_times, program.think),
            locks: vec![simulate::Locks {
                count: stripes,
                hand_off: HandOff::fixed(program.hand_off * 1e9).unwrap(),
                ..simulate::Locks::one(shape(program.hold_times, program.hold))
            }],
            cores: None,
        };
        simulate::long_run(&system, 200_000, 5).unwrap().throughput_per_s.value
    }

    const SHAPES: [(Times, Times); 6] = [
        (Times::Fixed, Times::Fixed),
        (Times::Jittered(0.03), Times::Jittered(0.03)),
        (Times::Jittered(0.5), Times::Jittered(0.5)),
        (Times::Fixed, Times::Exponential),
        (Times::Exponential, Times::Fixed),
        (Times::Exponential, Times::Exponential),
    ];

    /// Predicts 8 and 32 threads from profiles of three. Returns the number of predictions, of
    /// those whose interval contains the real speed-up, and of those that are off by more than a
    /// tenth.
    fn predicted() -> (u32, u32, u32) {
        let (mut all, mut inside, mut far) = (0, 0, 0);
        for (hold, think, hand_off) in [
            (5e-3, 45e-3, 0.0),
            (2e-3, 20e-3, 0.05e-3),
            (1e-3, 4e-3, 0.05e-3),
            (0.3e-3, 3e-3, 0.01e-3),
        ] {
            for (hold_times, think_times) in SHAPES {
                let three = Program { threads: 3, hold, think, hold_times, think_times, hand_off };
                for threads in [8, 32] {
                    let real = throughput(Program { threads, ..three }, 1) * (hold + think);
                    for seed in 0..6 {
                        let present = profiled(three, 10.0, seed);
                        let speedup = Predictor::new(present).unwrap().speedup(threads).unwrap();
                        all += 1;
                        inside += u32::from(speedup.holds(real));
                        far += u32::from((speedup.value / real - 1.0).abs() > 0.1);
                    }
                }
            }
        }
        (all, inside, far)
    }

    #[test]
    fn eight_and_thirty_two_threads_are_predicted_from_three() {
        let (all, inside, far) = predicted();
        assert!(inside * 100 >= all * 92, "{inside} of {all} inside");
        assert!(far * 100 <= all * 3, "{far} of {all} far off");
    }

    #[test]
    fn effects_of_changes_are_predicted() {
        let (mut all, mut inside) = (0, 0);
        for (threads, hold, think, hand_off) in
            [(8, 2e-3, 8e-3, 0.04e-3), (16, 2e-3, 40e-3, 0.04e-3), (12, 5e-3, 20e-3, 0.0)]
        {
            for (hold_times, think_times) in SHAPES {
                let program = Program { threads, hold, think, hold_times, think_times, hand_off };
                let now = throughput(program, 1);
                let half = Program { hold: hold / 2.0, ..program };
                let changes = [
                    (Change::HalveHold, throughput(half, 1)),
                    (
                        Change::MoveOut(0.5),
                        throughput(Program { think: think + hold / 2.0, ..half }, 1),
                    ),
                    (Change::Stripe(4), throughput(program, 4)),
                    (Change::Threads(4), throughput(Program { threads: 4, ..program }, 1)),
                ];
                for seed in 0..5 {
                    let predictor = Predictor::new(profiled(program, 10.0, seed)).unwrap();
                    for (change, then) in changes {
                        let what_if = predictor.what_if(change).unwrap();
                        all += 1;
                        inside += u32::from(what_if.gain.holds(then / now));
                    }
                }
            }
        }
        assert!(inside * 100 >= all * 92, "{inside} of {all}");
    }

    #[test]
    fn cpus_limit_threads_that_compute() {
        let program = Program {
            threads: 3,
            hold: 1e-3,
            think: 50e-3,
            hold_times: Times::Exponential,
            think_times: Times::Exponential,
            hand_off: 0.0,
        };
        let cpu = Some(CpuDemand { on_cpu: 3.0, cpus: 4 });
        let present = Present { cpu, ..profiled(program, 10.0, 1) };
        let predictor = Predictor::new(present).unwrap();
        assert!((3.9..=4.0).contains(&predictor.speedup(16).unwrap().value));
        let sixteen = predictor.what_if(Change::Threads(16)).unwrap();
        assert!((1.3..1.4).contains(&sixteen.gain.value), "{sixteen:?}");
    }

    #[test]
    fn a_lock_without_users_or_holds_has_no_prediction() {
        let means = Means { values: [0.5, 0.0, 0.0], covariance: [[0.0; 3]; 3], factor: Z95 };
        let present = Present { means, users: 0, cpu: None };
        assert!(Predictor::new(present).is_err());
        let never = Means { values: [0.0; 3], ..means };
        assert!(Predictor::new(Present { means: never, users: 2, ..present }).is_err());
        let predictor = Predictor::new(Present { users: 1, ..present }).unwrap();
        assert!(predictor.speedup(0).is_err());
        assert!(predictor.what_if(Change::Stripe(0)).is_err());
    }

    proptest! {
        #[test]
        fn predictions_are_ordered_and_finite(
            held in 0.0001..=1.0f64,
            queue in 0.0..1.0f64,
            waking in 0.0..0.5f64,
            errors in prop::array::uniform3(0.0..0.1f64),
            users in 1..200u32,
            threads in 1..300u32,
        ) {
            let queue = queue * (f64::from(users) - held);
            let mut covariance = [[0.0; 3]; 3];
            for (i, error) in errors.into_iter().enumerate() {
                covariance[i][i] = error * error;
            }
            let means = Means { values: [held, queue, waking], covariance, factor: 2.3 };
            let present = Present { means, users, cpu: None };
            let predictor = Predictor::new(present).unwrap();
            let speedup = predictor.speedup(threads).unwrap();
            let most = f64::from(threads) * 1.000001;
            prop_assert!(0.0 <= speedup.low && speedup.low <= speedup.value, "{speedup:?}");
            prop_assert!(speedup.value <= speedup.high && speedup.high <= most, "{speedup:?}");
            for change in [
                Change::HalveHold,
                Change::MoveOut(0.9),
                Change::MoveOut(1.0),
                Change::Stripe(4),
                Change::Threads(threads),
            ] {
                let gain = predictor.what_if(change).unwrap().gain;
                prop_assert!(gain.low <= gain.value && gain.value <= gain.high, "{gain:?}");
                prop_assert!(gain.low >= 0.0 && gain.high.is_finite(), "{change:?} {gain:?}");
            }
        }
    }
}
