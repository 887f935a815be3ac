//! A million callers at a pool with measured hold times: time of the simulation.
//!
//! `cargo run --release -p threadtoll-model --example arrivals`

use std::time::Instant;

use threadtoll_model::{ModelError, Pool, Shape, pool};

fn main() -> Result<(), ModelError> {
    let hold = Shape::sampled(&[100e6, 200e6, 250e6, 650e6])?;
    for servers in [7, 1_000, 100_000] {
        let arrivals_per_s = 0.9 * f64::from(servers) / (hold.mean_ns() / 1e9);
        let pool = Pool { patience_ns: Some(5e9), ..Pool::new(arrivals_per_s, hold.clone()) };
        let start = Instant::now();
        let found = pool::simulate(&pool, servers, 1_000_000, 1)?;
        let seconds = start.elapsed().as_secs_f64();
        let p99 = found.wait_p99_ns.map_or(f64::NAN, |wait| wait.value / 1e6);
        println!("{servers} servers: {seconds:.2} s, p99 wait {p99:.1} ms");
    }
    Ok(())
}
