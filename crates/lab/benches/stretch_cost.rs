//! Measures the cost of the stamps between stretches, relative to a bare loop of the same engine.
//!
//! ```text
//!   lead ──message──▶ follow        bare:      stamp, N round trips, stamp
//!        ◀──echo────                stretched: stamp, (K round trips, stamp) × N/K
//! ```
//!
//! Both loops alternate on two threads; every message is verified. Prints each pair and the median
//! ratio with its 95% interval. Run: `cargo bench -p threadtoll-lab --bench stretch_cost [--
//! PAIRS]`

use std::process::ExitCode;
use std::time::Duration;

use threadtoll_lab::mechanism::Mechanisms;
use threadtoll_lab::real::stretch_cost;
use threadtoll_machine::clock::Clock;
use threadtoll_machine::place::allowed_cpus;
use threadtoll_machine::topology::Topology;
use threadtoll_stats::resample::{Processes, median_with_interval};

fn main() -> ExitCode {
    let pairs = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(41);
    let (clock, facts) = match Clock::gate() {
        Ok(passed) => passed,
        Err(refused) => {
            eprintln!("{refused}");
            return ExitCode::from(3);
        }
    };
    let topology = Topology::read(std::path::Path::new("/sys"));
    let Some(cpus) = topology.default_pair(&allowed_cpus()) else {
        eprintln!("skipped: two CPUs are needed");
        return ExitCode::SUCCESS;
    };
    println!(
        "clock step {:.1} ns, stamp {:.1} ns, CPUs {} and {}",
        facts.step_ns, facts.read_ns, cpus.0, cpus.1
    );
    let mechanisms = Mechanisms::default();
    for name in ["atomic-store", "atomic-rmw", "futex"] {
        let Some(mechanism) = mechanisms.find(name) else { continue };
        let stamp_ns = facts.step_ns.get() + facts.read_ns.get();
        let costs =
            match stretch_cost(&clock, stamp_ns, mechanism, cpus, pairs, Duration::from_millis(20))
            {
                Ok(costs) => costs,
                Err(error) => {
                    eprintln!("{error}");
                    return ExitCode::FAILURE;
                }
            };
        let ratios: Vec<f64> = costs.iter().map(|cost| cost.stretched_ns / cost.bare_ns).collect();
        for (index, cost) in costs.iter().enumerate() {
            println!(
                "{name} pair {index}: bare {:.2} ns, stretched {:.2} ns",
                cost.bare_ns, cost.stretched_ns
            );
        }
        if let Some((ratio, Some([low, high]))) =
            median_with_interval(&ratios, &Processes::one(ratios.len()), 1)
        {
            println!(
                "{name}: stretched / bare, round trip: median {ratio:.4}, 95% interval {low:.4} to {high:.4}, {} pairs",
                ratios.len()
            );
        }
    }
    ExitCode::SUCCESS
}
