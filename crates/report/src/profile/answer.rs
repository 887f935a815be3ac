//! The first line of a profile: is it locks?
//!
//! Time of unknown use leaves locks under suspicion: if threads wait for other threads for an
//! unknown reason, the answer is uncertain, unless these waits take little of the time.

mod doubts;

use std::collections::BTreeMap;

use threadtoll_primitive::function::is_queue;
use threadtoll_primitive::library;
use threadtoll_record::profile::{
    Lock, LockKind, Profile, Role, Runtime, ThreadTime, WaitFor, WaitKind,
};

use super::kinds::{self, Group};
use super::time::{self, Part, Spent};
use super::{
    Seen, WORTHWHILE, by_cost, locks, semaphores, short, stack, stuck, telling, thread_time,
};
use crate::units::{percent, range_of_shares};

/// Above this share of the time, waits for an unknown reason leave the answer open.
const DOUBTFUL: f64 = 0.1;

/// Above this fraction of the time whose use is known, waits for an unknown reason allow no answer.
const MUCH: f64 = 0.5;

/// A gain is uncertain if its interval extends from almost nothing to at least this.
const OPEN: f64 = 0.5;

/// If something other than a lock may set the pace, a gain counts only if the time waiting for
/// locks is at least this fraction of the working time.
const LONG: f64 = 0.15;

/// A lock whose queue is withheld may matter if the time waiting for locks is at least this
/// fraction of the working time.
const WITHHELD: f64 = 0.01;

/// Waits are cheap if their removal would gain less throughput than this.
const LITTLE: f64 = 0.1;

const UNTOLD: &str = "Cannot be told whether locks are to blame:";

/// The waiting is spread over many locks if there are at least `MANY` locks, and each causes at
/// most `LARGE_PART` of the waiting.
const MANY: usize = 5;
const LARGE_PART: f64 = 0.25;

/// If a smaller share of the threads that wait for an unknown reason wait in the same place, the
/// answer says that they "mostly" wait there.
const NEARLY_ALL: f64 = 0.9;

/// Below this share of the time, threads hardly wait.
const HARDLY: f64 = 0.005;

/// A queue hardly matters if its length is at most this fraction of the longest queue's.
const SHORT_QUEUE: f64 = 0.1;

/// Time in functions that take or release locks is mentioned if it is at least `LOCKING` of the
/// time on CPUs and at least `LOCKING_OF_ALL` of all time.
const LOCKING: f64 = 0.3;
const LOCKING_OF_ALL: f64 = 0.1;

pub(crate) struct Answer {
    /// True if locks are a problem at least for part of the time.
    pub(crate) locks: bool,
    pub(crate) doubtful: bool,
    pub(crate) text: String,
}

impl Answer {
    fn locks(text: String) -> Answer {
        Answer { locks: true, doubtful: false, text }
    }

    fn doubtful(text: String) -> Answer {
        Answer { locks: false, doubtful: true, text }
    }

    fn not_locks(text: String) -> Answer {
        Answer { locks: false, doubtful: false, text }
    }
}

struct Findings<'a> {
    time: &'a ThreadTime,
    parts: Vec<Part>,
    costs: Vec<Seen<'a>>,
    locks: Vec<Seen<'a>>,
    groups: Vec<Group<'a>>,
    alone: bool,
    waited: f64,
}

pub(crate) fn answer(profile: &Profile) -> Answer {
    let answer = of_threads(profile);
    let text = match super::is_alone(profile) {
        true => answer.text.replace("for other threads", &format!("for {}", super::OUTSIDE)),
        false => answer.text.replace(" threads ", &format!(" {} ", super::unit(profile))),
    };
    // The profile of a shell or a supervisor does not cover the processes that do its work.
    let others = match children(profile) {
        children if children == 0 || answer.locks => String::new(),
        1 => " Its child process was not profiled.".to_owned(),
        children => format!(" Its {children} child processes were not profiled."),
    };
    Answer { text: text + &others, ..answer }
}

fn children(profile: &Profile) -> u32 {
    profile.processes.iter().map(|process| process.children).sum()
}

