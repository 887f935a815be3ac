//! Requests that carry the senders of their answers.
//!
//! `cargo bench -p threadtoll-peers-rust --bench request`
//!
//! ```text
//!   asker, CPU 0 ──(number, sender of the reply)──▶ answerer, CPU 1   (one queue for all)
//!         ◀──────────────number + 1──────────────                     (a queue for each)
//! ```
//!
//! *Answered*: the time from before the reply queue is made until after its receiver is dropped.
//! The asker checks every answer.
//!
//! *Abandoned*: the asker drops the receiver some spins after asking, about when the answer is
//! sent. An accepted answer must be dropped although its sender lives on. One that remains after
//! 100 ms is stranded: were it a sender, its receiver would wait for ever.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use support::arguments::Arguments;
use support::blocks::interleave;
use support::place::{on_two_cpus, two_cpus};
use support::queues::QueueKind;
use support::queues::blocking::{Crossbeam, Oneshot, Std};
use support::queues::ours::wait::{Adaptive, Park};
use support::queues::ours::{Funnel, OneShot, Pipe};
use support::table::{Comparison, Metric, Tables};

/// Capacity of the bounded queues that carry requests.
const REQUESTS: usize = 16;
const BLOCK: Duration = Duration::from_millis(15);
/// The beginning of a block, in which no request is timed.
const WARM_UP: Duration = Duration::from_millis(3);

struct Request<K: QueueKind> {
    number: u64,
    reply: K::Sender<u64>,
}

type Measure = fn([u32; 2]) -> Vec<f64>;

const ROWS: [(&str, Measure); 9] = [
    ("pipe bounded(1)", answered::<Pipe<Adaptive, REQUESTS>, Pipe<Adaptive, 1>>),
    ("pipe bounded(1), park", answered::<Pipe<Park, REQUESTS>, Pipe<Park, 1>>),
    ("funnel unbounded", answered::<Funnel<Adaptive, 0>, Funnel<Adaptive, 0>>),
    ("crossbeam bounded(1)", answered::<Crossbeam<REQUESTS>, Crossbeam<1>>),
    ("std mpsc", answered::<Std, Std>),
    ("oneshot, asked by crossbeam", answered::<Crossbeam<REQUESTS>, Oneshot>),
    ("oneshot, asked by pipe", answered::<Pipe<Adaptive, REQUESTS>, Oneshot>),
    ("our one-shot, asked by pipe", answered::<Pipe<Adaptive, REQUESTS>, OneShot>),
    ("our one-shot, asked by crossbeam", answered::<Crossbeam<REQUESTS>, OneShot>),
];
const METRICS: [Metric; 2] = [
    Metric { name: "p50, ns", digits: 0, steady: false },
    Metric { name: "p90, ns", digits: 0, steady: false },
];

fn main() {
    let mut arguments = Arguments::read();
    let seconds = arguments.value("seconds", 20.0);
    let abandoned = arguments.value("abandoned-seconds", 10.0);
    let seed = arguments.value("seed", 1);
    let names = ROWS.map(|(name, _)| name);
    let wanted = arguments.wanted(&names);
    support::begin();
    let cpus = two_cpus();
    let blocks = interleave(1, &wanted, seconds, seed, cpus, |_, row| Some((ROWS[row].1)(cpus)));
    let compare = |row, peer| Comparison { row, against: vec![peer], metrics: vec![0, 1] };
    let tables = Tables {
        cells: &["answered".to_string()],
        rows: &names,
        metrics: &METRICS,
        comparisons: &[
            compare(0, 3),
            compare(0, 4),
            compare(0, 5),
            compare(0, 6),
            compare(7, 6),
            compare(8, 5),
        ],
        by_distance: true,
    };
    tables.print(blocks, seed);
    abandon_all(cpus, abandoned, seed);
}

fn answered<Q: QueueKind, K: QueueKind>(cpus: [u32; 2]) -> Vec<f64> {
    let (sender, receiver) = Q::make::<Request<K>>();
    let (times, ()) = on_two_cpus(cpus, || ask::<Q, K>(sender), || answer::<Q, K>(receiver));
    [0.5, 0.9].map(|quantile| times.value_at_quantile(quantile) as f64).into()
}

/// Asks until the block is over, and returns the time of each request.
#[inline(never)]
fn ask<Q: QueueKind, K: QueueKind>(mut requests: Q::Sender<Request<K>>) -> Histogram<u64> {
    let mut times = match Histogram::new_with_bounds(1, 60_000_000_000, 3) {
        Ok(histogram) => histogram,
        Err(why) => unreachable!("the bounds are fine: {why}"),
    };
    let begin = Instant::now();
    for number in 0.. {
        let start = Instant::now();
        let (reply, mut answer) = K::make::<u64>();
        assert!(Q::send(&mut requests, Request { number, reply }), "the answerer is there");
        let received = K::receive(&mut answer);
        drop(answer);
        let took = start.elapsed();
        assert_eq!(received, Some(number + 1), "another request's answer");
        let elapsed = begin.elapsed();
        if elapsed >= WARM_UP {
            times.saturating_record(took.as_nanos() as u64);
        }
        if elapsed >= BLOCK {
            break;
        }
    }
    times
}

