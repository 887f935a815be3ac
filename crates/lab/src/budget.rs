use std::time::Duration;

use threadtoll_record::{Budget, MAX_ROUNDS};

/// A cell counts as stuck if it makes no progress for the length of its block plus this time.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Minimum number of rounds for a verdict on a ratio.
pub const ROUNDS: u32 = 21;

/// Maximum number of samples that a stamped block keeps: 1.6 MB per buffer.
pub const MAX_BLOCK_SAMPLES: u64 = 200_000;

/// Maximum number of stamped samples of a cell.
pub const MAX_SAMPLES: u64 = MAX_BLOCK_SAMPLES * MAX_ROUNDS as u64;

/// Block length above which a cell gets more rounds instead of longer blocks, up to [`MAX_ROUNDS`].
pub(crate) const LONG_BLOCK_NS: u64 = 25_000_000;

/// Divides a cell's measuring time equally between blocks that are timed in stretches and blocks
/// that stamp every operation. `samples` is the requested number of stamped samples.
///
/// More time gives more rounds rather than longer blocks: a block keeps a limited number of
/// samples, and confidence intervals come from many blocks.
pub fn budget(time_ns: u64, samples: Option<u64>) -> Budget {
    budget_with_rounds(ROUNDS, time_ns, samples)
}

pub(crate) fn budget_with_rounds(least: u32, time_ns: u64, samples: Option<u64>) -> Budget {
    let needed = samples
        .map_or(0, |samples| samples.div_ceil(MAX_BLOCK_SAMPLES))
        .max(time_ns / 2 / LONG_BLOCK_NS);
    let rounds = needed.clamp(u64::from(least), u64::from(MAX_ROUNDS)) as u32;
    let half = (time_ns / 2 / u64::from(rounds)).max(1);
    Budget {
        rounds,
        stretch_ns: half,
        stamped_ns: half,
        stamped_count: samples.map(|samples| samples.div_ceil(u64::from(rounds)).max(2)),
    }
}
