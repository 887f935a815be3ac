//! Intervals of ratios, on a simulated machine whose instances differ.

use threadtoll_lab::plan::{CpuSelection, MechanismChoice, budget, latency};
use threadtoll_lab::simulated::{Regimes, SimulatedBackend};
use threadtoll_record::Placement;

use super::{OURS, latency_plan, mechanism, run_simulated};

#[test]
fn intervals_hold_the_true_ratio_however_far_instances_are_apart() {
    const SEEDS: u64 = 60;
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let choice =
        MechanismChoice { placements: vec![Placement::Pinned], ..MechanismChoice::default() };
    let missed = |instances_apart: f64| {
        let misses = |seed: &u64| {
            let machine = || {
                SimulatedBackend::new(*seed)
                    .with_registry(OURS.clone())
                    .with_regimes(Regimes::One)
                    .with_instances_apart(instances_apart)
            };
            let named = [mechanism("atomic-rmw")];
            let budget = budget(500_000_000, None);
            let planned = latency(&site, &OURS.mechanisms, &named, &choice, budget, true);
            let plan = latency_plan(*seed, 1, planned);
            let truth = |at: usize| machine().truth_ns(&plan.groups[0][at], 0).unwrap();
            let record = run_simulated(&machine, &plan).records().swap_remove(1);
            assert_eq!(record.cell, plan.groups[0][1].cell);
            let [low, high] = record.against[0].interval95.map(f64::from);
            !(low..=high).contains(&(truth(1) / truth(0)))
        };
        (0..SEEDS).filter(misses).count()
    };
    for instances_apart in [0.0, 0.03, 0.1] {
        let count = missed(instances_apart);
        // Of 60 that miss it with a probability of 5%, more than 7 do in 1.2% of cases.
        assert!(count <= 7, "{instances_apart}: {count} of {SEEDS}");
    }
}
