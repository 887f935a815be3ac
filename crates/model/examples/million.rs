//! A million threads on ten thousand locks, ten million acquisitions: time and peak memory.
//!
//! `cargo run --release -p threadtoll-model --example million`

use std::time::Instant;

use threadtoll_model::simulate::{self, Locks, System};
use threadtoll_model::{ModelError, Shape, mva};

fn main() -> Result<(), ModelError> {
    let (hold_ns, think_ns) = (1e3, 99e3);
    let system = System {
        threads: 1_000_000,
        think: Shape::exponential(think_ns)?,
        locks: vec![Locks { count: 10_000, ..Locks::one(Shape::exponential(hold_ns)?) }],
        cores: None,
    };
    let start = Instant::now();
    let report = simulate::long_run(&system, 10_000_000, 1)?;
    let seconds = start.elapsed().as_secs_f64();
    let exact = mva::striped(threadtoll_model::Load::new(hold_ns, think_ns)?, 10_000, 1_000_000)?;
    println!(
        "{seconds:.1} s, {:.1} million events per second",
        report.events as f64 / seconds / 1e6
    );
    println!(
        "speed-up {:.0} ± {:.0}, mean value analysis {:.0}",
        report.speedup.value, report.speedup.half_width, exact.speedup
    );
    match peak_kib() {
        Some(kib) => println!("peak memory {:.2} GB", kib * 1024.0 / 1e9),
        None => println!("peak memory unknown: no /proc here"),
    }
    Ok(())
}

/// Largest resident size of this process so far, in KiB.
fn peak_kib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
