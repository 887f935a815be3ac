//! Signs of locks for which no thread sleeps in the usual way: repeated short sleeps, loops that
//! spin or yield, locks that are always held but have no queue, and tasks that wait inside an
//! asynchronous runtime.

use threadtoll_primitive::FunctionName;
use threadtoll_primitive::function::Part;
use threadtoll_record::Text;
use threadtoll_record::profile::{IoKind, Profile, Runtime, Site, WaitFor, WaitKind};

use super::{Answer, DOUBTFUL, Findings, UNTOLD};
use crate::profile::kinds::{self, Group};
use crate::profile::time::Spent;
use crate::profile::{Seen, WORTHWHILE, locks, spin_loop, stack};
use crate::units::{percent, range_of_shares};

/// Maximum sleep, in nanoseconds, of a thread that polls.
const POLLING_NS: f64 = 20e6;

/// System calls that change the mappings of a process. They wait for nothing but the lock on these
/// mappings.
const CHANGES: [&str; 4] = ["munmap", "mprotect", "mremap", "brk"];

/// Parts of the names of functions that retry something.
const POLLS: [&str; 6] = ["poll", "busy", "retry", "backoff", "wait", "try_"];

/// Parts of the names of functions that retry something after sleeps of at most `RETRIES_NS`.
const RETRIES: [&str; 3] = ["busy", "retry", "backoff"];
const RETRIES_NS: f64 = 1e9;

/// A lock that several threads take but for which no thread waits is suspicious if it is held for
/// at least `ALWAYS_HELD` of the time. If it is held for at least `OFTEN_HELD`, threads that poll
/// may poll for this lock.
const ALWAYS_HELD: f64 = 0.9;
const OFTEN_HELD: f64 = 0.5;

/// A share whose interval is wider than this is told as the interval.
const VAGUE: f64 = 0.1;

/// Most children were not seen if processes wait for children for more than `OF_CHILDREN` of the
/// time, and if all other activities take less than `SEEN_OF_CHILDREN` of that waiting time.
const OF_CHILDREN: f64 = 0.5;
const SEEN_OF_CHILDREN: f64 = 0.2;

/// A lock with at most this mean number of waiting threads has no queue.
const NO_QUEUE: f64 = 0.1;

/// Minimum share of threads that stands for all of them.
const NEARLY_ALL: f64 = 0.9;

/// Asynchronous runtimes: path of the function in which their threads wait for tasks, name, and
/// tool that shows the tasks.
const RUNTIMES: [(&str, &str, &str); 2] = [
    ("tokio::runtime::", "Tokio", "tokio-console shows"),
    ("async_io::", "async-io", "tracing of the tasks shows"),
];

