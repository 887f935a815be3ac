mod distribution;
mod durations;
mod ends;
mod fit;
mod from;
mod input;
mod pool;
mod records;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use threadtoll_machine::allowed_cpus;
use threadtoll_model::choose::Options;
use threadtoll_model::simulate::Estimate;
use threadtoll_model::{
    Change, HandOff, MAX_THREADS, ModelError, Policy, Row, WhatIf, Workload, effort, predict,
    recommended_threads, what_if,
};
use threadtoll_record::{
    Document, PoolPrediction, PredictedChange, PredictedPolicy, PredictedRow, Prediction,
};
use threadtoll_report::{html, text};

use crate::console::{self, StdStream};
use crate::entry::{Command, CommonArgs};
use crate::failure::Failure;
use crate::page;
use crate::parse::{choice, count, numbers_of_threads, optional};

use distribution::{Distribution, mean_ns};
use ends::Ends;
use from::{Taken, Times};
use pool::{PoolArgs, Source};

const AFTER_HELP: &str = "\
A FILE given as a shape holds one duration per line (250ns, 2.5us, 5ms, 2s; # starts a comment), \
or results of threadtoll. Of results, FILE#N uses the times of record N; FILE is enough if there \
is only one record, apart from reference measurements. The times are scaled to the mean given by \
--hold or --think; without that option, they keep their own mean.\n\n\
Exact closed forms are used where they exist, and simulation elsewhere. Example: \
threadtoll predict --hold 5ms --think 95ms --hold-shape fixed --threads 1..32 --tasks 1000\n\n\
--arrivals predicts how long callers wait for a server of a pool, and how many are turned away. \
Example: threadtoll predict --arrivals 20/s --hold 300ms --servers 6..24 --queue 10\n\n\
--fit reads lines of THREADS THROUGHPUT, such as 8 520.5, in any unit (# starts a comment), and \
fits the universal scalability law to them. The curve describes the measurements, not \
their causes; --threads adds rows, up to twice the largest number of threads measured. With a \
third column, such as 8 520.5 15ms, lines also have a latency. If the number of threads is not \
known, write - instead: it is then throughput (per second) × latency, by Little's law.\n\n\
--from takes the ratio of hold to think times from a profile, which has no durations, and the \
distribution of which the queue is closest to that of the profile; or both times, their \
distribution, CPUs and stripes from results of threadtoll contention. With --arrivals, it takes hold \
times from such results, and with --arrivals measured the rate of acquisitions. From a profile, it takes \
the mean hold time as held share / RATE, so RATE must be that of the profiled lock. Other options \
override what the file says. The intervals of the file are carried into the prediction.";

/// Options for predictions. They cannot be combined with `--fit`.
const WORKLOAD: [&str; 11] = [
    "hold",
    "think",
    "hold_shape",
    "think_shape",
    "handoff",
    "policy",
    "cores",
    "stripes",
    "tasks",
    "simulate",
    "seed",
];

/// A default table has a row for every number of threads if it ends at this number or earlier.
const EVERY_NUMBER: u32 = 32;
const MAX_CORES: u64 = 1_000_000;
/// Maximum number of stripes: with more, two threads would hardly ever want the same stripe.
const MAX_STRIPES: u64 = 100_000;
const MAX_TASKS: u64 = 1_000_000_000;

const CHANGES: [Change; 5] = [
    Change::HalveHold,
    Change::MoveHalfOut,
    Change::Stripe(2),
    Change::Stripe(4),
    Change::Stripe(8),
];

/// A note announces the wait if more acquisitions or arrivals than this must be simulated.
const WORTH_A_NOTE: u64 = 50_000_000;
/// Maximum number of simulated acquisitions or arrivals: more would take many minutes.
const MAX_SIMULATED: u64 = 2_000_000_000;

