//! Groups whose twin is off, on a simulated machine.

use std::collections::BTreeMap;

use threadtoll_lab::contention::{Overrides, scenario};
use threadtoll_lab::plan::{
    CpuSelection, LockChoice, MechanismChoice, Planned, budget, contention, latency,
};
use threadtoll_lab::simulated::{Regimes, SimulatedBackend};
use threadtoll_record::{Placement, Plan, Record, Verdict, fold};

use super::{OURS, latency_plan, mechanism, run_simulated};

const SEED: u64 = 3;

/// Mechanisms that spin, those that sleep, and a lock.
fn plans() -> Vec<Planned> {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let choice =
        MechanismChoice { placements: vec![Placement::Pinned], ..MechanismChoice::default() };
    let mechanisms = |names: [&str; 2]| {
        let named = names.map(mechanism);
        latency(&site, &OURS.mechanisms, &named, &choice, budget(500_000_000, None), true)
    };
    let locks = LockChoice {
        locks: vec!["std-mutex".into(), "parking-lot".into()],
        placements: vec![Placement::Pinned],
        overrides: Overrides { threads: Some(vec![2]), ..Overrides::default() },
    };
    vec![
        mechanisms(["atomic-rmw", "spin-yield"]),
        mechanisms(["park", "eventfd"]),
        contention(&site, scenario("hold-think").unwrap(), &OURS.locks, &locks),
    ]
}

/// The records of each group.
fn measured((groups, refused): Planned, twin_factor: f64) -> Vec<Vec<Record>> {
    let machine =
        || SimulatedBackend::new(SEED).with_registry(OURS.clone()).with_twins_off(twin_factor);
    let count = groups.len();
    let plan = Plan {
        processes: 1,
        run: machine().machine().run,
        command: Vec::new(),
        seed: SEED,
        over_ns: 10_000,
        options: BTreeMap::new(),
        folded: None,
        repeat: None,
        until_saturated: false,
        refused,
        groups,
    };
    let records = run_simulated(&machine, &plan).records();
    let of = |group| records.iter().filter(move |record| record.group == group).cloned().collect();
    (0..count).map(of).collect()
}

#[test]
fn a_twin_widens_all_intervals_of_its_group() {
    for group in plans().into_iter().flat_map(|plan| measured(plan, 1.03)) {
        let ratios = || group.iter().flat_map(|record| &record.against);
        let twin = ratios().find(|against| against.cell.is_twin()).unwrap();
        let off = twin.ratio.get().max(1.0 / twin.ratio.get());
        assert!((off - 1.03).abs() < 0.01, "{off}");
        for against in ratios() {
            let [low, high] = against.interval95.map(f64::from);
            let [raw_low, raw_high] = against.interval95_raw.unwrap().map(f64::from);
            let label = against.cell.label();
            // Ratios of rates have three digits.
            assert!((raw_low / low / off - 1.0).abs() < 0.003, "{label}: {raw_low} to {low}");
            assert!((high / raw_high / off - 1.0).abs() < 0.003, "{label}: {raw_high} to {high}");
        }
        for record in group.iter().filter(|record| record.contention.is_some()) {
            let speedup = record.contention.as_ref().unwrap().speedup_interval95;
            let work = record.against.iter().find(|against| against.cell.name() == "none");
            assert_eq!(speedup, work.map(|work| work.interval95), "{}", record.cell.label());
        }
        assert!(group.iter().all(|record| {
            record.warnings.iter().all(|warning| warning.code != fold::TWIN_APART)
        }));
    }
}

#[test]
fn a_group_whose_twin_is_off_by_more_than_the_margin_decides_nothing() {
    for group in plans().into_iter().flat_map(|plan| measured(plan, 1.08)) {
        for record in group.iter().filter(|record| !record.against.is_empty()) {
            let label = record.cell.label();
            assert!(
                record.against.iter().all(|against| against.verdict == Verdict::Open),
                "{label}"
            );
            assert!(
                record.warnings.iter().any(|warning| warning.code == fold::TWIN_APART),
                "{label}"
            );
        }
    }
}

/// A row and its twin are equal on these machines, but their instances differ.
#[test]
fn instances_that_differ_do_not_make_equal_rows_differ() {
    const SEEDS: u64 = 60;
    let excluded = |instances_apart: f64| {
        let excludes = |seed: &u64| {
            let machine = || {
                SimulatedBackend::new(*seed)
                    .with_registry(OURS.clone())
                    .with_regimes(Regimes::One)
                    .with_instances_apart(instances_apart)
            };
            let planned = plans().swap_remove(0);
            let records = run_simulated(&machine, &latency_plan(*seed, 1, planned)).records();
            let reference = records.iter().find(|record| record.cell.name() == "atomic-store");
            let twin = reference.unwrap().against.iter().find(|against| against.cell.is_twin());
            let [low, high] = twin.unwrap().interval95_raw.unwrap().map(f64::from);
            !(low..=high).contains(&1.0)
        };
        (0..SEEDS).filter(excludes).count()
    };
    for instances_apart in [0.0, 0.03, 0.1] {
        let count = excluded(instances_apart);
        // Of 60 that exclude 1 with a probability of 5%, more than 7 do in 1.2% of cases.
        assert!(count <= 7, "{instances_apart}: {count} of {SEEDS}");
    }
}
