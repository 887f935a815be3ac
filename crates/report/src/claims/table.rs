//! The table of claims and figures from published articles.

use std::fmt;

use threadtoll_record::{LockSubject, Work};

use super::cells::Is::{self, All, Between, No, OneOf, Same, Yes};
use super::cells::Property::*;
use super::figure::Figure;

/// A publication that contains figures.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    pub(crate) year: u16,
    /// Author, place and date.
    title: &'static str,
    pub(crate) author: &'static str,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title)
    }
}

/// A claim, a figure, or both, about cells of an experiment.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(super) source: &'static str,
    /// Name of the scenario, or `latency`.
    pub(super) experiment: &'static str,
    pub(super) figure: Figure,
    pub(super) cells: &'static [Is],
    /// The cells with which it is compared; `None` if the claim is about the figure itself.
    pub(super) against: Option<&'static [Is]>,
    /// The claim; empty if the source only gives a figure.
    pub(super) text: &'static str,
    /// The claim holds if the figure or ratio is at least the first limit and below the second.
    pub(super) limits: [f64; 2],
    pub(crate) published: Option<Published>,
}

/// A published figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    /// Time in nanoseconds; for a stream, the longest time per message.
    pub(crate) ns: f64,
    /// True if the source says “or worse”.
    pub(crate) or_worse: bool,
    /// True if it was published as a rate.
    pub(super) is_rate: bool,
    /// Machine and program with which it was measured.
    pub(crate) machine: &'static str,
    pub(crate) source: &'static Source,
}

const fn about(
    source: &'static str,
    experiment: &'static str,
    figure: Figure,
    cells: &'static [Is],
) -> Claim {
    let limits = [f64::NAN; 2];
    Claim { source, experiment, figure, cells, against: None, text: "", limits, published: None }
}

impl Claim {
    const fn claims(self, limits: [f64; 2], text: &'static str) -> Claim {
        Claim { text, limits, ..self }
    }

    /// Names of the cells, the best match first.
    pub(crate) fn names(&self) -> &'static [&'static str] {
        let name = |is: &Is| if let OneOf(Name, names) = *is { Some(names) } else { None };
        self.cells.iter().find_map(name).unwrap_or_default()
    }

    const fn against(self, cells: &'static [Is]) -> Claim {
        Claim { against: Some(cells), ..self }
    }

    const fn gives(self, source: &'static Source, ns: f64, machine: &'static str) -> Claim {
        let is_rate = matches!(self.figure, Figure::Rate);
        let published = Published { ns, or_worse: false, is_rate, machine, source };
        Claim { published: Some(published), ..self }
    }

    const fn or_worse(mut self) -> Claim {
        if let Some(published) = &mut self.published {
            published.or_worse = true;
        }
        self
    }
}

const THOMPSON: &str = "M. Thompson (2011)";
const HABR: &str = "An article on Habr (2016)";
const PRESHING: &str = "J. Preshing (2011)";
const SUKHOVITSKY: &str = "A. Sukhovitsky";

const THOMPSON_AUGUST: &Source = &Source {
    year: 2011,
    title: "M. Thompson, Mechanical Sympathy, August 2011",
    author: "M. Thompson",
};
const THOMPSON_NOVEMBER: &Source =
    &Source { title: "M. Thompson, Mechanical Sympathy, November 2011", ..*THOMPSON_AUGUST };
const HABR_FEBRUARY: &Source = &Source {
    year: 2016,
    title: "an article on Habr on queues between threads, February 2016",
    author: "Habr",
};

const PINNED: Is = OneOf(Placement, &["pinned"]);
const FREE: Is = OneOf(Placement, &["free"]);
const VOLATILE: Is = OneOf(Name, &["java-volatile", "atomic-seqcst"]);
const CONDVAR: Is = OneOf(Name, &["java-condition", "std-condvar", "pthread-condvar"]);
const POLLED: Is = OneOf(Wait, &["poll", "poll-backoff"]);
const BLOCKED: Is = OneOf(Wait, &["block"]);
/// Lock-free C++ queues between two threads.
const LOCK_FREE: Is = OneOf(Name, &["boost-queue", "boost-spsc"]);
const DISRUPTOR: Is =
    OneOf(Name, &["disruptor-busy-spin", "disruptor-yielding", "disruptor-blocking"]);