/// Predict speed-up and waits of threads that share a lock, or waits of callers that share a pool
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Predict {
    /// Mean hold time of the lock or server (250ns, 2.5us, 5ms, 2s); optional if --hold-shape is a
    /// file
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    hold: Option<String>,
    /// Mean time of a thread outside the lock; optional if --think-shape is a file
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    think: Option<String>,
    /// Numbers of threads, such as 1,2,4 or 1..32 [default: from 1 to beyond both the knee and the
    /// number worth having]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    threads: Option<String>,
    /// Distribution of hold times: fixed, exponential, or FILE [default: exponential]
    #[arg(long, value_name = "SHAPE")]
    hold_shape: Option<String>,
    /// Distribution of think times [default: that of hold times]
    #[arg(long, value_name = "SHAPE")]
    think_shape: Option<String>,
    /// Time from waking a waiting thread until it runs [default: 0]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    handoff: Option<String>,
    /// Lock policy: fifo (longest waiter first) or barging (any thread that asks before the woken
    /// one runs) [default: fifo]
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Cores that the threads run on [default: no limit]
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    cores: Option<String>,
    /// Number of equal locks that share the load; each acquisition takes one at random [default: 1]
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    stripes: Option<String>,
    /// Predict a run of N tasks (a hold and a think time each) and its total time, instead of the
    /// long run
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    tasks: Option<String>,
    /// Simulate even where a closed form is exact
    #[arg(long)]
    simulate: bool,
    /// Seed for simulations [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seed: Option<String>,
    /// Take the times from FILE: a lock of a profile, or a cell of contention. FILE#NAME or FILE#N
    /// chooses one of several
    #[arg(long, value_name = "FILE", conflicts_with_all = ["hold", "think", "fit"])]
    from: Option<String>,
    /// Instead of predicting, fit a curve to the throughputs in FILE (- is standard input),
    /// measured with several numbers of threads
    #[arg(long, value_name = "FILE", conflicts_with_all = WORKLOAD)]
    fit: Option<PathBuf>,
    #[command(flatten)]
    pool: PoolArgs,
    /// Print all rows, the curves, the models, and the changes that would help
    #[arg(long)]
    details: bool,
    /// Print the prediction as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: CommonArgs,
}

impl Command for Predict {
    const NAME: &'static str = "predict";

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        self.pool.html.as_deref().map_or(Ok(()), page::check)?;
        let document = match &self.fit {
            Some(path) => {
                let threads = optional(&self.threads, numbers_of_threads)?.unwrap_or_default();
                Document::Fit(fit::fit(path, &threads)?)
            }
            None => match self.pool.arrivals() {
                Some(arrivals) => Document::Pool(Box::new(self.pool(arrivals)?)),
                None => Document::Prediction(Box::new(prediction(Request::check(self)?)?)),
            },
        };
        if let (Some(path), Document::Pool(pool)) = (&self.pool.html, &document) {
            page::replace(path, &html::pool_page(pool))?;
        }
        if self.json {
            let text = serde_json::to_string(&document)
                .map_err(|error| Failure::run(error.to_string()))?;
            console::data(&text);
            return Ok(ExitCode::SUCCESS);
        }
        let style = StdStream::Out.style();
        console::out(&match (&document, self.details) {
            (Document::Prediction(prediction), false) => {
                text::prediction_screen(prediction, &style)
            }
            (Document::Prediction(prediction), true) => text::prediction(prediction, &style),
            (Document::Pool(pool), false) => text::pool_screen(pool, &style),
            (Document::Pool(pool), true) => text::pool(pool, &style),
            (Document::Fit(fit), false) => text::fit_screen(fit, &style),
            (Document::Fit(fit), true) => text::fit(fit, &style),
            (Document::Comparison(comparison), _) => text::comparison(comparison, &style),
        });
        Ok(ExitCode::SUCCESS)
    }
}

impl Predict {
    fn seed(&self) -> Result<u64, Failure> {
        let seed = optional(&self.seed, |text| count("--seed", text, 0, u64::MAX))?;
        Ok(seed.unwrap_or(Options::default().seed))
    }

