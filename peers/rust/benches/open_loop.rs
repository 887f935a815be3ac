//! Latency of messages that are due at fixed times.
//!
//! `cargo bench -p threadtoll-peers-rust --bench open_loop`
//!
//! ```text
//!   sender, CPU 0 ──a message due every gap──▶ receiver, CPU 1
//! ```
//!
//! A message carries the time at which it is due. Its latency counts from then, so that a queue
//! that delays its sender pays for every message that is late because of it. *late* is the delay
//! with which the sender began to send. The receiver checks the order of messages. It reads the
//! clock for every message, or for every second to fifth if they come faster.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use hdrhistogram::Histogram;
use support::arguments::Arguments;
use support::blocks::interleave;
use support::place::{on_two_cpus, two_cpus};
use support::queues::QueueKind;
use support::queues::blocking::{Crossbeam, Flume, Kanal, Std};
use support::queues::ours::wait::{Adaptive, Spin};
use support::queues::ours::{Funnel, Pipe};
use support::queues::polled::{Array, Gil, Nexus, Polled, Rtrb};
use support::table::{Comparison, Metric, Tables};
use support::time::{Clock, thread_cpu};

const GAPS_NS: [u64; 8] = [40, 50, 70, 100, 200, 500, 1_000, 1_000_000];
/// Capacity of bounded queues.
const CAPACITY: usize = 4096;
/// Pause hints of a back-off.
const BACKOFF: u32 = 100;
/// Length of a block, or the time of this many messages if that is longer.
const BLOCK_NS: u64 = 10_000_000;
const MESSAGES: u64 = 100;
/// Share of a block's messages that warm up and do not count.
const WARM_UP: f64 = 0.2;
/// The receiver reads the clock at most once in this time: a reading takes about 25 ns.
const STAMP_NS: u64 = 160;
/// Minimum number of latencies for a 99th percentile.
const ENOUGH: u64 = 1000;

type Measure = fn([u32; 2], u64) -> Vec<f64>;

const ROWS: [(&str, Measure); 19] = [
    ("pipe bounded", block::<Pipe<Adaptive, CAPACITY>>),
    ("pipe unbounded", block::<Pipe<Adaptive, 0>>),
    ("funnel unbounded", block::<Funnel<Adaptive, 0>>),
    ("pipe bounded, spin", block::<Pipe<Spin, CAPACITY>>),
    ("crossbeam bounded", block::<Crossbeam<CAPACITY>>),
    ("crossbeam unbounded", block::<Crossbeam<0>>),
    ("std mpsc", block::<Std>),
    ("kanal bounded", block::<Kanal<CAPACITY>>),
    ("kanal unbounded", block::<Kanal<0>>),
    ("flume bounded", block::<Flume<CAPACITY>>),
    ("flume unbounded", block::<Flume<0>>),
    ("gil", block::<Polled<Gil, CAPACITY, 0>>),
    ("rtrb", block::<Polled<Rtrb, CAPACITY, 0>>),
    ("nexus-queue", block::<Polled<Nexus, CAPACITY, 0>>),
    ("array-queue", block::<Polled<Array, CAPACITY, 0>>),
    ("gil, back-off", block::<Polled<Gil, CAPACITY, BACKOFF>>),
    ("rtrb, back-off", block::<Polled<Rtrb, CAPACITY, BACKOFF>>),
    ("nexus-queue, back-off", block::<Polled<Nexus, CAPACITY, BACKOFF>>),
    ("array-queue, back-off", block::<Polled<Array, CAPACITY, BACKOFF>>),
];
/// Rows that block, and rows that are polled.
const BLOCKING: std::ops::Range<usize> = 4..11;
const POLLED: std::ops::Range<usize> = 11..19;

const METRICS: [Metric; 6] = [
    Metric { name: "p50, ns", digits: 0, steady: false },
    Metric { name: "p90, ns", digits: 0, steady: false },
    Metric { name: "p99, ns", digits: 0, steady: true },
    Metric { name: "late p50, ns", digits: 0, steady: false },
    Metric { name: "late p99, ns", digits: 0, steady: false },
    Metric { name: "CPU, %", digits: 1, steady: false },
];