const ASIO: Is = OneOf(Name, &["asio-post", "asio-post-fetch"]);
const ONE_SENDER: Is = Between(Senders, 1.0, 1.0);
const SINGLY: Is = Between(Batch, 0.0, 1.0);
const IN_BATCHES: Is = Between(Batch, 2.0, MAX);
/// One sender, and one message at a time.
const PLAIN: Is = All(&[ONE_SENDER, SINGLY]);
/// Threads that compute for exponentially distributed times, each on its own CPU.
const COMPUTING: Is = All(&[No(Sleeps), Yes(Exponential), No(Oversubscribed)]);
/// The same, with 15,000 acquisitions per second of work; the range allows for rounding to whole
/// units of work.
const USUAL: Is = All(&[COMPUTING, Between(CycleNs, 66_000.0, 67_399.0)]);
/// Tasks that sleep for 5 ms with the lock and for 95 ms without it.
const TASKS: Is = All(&[Yes(Sleeps), Between(HoldNs, 5e6, 5e6), Between(ThinkNs, 95e6, 95e6)]);
const MAX: f64 = f64::MAX;

/// Hold shares, with some tolerance because times are whole nanoseconds.
const fn hold_share(least: f64, most: f64) -> Is {
    const TOLERANCE: f64 = 0.0049;
    Between(HoldShare, least - TOLERANCE, most + TOLERANCE)
}

const fn threads(least: f64, most: f64) -> Is {
    Between(Threads, least, most)
}

const NEHALEM: &str = "Java 6 on Windows 7, Nehalem 2.8 GHz";
const FEDORA: &str = "Java 6 on Fedora 15, Sandy Bridge 2.0 GHz";
const USLEEP: &str = "usleep; the machine is not named";

#[rustfmt::skip]
pub(crate) static MECHANISMS: [Claim; 8] = [
    about(THOMPSON, "latency", Figure::OneWay, &[OneOf(Name, &["atomic-rmw"]), Yes(SharedLine), PINNED])
        .gives(THOMPSON_AUGUST, 45.0, "C++ with lock xadd on a Sandy Bridge laptop, 2.2 GHz"),
    about(THOMPSON, "latency", Figure::OneWay, &[VOLATILE, PINNED])
        .gives(THOMPSON_AUGUST, 50.0, "Java volatile on a Sandy Bridge laptop, 2.2 GHz"),
    about(THOMPSON, "latency", Figure::OneWay, &[CONDVAR, PINNED]).gives(THOMPSON_NOVEMBER, 2082.0, NEHALEM),
    about(THOMPSON, "latency", Figure::OneWay, &[CONDVAR, PINNED]).gives(THOMPSON_NOVEMBER, 2360.0, FEDORA),
    about(THOMPSON, "latency", Figure::OneWay, &[CONDVAR, FREE]).gives(THOMPSON_NOVEMBER, 3689.0, NEHALEM),
    about(THOMPSON, "latency", Figure::OneWay, &[CONDVAR, FREE]).gives(THOMPSON_NOVEMBER, 16_808.0, FEDORA),
    about(HABR, "latency", Figure::OneWay, &[OneOf(Name, &["sleep-poll"])]).gives(HABR_FEBRUARY, 40_000.0, USLEEP).or_worse(),
    about(THOMPSON, "latency", Figure::OneWay, &[OneOf(Name, &["java-volatile"])])
        .against(&[OneOf(Name, &["atomic-rmw"]), Yes(SharedLine), Same(Cpus)])
        .claims([1.05, 1.15], "C++ is about 10% faster than Java (Java takes 1.05 to 1.15 of the time)"),
];