impl Findings<'_> {
    /// The answer if threads repeatedly sleep for short times.
    pub(super) fn polling(&self) -> Option<Answer> {
        let polls = |group: &Group<'_>| {
            let length = group.wait.sleep_ns.map(|length| length.get());
            let asks = group.asks_about_a_lock();
            let short = length.is_some_and(|length| length < POLLING_NS);
            // A program's only thread waits for no other thread: it sleeps by choice.
            let alone = self.alone && !asks && !has_any(&group.place(), &POLLS);
            let retries = length.is_some_and(|length| length < RETRIES_NS)
                && has_any(&group.place(), &RETRIES);
            (short || asks || retries) && !alone && !is_internal(group)
        };
        let share = self.share(Spent::Sleep, polls);
        let asleep = |group: &&Group<'_>| group.wait.kind == WaitKind::Sleep && polls(group);
        let most = self.groups.iter().find(asleep).filter(|_| share >= DOUBTFUL)?;
        let retries = most.asks_about_a_lock() || has_any(&most.place(), &POLLS);
        if !retries && self.unclear().into_iter().sum::<f64>() > share {
            return None;
        }
        let length = most
            .length()
            .map_or_else(String::new, |length| format!(", {length} at a time, again and again"));
        let held = self.held_without_queue(OFTEN_HELD);
        let place = most.place_with_lock();
        if let Some(lock) = held.filter(|lock| uses(lock, most)) {
            return Some(Answer::doubtful(format!(
                "Probably locks: {} of the time its threads slept{length} in {place}, as if \
                 polling for {}, which was held {} of the time.",
                percent(share),
                locks::shortened(&lock.name(), 40),
                held_share(lock)
            )));
        }
        let held = held.map_or_else(String::new, held_all_the_time);
        let ran = |spent| !matches!(spent, Spent::Thread | Spent::Unknown | Spent::Sleep);
        let main = self.largest(ran).filter(|part| share < part.share);
        Some(Answer::doubtful(match main {
            Some(part) => format!(
                "{}, and {} of the time its threads {}; {} they slept{length} in {place}, as if \
                 polling for something{held}.",
                self.no_lock(),
                percent(part.share),
                part.phrase,
                percent(share)
            ),
            None => format!(
                "{UNTOLD} {} of the time its threads slept{length} in {place}, as if \
                 polling for something; read that code to see whether it is a lock{held}.",
                percent(share)
            ),
        }))
    }

    /// The answer if threads spin, or yield their CPUs, in the program's own code until another
    /// thread changes a word.
    pub(super) fn spin_loops(&self, profile: &Profile) -> Option<Answer> {
        let part = self.time.in_spin_loops.get();
        let share = self.of_cpu(part);
        let named = self.most_named().is_some_and(|(named, _)| named > share);
        if share < DOUBTFUL || named {
            return None;
        }
        let site = spin_loop(profile);
        let innermost = site.and_then(|site| site.frames.first());
        let yields = innermost.is_some_and(|function| function.ends_with("sched_yield"));
        // Not every loop that spins is recognised as one.
        let (least, did, place) = match yields {
            true => ("", "yielded their CPUs again and again", site.map(own_place)),
            false => (
                "at least ",
                "spun in a loop until another thread changes a word",
                site.map(stack::place),
            ),
        };
        let place = place.unwrap_or_default();
        let of_cpu = percent(self.part_of_cpu(part));
        let least = if of_cpu == percent(1.0) { "" } else { least };
        let at_barrier = |group: &&Group<'_>| {
            let frames = group.wait.sites.first().and_then(|site| site.frames.first());
            group.wait.what == WaitFor::Barrier && frames.is_some_and(|frame| is_of_gcc(frame))
        };
        if innermost.is_some_and(|function| is_of_gcc(function))
            && let Some(barrier) = self.groups.iter().find(at_barrier)
        {
            return Some(Answer::not_locks(format!(
                "Not locks: for {of_cpu} of their CPU time, threads spun in {place}, where they \
                 also sleep at a barrier{}.",
                barrier.while_one()
            )));
        }
        // Threads that spin for a lock of the library are not in a loop of unknown purpose.
        let spinner = site.and_then(|site| site.frames.get(usize::from(yields)));
        if spinner.is_some_and(|function| is_of_llvm(function)) {
            let did = if yields { "yielded their CPUs again and again" } else { "spun" };
            return Some(Answer::not_locks(format!(
                "Not locks: for {least}{of_cpu} of their CPU time, threads {did} in {place}, where \
                 OpenMP's threads wait for one another at a barrier, or for work."
            )));
        }
        let held = self.held_without_queue(OFTEN_HELD);
        let held = held.map_or_else(String::new, held_all_the_time);
        Some(Answer::doubtful(format!(
            "{UNTOLD} for {least}{of_cpu} of their CPU time, threads {did}, in {place}; read that \
             code to see whether it is a lock{held}."
        )))
    }

    /// The answer if threads leave their CPUs again and again, but samples do not show where.
    pub(super) fn yields(&self) -> Option<Answer> {
        let share = self.time.yielding.get();
        (share >= DOUBTFUL).then(|| {
            Answer::doubtful(format!(
                "{UNTOLD} {} of the time its threads left their CPUs again and again without going \
                 to sleep (as by sched_yield), as loops do that wait for a lock, or for anything \
                 else; a debugger shows where.",
                percent(share)
            ))
        })
    }

    /// The answer if several threads in turn hold a lock nearly all the time, but no thread was
    /// seen to wait for it. Threads may try again and again to take this lock.
    pub(super) fn contradiction(&self) -> Option<Answer> {
        let lock = self.held_without_queue(ALWAYS_HELD)?;
        let part = self.largest(|_| true)?;
        Some(Answer::doubtful(format!(
            "{UNTOLD} {} of the time its threads {}{}: they may try again and again to take it.",
            percent(part.share),
            part.phrase,
            held_all_the_time(lock)
        )))
    }

    /// The answer if threads ran, but all figures of a lock that several of them take are withheld:
    /// they may try again and again to take it.
    pub(super) fn withheld(&self) -> Option<Answer> {
        let withheld = |seen: &&Seen<'_>| {
            let lock = seen.lock;
            lock.held_share.is_none() && lock.queue_mean.is_none() && lock.threads >= 2
        };
        let lock = self.locks.iter().find(withheld)?;
        let part = self.largest(|spent| matches!(spent, Spent::Cpu | Spent::Runnable))?;
        (part.share >= WORTHWHILE).then(|| {
            Answer::doubtful(format!(
                "{}, and {} of the time its threads {}; the figures of {} are withheld.",
                self.no_lock(),
                percent(part.share),
                part.phrase,
                locks::shortened(&lock.name(), 40)
            ))
        })
    }

    /// The answer if threads wait in a Ruby interpreter without symbols: they wait on condition
    /// variables of their own, whatever for.
    pub(super) fn ruby(&self) -> Option<Answer> {
        let of_ruby = |group: &Group<'_>| {
            group.wait.what == WaitFor::ConditionVariable && group.place().starts_with("libruby")
        };
        let share = self.share(Spent::Thread, of_ruby);
        let first = self.largest(|_| true)?;
        (share >= DOUBTFUL && first.spent == Spent::Thread).then(|| {
            Answer::doubtful(format!(
                "{UNTOLD} {} of the time its threads waited in Ruby: for its global lock (GVL), \
                 for other threads, or asleep. Install the debug symbols of libruby to tell these \
                 apart.",
                percent(share)
            ))
        })
    }

    /// The answer if an asynchronous runtime parks its threads while its tasks wait.
    pub(super) fn tasks(&self) -> Option<Answer> {
        let parks = |group: &Group<'_>| runtime(group).is_some();
        let [idle, thread] = [Spent::Idle, Spent::Thread].map(|spent| self.share(spent, parks));
        let share = idle + thread;
        let most = self.groups.iter().find(|group| parks(group))?;
        let (_, name, tells) = runtime(most).filter(|_| share >= WORTHWHILE)?;
        let parked = format!("tasks that wait for an asynchronous lock are not seen; {tells} them");
        let other = |spent: Spent| !matches!(spent, Spent::Thread | Spent::Unknown | Spent::Idle);
        let main = self.largest(other).filter(|part| part.share >= share);
        Some(Answer::doubtful(match main {
            Some(part) => format!(
                "{}, and {} of the time its threads {}; {} {name} parked them, and {parked}.",
                self.no_lock(),
                percent(part.share),
                part.phrase,
                percent(share)
            ),
            None => format!(
                "{UNTOLD} {} of the time {name} parked its threads, and {parked}.",
                percent(share)
            ),
        }))
    }

    /// Among the locks without waiting threads, the lock that several threads together may hold for
    /// the largest share of the time. `None` if that share is surely below `least`.
    fn held_without_queue(&self, least: f64) -> Option<&Seen<'_>> {
        let free_of_waiters = |seen: &&Seen<'_>| {
            let queue = seen.lock.queue_mean.is_some_and(|queue| queue.get() < NO_QUEUE);
            queue && seen.lock.threads >= 2 && held_at_most(seen) >= least
        };
        let held = self.locks.iter().filter(free_of_waiters);
        held.max_by(|one, other| held_at_most(one).total_cmp(&held_at_most(other)))
    }
}

