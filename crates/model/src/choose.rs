//! Chooses the model for an answer, and gives the reason.
//!
//! An exact closed form is preferred; the simulator covers everything else. The fitted curve of
//! [`usl`](crate::usl) is never chosen.
//!
//! | the system | the answer |
//! |---|---|
//! | one thread | [`bounds`]: it never waits |
//! | no hold time | [`bounds`]: there is nothing to wait for |
//! | fixed times, one lock, no hand-off | [`bounds`]: fixed times reach them |
//! | exponential hold, one lock, no hand-off | [`repairman`] |
//! | any hold, exponential think, one lock, no hand-off | [`takacs`](crate::takacs) |
//! | exponential hold, stripes, no hand-off | [`mva`] |
//! | exponential hold and think, one lock, no hand-off, too few cores | [`cores`] |
//! | anything else, or too many measured hold times for Takács | [`simulate`] |
//!
//! Closed forms describe the long run. A finite run starts with all threads at the lock and ends
//! with some of them idle. Such a run is simulated unless it has at least a thousand tasks per
//! thread.

use std::fmt;

use crate::simulate::{self, Report};
use crate::takacs::Takacs;
use crate::{ModelError, Performance, Workload, bounds, cores, mva, repairman};

/// A model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// [`bounds`].
    Bounds,
    /// [`repairman`].
    Repairman,
    /// [`takacs`](crate::takacs).
    Takacs,
    /// [`mva`].
    Mva,
    /// [`cores`].
    Cores,
    /// [`simulate`].
    Simulation,
}

impl Model {
    /// Name of the model in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bounds => "bounds",
            Self::Repairman => "repairman",
            Self::Takacs => "takacs",
            Self::Mva => "mva",
            Self::Cores => "cores",
            Self::Simulation => "simulation",
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A model, and the reason for choosing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The model.
    pub model: Model,
    /// The reason, in one clause.
    pub why: &'static str,
}

/// Options of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of tasks of a finite run; `None` for the long run.
    pub tasks: Option<u64>,
    /// True to simulate even if a closed form is exact.
    pub simulate: bool,
    /// Seed of simulations.
    pub seed: u64,
    /// Factor by which simulations are shorter than usual, and so less exact; normally 1.
    pub shorter: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { tasks: None, simulate: false, seed: 1, shorter: 1 }
    }
}

/// An answer for one number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The model, and the reason for choosing it.
    pub choice: Choice,
    /// The figures; for a simulation, the centres of their confidence intervals.
    pub performance: Performance,
    /// Time for all tasks in seconds, if the number of tasks was given.
    pub total_s: Option<f64>,
    /// Simulated results with their confidence intervals; `None` if a closed form answered.
    pub simulated: Option<Report>,
}

/// The model that answers for `threads` threads of this workload.
///
/// ```
/// use threadtoll_model::choose::{self, Model, Options};
/// use threadtoll_model::{Shape, Workload};
///
/// let mut workload = Workload::new(Shape::exponential(1e3)?, Shape::fixed(9e3)?);
/// assert_eq!(choose::choose(&workload, 8, Options::default()).model, Model::Repairman);
/// workload.stripes = 4;
/// assert_eq!(choose::choose(&workload, 8, Options::default()).model, Model::Mva);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
pub fn choose(workload: &Workload, threads: u32, options: Options) -> Choice {
    let choice = |model, why| Choice { model, why };
    if options.simulate {
        return choice(Model::Simulation, "asked for");
    }
    if options.tasks.is_some_and(|tasks| tasks < u64::from(threads).saturating_mul(LONG_RUN)) {
        return choice(Model::Simulation, "with so few tasks, the start and end of the run matter");
    }
    long_run(workload, threads)
}

/// With this many tasks per thread, the start and end of a run change its figures by at most a
/// thousandth.
const LONG_RUN: u64 = 1000;

/// Maximum number of measured hold times, multiplied by threads, for which Takács' model is used.
/// Its transforms then take about a second.
const MAX_TRANSFORMED: u64 = 20_000_000;

