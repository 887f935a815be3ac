//! Cost of sleeping to threads that do not sleep:
//! `cargo bench -p threadtoll-peers-rust --bench sleep`
//!
//! ```text
//!   sends:   sender, CPU 0 ──stretches of sends──▶ receiver, in the same thread or on CPU 1
//!   sleeps:  sender, CPU 0 ──a message per 200 µs──▶ receiver, CPU 0, asleep in between
//!            observer, CPU 1: reads the clock without a pause
//! ```
//!
//! A pipe's end that goes to sleep interrupts the threads of its process, unless each send executes
//! a fence (`Options::fence`). *ns a send* is the median over stretches, after each of which the
//! receiver takes all messages before the sender continues. The observer models an unrelated thread
//! that computes: *work* is the number of its readings, *lost* the share of its time lost to
//! interruptions. The receiver checks the order of messages.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::arguments::Arguments;
use support::blocks::interleave;
use support::observer::observe;
use support::place::{Padded, on_two_cpus, two_cpus};
use support::queues::QueueKind;
use support::queues::ours::wait::{Adaptive, Park};
use support::queues::ours::{FencedPipe, Funnel, Pipe};
use support::table::{Comparison, Metric, Tables};
use support::time::{monotonic, sleep_until, thread_sleeps};
use threadtoll_stats::median;

/// Length of a block of sends.
const BLOCK: Duration = Duration::from_millis(10);
/// Messages sent between two readings of the clock.
const STRETCH: u64 = 1024;
/// Time between messages to a receiver that sleeps.
const GAP: Duration = Duration::from_micros(200);
/// Messages to a receiver that sleeps.
const MESSAGES: u64 = 500;

const CELLS: [&str; 3] = [
    "sends, received in the same thread",
    "sends, received on the other CPU",
    "a receiver sleeps 5,000 times a second, next to a thread that computes",
];

type Measure = fn([u32; 2]) -> Vec<f64>;

/// The third cell sleeps at once; in the others no end has a reason to sleep.
const ROWS: [(&str, [Measure; 3]); 3] = [
    ("pipe", [in_turn::<Pipe<Adaptive, 0>>, across::<Pipe<Adaptive, 0>>, asleep::<Pipe<Park, 0>>]),
    (
        "pipe, fence",
        [
            in_turn::<FencedPipe<Adaptive>>,
            across::<FencedPipe<Adaptive>>,
            asleep::<FencedPipe<Park>>,
        ],
    ),
    (
        "funnel",
        [in_turn::<Funnel<Adaptive, 0>>, across::<Funnel<Adaptive, 0>>, asleep::<Funnel<Park, 0>>],
    ),
];
const METRICS: [Metric; 5] = [
    Metric { name: "ns a send", digits: 2, steady: false },
    Metric { name: "work, M/s", digits: 2, steady: false },
    Metric { name: "lost, %", digits: 2, steady: false },
    Metric { name: "interrupts/s", digits: 0, steady: false },
    Metric { name: "sleeps/s", digits: 0, steady: false },
];

fn main() {
    let mut arguments = Arguments::read();
    let seconds = arguments.value("seconds", 20.0);
    let seed = arguments.value("seed", 1);
    let names = ROWS.map(|(name, _)| name);
    let wanted = arguments.wanted(&names);
    support::begin();
    let cpus = two_cpus();
    let blocks = interleave(CELLS.len(), &wanted, seconds, seed, cpus, |cell, row| {
        Some((ROWS[row].1)[cell](cpus))
    });
    let with_pipe = |row| Comparison { row, against: vec![0], metrics: vec![0, 1] };
    let tables = Tables {
        cells: &CELLS.map(String::from),
        rows: &names,
        metrics: &METRICS,
        comparisons: &[1, 2].map(with_pipe),
        by_distance: true,
    };
    tables.print(blocks, seed);
}

fn in_turn<K: QueueKind>(cpus: [u32; 2]) -> Vec<f64> {
    let (sender, mut receiver) = K::make::<u64>();
    let mut expected = 0;
    let receive = |sent| {
        while expected < sent {
            assert_eq!(K::receive(&mut receiver), Some(expected), "out of order");
            expected += 1;
        }
    };
    let (ns, ()) = on_two_cpus(cpus, || send_ns::<K>(sender, receive), || ());
    of_sends(ns)
}

fn across<K: QueueKind>(cpus: [u32; 2]) -> Vec<f64> {
    let (sender, mut receiver) = K::make::<u64>();
    let received = Padded::default();
    let await_all = |sent| {
        while received.0.load(Ordering::Acquire) < sent {
            spin_loop();
        }
    };
    let receive = || {
        let mut expected = 0;
        while let Some(message) = K::receive(&mut receiver) {
            assert_eq!(message, expected, "out of order");
            expected += 1;
            if expected.is_multiple_of(STRETCH) {
                received.0.store(expected, Ordering::Release);
            }
        }
    };
    let (ns, ()) = on_two_cpus(cpus, || send_ns::<K>(sender, await_all), receive);
    of_sends(ns)
}

fn of_sends(ns: f64) -> Vec<f64> {
    vec![ns, f64::NAN, f64::NAN, f64::NAN, f64::NAN]
}

/// Nanoseconds of a send. `await_all` returns once that number of messages has been received.
#[inline(never)]
fn send_ns<K: QueueKind>(mut sender: K::Sender<u64>, mut await_all: impl FnMut(u64)) -> f64 {
    let (begin, mut sent, mut times) = (Instant::now(), 0, Vec::new());
    while begin.elapsed() < BLOCK {
        let start = Instant::now();
        for message in sent..sent + STRETCH {
            assert!(K::send(&mut sender, message), "the receiver is there");
        }
        times.push(start.elapsed().as_nanos() as f64 / STRETCH as f64);
        sent += STRETCH;
        await_all(sent);
    }
    median(times).unwrap_or(f64::NAN)
}

fn asleep<K: QueueKind>(cpus: [u32; 2]) -> Vec<f64> {
    let (sender, receiver) = K::make::<u64>();
    let over = AtomicBool::new(false);
    let exchange = || {
        let begin = Instant::now();
        // A thread inherits the affinity of its parent.
        let sleeps = thread::scope(|scope| {
            let receiver = scope.spawn(|| receive::<K>(receiver));
            send::<K>(sender);
            receiver.join().unwrap_or_default()
        });
        over.store(true, Ordering::Relaxed);
        sleeps as f64 / begin.elapsed().as_secs_f64()
    };
    let (sleeps, seen) = on_two_cpus(cpus, exchange, || observe(&over));
    vec![f64::NAN, seen.readings_per_us, seen.lost_percent, seen.interruptions_per_s, sleeps]
}

fn send<K: QueueKind>(mut sender: K::Sender<u64>) {
    let mut due = monotonic();
    for message in 0..MESSAGES {
        due += GAP;
        sleep_until(due);
        assert!(K::send(&mut sender, message), "the receiver is there");
    }
}

/// Receives all messages, and returns the number of sleeps.
fn receive<K: QueueKind>(mut receiver: K::Receiver<u64>) -> u64 {
    let before = thread_sleeps();
    let mut expected = 0;
    while let Some(message) = K::receive(&mut receiver) {
        assert_eq!(message, expected, "out of order");
        expected += 1;
    }
    assert_eq!(expected, MESSAGES, "messages were lost");
    thread_sleeps() - before
}
