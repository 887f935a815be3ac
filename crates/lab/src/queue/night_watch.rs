//! `night-watch`: messages so rare that the receiver has fallen asleep, up to a minute apart: how
//! late each arrives, and the CPU time that it takes to stay awake for it.

use threadtoll_record::{Between, Kind, Load};

use super::between::{self, shortest_gap_ns};
use super::burst::MAX_GAP_NS;
use super::paced;
use super::{
    Channel, Grouping, LoadOption, Loops, Overrides, Program, RING_BYTES, Scenario, Unsuitable,
    Usage, one_word, open_loop,
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "night-watch",
    sentence: "rare messages: latency and CPU time by the gap between them, spinning and asleep",
    kind: Kind::OpenLoop,
    options: &[LoadOption::Gap, LoadOption::Between],
    required: &[],
    check,
    loads,
    payloads: one_word,
    has_load,
    budget: open_loop::budget,
    capacity: |slots, _| slots.capacity_within(RING_BYTES),
    batches: |_, _, _| vec![1],
    wake_up: Some("futex"),
    senders: |_, _| vec![1],
    grouping: Grouping::LoadAndRow,
};

/// From 1 µs, less than a wake-up takes in CPU time, to 1 s.
const GAPS_NS: [u64; 8] =
    [1_000, 3_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Nothing first, with which the others are compared.
fn betweens(overrides: &Overrides) -> Vec<Option<Between>> {
    let asked = overrides.load.betweens.iter().flatten().copied().flatten();
    let mut asked: Vec<Between> = asked.collect();
    asked.sort_unstable();
    std::iter::once(None).chain(asked.into_iter().map(Some)).collect()
}

fn check(overrides: &Overrides) -> Result<(), Unsuitable> {
    super::ask_reply::one_at_a_time(SCENARIO.name, overrides)?;
    let gaps_ns = || overrides.load.gaps_ns.iter().flatten().copied();
    if gaps_ns().any(|gap| gap > MAX_GAP_NS) {
        let why = "--gap: messages are at most a minute apart".into();
        return Err(Unsuitable { why, hint: "use a shorter one" });
    }
    for between in betweens(overrides).into_iter().flatten() {
        let least = shortest_gap_ns(Some(between));
        if gaps_ns().any(|gap| gap < least) {
            let why = format!(
                "--between {between} takes time itself: gaps are at least {} µs long",
                least / 1000
            );
            return Err(Unsuitable { why, hint: "use a longer --gap, or omit --between" });
        }
    }
    Ok(())
}

fn loads(overrides: &Overrides) -> Vec<Load> {
    let gaps_ns = overrides.load.gaps_ns.as_deref().unwrap_or(&GAPS_NS);
    let betweens = betweens(overrides);
    let load = |gap: u64, between| Load { gap_ns: Some(gap.into()), between, ..Load::NONE };
    gaps_ns
        .iter()
        .flat_map(|gap| betweens.iter().map(move |between| (*gap, *between)))
        .filter(|(gap, between)| *gap >= shortest_gap_ns(*between))
        .map(|(gap, between)| load(gap, between))
        .collect()
}

fn has_load(load: &Load) -> Result<(), String> {
    let Load { gap_ns, between, .. } = *load;
    let plain = Load { gap_ns, between, ..Load::NONE };
    let range = shortest_gap_ns(between)..=MAX_GAP_NS;
    let in_range = gap_ns.is_some_and(|gap| range.contains(&gap.get()));
    (in_range && *load == plain).then_some(()).ok_or_else(|| "its gap is out of range".into())
}

pub(super) enum Compiled {}

impl Loops for Compiled {
    fn one_sender<C: Channel>(channel: &C, usage: Usage) -> Option<Program> {
        match usage.load.between {
            None => paced::program(channel, usage),
            Some(between) => between::program(channel, usage, between),
        }
    }
}
