//! `night-watch`: messages so rare, up to a minute apart, that the receiver has fallen asleep.
//! Measures how late each message arrives, and the CPU time that a receiver spends on staying
//! awake.

use threadtoll_record::{Kind, Load};

use super::burst::MAX_GAP_NS;
use super::paced;
use super::{Channel, DEFAULT, Loops, Program, Scenario, Usage, only, open_loop, within};

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "night-watch",
    sentence: "latency and CPU time of rare messages by the gap between them, for receivers that \
               spin or sleep",
    kind: Kind::OpenLoop,
    loads: || loads(None),
    has_load,
    budget: open_loop::budget,
    wake_up: Some("futex"),
    ..DEFAULT
};

/// Gaps between messages, in nanoseconds: from 1 µs, which is less than the CPU time of a wake-up,
/// to 1 s.
const GAPS_NS: [u64; 8] =
    [1_000, 3_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Returns loads with these times between messages; `None` takes the defaults.
pub fn loads(gaps_ns: Option<&[u64]>) -> Vec<Load> {
    let gaps_ns = gaps_ns.unwrap_or(&GAPS_NS);
    let load = |gap: &u64| Load { gap_ns: Some((*gap).into()), ..Load::NONE };
    gaps_ns.iter().map(load).collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    let plain = Load { gap_ns: load.gap_ns, ..Load::NONE };
    only(&plain, within(load.gap_ns, MAX_GAP_NS), load, "its gap is out of range")
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        paced::program(channel, usage)
    }
}
