//! A profile in the OpenMetrics text format, for monitoring.
//!
//! See <https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md>. Shares
//! have the unit `ratio`. An unknown figure has no sample, and an undecided verdict has several
//! states.

use std::collections::{HashMap, HashSet};

use threadtoll_record::Fraction;
use threadtoll_record::profile::{Interval, Lock, Process, Profile, ThreadTime, Verdict};

use crate::clean::clean;
use crate::profile::{lock_name, waits, words};

/// Maximum number of exported locks per process; thousands would flood the monitoring.
const MAX_LOCKS: usize = 100;

/// Renders the figures of all processes, and of the locks that cost most.
pub fn openmetrics(profile: &Profile) -> String {
    OpenMetrics::default().render(profile)
}

/// Metrics of an ongoing profile.
///
/// The total time for which threads waited for a lock is the mean number of waiting threads times
/// the elapsed time. The exported total never decreases, even if later samples lower the mean so
/// much that this product decreases.
#[derive(Debug, Default)]
pub struct OpenMetrics {
    lock_waits: HashMap<LockOf, LockWait>,
}

/// PID of the process, number of the program that the process executes, and number of the lock.
type LockOf = (u32, u32, u32);

#[derive(Clone, Copy, Debug, Default)]
struct LockWait {
    generation: u32,
    /// Waiting time for earlier locks at the same address, in seconds.
    before: f64,
    seconds: f64,
}

impl LockWait {
    fn renew(&mut self, generation: u32, seconds: f64) -> f64 {
        if generation != self.generation {
            let before = self.before + self.seconds;
            *self = LockWait { generation, before, seconds: 0.0 };
        }
        self.seconds = self.seconds.max(seconds);
        self.before + self.seconds
    }
}

impl OpenMetrics {
    /// Renders the figures so far.
    pub fn render(&mut self, profile: &Profile) -> String {
        let mut page = Page::default();
        page.family("threadtoll_profile", "info", "", "The profiled program.");
        let program = [("program", words(&profile.program)), ("run", clean(&profile.run))];
        page.sample("_info", &program, 1.0);
        page.family("threadtoll_observed_seconds", "gauge", "seconds", "Observed time.");
        page.sample("", &[], profile.seconds.get());
        page.family("threadtoll_samples", "counter", "", "Samples taken.");
        page.sample("_total", &[], profile.samples.as_f64());
        let help = "CPU time of the profiler, as a share of one CPU.";
        page.family("threadtoll_cpu_ratio", "gauge", "ratio", help);
        if let Some(own) = profile.perturbation.share_of_cpu {
            page.sample("", &[], own.get());
        }
        page.family("threadtoll_cpu_seconds", "counter", "seconds", "CPU time of the profiler.");
        if let Some(own) = profile.perturbation.cpu_seconds {
            page.sample("_total", &[], own.get());
        }
        thread_time(&mut page, profile);
        locks(&mut page, profile);
        self.lock_waits(&mut page, profile);
        causes(&mut page, profile);
        idle(&mut page, profile);
        page.text + "# EOF\n"
    }

    fn lock_waits(&mut self, page: &mut Page, profile: &Profile) {
        let processes: HashSet<(u32, u32)> =
            profile.processes.iter().map(|process| (process.pid, process.image)).collect();
        self.lock_waits.retain(|&(pid, image, _), _| processes.contains(&(pid, image)));
        page.family(
            "threadtoll_lock_wait_seconds",
            "counter",
            "seconds",
            "Time that threads waited for the lock, summed over threads.",
        );
        for Labelled { labels, process, lock } in labelled(profile) {
            let (Some(queue), Some(observed)) = (lock.queue_mean, process.seconds) else {
                continue;
            };
            let waited = self.lock_waits.entry((process.pid, process.image, lock.id)).or_default();
            let seconds = waited.renew(lock.generation, queue.get() * observed.get());
            page.sample("_total", &labels, seconds);
        }
    }
}