    fn hold_distribution(&self) -> Result<Distribution, Failure> {
        let read = |text: &str| Distribution::read("--hold-shape", text);
        Ok(optional(&self.hold_shape, read)?.unwrap_or(Distribution::Exponential))
    }

    fn pool(&self, arrivals: &str) -> Result<PoolPrediction, Failure> {
        let source = match optional(&self.from, from::read)? {
            Some(taken) => {
                let shape = self.hold_shape.as_ref().map(|_| self.hold_distribution());
                Source::measured(arrivals, taken, shape.transpose()?)?
            }
            None => {
                let hold_ns = optional(&self.hold, |text| mean_ns("--hold", text))?;
                Source::given(arrivals, hold_ns, self.hold_distribution()?)?
            }
        };
        pool::predict(&self.pool, source, self.simulate, self.seed()?)
    }
}

#[derive(Debug)]
struct Request {
    workload: Workload,
    /// `None` for the default.
    threads: Option<Vec<u32>>,
    options: Options,
    policy: PredictedPolicy,
    handoff_ns: f64,
    hold_shape: String,
    think_shape: String,
    from: Option<Taken>,
    /// Workloads with the times at both ends of their intervals.
    ends: Option<[Workload; 2]>,
}

impl Request {
    fn check(args: &Predict) -> Result<Self, Failure> {
        let from = optional(&args.from, from::read)?;
        let hold_ns = match &from {
            Some(from) => Some(from.times.hold_ns),
            None => optional(&args.hold, |text| mean_ns("--hold", text))?,
        };
        let think_ns = match &from {
            Some(from) => Some(from.times.think_ns),
            None => optional(&args.think, |text| mean_ns("--think", text))?,
        };
        let handoff_ns = optional(&args.handoff, |text| mean_ns("--handoff", text))?.unwrap_or(0.0);
        if handoff_ns > 0.0 && from.as_ref().is_some_and(|from| !from.durations) {
            return Err(Failure::usage(
                "--handoff needs durations, but a profile has only shares of time",
            )
            .hint("leave it out, or give --hold and --think instead of --from"));
        }
        // At most `MAX_CORES`, so it fits into a `u32`.
        let cores = optional(&args.cores, |text| count("--cores", text, 1, MAX_CORES))?
            .map(|cores| cores as u32)
            .or(from.as_ref().and_then(|from| from.cores));
        let stripes = optional(&args.stripes, |text| count("--stripes", text, 1, MAX_STRIPES))?
            .map(|stripes| stripes as u32)
            .or(from.as_ref().map(|from| from.stripes))
            .unwrap_or(1);
        let tasks = optional(&args.tasks, |text| count("--tasks", text, 1, MAX_TASKS))?;
        let seed = args.seed()?;
        let policies =
            [PredictedPolicy::Fifo, PredictedPolicy::Barging].map(|policy| (policy.name(), policy));
        let policy = optional(&args.policy, |text| choice("--policy", text, &policies))?
            .unwrap_or(PredictedPolicy::Fifo);
        let threads = optional(&args.threads, numbers_of_threads)?;
        let measured = match &from {
            Some(from) if args.hold_shape.is_none() => Some(from.shapes()?),
            _ => None,
        };
        let [hold_distribution, otherwise] = match measured {
            Some(shapes) => shapes,
            None => {
                let hold = args.hold_distribution()?;
                [hold.clone(), hold]
            }
        };
        let hold = hold_distribution.shape("--hold", hold_ns)?;
        let think_distribution =
            optional(&args.think_shape, |text| Distribution::read("--think-shape", text))?
                .unwrap_or(otherwise);
        if think_ns.is_none() && args.think_shape.is_none() {
            return Err(Failure::usage("predict needs --think, the mean time outside the lock")
                .hint(
                    "such as --think 95ms; or give a file of measured times with --think-shape",
                ));
        }
        let think = think_distribution.shape("--think", think_ns)?;
        if hold.mean_ns() == 0.0 && think.mean_ns() == 0.0 {
            return Err(Failure::usage(
                "hold and think times are both zero, so there is nothing to predict",
            )
            .hint("make at least one of --hold and --think longer than zero"));
        }
        let workload = Workload {
            hand_off: HandOff::fixed(handoff_ns)?,
            policy: match policy {
                PredictedPolicy::Fifo => Policy::Fifo,
                PredictedPolicy::Barging => Policy::Barging,
            },
            stripes,
            cores,
            ..Workload::new(hold, think)
        };
        let of_times = |times: Times| -> Result<Workload, Failure> {
            Ok(Workload {
                hold: hold_distribution.shape("--hold", Some(times.hold_ns))?,
                think: think_distribution.shape("--think", Some(times.think_ns))?,
                ..workload.clone()
            })
        };
        let ends = match from.as_ref().and_then(|from| from.ends) {
            Some([least, most]) => Some([of_times(least)?, of_times(most)?]),
            None => None,
        };
        Ok(Request {
            workload,
            threads,
            options: Options { tasks, simulate: args.simulate, seed, ..Options::default() },
            policy,
            handoff_ns,
            hold_shape: hold_distribution.name().to_string(),
            think_shape: think_distribution.name().to_string(),
            from,
            ends,
        })
    }
}