fn long_run(workload: &Workload, threads: u32) -> Choice {
    let choice = |model, why| Choice { model, why };
    let short_of_cores = workload.cores.is_some_and(|cores| cores < threads);
    let free = workload.hand_off.is_free();
    // With free hand-offs, a lock is never idle while a thread waits, so barging is as good as
    // FIFO. A takeover by a spinning thread must be free as well.
    let at_once = match workload.policy {
        simulate::Policy::Fifo | simulate::Policy::Barging => free,
        simulate::Policy::SpinThenPark { takeover_ns, .. } => free && takeover_ns == 0.0,
    };
    let single = workload.stripes == 1;
    let (hold, think) = (&workload.hold, &workload.think);
    if threads == 1 {
        choice(Model::Bounds, "one thread never waits")
    } else if hold.mean_ns() == 0.0 {
        choice(Model::Bounds, "a lock that is never held is never waited for")
    } else if workload.read_share > 0.0 {
        choice(Model::Simulation, "no closed form is exact for readers that share the lock")
    } else if !at_once {
        choice(Model::Simulation, "no closed form is exact for hand-offs that take time")
    } else if short_of_cores {
        if single && hold.is_exponential() && think.is_exponential() {
            choice(Model::Cores, "exact for exponential times and a holder that keeps its core")
        } else {
            choice(Model::Simulation, "no closed form is exact for these times on too few cores")
        }
    } else if single && hold.is_fixed() && think.is_fixed() {
        choice(Model::Bounds, "fixed times reach the bounds")
    } else if hold.is_exponential() {
        if single {
            choice(Model::Repairman, "exact for exponential hold times and any think times")
        } else {
            choice(Model::Mva, "exact for stripes with exponential hold times and any think times")
        }
    } else if single
        && think.is_exponential()
        && hold.values() as u64 * u64::from(threads) > MAX_TRANSFORMED
    {
        choice(
            Model::Simulation,
            "the closed form is too slow for this number of hold times and threads",
        )
    } else if single && think.is_exponential() {
        choice(Model::Takacs, "exact for any hold times and exponential think times")
    } else if single {
        choice(Model::Simulation, "neither hold nor think times are exponential")
    } else {
        choice(
            Model::Simulation,
            "no closed form is exact for stripes without exponential hold times",
        )
    }
}

/// Answers for several numbers of threads, with common parts computed only once.
#[derive(Debug)]
pub struct Answers<'a> {
    workload: &'a Workload,
    options: Options,
    takacs: Option<(u32, Takacs)>,
}

impl<'a> Answers<'a> {
    /// Answers for this workload.
    pub fn new(workload: &'a Workload, options: Options) -> Self {
        Self { workload, options, takacs: None }
    }

    /// The answer for `threads` threads.
    ///
    /// # Errors
    ///
    /// If a figure of the workload is out of range.
    pub fn answer(&mut self, threads: u32) -> Result<Answer, ModelError> {
        crate::error::threads(threads)?;
        crate::error::number("stripes", self.workload.stripes, crate::error::MAX_LOCKS)?;
        if let Some(tasks) = self.options.tasks
            && tasks == 0
        {
            return Err(ModelError::Number { what: "tasks", value: 0, most: u64::MAX });
        }
        // Called for its errors: `knee` validates the limits, whichever model is chosen.
        self.workload.knee()?;
        let choice = choose(self.workload, threads, self.options);
        if choice.model == Model::Simulation {
            return self.simulate(choice, threads);
        }
        let performance = self.closed(choice.model, threads)?;
        let total_s = self.options.tasks.map(|tasks| tasks as f64 / performance.throughput_per_s);
        Ok(Answer { choice, performance, total_s, simulated: None })
    }

