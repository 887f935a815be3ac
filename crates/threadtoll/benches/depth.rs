//! What a message costs when so many are already waiting: `cargo bench -p threadtoll --bench depth`.
//!
//! One thread sends `depth` messages and then receives them, again and again, the depths taking turns. Printed is the time per message,
//! in and out, and as a paired ratio (same round, so same weather) what it is of a depth of a thousand. The deepest pay for memory that was
//! never touched before: a page fault for every few hundred messages.

use std::hint::black_box;
use std::time::Instant;

use threadtoll::{funnel, pipe};

const DEPTHS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
const BASE: usize = 3;
const ROUNDS: usize = 9;
/// Messages a depth gets in a round, so that a shallow one lasts as long as a deep one.
const MESSAGES: u64 = 2_000_000;

fn main() {
    table("pipe", || {
        let (mut sender, mut receiver) = pipe::unbounded::<u64>();
        move |depth| {
            for message in 0..depth {
                assert!(sender.send(black_box(message)).is_ok());
            }
            for message in 0..depth {
                assert_eq!(receiver.try_recv(), Ok(message));
            }
        }
    });
    table("funnel", || {
        let (sender, mut receiver) = funnel::unbounded::<u64>();
        move |depth| {
            for message in 0..depth {
                assert!(sender.send(black_box(message)).is_ok());
            }
            for message in 0..depth {
                assert_eq!(receiver.try_recv(), Ok(message));
            }
        }
    });
}

fn table<F: FnMut(u64)>(name: &str, make: impl Fn() -> F) {
    let mut costs = vec![Vec::new(); DEPTHS.len()];
    for _ in 0..ROUNDS {
        for (depth, costs) in DEPTHS.iter().zip(&mut costs) {
            costs.push(cost(*depth, &mut make()));
        }
    }
    println!("{name:8} {:>10}  {:>10}  of a message at depth 1000", "depth", "ns/message");
    for (depth, at) in DEPTHS.iter().zip(&costs) {
        let ratios: Vec<f64> = at.iter().zip(&costs[BASE]).map(|(one, base)| one / base).collect();
        let (low, middle, high) = spread(ratios);
        let (_, ns, _) = spread(at.clone());
        println!("{:8} {depth:>10}  {ns:>10.2}  {middle:.2} ({low:.2}-{high:.2})", "");
    }
}

/// Nanoseconds per message.
fn cost(depth: u64, fill_and_drain: &mut impl FnMut(u64)) -> f64 {
    let rounds = (MESSAGES / depth).max(1);
    let start = Instant::now();
    for _ in 0..rounds {
        fill_and_drain(depth);
    }
    start.elapsed().as_nanos() as f64 / (rounds * depth) as f64
}

/// The first, the middle and the last of those that remain when the outermost on each side are left out: with nine rounds, an
/// interval of 96% for the median.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[1], values[values.len() / 2], values[values.len() - 2])
}