type Labels = Vec<(&'static str, String)>;

#[derive(Default)]
struct Page {
    text: String,
    name: &'static str,
    head: String,
    /// The format forbids two samples of the same series in a family.
    series: HashSet<String>,
}

impl Page {
    /// Begins a family of metrics. `unit` is the suffix of `name`, or empty.
    fn family(&mut self, name: &'static str, kind: &str, unit: &str, help: &str) {
        let unit = if unit.is_empty() { String::new() } else { format!("# UNIT {name} {unit}\n") };
        self.name = name;
        self.head = format!("# TYPE {name} {kind}\n{unit}# HELP {name} {help}\n");
        self.series.clear();
    }

    fn sample(&mut self, suffix: &str, labels: &[(&'static str, String)], value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(label, value)| {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                format!("{label}=\"{value}\"")
            })
            .collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        if self.series.insert(labels.clone()) {
            self.text.push_str(&std::mem::take(&mut self.head));
            self.text.push_str(&format!("{}{suffix}{labels} {value}\n", self.name));
        }
    }
}

fn of_process(process: &Process) -> Labels {
    vec![("pid", process.pid.to_string()), ("image", process.image.to_string())]
}

fn thread_time(page: &mut Page, profile: &Profile) {
    page.family(
        "threadtoll_thread_time_ratio",
        "gauge",
        "ratio",
        "Share of the time of all threads, by what they did.",
    );
    for process in &profile.processes {
        let Some(time) = &process.time else { continue };
        for (state, share) in states(time) {
            let mut labels = of_process(process);
            labels.push(("state", state));
            page.sample("", &labels, share);
        }
    }
}

fn states(time: &ThreadTime) -> Vec<(String, f64)> {
    let spinning = time.spinning.get();
    let working = |on_cpu: Fraction| (on_cpu.get() - spinning).max(0.0);
    let mut states = match (time.running, time.runnable) {
        (Some(running), Some(runnable)) => {
            vec![("running", working(running)), ("runnable", runnable.get())]
        }
        _ => vec![("on_cpu", working(time.on_cpu))],
    };
    states.extend([
        ("spinning", spinning),
        ("lock_wait", time.lock_wait.get()),
        ("thread_wait", time.thread_wait.get()),
        ("idle", time.idle.get()),
        ("sleep", time.sleep.get()),
        ("unknown", time.unknown.get()),
    ]);
    let states = states.into_iter().map(|(state, share)| (state.to_string(), share));
    let io = time.io.iter().map(|(kind, share)| (format!("io_{}", kind.name()), share.get()));
    states.chain(io).collect()
}

struct Labelled<'a> {
    labels: Labels,
    process: &'a Process,
    lock: &'a Lock,
}

fn labelled(profile: &Profile) -> Vec<Labelled<'_>> {
    let of_lock = |lock: &Lock| {
        [
            ("lock", lock_name(lock)),
            ("id", lock.id.to_string()),
            ("kind", lock.kind.name().to_string()),
        ]
    };
    profile
        .processes
        .iter()
        .flat_map(|process| process.locks.iter().take(MAX_LOCKS).map(move |lock| (process, lock)))
        .map(|(process, lock)| {
            let labels = of_process(process).into_iter().chain(of_lock(lock)).collect();
            Labelled { labels, process, lock }
        })
        .collect()
}

