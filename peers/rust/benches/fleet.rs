//! CPU time of many queues with little to do: `cargo bench -p threadtoll-peers-rust --bench fleet`
//!
//! ```text
//!   sender 1 (sleeps until a message is due) ──▶ receiver 1
//!   …
//!   sender N (sleeps until a message is due) ──▶ receiver N
//! ```
//!
//! No thread is pinned. CPU time is that of the whole process, including senders. A round of a cell
//! counts only if each queue delivered its rate. Every receiver checks the order of messages.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::arguments::Arguments;
use support::blocks::{Block, interleave};
use support::place::{Padded, two_cpus};
use support::queues::QueueKind;
use support::queues::blocking::{Crossbeam, Std};
use support::queues::ours::wait::{Adaptive, Park};
use support::queues::ours::{FencedPipe, Funnel, Pipe};
use support::table::{Comparison, Metric, Tables};
use support::time::{monotonic, process_cpu, sleep_until};

const PAIRS: [usize; 3] = [1, 8, 32];
const GAPS_US: [u64; 1] = [1_000];
const WARM_UP: Duration = Duration::from_millis(100);
const BLOCK: Duration = Duration::from_millis(250);
/// Largest relative difference between the rates of messages received and due.
const TOLERANCE: f64 = 0.02;

type Measure = fn(usize, Duration) -> Vec<f64>;

const ROWS: [(&str, Measure); 6] = [
    ("pipe adaptive", block::<Pipe<Adaptive, 0>>),
    ("pipe park", block::<Pipe<Park, 0>>),
    ("pipe adaptive, fence", block::<FencedPipe<Adaptive>>),
    ("funnel adaptive", block::<Funnel<Adaptive, 0>>),
    ("crossbeam unbounded", block::<Crossbeam<0>>),
    ("std mpsc", block::<Std>),
];
const DELIVERED: usize = 1;
const METRICS: [Metric; 2] = [
    Metric { name: "CPU, %", digits: 2, steady: false },
    Metric { name: "delivered, %", digits: 1, steady: false },
];

fn main() {
    let mut arguments = Arguments::read();
    let seconds = arguments.value("seconds", 30.0);
    let seed = arguments.value("seed", 1);
    let pairs: Vec<usize> = arguments.list("pairs", &PAIRS);
    let gaps: Vec<u64> = arguments.list("gaps-us", &GAPS_US);
    let names = ROWS.map(|(name, _)| name);
    let wanted = arguments.wanted(&names);
    support::begin();
    let cells: Vec<(usize, u64)> =
        gaps.iter().flat_map(|gap| pairs.iter().map(move |pairs| (*pairs, *gap))).collect();
    let mut blocks = interleave(cells.len(), &wanted, seconds, seed, two_cpus(), |cell, row| {
        let (pairs, gap_us) = cells[cell];
        Some((ROWS[row].1)(pairs, Duration::from_micros(gap_us)))
    });
    drop_slow_rounds(&mut blocks);
    // Compared with park and with crossbeam.
    let compared = |row| Comparison { row, against: vec![1, 4], metrics: vec![0] };
    let name = |(pairs, gap): &(usize, u64)| format!("{pairs} pairs, a message per {gap} µs each");
    let tables = Tables {
        cells: &cells.iter().map(name).collect::<Vec<_>>(),
        rows: &names,
        metrics: &METRICS,
        comparisons: &[0, 2, 3].map(compared),
        by_distance: false,
    };
    tables.print(blocks, seed);
}

/// Drops the blocks of each round and cell in which a row did not deliver its rate.
fn drop_slow_rounds(blocks: &mut Vec<Block>) {
    let slow = |block: &&Block| (block.values[DELIVERED] / 100.0 - 1.0).abs() > TOLERANCE;
    let slow: Vec<(usize, usize, usize)> =
        blocks.iter().filter(slow).map(|block| (block.round, block.cell, block.row)).collect();
    for (round, cell, row) in &slow {
        println!("cell {cell} of round {round} does not count: {} missed its rate", ROWS[*row].0);
    }
    let is_slow = |block: &Block| {
        let mut slow = slow.iter();
        slow.any(|(round, cell, _)| (*round, *cell) == (block.round, block.cell))
    };
    blocks.retain(|block| !is_slow(block));
}

fn block<K: QueueKind>(pairs: usize, gap: Duration) -> Vec<f64> {
    let over = AtomicBool::new(false);
    let received: Vec<Padded> = (0..pairs).map(|_| Padded::default()).collect();
    let sum = || received.iter().map(|count| count.0.load(Ordering::Relaxed)).sum::<u64>();
    let sent = AtomicU64::new(0);
    let values = thread::scope(|scope| {
        let begin = monotonic();
        for (pair, received) in received.iter().enumerate() {
            let (sender, receiver) = K::make::<u64>();
            // Evenly spread, so that not all pairs wake at once.
            let first = begin + gap + gap * pair as u32 / pairs as u32;
            let (over, sent) = (&over, &sent);
            scope.spawn(move || {
                sent.fetch_add(send::<K>(sender, first, gap, over), Ordering::Relaxed);
            });
            scope.spawn(move || receive::<K>(receiver, received));
        }
        thread::sleep(WARM_UP);
        let (start, cpu, before) = (Instant::now(), process_cpu(), sum());
        thread::sleep(BLOCK);
        let (wall, cpu, count) = (start.elapsed(), process_cpu() - cpu, sum() - before);
        over.store(true, Ordering::Relaxed);
        let due = wall.as_secs_f64() / gap.as_secs_f64() * pairs as f64;
        vec![100.0 * cpu.as_secs_f64() / wall.as_secs_f64(), 100.0 * count as f64 / due]
    });
    assert_eq!(sum(), sent.load(Ordering::Relaxed), "messages were lost");
    values
}

/// Sends a message whenever one is due, and returns how many.
fn send<K: QueueKind>(
    mut sender: K::Sender<u64>,
    mut next_due: Duration,
    gap: Duration,
    is_over: &AtomicBool,
) -> u64 {
    let mut message = 0;
    while !is_over.load(Ordering::Relaxed) {
        sleep_until(next_due);
        assert!(K::send(&mut sender, message), "the receiver is there");
        message += 1;
        next_due += gap;
    }
    message
}

/// Receives all messages and counts them in `received`.
fn receive<K: QueueKind>(mut receiver: K::Receiver<u64>, received: &Padded) {
    let mut expected = 0;
    while let Some(message) = K::receive(&mut receiver) {
        assert_eq!(message, expected, "out of order");
        expected += 1;
        received.0.store(expected, Ordering::Relaxed);
    }
}