#[inline(never)]
fn answer<Q: QueueKind, K: QueueKind>(mut requests: Q::Receiver<Request<K>>) {
    while let Some(mut request) = Q::receive(&mut requests) {
        assert!(K::send(&mut request.reply, request.number + 1), "the asker waits");
    }
}

/// Maximum number of loops that the asker spins before it drops its receiver.
const SPINS: u32 = 1_000;
const STRANDED: Duration = Duration::from_millis(100);

/// Total of answers dropped.
static DROPPED: AtomicU64 = AtomicU64::new(0);

struct Answer;

impl Drop for Answer {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Release);
    }
}

struct Abandoned<K: QueueKind> {
    reply: K::Sender<Answer>,
}

/// Abandoned answers by fate.
#[derive(Default)]
struct Fates {
    requests: u64,
    accepted: u64,
    stranded: u64,
}

type Abandon = fn([u32; 2], Duration, u64) -> Fates;

const ABANDONED: [(&str, Abandon); 8] = [
    ("pipe bounded(1)", abandoned::<Pipe<Adaptive, REQUESTS>, Pipe<Adaptive, 1>>),
    ("pipe unbounded", abandoned::<Pipe<Adaptive, 0>, Pipe<Adaptive, 0>>),
    ("funnel unbounded", abandoned::<Funnel<Adaptive, 0>, Funnel<Adaptive, 0>>),
    ("funnel bounded(1)", abandoned::<Funnel<Adaptive, REQUESTS>, Funnel<Adaptive, 1>>),
    ("crossbeam unbounded", abandoned::<Crossbeam<0>, Crossbeam<0>>),
    ("std mpsc", abandoned::<Std, Std>),
    ("oneshot", abandoned::<Crossbeam<REQUESTS>, Oneshot>),
    ("our one-shot", abandoned::<Pipe<Adaptive, REQUESTS>, OneShot>),
];

/// Prints the number of abandoned answers that each kind of queue strands, in equal shares of the
/// time.
fn abandon_all(cpus: [u32; 2], seconds: f64, seed: u64) {
    println!("\n# Abandoned\n\n{:22}{:>12}{:>12}{:>12}", "", "requests", "accepted", "stranded");
    let share = Duration::from_secs_f64(seconds / ABANDONED.len() as f64);
    for (name, abandon) in ABANDONED {
        let Fates { requests, accepted, stranded } = abandon(cpus, share, seed);
        println!("{name:22}{requests:12}{accepted:12}{stranded:12}");
    }
}

fn abandoned<Q: QueueKind, K: QueueKind>(cpus: [u32; 2], time: Duration, seed: u64) -> Fates {
    let (mut sender, mut receiver) = Q::make::<Abandoned<K>>();
    // Numbers of the last request whose receiver was dropped, and of the last one judged.
    let (left, judged) = (AtomicU64::new(0), AtomicU64::new(0));
    let before = DROPPED.load(Ordering::Acquire);
    let ask = || {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let end = Instant::now() + time;
        let mut requests = 0;
        while Instant::now() < end {
            let (reply, answer) = K::make::<Answer>();
            let spins = random.random_range(0..SPINS);
            assert!(Q::send(&mut sender, Abandoned { reply }), "the answerer is there");
            (0..spins).for_each(|spin| _ = black_box(spin));
            drop(answer);
            requests += 1;
            left.store(requests, Ordering::Release);
            while judged.load(Ordering::Acquire) < requests {
                thread::yield_now();
            }
        }
        drop(sender);
        requests
    };
    let answer = || {
        let mut fates = Fates::default();
        while let Some(mut request) = Q::receive(&mut receiver) {
            let accepted = K::send(&mut request.reply, Answer);
            fates.requests += 1;
            while left.load(Ordering::Acquire) < fates.requests {
                std::hint::spin_loop();
            }
            let since = Instant::now();
            let is_dropped = || DROPPED.load(Ordering::Acquire) - before == fates.requests;
            while !is_dropped() && since.elapsed() < STRANDED {
                thread::sleep(Duration::from_millis(1));
            }
            fates.accepted += u64::from(accepted);
            fates.stranded += u64::from(!is_dropped());
            drop(request);
            assert!(is_dropped(), "an answer was lost");
            judged.store(fates.requests, Ordering::Release);
        }
        fates
    };
    let (requests, fates) = on_two_cpus(cpus, ask, answer);
    assert_eq!(requests, fates.requests, "requests were lost");
    fates
}