/// Returns `true` for functions of GCC's OpenMP library.
fn is_of_gcc(function: &str) -> bool {
    function.starts_with("libgomp.so") || function.starts_with("gomp_")
}

/// Returns `true` for functions of LLVM's OpenMP library, which is also Intel's.
fn is_of_llvm(function: &str) -> bool {
    ["libomp", "libiomp5", "__kmp"].iter().any(|start| function.starts_with(start))
}

/// The program's innermost function on a stack, and its caller.
fn own_place(site: &Site) -> String {
    let is_own = |frame: &&Text| FunctionName::parse(frame).part() == Part::Program;
    let own = site.frames.iter().skip(1).find(is_own);
    own.map_or_else(|| stack::place(site), |own| stack::from_function(&site.frames, own))
}

impl Findings<'_> {
    /// The answer if threads wait in calls that change the process's mappings: the kernel has a
    /// lock for the mappings of each process.
    pub(super) fn mappings(&self) -> Option<Answer> {
        let changes = |group: &Group<'_>| {
            let call = group.wait.syscall.as_deref();
            group.wait.what == WaitFor::Memory && call.is_some_and(|call| CHANGES.contains(&call))
        };
        if self.alone || self.share(Spent::Unknown, changes) < WORTHWHILE {
            return None;
        }
        // Waits for memory in other calls are then probably for the same lock.
        let of_memory = |group: &Group<'_>| group.wait.what == WaitFor::Memory;
        let share = self.share(Spent::Unknown, of_memory);
        let unknown = |group: &&Group<'_>| group.wait.kind == WaitKind::Unknown;
        let groups = || self.groups.iter().filter(unknown).filter(|group| of_memory(group));
        let (most, threads) = (groups().next()?, groups().map(|group| group.threads).sum());
        Some(Answer::doubtful(format!(
            "Probably locks: {} of the time its threads waited {}in {} ({}) for the lock on the \
             process’s mappings (mmap_lock), which mmap, munmap, mprotect and page faults take.",
            percent(share),
            mostly(most, threads),
            most.place(),
            most.thing()
        )))
    }

    /// The answer if threads wait for an initialisation that another thread runs.
    pub(super) fn initialisation(&self) -> Option<Answer> {
        let once = |group: &Group<'_>| group.wait.what == WaitFor::Once;
        let share = self.share(Spent::Thread, once);
        if share < DOUBTFUL {
            return None;
        }
        let groups = || self.groups.iter().filter(|group| once(group));
        let most =
            groups().find(|group| group.wait.function.is_some()).or_else(|| groups().next())?;
        let threads: f64 = groups().map(|group| group.threads).sum();
        let run_by = most.wait.run_by.as_ref().map_or_else(String::new, |function| {
            format!("; {} runs it", stack::short_name(function))
        });
        Some(Answer::doubtful(format!(
            "Initialisation: {} of the time its threads, {} of them on average, waited for a \
             one-time initialisation, {}in {}{run_by}.",
            percent(share),
            kinds::decimal(threads),
            mostly(most, threads),
            most.place()
        )))
    }

    /// Returns `true` if threads idle in Python's `select.epoll`, as the event loop of asyncio
    /// does.
    pub(super) fn runs_tasks_of_python(&self) -> bool {
        let polls =
            |site: &Site| site.frames.iter().any(|frame| frame.contains("select_epoll_poll"));
        let idle = self.groups.iter().filter(|group| group.wait.kind == WaitKind::Idle);
        idle.into_iter().any(|group| group.wait.sites.iter().any(polls))
    }

    /// The answer if processes wait for children that were hardly seen.
    pub(super) fn unseen_children(&self) -> Option<Answer> {
        let waits = self.part(Spent::Io(IoKind::Child))?;
        let others = 1.0 - waits.share;
        let unseen = waits.share > OF_CHILDREN && others < SEEN_OF_CHILDREN * waits.share;
        unseen.then(|| {
            Answer::doubtful(format!(
                "{UNTOLD} {} of the time its processes waited for child processes, most of which \
                 lived too shortly to be seen.",
                percent(waits.share)
            ))
        })
    }
}