/// Name, unit and explanation of a family with one sample per lock, and the function for its value.
type Figure = (&'static str, &'static str, &'static str, fn(&Lock) -> Option<f64>);

const FIGURES: &[Figure] = &[
    (
        "threadtoll_lock_held_ratio",
        "ratio",
        "Share of the time for which the lock was held.",
        |lock| lock.held_share.map(|share| share.get()),
    ),
    (
        "threadtoll_lock_held_low_ratio",
        "ratio",
        "Lower end of the 95% interval of the held share.",
        |lock| low(lock.held_share_interval95),
    ),
    (
        "threadtoll_lock_held_high_ratio",
        "ratio",
        "Upper end of the 95% interval of the held share.",
        |lock| high(lock.held_share_interval95),
    ),
    (
        "threadtoll_lock_queue_mean_threads",
        "threads",
        "Waiting threads, averaged over time.",
        |lock| lock.queue_mean.map(|queue| queue.get()),
    ),
    (
        "threadtoll_lock_queue_mean_low_threads",
        "threads",
        "Lower end of the 95% interval of the mean queue.",
        |lock| lock.queue_mean_interval95.map(|interval| interval.low().get()),
    ),
    (
        "threadtoll_lock_queue_mean_high_threads",
        "threads",
        "Upper end of the 95% interval of the mean number of waiting threads.",
        |lock| lock.queue_mean_interval95.map(|interval| interval.high().get()),
    ),
    (
        "threadtoll_lock_queue_max_threads",
        "threads",
        "Maximum number of threads seen waiting at once.",
        |lock| lock.queue_max.map(f64::from),
    ),
    ("threadtoll_lock_users_threads", "threads", "Threads seen to use the lock.", |lock| {
        Some(f64::from(lock.threads))
    }),
    (
        "threadtoll_lock_efficiency_ratio",
        "ratio",
        "Share of the lock's threads that are not waiting.",
        |lock| lock.efficiency.map(|share| share.get()),
    ),
    (
        "threadtoll_lock_gain_ratio",
        "ratio",
        "Gain in throughput if nobody waited for the lock, relative to the current throughput.",
        |lock| lock.gain.map(|gain| gain.get()),
    ),
];

fn low(interval: Option<Interval<Fraction>>) -> Option<f64> {
    interval.map(|interval| interval.low().get())
}

fn high(interval: Option<Interval<Fraction>>) -> Option<f64> {
    interval.map(|interval| interval.high().get())
}

fn locks(page: &mut Page, profile: &Profile) {
    let locks = labelled(profile);
    for (name, unit, help, of) in FIGURES {
        page.family(name, "gauge", unit, help);
        for Labelled { labels, lock, .. } in &locks {
            if let Some(value) = of(lock) {
                page.sample("", labels, value);
            }
        }
    }
    let name = "threadtoll_lock_verdict";
    page.family(name, "stateset", "", "Verdict on the lock; several states while it is undecided.");
    for Labelled { labels, lock, .. } in &locks {
        let Some(verdict) = lock.verdict else { continue };
        for state in [Verdict::Comfortable, Verdict::Crowded, Verdict::Saturated] {
            let holds = verdict.name().split("-or-").any(|name| name == state.name());
            let mut labels = labels.clone();
            labels.push((name, state.name().into()));
            page.sample("", &labels, f64::from(u8::from(holds)));
        }
    }
}

fn causes(page: &mut Page, profile: &Profile) {
    page.family(
        "threadtoll_lock_cause_ratio",
        "gauge",
        "ratio",
        "Share of the waiting for the lock, by cause.",
    );
    for Labelled { labels, lock, .. } in labelled(profile) {
        for cause in &lock.causes {
            let mut labels = labels.clone();
            labels.push(("cause", cause.cause.name().into()));
            labels.extend(cause.syscall.as_ref().map(|name| ("syscall", clean(name))));
            page.sample("", &labels, cause.share.get());
        }
    }
}

fn idle(page: &mut Page, profile: &Profile) {
    page.family(
        "threadtoll_idle_wait_threads",
        "gauge",
        "threads",
        "Threads waiting for something other than a lock, averaged over time.",
    );
    for waiting in waits::waits(profile).iter().take(MAX_LOCKS) {
        let mut labels = of_process(waiting.process);
        labels.extend([
            ("for", waiting.what.to_string()),
            ("name", waiting.name()),
            ("address", waiting.wait.address.to_string()),
        ]);
        page.sample("", &labels, waiting.wait.queue_mean.get());
    }
}
