//! Comparisons of simulated runs against the truth about them.

use threadtoll_lab::plan::{CpuSelection, MechanismChoice, latency};
use threadtoll_lab::simulated::{Regimes, SimulatedBackend, Variation};
use threadtoll_record::comparison::{self, Outcome as Verdict, compare};
use threadtoll_record::file::Results;
use threadtoll_record::{Budget, Comparison, Layout, Pause, Placement, Plan};

use super::{OURS, latency_plan, mechanism, run_simulated};

const ROUNDS: u32 = 60;
const BLOCK_NS: u64 = 1_000_000;
/// About a round of four cells, each with a block of each kind.
const ROUND_NS: u64 = 9_000_000;
const LIMIT_PERCENT: f64 = 5.0;
/// The cell that is made slower.
const SUBJECT: &str = "atomic-rmw";

/// A machine, and noise between its runs.
struct Case {
    name: &'static str,
    regimes: Regimes,
    /// Standard deviations between runs.
    cell: f64,
    machine: f64,
    /// Number of times that each run measures its group.
    groups: usize,
}

const CASES: [Case; 6] = [
    Case { name: "steady", regimes: Regimes::One, cell: 0.0, machine: 0.0, groups: 2 },
    Case { name: "usual noise", regimes: Regimes::One, cell: 0.01, machine: 0.0, groups: 2 },
    Case { name: "noisy, repeated", regimes: Regimes::One, cell: 0.03, machine: 0.0, groups: 4 },
    Case { name: "other speeds", regimes: Regimes::One, cell: 0.01, machine: 0.1, groups: 2 },
    Case {
        name: "two regimes",
        regimes: Regimes::Two { stay_ns: 25 * ROUND_NS },
        cell: 0.01,
        machine: 0.0,
        groups: 2,
    },
    Case {
        name: "drift",
        regimes: Regimes::Drifting { wave_ns: 40 * ROUND_NS },
        cell: 0.01,
        machine: 0.0,
        groups: 2,
    },
];

fn plan(seed: u64, groups: usize) -> Plan {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let mechanisms = [SUBJECT, "spin-yield", "futex"].map(mechanism);
    let choice = MechanismChoice {
        placements: vec![Placement::Pinned],
        layouts: vec![Layout::Own],
        pauses: vec![Pause::Off],
        ..MechanismChoice::default()
    };
    let budget = Budget {
        rounds: ROUNDS,
        stretch_ns: BLOCK_NS,
        stamped_ns: BLOCK_NS,
        stamped_count: Some(10),
    };
    let (once, refused) = latency(&site, &OURS.mechanisms, &mechanisms, &choice, budget, false);
    let groups = once.iter().cycle().take(groups * once.len()).cloned().collect();
    latency_plan(seed, 1, (groups, refused))
}

/// A run of the case, with one cell slower by this factor.
fn measured(case: &Case, seed: u64, slower: f64) -> Results {
    let variation = Variation {
        cell: case.cell,
        machine: case.machine,
        slower: Some((SUBJECT.into(), slower)),
        ..Variation::default()
    };
    let machine = || {
        let machine = SimulatedBackend::new(seed).with_registry(OURS.clone());
        machine.with_regimes(case.regimes).with_variation(variation.clone())
    };
    run_simulated(&machine, &plan(seed, case.groups))
}

fn compared(case: &Case, pair: u64, slower: f64) -> Comparison {
    let base = measured(case, 2 * pair + 1, 1.0);
    compare(&base, &measured(case, 2 * pair + 2, slower), LIMIT_PERCENT).unwrap()
}

/// The 95% interval of a share, of which `count` of `of` were seen (C. J. Clopper and E. S.
/// Pearson, Biometrika 26, 1934).
fn share95(count: u64, of: u64) -> [f64; 2] {
    [low95(count, of), 1.0 - low95(of - count, of)]
}

fn low95(count: u64, of: u64) -> f64 {
    let at_least = |share: f64| {
        let odds = (share / (1.0 - share)).ln();
        let mut term = of as f64 * (1.0 - share).ln();
        let mut below = 0.0;
        for k in 0..count {
            below += term.exp();
            term += odds + ((of - k) as f64 / (k + 1) as f64).ln();
        }
        1.0 - below
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if count == 0 || at_least(middle) > 0.025 { high = middle } else { low = middle }
    }
    low
}

#[derive(Default)]
struct Tally {
    comparisons: u64,
    /// Comparisons without any judged cell.
    unjudged: u64,
    /// Comparisons that end with exit code 4.
    regressions: u64,
    /// Comparisons that say of any cell that it changed.
    changed: u64,
    /// Smallest changes, in percent, that would have shown in the cell that is made slower.
    noise: Vec<f64>,
}

