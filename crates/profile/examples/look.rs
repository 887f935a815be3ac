//! Prints what the profiler sees of a running process.

use std::sync::atomic::AtomicBool;
use std::time::Duration;
fn main() {
    let pid = std::env::args().nth(1).unwrap().parse().unwrap();
    let seconds: f64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let budget: f64 = std::env::args().nth(3).map_or(0.01, |b| b.parse().unwrap());
    let options = threadtoll_profile::Options { rate_per_s: 1000.0, budget, only: None, seed: 1 };
    let mut profiler = threadtoll_profile::Profiler::attach(pid, &options).unwrap();
    let profile = profiler.run(Some(Duration::from_secs_f64(seconds)), Duration::from_secs(1), &AtomicBool::new(false), &mut |_| {});
    println!("{}", serde_json::to_string_pretty(&profile).unwrap());
}
