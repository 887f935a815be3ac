use threadtoll_record::{Budget, Cell, Experiment, Layout, Pause, Placement, Refused};

use crate::budget::ROUNDS;
use crate::mechanism::{Class, Mechanism, Mechanisms};

use super::Planned;
use super::cells::{CpuSelection, MechanismChoice, cells, pair_cells};
use super::groups::{bundle, compared_groups, group, planned_as};

/// Thoroughness of a survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Every mechanism once, within 15 seconds.
    Quick,
    /// Every mechanism at every sensible placement, in about a minute.
    Standard,
    /// All variants and message sizes too; takes minutes.
    Full,
}

/// Budget for a pair of CPUs in a matrix: small, because there are many pairs.
const MATRIX: Budget =
    Budget { rounds: 7, stretch_ns: 5_000_000, stamped_ns: 5_000_000, stamped_count: None };
const MATRIX_QUICK: Budget =
    Budget { rounds: 3, stretch_ns: 3_000_000, stamped_ns: 3_000_000, stamped_count: None };
/// Message sizes in bytes that only a full survey measures.
const PAYLOADS: [u64; 5] = [64, 256, 1024, 4096, 65536];

/// Plans a survey: all mechanisms (the ladder) and a selection of CPU pairs.
///
/// If `placements` is not empty, only these placements are planned. `asked` overrides the budget of
/// the ladder's cells.
pub fn survey(
    site: &CpuSelection<'_>,
    mechanisms: &Mechanisms,
    depth: Depth,
    placements: &[Placement],
    asked: Option<Budget>,
) -> Planned {
    let mut groups = Vec::new();
    let mut refused = Vec::new();
    for placement in Placement::ALL {
        if !placements.is_empty() && !placements.contains(&placement) {
            continue;
        }
        let (bundles, left_out) = ladder(site, mechanisms, depth, placement);
        refused.extend(left_out);
        let budget = asked.unwrap_or_else(|| budget(depth, placement));
        groups.extend(compared_groups(bundles, site, mechanisms, budget));
    }
    let (pairs, matrix_budget) = match depth {
        Depth::Quick => (spread_pairs(site, 4), MATRIX_QUICK),
        Depth::Standard => (spread_pairs(site, 28), MATRIX),
        Depth::Full => (spread_pairs(site, 120), MATRIX),
    };
    if !placements.is_empty() && !placements.contains(&Placement::Pinned) {
        return (groups, refused);
    }
    for name in ["atomic-store", "futex"] {
        if let Some(mechanism) = mechanisms.find(name) {
            let bundles = vec![pair_cells(mechanism, site, &pairs)];
            groups.extend(group(
                bundles,
                &[site.reference()],
                matrix_budget,
                planned_as(Experiment::Matrix, matrix_budget),
            ));
        }
    }
    (groups, refused)
}

fn budget(depth: Depth, placement: Placement) -> Budget {
    let ms = |stretch: u64, stamped: u64, rounds: u32| Budget {
        rounds,
        stretch_ns: stretch * 1_000_000,
        stamped_ns: stamped * 1_000_000,
        stamped_count: None,
    };
    match (depth, placement) {
        (Depth::Quick, Placement::Free) => ms(20, 20, 9),
        (Depth::Quick, _) => ms(7, 7, 9),
        (Depth::Standard, Placement::Pinned) => ms(13, 10, ROUNDS),
        (Depth::Standard, Placement::SameCpu) => ms(10, 8, ROUNDS),
        (Depth::Standard, Placement::Free) => ms(21, 17, ROUNDS),
        (Depth::Full, Placement::Free) => ms(60, 60, 31),
        (Depth::Full, _) => ms(30, 30, 31),
    }
}

