//! A profile in sentences and tables, independent of the format: the answer to "is it locks?", the
//! costliest locks, their causes with advice, and changes that would help.

mod answer;
pub(crate) mod kinds;
pub(crate) mod locks;
mod semaphores;
pub(crate) mod short;
pub(crate) mod stack;
pub(crate) mod stuck;
pub(crate) mod telling;
pub(crate) mod time;
pub(crate) mod tree;
pub(crate) mod waits;

use threadtoll_record::profile::{
    Cause, CauseKind, Change, Interval, Lock, Method, Process, Profile, Site, ThreadTime,
};
use threadtoll_record::{Ratio, Text};

use crate::clean::clean;
use crate::label::plural;
use crate::units::{digits, percent, range_of_shares, ratio, share, time as duration};

pub(crate) use answer::answer;

/// Share of the threads' time, and gain in throughput, above which locks deserve attention.
const WORTHWHILE: f64 = 0.05;

/// Minimum number of samples with waiters for a statement about a lock's holders.
const FEW_WAITED: u64 = 8;

/// The first screen mentions cut-off stacks if they are more than this share of all stacks.
const STACKS_CUT: f64 = 0.2;

/// Maximum length of the command line in the title, in characters. Figures follow on the same line.
const MAX_COMMAND: usize = 40;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) process: &'a Process,
    pub(crate) lock: &'a Lock,
    /// True if the title names a different process. The reader might think that the lock is in that
    /// process.
    pub(crate) ambiguous: bool,
}

impl Seen<'_> {
    pub(crate) fn name(&self) -> String {
        let name = lock_name(self.lock);
        if !self.lock.shared_by.is_empty() {
            return format!("{name} ({} processes)", self.lock.shared_by.len());
        }
        if self.ambiguous { format!("{name} ({})", tree::process(self.process)) } else { name }
    }

    pub(crate) fn waited(&self) -> bool {
        !self.lock.causes.is_empty()
            || !self.lock.waiters.is_empty()
            || self.lock.queue_max.is_some_and(|most| most > 0)
    }

    /// Returns `true` if the sampled waits are too few to show a cause, and the program may hardly
    /// gain from removing the waits.
    pub(crate) fn is_seldom_waited_for(&self) -> bool {
        let samples = self.lock.waiting_samples.map_or(0, |samples| samples.get());
        let least = self.lock.gain_interval95.map(|within| within.low().get());
        let gain = least.or(self.lock.gain.map(Ratio::get)).unwrap_or(0.0);
        self.lock.causes.is_empty() && samples < FEW_WAITED && gain < WORTHWHILE
    }

    pub(crate) fn name_of(&self, id: u32) -> String {
        let other = self.process.locks.iter().find(|lock| lock.id == id);
        other.map_or_else(|| format!("lock {id}"), lock_name)
    }
}

pub(crate) fn lock_name(lock: &Lock) -> String {
    let name = clean(&lock.name);
    if name.trim().is_empty() { format!("{} at {}", lock.kind.name(), lock.address) } else { name }
}

