//! Events per second of the simulator on one core.
//!
//! `cargo run --release -p threadtoll-model --example events`
//!
//! A hundred threads at one lock, at several loads and of several shapes; each figure is the median
//! of five runs, with the slowest and the fastest. Time is CPU time if the kernel shows it (Linux).

use std::time::Instant;

use threadtoll_model::simulate::{self, Locks, System};
use threadtoll_model::{HandOff, ModelError, Policy, Shape};

const ACQUISITIONS: u64 = 4_000_000;

fn main() -> Result<(), ModelError> {
    let measured: Vec<f64> = (1..=10_000).map(|i| f64::from(i) * 0.02).collect();
    let cases = [
        (
            "exponential, held half the time",
            Shape::exponential(100.0)?,
            Shape::exponential(20_000.0)?,
            0.0,
        ),
        ("exponential, at the knee", Shape::exponential(100.0)?, Shape::exponential(9_900.0)?, 0.0),
        ("exponential, saturated", Shape::exponential(100.0)?, Shape::exponential(900.0)?, 0.0),
        ("fixed hold, at the knee", Shape::fixed(100.0)?, Shape::exponential(9_900.0)?, 0.0),
        (
            "measured hold, at the knee",
            Shape::sampled(&measured)?,
            Shape::exponential(9_900.0)?,
            0.0,
        ),
        (
            "barging with hand-off, at the knee",
            Shape::exponential(100.0)?,
            Shape::exponential(9_900.0)?,
            10.0,
        ),
    ];
    println!(
        "millions of events per second on one core, 100 threads (median, slowest to fastest of 5)"
    );
    for (name, hold, think, hand_off) in cases {
        let policy = if hand_off > 0.0 { Policy::Barging } else { Policy::Fifo };
        let lock = Locks { policy, hand_off: HandOff::fixed(hand_off)?, ..Locks::one(hold) };
        let system = System { threads: 100, think, locks: vec![lock], cores: None };
        let mut rates = Vec::new();
        for seed in 1..=5 {
            let (start, start_ran) = (Instant::now(), ran_s());
            let events = simulate::long_run(&system, ACQUISITIONS, seed)?.events;
            let seconds = match (start_ran, ran_s()) {
                (Some(before), Some(after)) => after - before,
                _ => start.elapsed().as_secs_f64(),
            };
            rates.push(events as f64 / seconds / 1e6);
        }
        rates.sort_by(f64::total_cmp);
        println!("{:6.1}  {:5.1} to {:5.1}  {name}", rates[2], rates[0], rates[4]);
    }
    Ok(())
}

/// CPU time of this thread in seconds.
fn ran_s() -> Option<f64> {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    schedstat.split_whitespace().next()?.parse::<f64>().ok().map(|ns| ns / 1e9)
}
