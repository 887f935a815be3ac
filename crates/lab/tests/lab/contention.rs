//! Plans of locks: groups of cells, and refusals.

use threadtoll_lab::contention::{
    Load, Overrides, SCENARIOS, frequency_sweep, hold_sweep, hold_think, pool, scenario,
};
use threadtoll_lab::plan::{CpuSelection, LockChoice, Planned, contention, validate};
use threadtoll_lab::simulated::{SimulatedBackend, Variation};
use threadtoll_record::file::Results;
use threadtoll_record::{
    Contention, LockSubject, Placement, Plan, PlannedCell, Refusal, Share, Subject, Work,
};

use super::{OURS, run_simulated};

pub(super) fn planned(name: &str, locks: &[&str], overrides: Overrides) -> Planned {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2, 4]);
    let choice = LockChoice {
        locks: locks.iter().map(|lock| (*lock).to_string()).collect(),
        placements: vec![Placement::Pinned],
        overrides,
    };
    contention(&site, scenario(name).unwrap(), &OURS.locks, &choice)
}

pub(super) fn plan(groups: Vec<Vec<PlannedCell>>) -> Plan {
    Plan {
        processes: 1,
        run: "run".into(),
        command: vec!["contention".into()],
        seed: 1,
        over_ns: 10_000,
        options: Default::default(),
        folded: None,
        repeat: None,
        until_saturated: false,
        refused: Vec::new(),
        groups,
    }
}

fn locks(group: &[PlannedCell]) -> impl Iterator<Item = &LockSubject> {
    group.iter().filter_map(|planned| planned.cell.lock())
}

#[test]
fn every_group_has_the_reference_and_the_thread_alone_that_its_cells_are_against() {
    type Loads = fn(Option<Work>) -> Vec<Load>;
    let all: [Loads; 4] = [
        |work| hold_sweep::loads(work, None, None),
        |work| frequency_sweep::loads(work, None, None),
        |work| hold_think::loads(work, None, None),
        |work| pool::loads(work, None, None, None),
    ];
    // Callers who arrive from outside have no speed-up; see `overload`.
    let compared = SCENARIOS.iter().filter(|scenario| scenario.name != "overload");
    assert_eq!(all.len(), compared.clone().count());
    for (scenario, loads) in compared.zip(all) {
        for work in [Work::Spin, Work::Sleep] {
            let overrides = Overrides { loads: Some(loads(Some(work))), ..Overrides::default() };
            let (groups, _) = planned(scenario.name, &[], overrides);
            assert!(!groups.is_empty(), "{scenario:?}");
            for group in &groups {
                assert!(group.len() <= 8 && group[0].cell.lock().is_none(), "{scenario:?}");
                let alone = group[1].cell.lock().unwrap();
                assert!(alone.is_alone() && group.len() > 2, "{scenario:?}");
                assert!(
                    locks(&group[2..]).all(|lock| lock.is_against(alone)),
                    "{scenario:?} {work}"
                );
                let rounds = group[0].budget.rounds;
                assert!(group.iter().all(|planned| planned.budget.rounds == rounds));
            }
            let topology = SimulatedBackend::topology();
            assert_eq!(validate(&plan(groups), &topology, &OURS), Ok(()), "{scenario:?}");
        }
    }
}

