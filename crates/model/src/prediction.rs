//! Predicts a workload: a row for each number of threads, the knee, and a recommended number of
//! threads.

use crate::choose::{Answer, Answers, Model, Options, choose};
use crate::simulate::Report;
use crate::{ModelError, Workload, amdahl, recommend, recommended_threads};

/// A prediction for several numbers of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Number of threads at which the asymptotes of the speed-up meet; `None` if they never do.
    pub knee: Option<f64>,
    /// Largest number of threads for which the last one still adds at least half a thread's work in
    /// the long run. `None` if that number is beyond [`MAX_THREADS`](crate::MAX_THREADS).
    pub recommended_threads: Option<u32>,
    /// One row for each number of threads, in the order requested.
    pub rows: Vec<Row>,
}

/// The prediction for one number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number of threads.
    pub threads: u32,
    /// The model that answered.
    pub model: Model,
    /// Reason for choosing this model.
    pub why: &'static str,
    /// Throughput relative to one thread that never waits.
    pub speedup: f64,
    /// Tasks per second.
    pub throughput_per_s: f64,
    /// Mean number of waiting threads at all stripes together, without holders.
    pub queue_mean: f64,
    /// Mean number of threads that wait for a lock, as seen by a thread that has just acquired it.
    pub queue_on_entry: f64,
    /// Share of the threads' time spent waiting for the lock, 0 to 1.
    pub wait_share: f64,
    /// Time for all tasks in seconds; `None` if the number of tasks was not given.
    pub total_s: Option<f64>,
    /// Asymptotic bound on the speed-up.
    pub bound: f64,
    /// Speed-up by Amdahl's law: a lower bound, not a prediction.
    pub amdahl: f64,
    /// Simulated results with their confidence intervals; `None` if the row was not simulated.
    pub simulated: Option<Report>,
}

impl Row {
    fn new(workload: &Workload, threads: u32, answer: Answer) -> Result<Self, ModelError> {
        let cores = workload.cores.unwrap_or(threads);
        let Answer { choice, performance, total_s, simulated } = answer;
        Ok(Self {
            threads,
            model: choice.model,
            why: choice.why,
            speedup: performance.speedup,
            throughput_per_s: performance.throughput_per_s,
            queue_mean: performance.queue_mean,
            queue_on_entry: performance.queue_on_entry,
            wait_share: performance.wait_share,
            total_s,
            bound: workload.bound(threads)?,
            amdahl: amdahl::speedup(workload.load()?, threads.min(cores), workload.stripes)?,
            simulated,
        })
    }
}

/// Predicts the performance of a workload with each number of threads.
///
/// ```
/// use threadtoll_model::{Shape, Workload, choose::Options, predict};
///
/// let workload = Workload::new(Shape::fixed(5e6)?, Shape::fixed(95e6)?);
/// let options = Options { tasks: Some(1000), ..Options::default() };
/// let prediction = predict(&workload, &[1, 16, 32], options)?;
/// assert_eq!(prediction.knee, Some(20.0));
/// assert_eq!(prediction.recommended_threads, Some(20));
/// assert!((prediction.rows[1].speedup - 15.8).abs() < 0.05);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If a figure of the workload is out of range.
pub fn predict(
    workload: &Workload,
    threads: &[u32],
    options: Options,
) -> Result<Prediction, ModelError> {
    let mut answers = Answers::new(workload, options);
    // Transforms measured hold times once, for the largest number of threads.
    if let Some(&most) = threads.iter().max()
        && choose(workload, most, options).model == Model::Takacs
    {
        answers.answer(most)?;
    }
    let rows = threads
        .iter()
        .map(|&threads| Row::new(workload, threads, answers.answer(threads)?))
        .collect::<Result<Vec<_>, ModelError>>()?;
    let knee = workload.knee()?;
    Ok(Prediction {
        knee: knee.is_finite().then_some(knee),
        recommended_threads: recommended_threads(workload, options.seed)?,
        rows,
    })
}

/// Maximum number of acquisitions that [`predict()`] simulates for these arguments; 0 if closed
/// forms answer all of it. A core simulates millions per second.
///
/// ```
/// use threadtoll_model::{Shape, Workload, choose::Options, effort};
///
/// let workload = Workload::new(Shape::exponential(5e6)?, Shape::fixed(95e6)?);
/// assert_eq!(effort(&workload, &[1, 16, 32], Options::default())?, 0);
/// assert!(effort(&workload, &[32], Options { tasks: Some(1000), ..Options::default() })? >= 1000);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If hold and think times are both zero, or a limit of the workload is out of range.
pub fn effort(workload: &Workload, threads: &[u32], options: Options) -> Result<u64, ModelError> {
    let answers = Answers::new(workload, options);
    let rows =
        threads.iter().fold(0u64, |all, &threads| all.saturating_add(answers.effort(threads)));
    Ok(rows.saturating_add(recommend::effort(workload, options.seed)?))
}
