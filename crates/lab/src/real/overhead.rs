//! Cost of the stamps between stretches: the loop with and without them, alternating.

use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_record::{Layout, Pause, Placement};

use crate::LabError;
use crate::mechanism::{Mechanism, Settings};

use super::pair::pair;
use super::passes::{Pass, Watch};
use super::{WARM_UP_NS, per_stretch};
use crate::budget::PATIENCE;

/// Mean round trips of neighbouring blocks, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StretchCost {
    /// Bare loop: two stamps, around the whole loop.
    pub bare_ns: f64,
    /// Measured loop: a stamp after each stretch.
    pub stretched_ns: f64,
}

/// Runs `pairs` pairs of blocks of about `block` each on two CPUs: a bare one, and one with
/// stretches of the length that a measurement would use. The order within a pair alternates.
///
/// # Errors
///
/// If the threads cannot be started, or a message is wrong or does not arrive.
pub fn stretch_cost(
    clock: &Clock,
    stamp_ns: f64,
    mechanism: &Mechanism,
    cpus: (u32, u32),
    pairs: u32,
    block: Duration,
) -> Result<Vec<StretchCost>, LabError> {
    let settings = Settings { payload_bytes: 8, layout: Layout::Own, pause: Pause::Off };
    let make = mechanism.maker(settings);
    let cpus = [vec![cpus.0], vec![cpus.1]];
    let mut pair = pair(clock, &mechanism.name, make, Placement::Pinned, cpus, PATIENCE)?;
    let warm_up = clock.ticks(WARM_UP_NS);
    let mut mean_ns = |stretches: u64, per_stretch: u64| -> Result<f64, LabError> {
        let pass =
            Pass { warm_up, stretches, per_stretch, length: u64::MAX, watch: Watch::Nothing };
        let report = pair.run(pass, PATIENCE + block * 50)?;
        Ok(report.mean_ns(clock, per_stretch).unwrap_or(0.0))
    };
    let mut typical_ns = mean_ns(1, 20_000)?;
    let mut costs = Vec::new();
    for index in 0..pairs {
        let per_stretch = per_stretch(stamp_ns, typical_ns);
        let stretches = (block.as_nanos() as f64 / (typical_ns * per_stretch as f64))
            .clamp(2.0, 100_000.0) as u64;
        let (bare_ns, stretched_ns) = if index % 2 == 0 {
            let bare = mean_ns(1, stretches * per_stretch)?;
            (bare, mean_ns(stretches, per_stretch)?)
        } else {
            let stretched = mean_ns(stretches, per_stretch)?;
            (mean_ns(1, stretches * per_stretch)?, stretched)
        };
        typical_ns = bare_ns.min(stretched_ns).max(0.1);
        costs.push(StretchCost { bare_ns, stretched_ns });
    }
    Ok(costs)
}