fn is_internal(group: &Group<'_>) -> bool {
    let function = group.wait.function.as_deref().unwrap_or_default();
    let of_go = group.runtime == Some(Runtime::Go) && function.starts_with("runtime.");
    group.wait.of_runtime || of_go
}

fn held_interval(seen: &Seen<'_>) -> [f64; 2] {
    let value = seen.lock.held_share.map_or(0.0, |share| share.get());
    let interval = seen.lock.held_share_interval95;
    interval.map_or([value; 2], |it| [it.low().get(), it.high().get()])
}

fn held_at_most(seen: &Seen<'_>) -> f64 {
    held_interval(seen)[1]
}

fn held_share(seen: &Seen<'_>) -> String {
    let [low, high] = held_interval(seen);
    let value = seen.lock.held_share.map_or(0.0, |share| share.get());
    if high - low > VAGUE { range_of_shares(low, high) } else { percent(value) }
}

fn held_all_the_time(seen: &Seen<'_>) -> String {
    let queue = seen.lock.queue_mean.map_or(0.0, |queue| queue.get());
    let who = if queue > 0.0 { "hardly anybody" } else { "nobody" };
    format!(
        "; {} was held {} of the time, although {who} was seen to wait for it",
        locks::shortened(&seen.name(), 40),
        held_share(seen)
    )
}

/// Returns `true` if a stack of the lock contains the function in which the group sleeps.
fn uses(seen: &Seen<'_>, group: &Group<'_>) -> bool {
    let Some(function) = &group.wait.function else { return false };
    seen.lock.sites.iter().any(|site| site.frames.contains(function))
}

fn runtime(group: &Group<'_>) -> Option<(&'static str, &'static str, &'static str)> {
    let frames = group.wait.sites.first().map_or(&[][..], |site| &site.frames[..]);
    let idles = matches!(group.wait.kind, WaitKind::Thread | WaitKind::Idle);
    // Only frames up to the program's own function count, because functions of the runtime that
    // call tasks are farther out.
    let own = group.wait.function.as_deref();
    let to_own = frames.iter().position(|frame| Some(&**frame) == own).map_or(0, |at| at + 1);
    let inner = frames.get(..to_own).filter(|_| idles && !group.wait.of_runtime)?;
    RUNTIMES.into_iter().find(|(beginning, ..)| {
        inner.iter().any(|frame| FunctionName::parse(frame).path().starts_with(beginning))
    })
}

/// A word for a group that has only a part of these threads.
fn mostly(group: &Group<'_>, threads: f64) -> &'static str {
    if group.threads < NEARLY_ALL * threads { "mostly " } else { "" }
}

fn has_any(name: &str, parts: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    parts.iter().any(|part| name.contains(part))
}
