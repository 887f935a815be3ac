//! A discrete-event simulator of threads that think, take a lock, hold it, and think again.
//!
//! The simulation covers what no closed form does: measured hold and think times, many locks of
//! several kinds, FIFO, barging and spinning locks, hand-offs that depend on the woken CPU's idle
//! time, fewer cores than threads, bounded queues, and finite runs. On one build, a system, length
//! and seed always yield the same figures, to the last bit.
//!
//! Caches, memory and load balancing between cores are not modelled. Threads affect each other only
//! through locks and cores.
//!
//! Without [`Cores`], every thread has its own CPU, which idles while the thread is parked. Time is
//! a double, so durations shorter than about 1e-15 of the simulated span are lost in rounding.

mod calendar;
mod engine;
mod policy;
mod statistics;

pub use policy::{HandOff, Policy};
pub use statistics::Estimate;
pub(crate) use statistics::{BATCHES, UNSEEN};

use engine::{Engine, Outcome};
use statistics::Sums;

use crate::error::{MAX_LOCKS, number, share, threads as checked_threads, time};
use crate::{Load, ModelError, Shape};

/// Threads and their locks.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// Number of threads.
    pub threads: u32,
    /// Time between releasing a lock and requesting the next one.
    pub think: Shape,
    /// The locks; each acquisition takes one at random.
    pub locks: Vec<Locks>,
    /// The cores; `None` if threads never lack a core.
    pub cores: Option<Cores>,
}

/// A number of equal locks.
#[derive(Clone, Debug, PartialEq)]
pub struct Locks {
    /// Number of locks; each is chosen equally often.
    pub count: u32,
    /// Weight of these locks when an acquisition chooses among the kinds of locks.
    pub share: f64,
    /// Time for which an acquisition holds one of these locks.
    pub hold: Shape,
    /// Policy that decides which thread gets a released lock.
    pub policy: Policy,
    /// Time until a woken thread runs.
    pub hand_off: HandOff,
    /// Share of acquisitions by readers, which hold a lock together; a writer holds it alone. A
    /// reader waits behind a waiting writer. With readers, a released lock always goes to the next
    /// waiting thread, and the policy only determines spinning.
    pub read_share: f64,
    /// Maximum number of threads that may wait for one of the locks. Any further thread is refused
    /// and thinks again. `None` for no limit.
    pub queue_limit: Option<u32>,
}

impl Locks {
    /// One lock with these hold times: FIFO, free hand-offs, no limit on its queue.
    pub fn one(hold: Shape) -> Self {
        Self {
            count: 1,
            share: 1.0,
            hold,
            policy: Policy::Fifo,
            hand_off: HandOff::free(),
            read_share: 0.0,
            queue_limit: None,
        }
    }
}

/// Cores that ready threads share in time slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cores {
    /// Number of cores.
    pub count: u32,
    /// Time slice in nanoseconds, after which a thread yields to a ready one.
    pub slice_ns: f64,
    /// True if a thread woken for a lock preempts a thinking thread (never a holder) instead of
    /// waiting for the end of a slice.
    pub wake_preempts: bool,
}

/// Results of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Tasks per second of all threads together, not counting refused tasks.
    pub throughput_per_s: Estimate,
    /// Throughput relative to one thread that never waits.
    pub speedup: Estimate,
    /// Mean number of threads that wait or are being woken, at all locks together.
    pub queue_mean: Estimate,
    /// Mean number of threads that wait for a lock, as seen by a thread that has just acquired it.
    pub queue_on_entry: Estimate,
    /// Share of the threads' time spent waiting for locks.
    pub wait_share: Estimate,
    /// Mean time from requesting a lock to acquiring it, in nanoseconds. Threads still waiting at
    /// the end are not included: if threads starve (see `fairness`), use `queue_mean` instead.
    pub wait_ns: Estimate,
    /// Time of a finite run in seconds; `None` for the long run.
    pub total_s: Option<Estimate>,
    /// Jain's index of the threads' acquisitions, averaged over repetitions: 1 if all threads have
    /// equally many, 1/threads if one has them all (R. Jain, D. Chiu and W. Hawe, DEC TR-301,
    /// 1984).
    pub fairness: f64,
    /// Results for each kind of lock, in the order of [`System::locks`].
    pub locks: Vec<LocksReport>,
    /// Number of acquisitions on which the figures are based.
    pub acquisitions: u64,
    /// Number of events simulated, including the warm-up.
    pub events: u64,
}