    fn closed(&mut self, model: Model, threads: u32) -> Result<Performance, ModelError> {
        let load = self.workload.load()?;
        match model {
            Model::Repairman => repairman::solve(load, threads),
            Model::Mva => mva::striped(load, self.workload.stripes, threads),
            Model::Takacs => {
                let enough = self.takacs.as_ref().is_some_and(|&(most, _)| most >= threads);
                if !enough {
                    // More threads than requested, because the next request is probably for a
                    // larger number.
                    let most = threads.saturating_mul(2).min(crate::MAX_THREADS);
                    let model = Takacs::new(&self.workload.hold, load.think_ns(), most)?;
                    self.takacs = Some((most, model));
                }
                match &self.takacs {
                    Some((_, model)) => model.solve(threads),
                    None => {
                        Takacs::new(&self.workload.hold, load.think_ns(), threads)?.solve(threads)
                    }
                }
            }
            Model::Cores => match self.workload.cores {
                Some(count) => cores::solve(load, count, threads),
                None => repairman::solve(load, threads),
            },
            Model::Bounds | Model::Simulation => {
                let cores = self.workload.cores.unwrap_or(threads).max(1);
                if load.hold_ns() == 0.0 {
                    // The lock is never held. Threads wait only for cores, which does not count as
                    // waiting.
                    let speedup = f64::from(threads.min(cores));
                    return Ok(Performance::new(
                        load,
                        threads,
                        speedup / load.cycle_ns(),
                        0.0,
                        0.0,
                    ));
                }
                bounds::fixed_times(load, threads)
            }
        }
    }

    /// Number of acquisitions that are simulated to answer for `threads`; 0 for a closed form.
    pub fn effort(&self, threads: u32) -> u64 {
        if choose(self.workload, threads, self.options).model != Model::Simulation {
            return 0;
        }
        match few(self.options.tasks, threads) {
            Some(tasks) => tasks.saturating_mul(self.repetitions(tasks.max(1)).into()),
            None => self.acquisitions(threads),
        }
    }

    fn simulate(&self, choice: Choice, threads: u32) -> Result<Answer, ModelError> {
        let system = self.workload.system(threads)?;
        let Options { tasks, seed, .. } = self.options;
        let report = match few(tasks, threads) {
            Some(tasks) => simulate::tasks(&system, tasks, self.repetitions(tasks), seed)?,
            None => simulate::long_run(&system, self.acquisitions(threads), seed)?,
        };
        let per_ns = report.throughput_per_s.value / 1e9;
        let mut performance = Performance::new(
            self.workload.load()?,
            threads,
            per_ns,
            report.queue_mean.value,
            report.queue_on_entry.value,
        );
        performance.wait_ns = report.wait_ns.value;
        let total_s = match report.total_s {
            Some(total) => Some(total.value),
            None => tasks.map(|tasks| tasks as f64 / report.throughput_per_s.value),
        };
        Ok(Answer { choice, performance, total_s, simulated: Some(report) })
    }

    /// Number of repetitions of a finite run: one if nothing in the run is random.
    fn repetitions(&self, tasks: u64) -> u32 {
        let random = !(self.workload.hold.is_fixed() && self.workload.think.is_fixed())
            || self.workload.stripes > 1;
        let usual = if random { (WHOLE_ACQUISITIONS / tasks).clamp(5, 200) as u32 } else { 1 };
        (usual / self.options.shorter.max(1)).max(1)
    }

    fn acquisitions(&self, threads: u32) -> u64 {
        let least = 10 * u64::from(threads).max(100);
        (acquisitions(threads) / u64::from(self.options.shorter.max(1))).max(least)
    }
}

/// Number of tasks of a finite run, if the run is short enough to be simulated as a whole.
fn few(tasks: Option<u64>, threads: u32) -> Option<u64> {
    tasks.filter(|&tasks| tasks <= u64::from(threads).saturating_mul(LONG_RUN).max(MAX_WHOLE))
}

/// A finite run up to this number of tasks is always simulated as a whole.
const MAX_WHOLE: u64 = 1_000_000;

/// Approximate number of tasks in all repetitions of a finite run together.
const WHOLE_ACQUISITIONS: u64 = 200_000;

/// Number of acquisitions in a simulated long run: at least 200,000, and more for many threads.
pub fn acquisitions(threads: u32) -> u64 {
    let n = u64::from(threads);
    (400 * n).clamp(200_000, 2_000_000).max(10 * n)
}
