//! `burst`: many messages are due at once, again and again. Measures when the first and the last
//! message of a burst arrive, how long the queue takes to drain, and how often the next burst finds
//! the queue empty.

use threadtoll_record::{Budget, Kind, Load};

use super::arrivals::MAX_MESSAGES;
use super::paced;
use super::{
    Channel, DEFAULT, Loops, Overrides, Program, QUEUE_ROUNDS, Scenario, Usage, only, rounds,
    within,
};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "burst",
    sentence: "bursts of messages: time until the first and the last arrive, time to drain, and \
               whether the next burst finds the queue empty",
    kind: Kind::OpenLoop,
    loads: || loads(None, None),
    has_load,
    budget,
    wake_up: Some("futex"),
    ..DEFAULT
};

const BURSTS: [u64; 5] = [1, 8, 64, 512, 4096];
const GAPS_NS: [u64; 3] = [10_000, 100_000, 1_000_000];
/// Maximum burst size, in messages: a block must have room for three bursts.
pub const MAX_BURST: u64 = MAX_MESSAGES as u64 / 3;
/// Maximum time between two bursts.
pub const MAX_GAP_NS: u64 = 60_000_000_000;
/// Usual length of a block. It is longer if it would have fewer than `LEAST` bursts.
const BLOCK_NS: u64 = 12_000_000;
const LEAST: u64 = 4;

fn budget(overrides: &Overrides, load: &Load) -> Budget {
    let gap_ns = load.gap_ns.map_or(1, |gap| gap.get()).max(1);
    let burst = load.burst.map_or(1, |burst| burst.get()).max(1);
    let most = (MAX_MESSAGES as u64 / burst).saturating_sub(1).max(2);
    let block_ns = BLOCK_NS.max(LEAST * gap_ns).min(most * gap_ns);
    let asked = overrides.time_ns.or(overrides.samples.map(|samples| samples / burst * gap_ns));
    let block_ns = match asked {
        Some(ns) => (ns / u64::from(QUEUE_ROUNDS)).clamp(2 * gap_ns, block_ns.max(2 * gap_ns)),
        None => block_ns,
    };
    let rounds = asked.map_or(QUEUE_ROUNDS, |ns| rounds(ns as f64 / block_ns as f64));
    Budget { rounds, stretch_ns: 0, stamped_ns: block_ns, stamped_count: None }
}

/// Returns loads with these burst sizes, in messages, and these times between bursts. `None` takes
/// the defaults.
pub fn loads(bursts: Option<&[u64]>, gaps_ns: Option<&[u64]>) -> Vec<Load> {
    let bursts = bursts.unwrap_or(&BURSTS);
    let gaps_ns = gaps_ns.unwrap_or(&GAPS_NS);
    let load = |gap: u64, burst: u64| Load {
        burst: Some(burst.into()),
        gap_ns: Some(gap.into()),
        ..Load::NONE
    };
    gaps_ns.iter().flat_map(|gap| bursts.iter().map(|burst| load(*gap, *burst))).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    let plain = Load { burst: load.burst, gap_ns: load.gap_ns, ..Load::NONE };
    let in_range = within(load.burst, MAX_BURST) && within(load.gap_ns, MAX_GAP_NS);
    only(&plain, in_range, load, "its bursts are out of range")
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        paced::program(channel, usage)
    }
}
