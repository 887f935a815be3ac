//! Many senders that wait for space: `cargo bench -p threadtoll-peers-rust --bench ceiling`
//!
//! ```text
//!   sender 1 ──┐
//!   …          ├──capacity 1──▶ receiver
//!   sender N ──┘
//! ```
//!
//! Senders send as fast as they can, and no thread is pinned. *fairness* is the number of messages
//! of the slowest sender over the mean of all. The receiver checks the order of each sender's
//! messages.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::arguments::Arguments;
use support::blocks::interleave;
use support::place::two_cpus;
use support::queues::QueueKind;
use support::queues::blocking::{Crossbeam, Kanal, StdSync};
use support::queues::ours::Funnel;
use support::queues::ours::wait::Adaptive;
use support::table::{Comparison, Metric, Tables};

const SENDERS: [u64; 3] = [1, 8, 64];
const WARM_UP: Duration = Duration::from_millis(30);
const BLOCK: Duration = Duration::from_millis(150);
/// A message is its sender's number above this bit and the sender's count below it.
const COUNT_BITS: u32 = 40;

type Measure = fn(u64) -> Vec<f64>;

const ROWS: [(&str, Measure); 4] = [
    ("funnel bounded", block::<Funnel<Adaptive, 1>>),
    ("crossbeam bounded", block::<Crossbeam<1>>),
    ("std sync_channel", block::<StdSync<1>>),
    ("kanal bounded", block::<Kanal<1>>),
];
const METRICS: [Metric; 2] = [
    Metric { name: "ns a message", digits: 0, steady: false },
    Metric { name: "fairness", digits: 3, steady: false },
];

fn main() {
    let mut arguments = Arguments::read();
    let seconds = arguments.value("seconds", 30.0);
    let seed = arguments.value("seed", 1);
    let senders: Vec<u64> = arguments.list("senders", &SENDERS);
    let names = ROWS.map(|(name, _)| name);
    let wanted = arguments.wanted(&names);
    support::begin();
    let blocks = interleave(senders.len(), &wanted, seconds, seed, two_cpus(), |cell, row| {
        Some((ROWS[row].1)(senders[cell]))
    });
    let cells = senders.iter().map(|senders| format!("{senders} senders, capacity 1"));
    let against = |peer| Comparison { row: 0, against: vec![peer], metrics: vec![0] };
    let tables = Tables {
        cells: &cells.collect::<Vec<_>>(),
        rows: &names,
        metrics: &METRICS,
        comparisons: &[against(1), against(2), against(3)],
        by_distance: false,
    };
    tables.print(blocks, seed);
}

fn block<K: QueueKind>(senders: u64) -> Vec<f64>
where
    K::Sender<u64>: Clone,
{
    let (sender, receiver) = K::make::<u64>();
    let (counts, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let sent = AtomicU64::new(0);
    let (wall, received) = thread::scope(|scope| {
        for number in 0..senders {
            let sender = sender.clone();
            let (over, sent) = (&over, &sent);
            scope.spawn(move || {
                sent.fetch_add(send::<K>(sender, number, over), Ordering::Relaxed);
            });
        }
        drop(sender);
        let receiver = scope.spawn(|| receive::<K>(receiver, senders, &counts));
        thread::sleep(WARM_UP);
        counts.store(true, Ordering::Relaxed);
        let start = Instant::now();
        thread::sleep(BLOCK);
        counts.store(false, Ordering::Relaxed);
        let wall = start.elapsed();
        over.store(true, Ordering::Relaxed);
        (wall, receiver.join().unwrap_or_default())
    });
    assert_eq!(received.total, sent.load(Ordering::Relaxed), "messages were lost");
    let counted: u64 = received.counted.iter().sum();
    let fewest = received.counted.iter().min().copied().unwrap_or(0);
    let mean = counted as f64 / senders as f64;
    vec![wall.as_nanos() as f64 / counted as f64, fewest as f64 / mean]
}

/// Sends until it is over, and returns how many messages.
fn send<K: QueueKind>(mut sender: K::Sender<u64>, number: u64, over: &AtomicBool) -> u64 {
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        assert!(K::send(&mut sender, number << COUNT_BITS | count), "the receiver is there");
        count += 1;
    }
    count
}

#[derive(Default)]
struct Received {
    /// Messages of each sender while they counted.
    counted: Vec<u64>,
    /// Messages of all senders, at all times.
    total: u64,
}

/// Receives all messages, which count while `counts` is set.
fn receive<K: QueueKind>(
    mut receiver: K::Receiver<u64>,
    senders: u64,
    counts: &AtomicBool,
) -> Received {
    let mut expected: Vec<u64> = (0..senders).map(|number| number << COUNT_BITS).collect();
    let mut counted = vec![0; senders as usize];
    let mut total = 0;
    while let Some(message) = K::receive(&mut receiver) {
        let sender = (message >> COUNT_BITS) as usize;
        assert_eq!(message, expected[sender], "out of order");
        expected[sender] += 1;
        counted[sender] += u64::from(counts.load(Ordering::Relaxed));
        total += 1;
    }
    Received { counted, total }
}