fn of_threads(profile: &Profile) -> Answer {
    if let Some(&first) = stuck::stand_stills(profile).first() {
        return Answer::locks(stuck::sentences(first, profile));
    }
    let Some(time) = thread_time(profile) else {
        return Answer::not_locks(
            "Nothing seen: the program ended before it was sampled, or --only left it out.".into(),
        );
    };
    if let Some(text) = short::too_short(profile) {
        return Answer::not_locks(text);
    }
    let parts = time::parts(time);
    let waiting = parts.iter().find(|part| part.spent == Spent::Lock);
    let waited = waiting.map_or(0.0, |part| part.share);
    let locks = by_cost(profile);
    let (costs, _) = telling::telling(&locks);
    let (groups, alone) = (kinds::groups(profile), super::is_alone(profile));
    let findings = Findings { time, parts, costs, locks, groups, alone, waited };
    let gain = findings.gain();
    if let Some(turns) = findings.turns() {
        return Answer::doubtful(turns);
    }
    if findings.waits() || findings.gains() {
        return findings.locks(gain);
    }
    if let Some(spun) = findings.spun() {
        let spinlock = |seen: &&Seen<'_>| seen.lock.kind == LockKind::Spinlock;
        let costliest = costs_most(findings.costs.iter().find(spinlock));
        return Answer::locks(format!("Locks: threads {spun} of the time{costliest}."));
    }
    if let Some(locking) = findings.locking(profile) {
        return Answer::locks(locking);
    }
    if let Some(loops) = findings.spin_loops(profile) {
        return loops;
    }
    let doubts = [
        Findings::named_locks,
        Findings::mappings,
        Findings::initialisation,
        Findings::yields,
        Findings::ruby,
        Findings::parked,
        Findings::tasks,
        Findings::unknown_gain,
        Findings::polling,
        Findings::contradiction,
        Findings::unknown_waits,
        Findings::withheld,
    ];
    let mut doubt = doubts.into_iter().find_map(|doubt| doubt(&findings));
    if children(profile) == 0 {
        doubt = doubt.or_else(|| findings.unseen_children());
    }
    doubt.unwrap_or_else(|| findings.not_locks(profile))
}

/// Returns `true` if the gain may be nothing, but may also be large.
fn gain_is_open(seen: &Seen<'_>) -> bool {
    let within = seen.lock.gain.and(seen.lock.gain_interval95);
    within.is_some_and(|within| within.low().get() < WORTHWHILE && within.high().get() >= OPEN)
}