#[rustfmt::skip]
pub(crate) static QUEUES: [Claim; 3] = [
    about(HABR, "ask-reply", Figure::AbnormalQuantiles, &[PLAIN])
        .claims([1.0, 2.0], "2 to 3 messages in 1,000 take abnormally long (1 to 10 in 1,000 take over ten times the median)"),
    about(HABR, "ask-reply", Figure::OneWay, &[PLAIN, Yes(Slept)])
        .against(&[OneOf(Name, &["futex"])])
        .claims([0.0, 2.0], "the wake-up of a sleeping receiver dominates (a hand-off takes less than twice that of a bare futex)"),
    about(HABR, "burst", Figure::LastOfBurst, &[PLAIN, Between(Burst, 2.0, MAX), Between(GapNs, 0.0, MAX)])
        .against(&[PLAIN, Between(Burst, 1.0, 1.0), Same(Name), Same(Wait), Same(GapNs)])
        .claims([0.0, 2.0], "the time of N messages divided by N measures nothing, since it falls as 1/N (N at once take less than twice the time of one)"),
];

/// Claims about CPU time and about queues in other languages; records of any regime can answer
/// them.
#[rustfmt::skip]
pub(crate) static OTHER_QUEUES: [Claim; 11] = [
    about(HABR, "open-loop", Figure::BillionMessages, &[PLAIN, Yes(Slept), Yes(UnderLock), Between(RatePerS, 5e3, 25e3)])
        .against(&[PLAIN, Yes(MaySleep), No(UnderLock), Same(RatePerS)])
        .claims([1.0_f64.next_up(), f64::INFINITY], "a queue without a lock saves CPU time on a billion messages a day (one with a lock takes more)"),
    about(HABR, "ask-reply", Figure::OneWay, &[OneOf(Name, &["mutex-queue"]), POLLED])
        .gives(HABR_FEBRUARY, 400.0, "a mutex and a queue, polled; the machine is not named")
        .claims([200.0, 800.0], "a mutex and a queue take about 400 ns if the receiver polls (200 to 800 ns)"),
    about(HABR, "ask-reply", Figure::OneWay, &[LOCK_FREE, POLLED])
        .gives(HABR_FEBRUARY, 400.0, "a lock-free queue, polled; the machine is not named")
        .claims([200.0, 800.0], "a lock-free queue takes about 400 ns if the receiver polls (200 to 800 ns)"),
    about(HABR, "ask-reply", Figure::OneWay, &[OneOf(Name, &["mutex-queue-usleep"]), BLOCKED])
        .gives(HABR_FEBRUARY, 40_000.0, USLEEP).or_worse()
        .claims([40_000.0, f64::INFINITY], "polling with `usleep` takes 40 µs or worse (at least 40 µs)"),
    about(HABR, "ask-reply", Figure::OneWay, &[OneOf(Name, &["d-concurrency"]), BLOCKED])
        .gives(HABR_FEBRUARY, 5_000.0, "std.concurrency of D; the machine is not named")
        .claims([2_500.0, 10_000.0], "D’s std.concurrency takes about 5 µs (2.5 to 10 µs)"),
    about(HABR, "ask-reply", Figure::OneWay, &[OneOf(Name, &["asio-post"]), BLOCKED])
        .gives(HABR_FEBRUARY, 4_300.0, "boost::asio, one sender; the machine is not named")
        .claims([2_150.0, 8_600.0], "boost::asio takes 4.3 µs with one sender (2.15 to 8.6 µs)"),
    about(HABR, "ask-reply", Figure::OneWay, &[OneOf(Name, &["mutex-queue"]), POLLED])
        .against(&[LOCK_FREE, Same(Wait)])
        .claims([0.8, 1.25], "a mutex and a queue are as fast as a lock-free queue if the receiver polls (0.8 to 1.25 times its time)"),
    about(HABR, "ask-reply", Figure::OneWay, &[OneOf(Name, &["d-channel-spin"]), BLOCKED])
        .against(&[OneOf(Name, &["d-channel"]), Same(Wait)])
        .claims([0.0, 0.5], "exponential sleep dominates the time of D’s lock-free channel, and a spin before it mends that (less than half of the time)"),
    about(HABR, "stream", Figure::Rate, &[ASIO, PLAIN])
        .against(&[Between(Senders, 2.0, MAX), SINGLY, Same(Name), Same(Wait)])
        .claims([1.1, f64::INFINITY], "boost::asio gets worse with more senders (a stream from one is at least 1.1 times as fast)"),
    about(THOMPSON, "stream", Figure::Rate, &[DISRUPTOR, PLAIN])
        .gives(THOMPSON_AUGUST, 40.0, "LMAX Disruptor, batches at the consumer; the machine is not named")
        .claims([25e6, f64::INFINITY], "the Disruptor passes more than 25 million messages a second without explicit batches"),
    about(THOMPSON, "stream", Figure::Rate, &[DISRUPTOR, ONE_SENDER, IN_BATCHES])
        .gives(THOMPSON_AUGUST, 10.0, "LMAX Disruptor, batches at both ends; the machine is not named")
        .claims([100e6, f64::INFINITY], "the Disruptor passes more than 100 million messages a second with batches of its publisher"),
];