/// A model fails only on invalid input, so this is a usage error.
impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Failure::usage(error.to_string()).hint("see `threadtoll predict --help`")
    }
}

/// Numbers of threads in the default table. The table ends at a quarter more than the knee or than
/// the number of threads worth having, whichever is larger. Beyond [`EVERY_NUMBER`], numbers grow
/// by about a third from row to row. Without a knee, the table has every number up to twice the
/// number of CPUs.
fn default_threads(workload: &Workload, seed: u64) -> Result<Vec<u32>, Failure> {
    let knee = workload.knee()?;
    if !knee.is_finite() {
        return Ok((1..=2 * allowed_cpus().len().max(1) as u32).collect());
    }
    let worth = recommended_threads(workload, seed)?;
    let corner = knee.max(f64::from(worth.unwrap_or(1)));
    let last = ((1.25 * corner).ceil() as u32).saturating_add(1).min(MAX_THREADS);
    if last <= EVERY_NUMBER {
        return Ok((1..=last).collect());
    }
    let steps = std::iter::successors(Some(1), |threads: &u32| Some(threads + threads.div_ceil(3)));
    let mut all: BTreeSet<u32> = steps.take_while(|threads| *threads < last).collect();
    all.extend(worth.into_iter().chain([knee as u32, last]).filter(|threads| *threads <= last));
    Ok(all.into_iter().collect())
}

/// Refuses a simulation of more than [`MAX_SIMULATED`] `things`, and announces a long one.
fn check_effort(effort: u64, things: &str, remedy: &str) -> Result<(), Failure> {
    if effort > MAX_SIMULATED {
        return Err(Failure::usage("this simulation would take many minutes").hint(remedy));
    }
    if effort > WORTH_A_NOTE {
        console::note(&format!(
            "no closed form applies, so up to {} million {things} are simulated, a few million per \
             second.",
            effort / 1_000_000
        ));
    }
    Ok(())
}