/// Results for equal locks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocksReport {
    /// Mean number of holders per lock: the share of time for which a lock is held, or more if
    /// readers hold it together. Hand-offs do not count as held.
    pub utilisation: f64,
    /// Mean number of threads that wait for one of these locks.
    pub queue_mean: f64,
    /// Mean number of threads that wait for one of these locks, as seen by a thread that has just
    /// acquired it.
    pub queue_on_entry: f64,
    /// Maximum number of threads that waited for one of these locks, including the warm-up.
    pub queue_max: u32,
    /// Mean time from requesting one of these locks to acquiring it, in nanoseconds.
    pub wait_ns: f64,
    /// Share of acquisitions that had to wait.
    pub contended_share: f64,
    /// Share of attempts refused because the queue was full.
    pub refused_share: f64,
}

/// Simulates `acquisitions` acquisitions of the long run, after a warm-up of a tenth of that
/// number.
///
/// Threads start out thinking. Confidence intervals are derived from 20 batches, and are valid if
/// each batch has many tasks per thread.
///
/// ```
/// use threadtoll_model::{Shape, simulate};
///
/// let system = simulate::System {
///     threads: 2,
///     think: Shape::exponential(100.0)?,
///     locks: vec![simulate::Locks::one(Shape::exponential(100.0)?)],
///     cores: None,
/// };
/// let report = simulate::long_run(&system, 100_000, 1)?;
/// assert!(report.speedup.holds(1.6));
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If a figure of the system is out of range, or if there are fewer than 1000 acquisitions.
pub fn long_run(system: &System, acquisitions: u64, seed: u64) -> Result<Report, ModelError> {
    let load = system.check()?;
    if acquisitions < 1000 {
        return Err(ModelError::Number {
            what: "acquisitions",
            value: acquisitions,
            most: u64::MAX,
        });
    }
    let batch = acquisitions / BATCHES as u64;
    let outcome = Engine::simulate(
        system,
        engine::RunLength::Batches { warm_up: acquisitions / 10, batch },
        seed,
    );
    let batches: Vec<Sums> = outcome
        .snapshots
        .windows(2)
        .map(|pair| {
            pair[1]
                .iter()
                .zip(&pair[0])
                .map(|(now, then)| now.since(*then))
                .fold(Sums::default(), Sums::merge)
        })
        .collect();
    let spans = match (outcome.snapshots.first(), outcome.snapshots.last()) {
        (Some(first), Some(last)) => {
            last.iter().zip(first).map(|(now, then)| now.since(*then)).collect()
        }
        _ => vec![Sums::default(); system.locks.len()],
    };
    let mut report = report(system, load, &batches, &spans, &[outcome]);
    // Allows for an event too rare to occur in the run: for the length of one hold, one more thread
    // waits or the lock is idle.
    let unseen = UNSEEN / report.acquisitions.max(1) as f64;
    let held: f64 = report
        .locks
        .iter()
        .zip(&system.locks)
        .map(|(each, locks)| each.utilisation * f64::from(locks.count))
        .sum();
    report.throughput_per_s =
        report.throughput_per_s.no_surer_than(report.throughput_per_s.value * unseen);
    report.speedup = report.speedup.no_surer_than(report.speedup.value * unseen);
    report.queue_mean = report.queue_mean.no_surer_than(held * unseen);
    report.queue_on_entry = report.queue_on_entry.no_surer_than(unseen);
    report.wait_share = report.wait_share.no_surer_than(held * unseen / f64::from(system.threads));
    report.wait_ns = report.wait_ns.no_surer_than(load.hold_ns() * unseen);
    Ok(report)
}