#[test]
fn threads_go_from_one_to_one_more_than_there_are_cpus() {
    let (groups, refused) = planned("hold-sweep", &["std-mutex", "ticket"], Overrides::default());
    let threads = |name: &str| {
        let mut all: Vec<u32> = groups
            .iter()
            .flat_map(|group| locks(group))
            .filter(|lock| lock.lock == name)
            .map(|lock| lock.threads)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    assert_eq!(threads("std-mutex"), [1, 2, 3, 4]);
    assert_eq!(threads("ticket"), [1, 2, 3], "its waiters never sleep");
    assert!(
        refused.iter().any(|refused| refused.what.contains("ticket with 4 threads")),
        "{refused:?}"
    );
    let shared = groups
        .iter()
        .flatten()
        .find(|planned| planned.cell.lock().is_some_and(|lock| lock.threads == 4));
    assert_eq!(shared.unwrap().cell.cpus.len(), 3, "they share the three CPUs");
}

#[test]
fn counters_hold_nothing_and_only_locks_for_readers_are_read() {
    let overrides =
        Overrides { read_shares: Share::new(0.5).map(|share| vec![share]), ..Overrides::default() };
    let (groups, _) = planned("hold-sweep", &["counter-sharded", "std-rwlock", "spin"], overrides);
    let all = || groups.iter().flat_map(|group| locks(group));
    assert!(all().filter(|lock| lock.lock == "counter-sharded").all(|lock| lock.hold_ns == 0));
    assert_eq!(
        all().filter(|lock| lock.lock == "counter-sharded").count(),
        4,
        "one row, whatever the shares"
    );
    assert!(all().all(|lock| (lock.lock == "std-rwlock") == lock.read_share.is_some()));
}

#[test]
fn plans_that_were_tampered_with_are_not_measured() {
    let spoilt = |change: &dyn Fn(&mut LockSubject)| {
        let (mut groups, _) = planned("hold-sweep", &["std-mutex"], Overrides::default());
        if let Subject::Lock(lock) = &mut groups[0][2].cell.subject {
            change(lock);
        }
        validate(&plan(groups), &SimulatedBackend::topology(), &OURS)
    };
    assert_eq!(spoilt(&|_| ()), Ok(()));
    assert!(spoilt(&|lock| lock.lock = "padlock".into()).is_err());
    assert!(spoilt(&|lock| lock.threads = 0).is_err());
    assert!(spoilt(&|lock| lock.threads = 100_000).is_err());
    assert!(spoilt(&|lock| lock.read_share = Some(Share::NONE)).is_err());
    assert!(spoilt(&|lock| (lock.hold_ns, lock.think_ns) = (0, 0)).is_err());
    assert!(spoilt(&|lock| lock.hold_ns = u64::MAX / 2).is_err());
    assert!(spoilt(&|lock| lock.tasks = Some(u64::MAX)).is_err());
}

/// Contention on a simulated machine whose calibrations err by this in each repeat.
pub(super) fn measured(
    name: &str,
    locks: &[&str],
    overrides: Overrides,
    seed: u64,
    error: f64,
) -> Results {
    let (groups, refused) = planned(name, locks, overrides);
    let run = SimulatedBackend::new(seed).machine().run;
    let machine = || {
        let variation = Variation { calibration: error, ..Variation::default() };
        SimulatedBackend::new(seed).with_registry(OURS.clone()).with_variation(variation)
    };
    run_simulated(&machine, &Plan { run, seed, refused, ..plan(groups) })
}

pub(super) fn shares(shares: &[f64]) -> Vec<Share> {
    shares.iter().map(|share| Share::new(*share).unwrap()).collect()
}

/// Numbers of cells with several threads: those predicted, and those whose measured speed-up and
/// mean queue lie in the predicted intervals.
fn coverage(results: &Results) -> [u32; 3] {
    let mut counts = [0; 3];
    let records = results.records();
    for contention in records.iter().filter_map(|record| record.figures.contention()).cloned() {
        let Contention { speedup, queue_mean, predicted, threads, .. } = contention;
        let Some(told) = predicted.filter(|told| told.refused.is_none() && threads > 1) else {
            continue;
        };
        let within = |interval: Option<[_; 2]>, measured: Option<_>| {
            let ([low, high], measured) = (interval.unwrap(), measured.unwrap());
            low <= measured && measured <= high
        };
        counts[0] += 1;
        counts[1] += u32::from(within(told.speedup_interval95, speedup));
        counts[2] += u32::from(within(told.queue_mean_interval95, queue_mean));
    }
    counts
}

/// Cells of every scenario, computing and asleep, each run with another calibration.
fn coverage_of(seeds: std::ops::Range<u64>) -> [u32; 3] {
    let mut all = [0; 3];
    let short = Overrides { time_ns: Some(1), ..Overrides::default() };
    for seed in seeds {
        let threads = |threads: &[u32]| Some(threads.to_vec());
        let shares = shares(&[0.1, 0.5, 0.9]);
        let sweep = |work| Some(hold_sweep::loads(work, Some(&shares), None));
        let often = Some(frequency_sweep::loads(None, None, Some(5e4)));
        for (name, lock, (threads, loads)) in [
            ("hold-sweep", "std-mutex", (threads(&[2, 3]), sweep(None))),
            ("hold-sweep", "spin", (threads(&[3]), sweep(None))),
            ("hold-sweep", "parking-lot-fair", (threads(&[8, 64]), sweep(Some(Work::Sleep)))),
            ("hold-think", "std-mutex", (threads(&[3]), None)),
            ("frequency-sweep", "ticket", (None, often)),
            ("pool", "std-mutex", (threads(&[16]), None)),
        ] {
            let overrides = Overrides { threads, loads, ..short.clone() };
            let counts = coverage(&measured(name, &[lock], overrides, seed, 0.03));
            all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    all
}

#[test]
fn measured_figures_lie_in_the_predicted_intervals() {
    let [cells, speedups, queues] = coverage_of(0..2);
    assert!(cells >= 33, "{cells}");
    // The intervals are of 95%, and this few cells may miss them by chance.
    assert!(10 * speedups >= 9 * cells, "speed-ups: {speedups} of {cells}");
    assert!(10 * queues >= 9 * cells, "queues: {queues} of {cells}");
}

#[test]
#[ignore = "long: 100 runs of each scenario"]
fn measured_figures_lie_in_the_predicted_intervals_of_many_runs() {
    let [cells, speedups, queues] = coverage_of(0..100);
    println!("inside: {speedups} speed-ups and {queues} queues of {cells}");
    assert!(10 * speedups >= 9 * cells && 10 * queues >= 9 * cells);
}

#[test]
fn intervals_grow_with_the_error_of_the_calibration() {
    let width = |error: f64| {
        let overrides =
            Overrides { threads: Some(vec![3]), time_ns: Some(1), ..Overrides::default() };
        let results = measured("hold-think", &["std-mutex"], overrides, 3, error);
        let told = results
            .records()
            .iter()
            .find_map(|record| record.figures.contention()?.predicted.clone());
        let [low, high] = told.unwrap().speedup_interval95.unwrap().map(f64::from);
        high - low
    };
    let [exact, poor] = [0.0, 0.1].map(width);
    assert!(poor > 0.02 && exact < poor / 3.0, "{exact} {poor}");
}

#[test]
fn cells_that_no_model_describes_are_refused_before_they_are_measured() {
    let overrides = Overrides {
        loads: Some(hold_sweep::loads(None, Some(&shares(&[0.0, 0.01, 0.5])), None)),
        time_ns: Some(1),
        ..Overrides::default()
    };
    let results = measured("hold-sweep", &["std-mutex"], overrides, 1, 0.0);
    let mut refused = 0;
    for record in results.records() {
        let (Some(subject), Some(contention)) = (record.cell.lock(), record.figures.contention())
        else {
            continue;
        };
        let Some(told) = &contention.predicted else {
            assert!(subject.is_alone());
            continue;
        };
        let expected = match (subject.hold_ns, subject.threads) {
            (0..1_000, _) => Some(Refusal::Below1us),
            (_, 4) => Some(Refusal::OversubscribedSpin),
            _ => None,
        };
        assert_eq!(told.refused, expected, "{subject:?}");
        refused += u32::from(expected.is_some());
        assert_eq!(told.speedup.is_none(), expected.is_some());
        assert_eq!(told.queue_mean_interval95.is_none(), expected.is_some());
        assert!(told.from.is_some(), "what was calibrated is kept");
    }
    assert!(refused >= 9, "{refused}");

    let asleep = Overrides {
        loads: Some(hold_think::loads(Some(Work::Sleep), None, None)),
        threads: Some(vec![16]),
        time_ns: Some(1),
        ..Overrides::default()
    };
    let results = measured("hold-think", &["std-mutex"], asleep, 1, 0.0);
    let told =
        results.records().iter().find_map(|record| record.figures.contention()?.predicted.clone());
    assert_eq!(told.unwrap().refused, None, "sleeping threads do not need a CPU each");
}