pub(crate) fn by_cost(profile: &Profile) -> Vec<Seen<'_>> {
    let mut locks: Vec<Seen<'_>> = profile
        .processes
        .iter()
        .flat_map(|process| {
            let ambiguous = tree::is_another(profile, process);
            process.locks.iter().map(move |lock| Seen { process, lock, ambiguous })
        })
        .collect();
    let cost = |seen: &Seen<'_>| {
        let (gain, queue) = seen.lock.cost();
        let lived = tree::lived(profile, seen.process);
        // A negative `gain` is not an amount: it only ranks a lock for which no thread waits.
        (if gain > 0.0 { gain * lived } else { gain }, queue * lived)
    };
    locks.sort_by(|a, b| {
        let (a, b) = (cost(a), cost(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    locks
}

/// The process with the costliest lock; without locks, the process with the most threads.
pub(crate) fn main_process(profile: &Profile) -> Option<&Process> {
    let of_lock = by_cost(profile).first().map(|seen| seen.process);
    let busiest = || {
        let sampled = profile.processes.iter().filter(|process| process.time.is_some());
        sampled.max_by_key(|process| process.threads_max)
    };
    of_lock.filter(|process| process.time.is_some()).or_else(busiest)
}

/// Older files have the time of each process only; then the main process represents all.
pub(crate) fn thread_time(profile: &Profile) -> Option<&ThreadTime> {
    profile.time.as_ref().or_else(|| main_process(profile)?.time.as_ref())
}

/// `None` if threads spin for locks too seldom to mention it.
pub(crate) fn spin(profile: &Profile) -> Option<&Site> {
    thread_time(profile).filter(|time| time.spinning.get() >= WORTHWHILE)?;
    let sites = profile.processes.iter().filter_map(|process| process.spins.first());
    sites.max_by_key(|site| site.samples)
}

pub(crate) fn locking(profile: &Profile) -> Option<&Site> {
    let sites = profile.processes.iter().filter_map(|process| process.locking.first());
    sites.max_by_key(|site| site.samples)
}

/// The code in which threads spin most. Loops whose names show that they are for a lock do not
/// count.
pub(crate) fn spin_loop(profile: &Profile) -> Option<&Site> {
    let sites = profile.processes.iter().filter_map(|process| process.spin_loops.first());
    sites.max_by_key(|site| site.samples)
}

/// The unit in which the profile counts: processes if there are several, each with one thread;
/// otherwise threads.
pub(crate) fn unit(profile: &Profile) -> &'static str {
    let alone = profile.processes.iter().all(|process| process.threads_max <= 1);
    if alone && profile.processes.len() > 1 { "processes" } else { "threads" }
}

/// Name for whatever a program's only thread waits for, other than work or the end of a sleep.
pub(crate) const OUTSIDE: &str = "other processes or something else";

pub(crate) fn is_alone(profile: &Profile) -> bool {
    profile.processes.len() == 1 && profile.processes.iter().all(|it| it.threads_max <= 1)
}

pub(crate) fn others(profile: &Profile) -> &'static str {
    match (is_alone(profile), unit(profile)) {
        (true, _) => OUTSIDE,
        (false, "processes") => "other processes",
        _ => "other threads",
    }
}

/// A command line as text. Repeated blanks become one, because a program that sets its own title
/// pads the title to the length of its arguments.
pub(crate) fn words(texts: &[Text]) -> String {
    let words: Vec<String> = texts.iter().map(|text| clean(text)).collect();
    words.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn short_command(texts: &[Text]) -> String {
    let all = words(texts);
    let (program, arguments) = all.split_once(' ').unwrap_or((&all, ""));
    let program = program.rsplit('/').next().unwrap_or(program);
    let mut short = format!("{program} {arguments}").trim_end().to_owned();
    if let Some((at, _)) = short.char_indices().nth(MAX_COMMAND) {
        short.truncate(at);
        short.push('…');
    }
    short
}

pub(crate) fn title(profile: &Profile) -> Vec<String> {
    let mut title = tree::title(profile);
    let so_far = if profile.finished { "" } else { " so far" };
    title.push(format!("{}{so_far}", duration(profile.seconds.get() * 1e9)));
    title.push(plural(profile.samples.get(), "sample"));
    if let Some(own) = profile.perturbation.share_of_cpu {
        title.push(format!("profiler {} CPU", share(own.get())));
    }
    title
}

/// Such as `its holder sleeps in fsync: 98% of the waiting`.
pub(crate) fn cause(cause: &Cause) -> String {
    let within = cause.interval95.map_or_else(String::new, |interval| {
        format!(" ({})", range_of_shares(interval.low().get(), interval.high().get()))
    });
    format!("{}: {}{within} of the waiting", phrase(cause), percent(cause.share.get()))
}

pub(crate) fn further_cause(cause: &Cause) -> String {
    format!("{} {}", phrase(cause), percent(cause.share.get()))
}

fn phrase(cause: &Cause) -> String {
    let asleep = cause.syscall.as_ref().map(|name| format!("its holder sleeps in {}", clean(name)));
    let awaits = cause.awaited.as_ref().map(|it| format!("its holder waits for {}", clean(it)));
    match cause.cause {
        CauseKind::SleptHolding => asleep.unwrap_or_else(|| "its holder sleeps".into()),
        CauseKind::WaitsForLock => {
            awaits.unwrap_or_else(|| "its holder waits for another lock".into())
        }
        CauseKind::WaitsForThreads => {
            awaits.unwrap_or_else(|| "its holder waits for other threads".into())
        }
        CauseKind::Computing => "its holder computes".into(),
        CauseKind::OnCpu => "its holder computes or waits for a CPU".into(),
        CauseKind::Preempted => "its holder has lost its CPU".into(),
        CauseKind::Throttled => "its CPU quota is used up".into(),
        CauseKind::Convoy => "threads wait while it is free (convoy)".into(),
        CauseKind::Herd => "threads are woken together (herd)".into(),
        CauseKind::Hog => "one thread takes it again and again".into(),
        CauseKind::StarvedWriter => "its readers keep a writer waiting".into(),
        CauseKind::HeldByReaders => "readers hold it".into(),
    }
}

/// Completes a sentence that ends in "unknown", with the reason why no cause is known.
pub(crate) fn no_cause(lock: &Lock) -> String {
    if let Some(pid) = lock.holders.first().and_then(|holder| holder.pid) {
        return format!(
            ", because its holder is a thread of another process: `threadtoll profile -p {pid}` \
             shows what it does"
        );
    }
    match (lock.waiting_samples, lock.holder_not_seen_share) {
        _ if lock.released_by_others => {
            ": a thread other than its owner releases it, as if it were an event".into()
        }
        (_, Some(not_seen)) if not_seen.get() > 0.5 => ", because its holder was not seen".into(),
        (Some(samples), _) if samples.get() == 0 => ": no sample shows its holder".into(),
        (Some(samples), _) => format!(
            ": of {} with a waiting thread, too few agree on one cause",
            plural(samples.get(), "sample")
        ),
        // Older files do not have the number of samples.
        (None, _) => String::new(),
    }
}

pub(crate) fn gains(lock: &Lock) -> bool {
    lock.gain.is_some_and(|gain| gain.get() >= WORTHWHILE)
}

pub(crate) fn change(change: Change) -> String {
    match change {
        Change::HalveHold => "half the hold time".into(),
        Change::MoveOut => "sleeping outside the lock".into(),
        Change::Stripe(locks) => format!("{locks} locks instead of one"),
        Change::Threads(threads) => plural(threads.into(), "thread"),
    }
}

pub(crate) fn best_change(lock: &Lock) -> Option<String> {
    let best = lock.what_if.first()?;
    let question = match best.change {
        Change::HalveHold => "What if it were held half as long?".into(),
        Change::MoveOut => "What if its holder slept outside it?".into(),
        Change::Stripe(locks) => format!("What if there were {locks} locks instead?"),
        Change::Threads(1) => "What if there were one thread?".into(),
        Change::Threads(threads) => format!("What if there were {threads} threads?"),
    };
    let same = lock.what_if.iter().filter(|other| other.change == best.change).take(2);
    let effects: Vec<String> = same
        .enumerate()
        .map(|(nth, what_if)| {
            let effect = match what_if.gain {
                Some(gain) => locks::gained(gain.get() - 1.0, what_if.gain_interval95),
                None => {
                    let of = if nth == 0 { " the throughput of one thread" } else { "" };
                    format!("{}{of}{}", ratio(what_if.speedup.get()), within(what_if.interval95))
                }
            };
            let threads = match (what_if.change, nth) {
                (Change::Threads(_), _) => String::new(),
                (_, 0) => format!(" with {}", plural(what_if.threads.into(), "thread")),
                _ => format!(" with {}", what_if.threads),
            };
            format!("{effect}{threads}")
        })
        .collect();
    // "If nobody waited" is an upper limit only for a change that keeps the number of threads: with
    // more threads, the gain may be larger.
    let part = |all: f64| {
        let mut same = lock.what_if.iter().filter(|other| other.change == best.change).take(2);
        same.all(|it| it.gain.is_some_and(|gain| gain.get() - 1.0 <= all))
    };
    let adds_threads = matches!(best.change, Change::Threads(_));
    let all = lock.gain.filter(|all| !adds_threads && part(all.get()));
    let all = all.map_or_else(String::new, |_| {
        format!("; if nobody waited for it, {}", locks::gain(lock).text)
    });
    Some(format!("{question} {}{all}.", effects.join(", ")))
}

pub(crate) fn gain_not_told(seen: &Seen<'_>) -> Option<String> {
    let lock = seen.lock;
    let known = lock.gain.is_some() || lock.queue_mean.is_none() || lock.waiting_samples.is_none();
    if known || !seen.waited() || stuck::concerns(seen.process, lock.id) {
        return None;
    }
    let why = match (lock.never_taken, lock.takes_turns, lock.released_by_others) {
        (true, ..) => "is not known: it was held in every sample, and none of its waiters got it",
        (_, true, _) => {
            "is not known: its holder waits for work, and the other threads may have none"
        }
        (.., true) => "cannot be determined: it is released by a thread other than its owner",
        _ if lock.causes.first().is_some_and(|first| first.cause == CauseKind::Herd) => {
            "cannot be determined: waking its waiters all at once costs more than their waits"
        }
        _ => "cannot be determined while all CPUs are busy",
    };
    Some(format!("The gain without waits for {} {why}.", locks::shortened(&seen.name(), 30)))
}

fn within(interval: Option<Interval<Ratio>>) -> String {
    interval.map_or_else(String::new, |interval| {
        format!(" ({}–{}×)", digits(interval.low().get()), digits(interval.high().get()))
    })
}

pub(crate) fn unseen(profile: &Profile) -> Vec<String> {
    let mut unseen: Vec<String> = profile.unseen.iter().map(|text| clean(text)).collect();
    let cut = profile.stacks_cut_share.map_or(0.0, |share| share.get());
    if profile.method == Method::Sampled && cut >= STACKS_CUT {
        unseen.push(format!("The outer frames of {} of the stacks.", percent(cut)));
    }
    unseen
}

pub(crate) fn never_seen(profile: &Profile) -> Vec<String> {
    let mut all = unseen(profile);
    if profile.method == Method::Sampled {
        all.push("Locks for which no thread waited, unless debug information names them.".into());
    }
    all
}

pub(crate) fn method(profile: &Profile) -> Vec<String> {
    let mut sentences = vec![match profile.rate_per_s {
        Some(rate) => format!(
            "{} samples, {} per second, on a budget of {} of a CPU.",
            profile.samples,
            digits(rate.get()),
            share(profile.budget.get())
        ),
        None => format!("{} samples.", profile.samples),
    }];
    if let Some(late) = profile.late {
        sentences.push(format!(
            "99% of the samples were less than {} late; {} came so late that the program may have influenced their times.",
            duration(late.p99_ns.get()),
            share(late.share.get())
        ));
    }
    if !profile.perf_event {
        sentences.push(
            "Without perf_event, running threads cannot be distinguished from those that wait for a CPU, and preempted holders are not seen.".into(),
        );
    }
    if let Some(cut) = profile.stacks_cut_share {
        sentences.push(format!("{} of the stacks are cut short.", share(cut.get())));
    }
    sentences.push("Intervals are 95% intervals.".into());
    sentences
}