fn ladder(
    site: &CpuSelection<'_>,
    mechanisms: &Mechanisms,
    depth: Depth,
    placement: Placement,
) -> (Vec<Vec<Cell>>, Vec<Refused>) {
    let mut bundles: Vec<Vec<Cell>> = Vec::new();
    let mut refused = Vec::new();
    for mechanism in mechanisms.all() {
        if !wanted(mechanism, depth, placement, site) {
            continue;
        }
        let (cells, left_out) = cells(mechanism, &variants(mechanism, depth, placement), site);
        refused.extend(left_out);
        bundle(&mut bundles, mechanism, cells);
    }
    (bundles, refused)
}

fn wanted(
    mechanism: &Mechanism,
    depth: Depth,
    placement: Placement,
    site: &CpuSelection<'_>,
) -> bool {
    // Mechanisms with a single thread are always pinned, so their absence at other placements need
    // not be reported.
    if mechanism.class == Class::OneThread {
        return placement == Placement::Pinned;
    }
    // With one CPU, free placement equals same-CPU placement.
    if placement == Placement::Free && site.pool.len() < 2 {
        return false;
    }
    match (depth, placement) {
        (Depth::Quick, Placement::SameCpu) if site.pair.is_some() => {
            ["futex", "std-condvar"].contains(&mechanism.name.as_str())
        }
        (Depth::Quick, Placement::Free) => {
            ["atomic-store", "futex", "std-condvar"].contains(&mechanism.name.as_str())
        }
        // Spinning mechanisms are refused on one CPU; this is reported only once, for
        // `atomic-store`.
        (_, Placement::SameCpu) => {
            mechanism.class != Class::Spin || mechanism.name == "atomic-store"
        }
        _ => true,
    }
}

fn variants(mechanism: &Mechanism, depth: Depth, placement: Placement) -> MechanismChoice {
    let mut choice = MechanismChoice { placements: vec![placement], ..MechanismChoice::default() };
    if placement != Placement::Pinned {
        return choice;
    }
    match depth {
        Depth::Full => {
            choice.layouts = vec![Layout::Own, Layout::Shared];
            choice.pauses = vec![Pause::Off, Pause::On];
            choice.awake =
                if mechanism.class == Class::Sleep { vec![false, true] } else { vec![false] };
            if ["atomic-store", "futex"].contains(&mechanism.name.as_str()) {
                choice.payloads = [8].into_iter().chain(PAYLOADS).collect();
            }
        }
        Depth::Standard | Depth::Quick => {
            if mechanism.name == "atomic-rmw" {
                choice.layouts = vec![Layout::Own, Layout::Shared];
            }
            if mechanism.name == "atomic-store" && depth == Depth::Standard {
                choice.pauses = vec![Pause::Off, Pause::On];
                choice.payloads = vec![8, 1024];
            }
            let twice: &[&str] =
                if depth == Depth::Quick { &["futex"] } else { &["futex", "std-condvar"] };
            if twice.contains(&mechanism.name.as_str()) {
                choice.awake = vec![false, true];
            }
        }
    }
    choice
}

/// All pairs of CPUs if there are at most `most`. Otherwise, one pair for each relation between
/// CPUs, and then pairs within a subset of CPUs that is spread over the machine.
fn spread_pairs(site: &CpuSelection<'_>, most: usize) -> Vec<(u32, u32)> {
    let all = |cpus: &[u32]| -> Vec<(u32, u32)> {
        cpus.iter()
            .enumerate()
            .flat_map(|(at, a)| cpus[at + 1..].iter().map(move |b| (*a, *b)))
            .collect()
    };
    let pool = &site.pool;
    if pool.len() * pool.len().saturating_sub(1) / 2 <= most {
        return all(pool);
    }
    let mut pairs: Vec<(u32, u32)> =
        site.topology.one_per_relation(pool).into_iter().map(|(_, pair)| pair).collect();
    let room = most.saturating_sub(pairs.len());
    let count =
        (1..pool.len()).take_while(|count| count * (count - 1) / 2 <= room).last().unwrap_or(0);
    let spread: Vec<u32> = (0..count).map(|at| pool[at * pool.len() / count]).collect();
    for pair in all(&spread) {
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
}