#[rustfmt::skip]
pub(crate) static LOCKS: [Claim; 7] = [
    about(PRESHING, "hold-sweep", Figure::Speedup, &[USUAL, threads(2.0, 2.0), hold_share(0.5, 0.5)])
        .claims([1.4, 1.6], "speed-up of 1.5 (1.4 to 1.6) for two threads at a hold share of 50%"),
    about(PRESHING, "hold-sweep", Figure::SpeedupPerThread, &[USUAL, threads(2.0, 4.0), hold_share(0.005, 0.1)])
        .claims([0.95, f64::INFINITY], "almost perfect speed-up, at least 0.95 a thread, up to a hold share of 10%"),
    about(PRESHING, "hold-sweep", Figure::Speedup, &[USUAL, threads(2.0, 4.0), hold_share(0.91, 1.0)])
        .claims([0.0, 1.0], "speed-up below 1 above a hold share of 90%"),
    about(PRESHING, "frequency-sweep", Figure::Speedup, &[COMPUTING, Between(CycleNs, 3_000.0, 3_299.0), threads(2.0, 2.0)])
        .claims([1.5, f64::INFINITY], "speed-up of at least 1.5 for two threads that each take a short lock every 3.1 µs"),
    about(SUKHOVITSKY, "pool", Figure::Speedup, &[threads(10.0, 11.0), hold_share(0.05, 0.05)])
        .claims([9.5, f64::INFINITY], "speed-up of 10 (at least 9.5) with 10 to 11 threads at a hold share of 5%, where Amdahl’s law asks for 20"),
    about(SUKHOVITSKY, "pool", Figure::TaskTime, &[TASKS, threads(20.0, MAX)])
        .claims([5.94e6, 6.56e6], "6.25 ms a task (5.94 to 6.56) with 20 threads or more, each task holding the lock for 5 ms of sleep"),
    about(SUKHOVITSKY, "pool", Figure::TaskTime, &[TASKS, threads(1.0, 1.0)])
        .claims([100.4e6, 111.0e6], "105.7 ms a task (100.4 to 111.0) with one thread: the 6.25 ms, and 99.45 ms outside the lock for 95 ms of sleep"),
];

/// An uncontended lock and unlock on Preshing's machine.
pub(crate) const UNCONTENDED: (&str, &str) = (PRESHING, "23.5 ns");

/// Time for all tasks and mean queue on entry, published for a pool of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PublishedPool {
    pub(crate) total_ms: f64,
    pub(crate) queue_on_entry: f64,
}

/// Number of threads, time for all tasks in ms, and mean queue on entry, of A. Sukhovitsky’s
/// `ReentrantLock(true)`: 1,000 tasks, each 5 ms of sleep under the lock and 95 ms outside it.
const POOLS: [(u32, f64, f64); 7] = [
    (1, 105_729.0, 0.0),
    (5, 21_047.0, 0.0),
    (10, 10_605.0, 0.0),
    (16, 6_718.0, 0.0),
    (20, 6_252.0, 2.63),
    (25, 6_259.0, 7.5),
    (32, 6_259.0, 14.36),
];

/// The published figures for a cell of a pool.
pub(crate) fn published_pool(subject: &LockSubject) -> Option<PublishedPool> {
    let alike = subject.tasks == Some(1000)
        && subject.work == Work::Sleep
        && (subject.hold_ns, subject.think_ns) == (5_000_000, 95_000_000);
    let (_, total_ms, queue_on_entry) =
        *POOLS.iter().find(|(threads, ..)| alike && *threads == subject.threads)?;
    Some(PublishedPool { total_ms, queue_on_entry })
}