fn prediction(request: Request) -> Result<Prediction, Failure> {
    let Request { workload, threads, options, from, ends, .. } = request;
    let measured = from.as_ref().map(|from| from.measured.threads);
    let threads = match threads {
        Some(threads) => threads,
        None => with_measured(default_threads(&workload, options.seed)?, measured),
    };
    let mut acquisitions = effort(&workload, &threads, options)?;
    for end in ends.iter().flatten() {
        acquisitions = acquisitions.saturating_add(effort(end, &threads, options)?);
    }
    check_effort(acquisitions, "acquisitions", "use fewer threads, fewer rows, or fewer tasks")?;
    let found = predict(&workload, &threads, options)?;
    let most = threads.iter().copied().max().unwrap_or(1);
    // With a hold time of zero, no change to the lock has an effect.
    let changes: &[Change] = if workload.hold.mean_ns() > 0.0 { &CHANGES } else { &[] };
    let what_if = what_if(&workload, most, changes, options)?;
    let at_ends = ends.as_ref().map(|ends| Ends::new(ends, &threads, changes, options));
    let at_ends = at_ends.transpose()?;
    let share = |workload: &Workload| workload.load().map(|load| load.hold_share());
    let share_ends = match &ends {
        Some([least, most]) => Some([share(least)?, share(most)?]),
        None => None,
    };
    let durations = from.as_ref().is_none_or(|from| from.durations);
    let rows = found.rows.iter().enumerate().map(|(nth, row)| PredictedRow {
        speedup_interval95: at_ends.as_ref().map(|ends| ends.speedup(nth, row)),
        queue_mean_interval95: at_ends.as_ref().map(|ends| ends.queue_mean(nth, row)),
        throughput_per_s: durations.then_some(row.throughput_per_s),
        total_s: row.total_s.filter(|_| durations),
        ..self::row(row)
    });
    let what_if = what_if.iter().enumerate().map(|(nth, answer)| PredictedChange {
        throughput_per_s: durations.then_some(answer.throughput_per_s),
        gain_interval95: at_ends.as_ref().map(|ends| ends.gain(nth, answer)),
        ..change(answer, most)
    });
    Ok(Prediction {
        rows: rows.collect(),
        what_if: what_if.collect(),
        from: from.map(|from| from.measured),
        hold_ns: durations.then(|| workload.hold.mean_ns()),
        think_ns: durations.then(|| workload.think.mean_ns()),
        hold_share: share(&workload)?,
        hold_share_interval95: share_ends,
        handoff_ns: request.handoff_ns,
        cores: workload.cores,
        tasks: options.tasks,
        hold_shape: request.hold_shape,
        think_shape: request.think_shape,
        hold_variation: workload.hold.variation(),
        think_variation: workload.think.variation(),
        policy: request.policy,
        stripes: workload.stripes,
        seed: options.seed,
        knee: found.knee,
        knee_interval95: at_ends.as_ref().and_then(Ends::knee),
        recommended_threads: found.recommended_threads,
        recommended_threads_interval95: at_ends.as_ref().and_then(Ends::recommended_threads),
    })
}

/// Adds the number of threads that were measured.
fn with_measured(threads: Vec<u32>, measured: Option<u32>) -> Vec<u32> {
    let measured = measured.filter(|threads| (1..=MAX_THREADS).contains(threads));
    let all: BTreeSet<u32> = threads.into_iter().chain(measured).collect();
    all.into_iter().collect()
}

fn row(row: &Row) -> PredictedRow {
    let interval = |estimate: fn(&threadtoll_model::simulate::Report) -> Estimate| {
        let estimate = estimate(row.simulated.as_ref()?);
        (estimate.half_width > 0.0)
            .then_some([estimate.value - estimate.half_width, estimate.value + estimate.half_width])
    };
    PredictedRow {
        threads: row.threads,
        model: row.model.name().to_string(),
        why: row.why.to_string(),
        speedup: row.speedup,
        speedup_interval99: interval(|report| report.speedup),
        speedup_interval95: None,
        throughput_per_s: Some(row.throughput_per_s),
        queue_mean: row.queue_mean,
        queue_mean_interval99: interval(|report| report.queue_mean),
        queue_mean_interval95: None,
        queue_on_entry: row.queue_on_entry,
        wait_share: row.wait_share,
        total_s: row.total_s,
        bound: row.bound,
        amdahl: row.amdahl,
    }
}

fn change(answer: &WhatIf, threads: u32) -> PredictedChange {
    PredictedChange {
        change: answer.change.to_string(),
        threads,
        model: answer.model.name().to_string(),
        throughput_per_s: Some(answer.throughput_per_s),
        speedup: answer.speedup,
        gain: answer.gain,
        gain_interval95: None,
    }
}
