//! Records of simulated machines against the truth about them.

use std::collections::BTreeMap;

use threadtoll_lab::mechanism::Mechanisms;
use threadtoll_lab::plan::{CpuSelection, MechanismChoice, latency};
use threadtoll_lab::simulated::{Regimes, SimulatedBackend};
use threadtoll_record::{Budget, Cell, Placement, Plan, Record};

use super::{latency_plan, mechanism, run_simulated};

const SEEDS: u64 = 40;
const ROUNDS: u32 = 50;
const BLOCK_NS: u64 = 2_000_000;
/// About a round of three cells, each with a block of each kind.
const ROUND_NS: u64 = 9_000_000;

/// A kind of machine, and the number of processes that measure it.
#[derive(Clone, Copy)]
struct Kind {
    regimes: Regimes,
    processes: u32,
    processes_apart: f64,
}

impl Kind {
    fn of(regimes: Regimes) -> Self {
        Kind { regimes, processes: 1, processes_apart: 0.0 }
    }

    fn machine(self, seed: u64) -> SimulatedBackend {
        SimulatedBackend::new(seed)
            .with_regimes(self.regimes)
            .with_processes_apart(self.processes_apart)
    }
}

fn plan(seed: u64, processes: u32) -> Plan {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let mechanisms = ["atomic-rmw", "spin-yield"].map(mechanism);
    let choice =
        MechanismChoice { placements: vec![Placement::Pinned], ..MechanismChoice::default() };
    let budget = Budget {
        rounds: ROUNDS,
        stretch_ns: BLOCK_NS,
        stamped_ns: BLOCK_NS,
        stamped_count: Some(60),
    };
    let known = Mechanisms::default();
    latency_plan(seed, processes, latency(&site, &known, &mechanisms, &choice, budget, false))
}

/// Number of statements, and of true ones.
#[derive(Debug, Default)]
struct Score {
    made: u32,
    held: u32,
}

impl Score {
    fn add(&mut self, held: bool) {
        self.made += 1;
        self.held += u32::from(held);
    }

    fn share(&self) -> f64 {
        f64::from(self.held) / f64::from(self.made.max(1))
    }
}

#[derive(Debug, Default)]
struct Scores {
    medians: Score,
    ratios: Score,
    /// Number of records by number of regimes.
    regimes: BTreeMap<usize, u32>,
    spans: Score,
    shares: Score,
}

fn measured(kind: Kind, seed: u64) -> (SimulatedBackend, Plan, Vec<Record>) {
    let plan = plan(seed, kind.processes);
    let records = run_simulated(&|| kind.machine(seed), &plan).records();
    (kind.machine(seed), plan, records)
}

/// Checks every figure of every record against the truth.
fn scores(kind: Kind) -> Scores {
    let mut scores = Scores::default();
    let noise = kind.regimes.median_noise();
    for seed in 0..SEEDS {
        let (backend, plan, records) = measured(kind, seed);
        let truth = |cell: &Cell, regime: usize| {
            let planned = plan.groups.iter().flatten().find(|planned| planned.cell == *cell);
            backend.truth_ns(planned.unwrap(), regime).unwrap()
        };
        for record in &records {
            *scores.regimes.entry(record.regimes.len()).or_default() += 1;
            let whole = (record.one_way.as_ref(), &record.against);
            let by_regime =
                record.regimes.iter().map(|regime| (regime.one_way.as_ref(), &regime.against));
            let several = record.regimes.len() > 1;
            for (index, (one_way, against)) in
                by_regime.chain((!several).then_some(whole)).enumerate()
            {
                let truths = |regime| noise * truth(&record.cell, regime) / 2.0;
                if let Some([low, high]) = one_way.and_then(|one_way| one_way.p50_interval95) {
                    let holds = |ns: f64| low.get() <= ns && ns <= high.get();
                    // The reference's figures tell which regime a record of only one is of.
                    let either = !several && (holds(truths(0)) || holds(truths(1)));
                    scores.medians.add(if several { holds(truths(index)) } else { either });
                    scores
                        .spans
                        .add(!(low.get() < truths(0) * 1.1 && high.get() > truths(1) / 1.1));
                }
                for against in against {
                    let [low, high] = against.interval95.map(f64::from);
                    let ratio = |regime| truth(&record.cell, regime) / truth(&against.cell, regime);
                    let holds = |regime| low <= ratio(regime) && ratio(regime) <= high;
                    let either = !several && (holds(0) || holds(1));
                    scores.ratios.add(if several { holds(index) } else { either });
                }
            }
            let shares: f64 = record.regimes.iter().map(|regime| regime.share.get()).sum();
            scores.shares.add(record.regimes.is_empty() || (0.5..=1.001).contains(&shares));
        }
    }
    scores
}

#[test]
fn what_is_said_of_a_machine_with_one_regime_holds() {
    let scores = scores(Kind::of(Regimes::One));
    assert_eq!(scores.regimes.keys().copied().collect::<Vec<_>>(), [0], "one regime is not listed");
    assert!(scores.medians.share() >= 0.92 && scores.ratios.share() >= 0.92, "{scores:?}");
}

#[test]
fn what_is_said_of_a_machine_with_two_regimes_holds_for_each() {
    let scores = scores(Kind::of(Regimes::Two { stay_ns: 20 * ROUND_NS }));
    let two = scores.regimes.get(&2).copied().unwrap_or(0);
    assert!(scores.regimes.keys().all(|count| [0, 2].contains(count)), "{scores:?}");
    assert!(f64::from(two) >= 0.8 * f64::from(scores.regimes.values().sum::<u32>()), "{scores:?}");
    assert!(scores.medians.share() >= 0.92 && scores.ratios.share() >= 0.92, "{scores:?}");
    assert_eq!(scores.spans.made, scores.spans.held, "no interval spans the gap: {scores:?}");
    assert_eq!(scores.shares.made, scores.shares.held, "{scores:?}");
}

#[test]
fn a_drifting_machine_has_one_regime_and_its_ratios_hold() {
    let scores = scores(Kind::of(Regimes::Drifting { wave_ns: 40 * ROUND_NS }));
    let one = scores.regimes.get(&0).copied().unwrap_or(0);
    assert!(f64::from(one) >= 0.97 * f64::from(scores.regimes.values().sum::<u32>()), "{scores:?}");
    assert!(scores.ratios.share() >= 0.92, "{scores:?}");
}

#[test]
fn intervals_hold_what_lies_between_processes() {
    let one = Kind { processes_apart: 0.05, ..Kind::of(Regimes::One) };
    let scores_of_one = scores(one);
    assert!(scores_of_one.ratios.share() < 0.5, "one process knows only itself: {scores_of_one:?}");
    let scores = scores(Kind { processes: 3, ..one });
    assert_eq!(scores.regimes.keys().copied().collect::<Vec<_>>(), [0], "{scores:?}");
    assert!(scores.medians.share() >= 0.85 && scores.ratios.share() >= 0.92, "{scores:?}");
}