fn main() {
    let mut arguments = Arguments::read();
    let seconds = arguments.value("seconds", 30.0);
    let seed = arguments.value("seed", 1);
    let gaps: Vec<u64> = arguments.list("gaps-ns", &GAPS_NS);
    let names = ROWS.map(|(name, _)| name);
    let wanted = arguments.wanted(&names);
    support::begin();
    let cpus = two_cpus();
    let blocks = interleave(gaps.len(), &wanted, seconds, seed, cpus, |cell, row| {
        Some((ROWS[row].1)(cpus, gaps[cell]))
    });
    let against = |row: usize, against: std::ops::Range<usize>| Comparison {
        row,
        against: against.collect(),
        metrics: vec![0, 1, 2],
    };
    let mut comparisons = Vec::from([0, 1, 2].map(|row| against(row, BLOCKING)));
    comparisons.push(against(3, POLLED));
    let tables = Tables {
        cells: &gaps.iter().map(|gap| format!("a message every {gap} ns")).collect::<Vec<_>>(),
        rows: &names,
        metrics: &METRICS,
        comparisons: &comparisons,
        by_distance: true,
    };
    tables.print(blocks, seed);
}

fn block<K: QueueKind>(cpus: [u32; 2], gap_ns: u64) -> Vec<f64> {
    let messages = (BLOCK_NS / gap_ns).max(MESSAGES);
    let skip = (messages as f64 * WARM_UP) as u64;
    let (mut sender, mut receiver) = K::make::<u64>();
    let clock = Clock::start();
    let (late, (latencies, cpu)) = on_two_cpus(
        cpus,
        || send::<K>(&mut sender, clock, gap_ns, messages, skip),
        || receive::<K>(&mut receiver, clock, gap_ns, messages, skip),
    );
    let at = |histogram: &Histogram<u64>, quantile| histogram.value_at_quantile(quantile) as f64;
    let p99 = if latencies.len() >= ENOUGH { at(&latencies, 0.99) } else { f64::NAN };
    let [p50, p90] = [0.5, 0.9].map(|quantile| at(&latencies, quantile));
    vec![p50, p90, p99, at(&late, 0.5), at(&late, 0.99), cpu * 100.0]
}

/// Sends every message when it is due, or as soon as possible, and returns the delays.
#[inline(never)]
fn send<K: QueueKind>(
    sender: &mut K::Sender<u64>,
    clock: Clock,
    gap_ns: u64,
    messages: u64,
    skip: u64,
) -> Histogram<u64> {
    let mut late = empty();
    let start = clock.ns() + 10_000;
    let mut now = 0;
    for message in 0..messages {
        let due = start + message * gap_ns;
        // Overdue messages are sent without another reading of the clock.
        while now < due {
            now = clock.ns();
        }
        if message >= skip {
            late.saturating_record(now - due);
        }
        assert!(K::send(sender, due), "the receiver is there");
    }
    late
}

/// Receives all messages, and returns their latencies and the share of CPU time used.
#[inline(never)]
fn receive<K: QueueKind>(
    receiver: &mut K::Receiver<u64>,
    clock: Clock,
    gap_ns: u64,
    messages: u64,
    skip: u64,
) -> (Histogram<u64>, f64) {
    let mut latencies = empty();
    let mut due = None;
    for _ in 0..skip {
        due = next::<K>(receiver, due, gap_ns);
    }
    let (cpu, since) = (thread_cpu(), clock.ns());
    let timed = STAMP_NS / gap_ns + 1;
    for message in skip..messages {
        due = next::<K>(receiver, due, gap_ns);
        if !message.is_multiple_of(timed) {
            continue;
        }
        latencies.saturating_record(clock.ns().saturating_sub(due.unwrap_or(0)));
    }
    let share = (thread_cpu() - cpu).as_nanos() as f64 / (clock.ns() - since) as f64;
    (latencies, share)
}

/// Receives the message that follows the one due at `before`.
#[inline(always)]
fn next<K: QueueKind>(
    receiver: &mut K::Receiver<u64>,
    before: Option<u64>,
    gap_ns: u64,
) -> Option<u64> {
    let due = K::receive(receiver);
    let follows = |before: u64| due == Some(before + gap_ns);
    assert!(due.is_some() && before.is_none_or(follows), "out of order");
    due
}

fn empty() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, 60_000_000_000, 3) {
        Ok(histogram) => histogram,
        Err(why) => unreachable!("the bounds are fine: {why}"),
    }
}