impl Tally {
    fn add(&mut self, comparison: &Comparison) {
        let any = |of: &dyn Fn(Verdict) -> bool| {
            u64::from(comparison.cells.iter().any(|one| of(one.outcome)))
        };
        self.comparisons += 1;
        self.unjudged += u64::from(comparison.judged == 0);
        self.regressions += any(&|outcome| outcome == Verdict::Regression);
        self.changed += any(&Verdict::changed);
        self.noise.extend(subject(comparison).filter_map(|one| one.noise_percent.map(f64::from)));
    }

    fn noise(&self) -> f64 {
        let mut sorted = self.noise.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

fn subject(comparison: &Comparison) -> impl Iterator<Item = &comparison::ComparedCell> {
    comparison.cells.iter().filter(|one| one.cell.name() == SUBJECT)
}

fn percent(count: u64, of: u64) -> String {
    let [low, high] = share95(count, of).map(|share| share * 100.0);
    format!("{count} of {of} ({low:.1}–{high:.1}%)")
}

/// Slower cells by what was injected.
#[derive(Default)]
struct Found {
    /// Comparisons that could judge the cell.
    judged: u64,
    found: u64,
}

impl Found {
    fn add(&mut self, comparison: &Comparison) {
        let mut own = subject(comparison).filter(|one| one.unjudged.is_none()).peekable();
        self.judged += u64::from(own.peek().is_some());
        let worse = |outcome| matches!(outcome, Verdict::Worse | Verdict::Regression);
        self.found += u64::from(own.any(|one| worse(one.outcome)));
    }

    fn text(&self) -> String {
        percent(self.found, self.judged)
    }
}

/// Compares unchanged runs, and runs with a cell that is slower by 5% or, if that is more, by twice
/// the noise that the comparison of the unchanged runs states.
fn tally(pairs: u64, shifted: u64) -> (Tally, Found) {
    let (mut all, mut all_found) = (Tally::default(), Found::default());
    for (at, case) in (0u64..).zip(&CASES) {
        let (mut unchanged, mut found, mut five) =
            (Tally::default(), Found::default(), Found::default());
        for pair in (at * 10_000..).take(pairs as usize) {
            let comparison = compared(case, pair, 1.0);
            unchanged.add(&comparison);
            all.add(&comparison);
            if unchanged.comparisons > shifted {
                continue;
            }
            let noise = subject(&comparison).filter_map(|one| one.noise_percent.map(f64::from));
            let shift = noise.map(|noise| 2.0 * noise).fold(LIMIT_PERCENT, f64::max);
            let slower = compared(case, pair, 1.0 + shift / 100.0);
            found.add(&slower);
            all_found.add(&slower);
            five.add(&compared(case, pair, 1.05));
        }
        println!(
            "{}\n  unchanged: exit 4 in {}, any change in {}, no verdict in {}; noise {:.1}%",
            case.name,
            percent(unchanged.regressions, unchanged.comparisons),
            percent(unchanged.changed, unchanged.comparisons),
            unchanged.unjudged,
            unchanged.noise(),
        );
        println!("  slower by 5% or twice the noise: found in {}", found.text());
        println!("  slower by 5%: found in {}", five.text());
    }
    println!(
        "all\n  unchanged: exit 4 in {}, any change in {}",
        percent(all.regressions, all.comparisons),
        percent(all.changed, all.comparisons)
    );
    println!("  slower by 5% or twice the noise: found in {}", all_found.text());
    (all, all_found)
}

#[test]
#[ignore = "takes minutes: ci/long/compare.sh"]
fn many_unchanged_runs_rarely_change_and_slower_cells_are_found() {
    let (unchanged, Found { judged, found }) = tally(84, 40);
    assert!(unchanged.comparisons >= 500 && judged >= 200);
    for count in [unchanged.regressions, unchanged.changed] {
        assert!(count * 20 <= unchanged.comparisons, "{count}");
    }
    assert!(found * 100 >= judged * 95, "{found} of {judged}");
}

#[test]
fn shares_have_the_bounds_of_tables() {
    for (count, of, low, high) in [
        (0, 10, 0.0, 0.3085),
        (5, 10, 0.1871, 0.8129),
        (10, 10, 0.6915, 1.0),
        (237, 238, 0.9768, 0.9999),
    ] {
        let found = share95(count, of);
        assert!((found[0] - low).abs() < 1e-4 && (found[1] - high).abs() < 1e-4, "{found:?}");
    }
}