/// Simulates, `repetitions` times, a pool that runs `tasks` tasks. A task is an acquisition and the
/// think time after it.
///
/// All threads request the lock at the start, and take tasks until none is left. Averages cover the
/// whole run, including its start and end.
///
/// # Errors
///
/// If a figure of the system is out of range, or a number is zero.
pub fn tasks(
    system: &System,
    tasks: u64,
    repetitions: u32,
    seed: u64,
) -> Result<Report, ModelError> {
    let load = system.check()?;
    number("repetitions", repetitions, 1_000_000)?;
    if !(1..=MAX_TASKS).contains(&tasks) {
        return Err(ModelError::Number { what: "tasks", value: tasks, most: MAX_TASKS });
    }
    // Seeds of repetitions are far apart, because users may give consecutive seeds, whose
    // repetitions must differ.
    let outcomes: Vec<Outcome> = (0..u64::from(repetitions))
        .map(|repetition| {
            let seed = seed.wrapping_add(repetition.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            Engine::simulate(system, engine::RunLength::Tasks(tasks), seed)
        })
        .collect();
    let runs: Vec<Sums> = outcomes
        .iter()
        .map(|outcome| outcome.sums.iter().copied().fold(Sums::default(), Sums::merge))
        .collect();
    let spans: Vec<Sums> = (0..system.locks.len())
        .map(|kind| {
            outcomes.iter().map(|outcome| outcome.sums[kind]).fold(Sums::default(), |all, run| {
                let time = all.time + run.time;
                Sums { time, ..all.merge(run) }
            })
        })
        .collect();
    let mut report = report(system, load, &runs, &spans, &outcomes);
    let totals: Vec<f64> = runs.iter().map(|run| run.time / 1e9).collect();
    report.total_s = Some(Estimate::mean(&totals));
    Ok(report)
}

const MAX_TASKS: u64 = 1_000_000_000_000;

/// `parts` are sums over batches or runs; `kinds` are sums over kinds of locks.
fn report(
    system: &System,
    load: Load,
    parts: &[Sums],
    kinds: &[Sums],
    outcomes: &[Outcome],
) -> Report {
    let column = |figure: fn(&Sums) -> f64| -> Vec<f64> { parts.iter().map(figure).collect() };
    let time = column(|sums| sums.time);
    let acquisitions = column(|sums| sums.acquisitions as f64);
    let per_ns = Estimate::ratio(&acquisitions, &time);
    let queue_mean = Estimate::ratio(&column(|sums| sums.waiting), &time);
    let locks = kinds
        .iter()
        .zip(&system.locks)
        .enumerate()
        .map(|(kind, (sums, locks))| {
            let count = f64::from(locks.count);
            let per = |over: f64, under: f64| if under > 0.0 { over / under } else { 0.0 };
            let entries = sums.acquisitions as f64;
            LocksReport {
                utilisation: per(sums.held / count, sums.time),
                queue_mean: per(sums.waiting / count, sums.time),
                queue_on_entry: per(sums.on_entry, entries),
                queue_max: outcomes
                    .iter()
                    .map(|outcome| outcome.queue_max[kind])
                    .max()
                    .unwrap_or(0),
                wait_ns: per(sums.waited, entries),
                contended_share: per(sums.contended as f64, entries),
                refused_share: per(sums.refused as f64, entries + sums.refused as f64),
            }
        })
        .collect();
    Report {
        throughput_per_s: per_ns * 1e9,
        speedup: per_ns * load.cycle_ns(),
        queue_mean,
        queue_on_entry: Estimate::ratio(&column(|sums| sums.on_entry), &acquisitions),
        wait_share: queue_mean * (1.0 / f64::from(system.threads)),
        wait_ns: Estimate::ratio(&column(|sums| sums.waited), &acquisitions),
        total_s: None,
        fairness: outcomes.iter().map(|outcome| outcome.fairness).sum::<f64>()
            / outcomes.len() as f64,
        locks,
        acquisitions: kinds.iter().map(|sums| sums.acquisitions).sum(),
        events: outcomes.iter().map(|outcome| outcome.events).sum(),
    }
}

impl System {
    /// Validates the system; returns the load of one thread.
    fn check(&self) -> Result<Load, ModelError> {
        checked_threads(self.threads)?;
        if self.locks.is_empty() {
            return Err(ModelError::TooFew { what: "locks", least: 1, given: 0 });
        }
        let mut all = 0u32;
        for locks in &self.locks {
            number("locks", locks.count, MAX_LOCKS)?;
            all = number("locks", all.saturating_add(locks.count), MAX_LOCKS)?;
            if !(1e-12..=1e12).contains(&locks.share) {
                return Err(ModelError::Figure {
                    what: "share of a lock",
                    value: locks.share,
                    range: "from 1e-12 to 1e12",
                });
            }
            locks.policy.check()?;
            share("share of readers", locks.read_share)?;
        }
        let shares: f64 = self.locks.iter().map(|locks| locks.share).sum();
        let hold = self.locks.iter().map(|locks| locks.share / shares * locks.hold.mean_ns()).sum();
        let load = Load::new(hold, self.think.mean_ns())?;
        if let Some(cores) = self.cores {
            number("cores", cores.count, MAX_LOCKS)?;
            let slice = time("slice", cores.slice_ns)?;
            if slice < load.cycle_ns() * 1e-4 {
                return Err(ModelError::Figure {
                    what: "slice",
                    value: slice,
                    range: "at least a ten-thousandth of hold and think time together",
                });
            }
        }
        Ok(load)
    }
}
