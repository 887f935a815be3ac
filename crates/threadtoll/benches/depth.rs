//! Cost of a message while many others wait: `cargo bench -p threadtoll --bench depth`.
//!
//! One thread sends `depth` messages and then receives them, over and over, with the depths
//! interleaved. Prints the time per message, in and out, with one reading of the clock per burst,
//! and the ratio to a depth of a thousand in the same round.
//!
//! By default, queues free the memory of a burst, and the deepest pay for fresh memory: a page
//! fault every few hundred messages. Queues that may keep it show the cost of the queue itself,
//! from the second burst on. The last tables involve no queue: as many bytes are allocated in
//! pieces as large as the queue's chunks, written once line by line, read once, and freed.

use std::hint::black_box;
use std::time::{Duration, Instant};

use threadtoll::error::TryRecvError;
use threadtoll::{funnel, pipe};

const DEPTHS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
const BASE: usize = 3;
const ROUNDS: usize = 9;
/// Messages per depth and round, so that shallow and deep ones take equally long.
const MESSAGES: u64 = 2_000_000;

/// Enough for the deepest burst.
const ALL: usize = 1 << 30;

fn main() {
    table("pipe", 0, || through_pipe(pipe::Options::new()));
    table("pipe, second burst, memory kept", 1, || through_pipe(pipe::Options::new().retain(ALL)));
    table("funnel", 0, || through_funnel(funnel::Options::new()));
    table("funnel, second burst, memory kept", 1, || {
        through_funnel(funnel::Options::new().retain(ALL))
    });
    table("no queue, the pipe's memory", 0, || {
        |depth| touched((depth * 64).div_ceil(7), 256 << 10)
    });
    table("no queue, the funnel's memory", 0, || |depth| touched(depth * 16, 16 << 10));
}

/// Fills a queue and drains it again. Returns both times.
type Times = (Duration, Duration);

fn through_pipe(options: pipe::Options) -> impl FnMut(u64) -> Times {
    let (mut sender, mut receiver) = options.unbounded::<u64>();
    move |depth| filled(depth, |message| sender.send(message).is_ok(), || receiver.try_recv())
}

fn through_funnel(options: funnel::Options) -> impl FnMut(u64) -> Times {
    let (sender, mut receiver) = options.unbounded::<u64>();
    move |depth| filled(depth, |message| sender.send(message).is_ok(), || receiver.try_recv())
}

#[inline(always)]
fn filled(
    depth: u64,
    mut send: impl FnMut(u64) -> bool,
    mut receive: impl FnMut() -> Result<u64, TryRecvError>,
) -> Times {
    let begin = Instant::now();
    for message in 0..depth {
        assert!(send(black_box(message)));
    }
    let full = Instant::now();
    for message in 0..depth {
        assert_eq!(receive(), Ok(message));
    }
    (full - begin, full.elapsed())
}

/// Writes and reads fresh memory once, line by line, in pieces.
fn touched(bytes: u64, piece: u64) -> Times {
    let begin = Instant::now();
    let mut pieces: Vec<Vec<u64>> = Vec::new();
    for begin in (0..bytes).step_by(piece as usize) {
        let mut fresh: Vec<u64> =
            Vec::with_capacity((bytes - begin).min(piece).div_ceil(8) as usize);
        let places = fresh.spare_capacity_mut();
        (0..places.len())
            .step_by(8)
            .for_each(|line| _ = places[line].write(black_box(line as u64)));
        pieces.push(fresh);
    }
    let full = Instant::now();
    for mut piece in pieces {
        let places = piece.spare_capacity_mut();
        for line in (0..places.len()).step_by(8) {
            // SAFETY: written above.
            black_box(unsafe { places[line].assume_init_read() });
        }
    }
    (full - begin, full.elapsed())
}

fn table<F: FnMut(u64) -> Times>(name: &str, before: u64, make: impl Fn() -> F) {
    let mut costs = vec![Vec::new(); DEPTHS.len()];
    for _ in 0..ROUNDS {
        for (depth, costs) in DEPTHS.iter().zip(&mut costs) {
            costs.push(cost(*depth, before, &mut make()));
        }
    }
    println!(
        "{name}\n{:>12}  {:>7} {:<19} {:>7} {:<19}",
        "depth", "in, ns", "of it at 1000", "out, ns", "of it at 1000"
    );
    for (depth, at) in DEPTHS.iter().zip(&costs) {
        let column = |of: fn(&(f64, f64)) -> f64| {
            let (_, ns, _) = spread(at.iter().map(of).collect());
            let ratios = at.iter().zip(&costs[BASE]).map(|(one, base)| of(one) / of(base));
            let (low, middle, high) = spread(ratios.collect());
            format!("{ns:>7.2} {:<19}", format!("{middle:.2} ({low:.2}-{high:.2})"))
        };
        println!("{depth:>12}  {} {}", column(|cost| cost.0), column(|cost| cost.1));
    }
}

/// Nanoseconds per message in and out, after some bursts that do not count.
fn cost(depth: u64, before: u64, fill_and_drain: &mut impl FnMut(u64) -> Times) -> (f64, f64) {
    (0..before).for_each(|_| _ = fill_and_drain(depth));
    let rounds = (MESSAGES / depth).max(1);
    let (mut fill, mut drain) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..rounds {
        let (filled, drained) = fill_and_drain(depth);
        fill += filled;
        drain += drained;
    }
    let each = |time: Duration| time.as_nanos() as f64 / (rounds * depth) as f64;
    (each(fill), each(drain))
}

/// Lowest, median and highest value after dropping the extreme on each side: with nine rounds, a
/// 96% confidence interval of the median.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[1], values[values.len() / 2], values[values.len() - 2])
}