impl Findings<'_> {
    fn gain(&self) -> f64 {
        self.costs.first().and_then(|seen| seen.lock.gain).map_or(0.0, |gain| gain.get())
    }

    /// Returns `true` if threads waited for locks for a noteworthy share of the time. If that share
    /// is close to the limit, its interval must confirm it.
    fn waits(&self) -> bool {
        let least = if self.waited < 2.0 * WORTHWHILE { self.waited_at_least() } else { 1.0 };
        let is_open = self.costs.first().is_some_and(|seen| gain_is_open(seen));
        self.waited >= WORTHWHILE && least >= if is_open { DOUBTFUL } else { WORTHWHILE }
    }

    /// Returns `true` if the gain is worthwhile. Either its interval must confirm that, or threads
    /// must wait for locks long enough compared with their work.
    fn gains(&self) -> bool {
        let waits_long = self.waited_at_least() >= LONG * self.working();
        self.gain() >= WORTHWHILE && (self.gain_at_least() >= WORTHWHILE || waits_long)
    }

    fn waited_at_least(&self) -> f64 {
        let within = self.part(Spent::Lock).and_then(|part| part.interval);
        within.map_or(self.waited, |[low, _]| low)
    }

    fn gain_at_least(&self) -> f64 {
        let within = self.costs.first().and_then(|seen| seen.lock.gain_interval95);
        within.map_or(self.gain(), |within| within.low().get())
    }

    fn gain_at_most(&self) -> f64 {
        let within = self.costs.first().and_then(|seen| seen.lock.gain_interval95);
        within.map_or(0.0, |within| within.high().get())
    }

    fn part(&self, spent: Spent) -> Option<&Part> {
        self.parts.iter().find(|part| part.spent == spent)
    }

    fn share(&self, spent: Spent, which: impl Fn(&Group<'_>) -> bool) -> f64 {
        kinds::share_of(self.time, &self.groups, spent, which)
    }

    /// The largest part of the time whose kind satisfies `which`. Waiting and spinning for locks do
    /// not count.
    fn largest(&self, which: impl Fn(Spent) -> bool) -> Option<&Part> {
        let other = |part: &&Part| !matches!(part.spent, Spent::Lock | Spent::Spin);
        self.parts.iter().filter(other).find(|part| part.share > 0.0 && which(part.spent))
    }

    fn spun(&self) -> Option<String> {
        let spinning = self.part(Spent::Spin).filter(|spinning| spinning.share >= WORTHWHILE)?;
        // A program's only thread never spins for a lock, because every lock is free.
        if self.alone {
            return None;
        }
        Some(format!("spun for them {}", share_within(spinning)))
    }

    /// Sentence for a program whose waiting is mostly for locks whose holder waits for work, or for
    /// locks that threads other than their owners release.
    fn turns(&self) -> Option<String> {
        let queue = |seen: &Seen<'_>| seen.lock.queue_mean.map_or(0.0, |queue| queue.get());
        let all: f64 = self.costs.iter().map(queue).sum();
        let most = |which: fn(&Lock) -> bool| {
            let those = || self.costs.iter().filter(|seen| which(seen.lock));
            let most = those().max_by(|one, other| queue(one).total_cmp(&queue(other)))?;
            let name = locks::shortened(&most.name(), 40);
            (those().map(queue).sum::<f64>() > MUCH * all).then_some(name)
        };
        if self.waited < WORTHWHILE {
            return None;
        }
        let waited = percent(self.waited);
        let turns = most(|lock| lock.takes_turns).map(|name| {
            format!(
                "{UNTOLD} {waited} of the time its threads waited for {name} while the \
                 lock’s holder waited for work, as idle threads of a pool do one at a time."
            )
        });
        turns.or_else(|| {
            let name = most(|lock| lock.released_by_others)?;
            Some(format!(
                "{UNTOLD} {waited} of the time its threads waited for {name}, which a \
                 thread other than its owner releases, as if it were an event."
            ))
        })
    }

    /// Converts a share of all time into a share of the running time.
    fn part_of_cpu(&self, part: f64) -> f64 {
        let running = self.time.running.unwrap_or(self.time.on_cpu).get();
        if running > 0.0 { (part / running).min(1.0) } else { 0.0 }
    }

    /// Scales a part of the running time up to the time on CPUs, which includes waits for a CPU.
    /// Argument and result are shares of all time.
    fn of_cpu(&self, part: f64) -> f64 {
        self.part_of_cpu(part) * self.time.on_cpu.get()
    }

    /// Sentence for a program that waits little, but spends much of its CPU time on locks.
    fn locking(&self, profile: &Profile) -> Option<String> {
        let locking = self.of_cpu(self.time.in_locking.get());
        if locking < LOCKING_OF_ALL.max(LOCKING * self.time.on_cpu.get()) {
            return None;
        }
        let waits = if self.waited < HARDLY { "No waits" } else { "Few waits" };
        let most = super::locking(profile).map(|site| format!(" ({})", stack::taker(site)));
        Some(format!(
            "{waits}, but locks cost CPU time: for {} of their CPU time, threads ran in functions that \
             take or free locks{}. Take locks less often, or share less.",
            percent(self.part_of_cpu(self.time.in_locking.get())),
            most.unwrap_or_default()
        ))
    }

    fn no_lock(&self) -> &'static str {
        match self.costs.is_empty() {
            true => "Cannot be told for sure: no lock was seen",
            false => "Cannot be told for sure: no lock was seen to matter",
        }
    }

    /// Such as `1% for locks`.
    fn for_locks(&self) -> String {
        match self.waited > 0.0 {
            true => format!("{} for locks", percent(self.waited)),
            false => "none for locks".into(),
        }
    }

    fn locks(&self, gain: f64) -> Answer {
        let costliest = costs_most(self.costs.first());
        let [waiting, spinning] = [Spent::Lock, Spent::Spin].map(|spent| self.part(spent));
        let waited = waiting.map_or_else(|| percent(0.0), share_within);
        let waited_for = match self.spun() {
            Some(spun) if self.waited < HARDLY => format!("threads {spun} of the time"),
            Some(spun) => format!("threads waited for them {waited} of the time, and {spun}"),
            None => format!("threads waited for them {waited} of the time"),
        };
        let known = |seen: &Seen<'_>| seen.lock.gain.is_some();
        let all_known = !self.costs.is_empty() && self.costs.iter().all(known);
        let largest = self.largest(|_| true);
        let waiting: f64 = [waiting, spinning].into_iter().flatten().map(|part| part.share).sum();
        let text = match largest {
            _ if let Some(seen) = self.costs.first().filter(|seen| seen.lock.never_taken) => {
                let name = locks::shortened(&seen.name(), 40);
                format!(
                    "Locks: {waited_for}; {name} was held in every sample, and none of its waiters \
                     got it."
                )
            }
            _ if let Some(spread) = self.spread() => format!("Locks: {waited_for}{spread}."),
            // Long waits may cost little: a lock may park idle threads, and a program that lacks
            // CPUs would gain nothing without the lock.
            _ if all_known && gain < WORTHWHILE && self.gain_at_most() < LITTLE => {
                let gain = if gain < 0.0005 { "nothing".into() } else { percent(gain) };
                match self.locks_waited_for() {
                    0 | 1 => format!(
                        "Locks, at little cost: {waited_for}, but without these waits the program \
                         would gain {gain}."
                    ),
                    _ => format!(
                        "Locks: {waited_for}; without the waits for any one of them the program \
                         would gain {gain}, because another lock or the CPUs limit it next."
                    ),
                }
            }
            Some(part)
                if part.share > waiting && !matches!(part.spent, Spent::Idle | Spent::Thread) =>
            {
                let (phrase, share) = (part.phrase, percent(part.share));
                format!("Locks in part: {waited_for}, and {phrase} {share}{costliest}.")
            }
            _ => format!("Locks: {waited_for}{costliest}."),
        };
        let more = self.most_named().filter(|&(share, _)| share > self.waited);
        let more = more.map_or_else(String::new, |(share, most)| {
            let place = most.place_with_lock();
            format!(
                " They probably also wait for locks: {} of the time, in {place}.",
                percent(share)
            )
        });
        Answer::locks(text + &more)
    }

    /// Part of a sentence if many locks share the waiting, such as the locks of sessions or shards.
    fn spread(&self) -> Option<String> {
        let queue = |seen: &Seen<'_>| seen.lock.queue_mean.map_or(0.0, |queue| queue.get());
        let waited_for = || self.locks.iter().filter(|seen| seen.waited());
        let (number, all) = (waited_for().count(), waited_for().map(queue).sum::<f64>());
        if number < MANY || waited_for().any(|seen| queue(seen) > LARGE_PART * all) {
            return None;
        }
        let mut by_place: BTreeMap<String, f64> = BTreeMap::new();
        for seen in waited_for() {
            if let Some(site) = stack::main_site(seen.lock, Role::Waiter) {
                *by_place.entry(stack::caller(site)).or_default() += queue(seen);
            }
        }
        let most = by_place.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let taken = most
            .filter(|(_, queue)| *queue > 0.5 * all)
            .map_or_else(String::new, |most| format!(", most of it for those taken in {}", most.0));
        Some(format!(", spread over {number} locks{taken}"))
    }

    fn locks_waited_for(&self) -> usize {
        let queue = |seen: &Seen<'_>| seen.lock.queue_mean.map_or(0.0, |queue| queue.get());
        let longest = self.costs.iter().map(queue).fold(0.0, f64::max);
        self.costs.iter().filter(|&seen| queue(seen) > SHORT_QUEUE * longest).count()
    }

    /// The answer if waiting threads have functions on their stacks whose names suggest a lock.
    fn named_locks(&self) -> Option<Answer> {
        let (share, most) = self.most_named()?;
        let place = most.place_with_lock();
        let file = most.file().map(|file| format!("the lock on {file}"));
        let semaphore = semaphores::lock(most.wait);
        let own = self.share(Spent::Thread, |group| group.is_for_same_object(most));
        if most.wait.what == WaitFor::LibraryLock && own >= WORTHWHILE {
            let mend = most.wait.name.as_deref().and_then(library::named).map(|lock| lock.mend);
            let mend = mend.map_or_else(String::new, |mend| format!(" {mend}"));
            let waited = format!("{} of the time its threads waited for the", percent(own));
            return Some(Answer::locks(format!("Locks: {waited} {}.{mend}", most.thing())));
        }
        if let Some(object) = file.or_else(|| semaphore.and(semaphores::name(most.wait)))
            && own >= WORTHWHILE
        {
            let waited = format!(
                "{} of the time its threads waited for {object} ({})",
                percent(own),
                most.noun()
            );
            if most.takes_turns() {
                return Some(Answer::doubtful(format!(
                    "{UNTOLD} {waited} while its holder waited for work, as idle processes of a \
                     pool do one at a time."
                )));
            }
            let held = most.holding_processes();
            if let Some(semaphore) = semaphore {
                let used = semaphores::used_as_lock(semaphore);
                let held = held.map_or_else(String::new, |held| format!("; probably {held}"));
                return Some(Answer::doubtful(format!(
                    "Probably locks: {waited}, {used}, in {place}{held}."
                )));
            }
            if let Some(held) = held {
                return Some(Answer::locks(format!("Locks: {waited} in {place}; {held}.")));
            }
        }
        let did = match (most.wait.what, most.wait.kind, most.wait.sleep_ns) {
            (WaitFor::FileLock, ..) => format!("waited for file locks ({})", most.thing()),
            (_, WaitKind::Sleep, Some(_)) => format!("slept, {},", most.thing()),
            (_, WaitKind::Sleep, None) => "slept".into(),
            (_, WaitKind::Unknown, _) => format!("waited ({})", most.thing()),
            _ => format!("waited for other threads ({})", most.thing()),
        };
        Some(Answer::doubtful(format!(
            "Probably locks: {} of the time its threads {did} in {place}{}.",
            percent(share),
            most.while_one()
        )))
    }

    /// Time in waits whose function names suggest a lock, as a share of all time, and the group of
    /// such waits with the most threads. `None` if the share is not worth mentioning.
    fn most_named(&self) -> Option<(f64, &Group<'_>)> {
        let kinds = [Spent::Thread, Spent::Sleep, Spent::Unknown];
        let share: f64 =
            kinds.into_iter().map(|spent| self.share(spent, |group| group.names_a_lock())).sum();
        let most = self.groups.iter().find(|group| group.names_a_lock())?;
        (share >= WORTHWHILE).then_some((share, most))
    }

    /// The answer if a runtime parks its threads.
    fn parked(&self) -> Option<Answer> {
        let parked = |group: &Group<'_>| {
            let parks = group.runtime.is_some() && !group.wait.of_runtime;
            parks && group.wait.what == WaitFor::Parker
        };
        let share = self.share(Spent::Thread, parked);
        let most = self.groups.iter().find(|group| parked(group));
        let most = most.filter(|_| share >= WORTHWHILE)?;
        let (who, tells) = match most.runtime {
            Some(Runtime::Java) => {
                ("the Java virtual machine", "`jcmd PID Thread.print -l` or a JFR recording tells")
            }
            _ => ("Go's runtime", "its mutex and block profiles (net/http/pprof) tell"),
        };
        let on_cpu = self.time.on_cpu.get();
        let parked = format!("{} of the time {who} parked its threads", percent(share));
        if share < on_cpu {
            let ran = self.largest(|spent| matches!(spent, Spent::Cpu | Spent::Runnable))?;
            return Some(Answer::doubtful(format!(
                "{}, and {} of the time its threads {}; {parked}, and {tells} whether that \
                 was for locks.",
                self.no_lock(),
                percent(ran.share),
                ran.phrase
            )));
        }
        Some(Answer::doubtful(format!(
            "{UNTOLD} {parked} without a sign of the reason, {}; {tells} what for.",
            match self.waited > 0.0 {
                true => format!("and {} for locks that were seen", percent(self.waited)),
                false => "and no lock was seen".into(),
            }
        )))
    }

    /// The answer if threads waited for a lock whose gain is unknown.
    fn unknown_gain(&self) -> Option<Answer> {
        let seen = self.costs.iter().find(|seen| self.may_gain(seen) || gain_is_open(seen))?;
        let of_time = self.largest(|_| true).map_or_else(String::new, |part| {
            format!("{} of the time its threads {}; ", percent(part.share), part.phrase)
        });
        Some(Answer::doubtful(format!(
            "Cannot be told: {of_time}{}, but the gain without waits for {} {}.",
            self.for_locks(),
            locks::shortened(&seen.name(), 40),
            match seen.lock.gain {
                Some(_) => format!("may be {}", locks::gain(seen.lock).text),
                None if seen.lock.queue_mean.is_none() => "is withheld".into(),
                None => "is not known".into(),
            }
        )))
    }

    /// Returns `true` if threads waited for the lock, and its unknown gain may be worthwhile. The
    /// upper limit of the gain is the work that all threads waiting for locks could do.
    fn may_gain(&self, seen: &Seen<'_>) -> bool {
        // If the queue is withheld, the time spent waiting is not known well either.
        let least = if seen.lock.queue_mean.is_none() { WITHHELD } else { WORTHWHILE };
        seen.waited() && seen.lock.gain.is_none() && self.waited >= least * self.working()
    }

    /// Share of the time for which threads work: on a CPU, in I/O, or asleep by their own choice.
    fn working(&self) -> f64 {
        self.time.on_cpu.get() + self.time.io_total() + self.time.sleep.get()
    }

    /// Shares of the time in waits of unknown purpose: waits for other threads, and waits in system
    /// calls.
    fn unclear(&self) -> [f64; 2] {
        let open = |group: &Group<'_>| !group.is_explained();
        [(Spent::Thread, WaitKind::Thread), (Spent::Unknown, WaitKind::Unknown)].map(
            |(spent, kind)| match self.groups.iter().any(|group| group.wait.kind == kind) {
                true => self.share(spent, open),
                // Without stacks, the purpose of all this time is unknown.
                false => self.part(spent).map_or(0.0, |part| part.share),
            },
        )
    }

    /// The answer if threads wait for other threads, or in system calls, for an unknown purpose.
    fn unknown_waits(&self) -> Option<Answer> {
        let [thread, unknown] = self.unclear();
        let doubt = thread + unknown;
        if doubt < DOUBTFUL {
            return None;
        }
        let open = |group: &Group<'_>| !group.is_explained();
        let kind = if thread >= unknown { WaitKind::Thread } else { WaitKind::Unknown };
        let in_doubt = |group: &&Group<'_>| group.wait.kind == kind && open(group);
        let most = self.groups.iter().find(in_doubt);
        let all: f64 = self.groups.iter().filter(in_doubt).map(|group| group.threads).sum();
        let place = most.map_or_else(String::new, |group| {
            let mostly = if group.threads < NEARLY_ALL * all { "mostly " } else { "" };
            format!(" ({mostly}{} in {})", group.thing(), group.place())
        });
        let (phrase, largest) = match kind {
            WaitKind::Thread => ("waited for other threads", thread),
            _ => ("waited for something that was not recognised", unknown),
        };
        let memory = most.is_some_and(|most| most.wait.what == WaitFor::Memory);
        let phrase = match memory {
            true => "waited for memory or for the lock on its mappings",
            false => phrase,
        };
        let semaphore = most.and_then(|most| most.wait.semaphore.as_ref());
        let meanwhile = most.map_or_else(String::new, Group::while_one);
        let waited =
            format!("{} of the time its threads {phrase}{place}{meanwhile}", percent(largest));
        let known = |spent: Spent| !matches!(spent, Spent::Thread | Spent::Unknown);
        let rest: f64 = self
            .parts
            .iter()
            .filter(|part| known(part.spent) && part.spent != Spent::Lock)
            .map(|part| part.share)
            .sum();
        let of_pool = self
            .groups
            .iter()
            .filter(in_doubt)
            .take_while(|group| group.threads >= 0.1 * most.map_or(0.0, |most| most.threads))
            .all(|group| in_queue(group) && group.wait.what != WaitFor::Semaphore);
        // Java code itself never waits on condition variables. Such waits are those of the virtual
        // machine's own threads.
        let of_java = most.is_some_and(|most| most.runtime == Some(Runtime::Java));
        if (doubt <= MUCH * rest || of_java && rest >= DOUBTFUL)
            && let Some(part) = self.largest(known)
        {
            return Some(Answer::doubtful(format!(
                "{}, and {} of the time its threads {}; {} they {phrase}{place}.",
                self.no_lock(),
                percent(part.share),
                part.phrase,
                percent(largest)
            )));
        }
        if most.is_some() && of_pool {
            return Some(Answer::doubtful(format!(
                "Cannot be told for sure: {waited}, as idle threads of a pool do; {}.",
                self.for_locks()
            )));
        }
        let tells = match most.map(|most| most.wait.what) {
            Some(WaitFor::Semaphore | WaitFor::SysvSemaphore) => semaphores::advice(semaphore),
            Some(_) => "read that code to see whether it is for a lock".into(),
            None => "their stacks would show the reason".into(),
        };
        Some(Answer::doubtful(format!("{UNTOLD} {waited}; {tells}.")))
    }

    fn not_locks(&self, profile: &Profile) -> Answer {
        let known = |spent: Spent| !matches!(spent, Spent::Thread | Spent::Unknown);
        // A wait for another thread does not explain where the time goes, even if its purpose is
        // known.
        let largest = match self.largest(known) {
            Some(part) if part.share >= DOUBTFUL => Some(part),
            _ => self.largest(|_| true),
        };
        // A wait at a barrier does explain the time, if the activity of the thread that keeps the
        // others waiting is known.
        let waits = self.groups.iter().find(|group| group.wait.kind == WaitKind::Thread);
        let at_barrier = waits.is_some_and(|group| {
            group.wait.what == WaitFor::Barrier && group.wait.meanwhile.is_some()
        });
        let at_barrier = self.part(Spent::Thread).filter(|_| at_barrier);
        let largest = match (at_barrier, largest) {
            (Some(waits), Some(other)) if waits.share < other.share => Some(other),
            (waits, other) => waits.or(other),
        };
        let Some(part) = largest else {
            return Answer::not_locks("Nothing seen: no thread was sampled.".into());
        };
        let of_part =
            |group: &&Group<'_>| part.spent == Spent::Thread && group.wait.kind == WaitKind::Thread;
        let place = self.groups.iter().find(of_part).map_or_else(String::new, |group| {
            format!(" ({} in {}){}", group.thing(), group.place(), group.while_one())
        });
        let tasks = match part.spent == Spent::Idle && self.runs_tasks_of_python() {
            true => " Tasks that wait for a lock of asyncio’s are not seen.",
            false => "",
        };
        // The profile of a shell or a supervisor does not cover the processes that do its work.
        let here = if children(profile) > 0 { " in this process" } else { "" };
        Answer::not_locks(format!(
            "Not locks{here}: {} of the time its threads {}{place}; {}.{tasks}",
            percent(part.share),
            part.phrase,
            self.for_locks()
        ))
    }
}

/// Returns `true` if the group waits in a function of a queue, or in a function called from one.
fn in_queue(group: &Group<'_>) -> bool {
    let function = group.wait.function.as_deref();
    let frames = group.wait.sites.first().map_or(&[][..], |site| &site.frames[..]);
    let own = frames.iter().position(|frame| Some(&**frame) == function);
    let inner = own.map_or(&[][..], |own| &frames[..=own]);
    inner.iter().any(|frame| is_queue(frame)) || group.place().split(" ← ").any(is_queue)
}

fn costs_most(seen: Option<&Seen<'_>>) -> String {
    let of = |seen: &Seen<'_>| format!("; {} costs most", locks::shortened(&seen.name(), 40));
    seen.map_or_else(String::new, of)
}

fn share_within(part: &Part) -> String {
    let within = part.interval.map(|[low, high]| format!(" ({})", range_of_shares(low, high)));
    format!("{}{}", percent(part.share), within.unwrap_or_default())
}
