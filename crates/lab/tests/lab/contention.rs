//! Plans of locks: groups of cells, and refusals.

use threadtoll_lab::contention::{Overrides, SCENARIOS, scenario};
use threadtoll_lab::plan::{CpuSelection, LockChoice, Planned, contention, validate};
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_record::{LockSubject, Origin, Placement, Plan, PlannedCell, Share, Subject, Work};

use super::OURS;

fn planned(name: &str, locks: &[&str], overrides: Overrides) -> Planned {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2, 4]);
    let choice = LockChoice {
        locks: locks.iter().map(|lock| (*lock).to_string()).collect(),
        placements: vec![Placement::Pinned],
        overrides,
    };
    contention(&site, scenario(name).unwrap(), &OURS.locks, &choice)
}

fn plan(groups: Vec<Vec<PlannedCell>>) -> Plan {
    Plan {
        processes: 1,
        run: "run".into(),
        command: vec!["contention".into()],
        seed: 1,
        over_ns: 10_000,
        options: Default::default(),
        folded: None,
        repeat: None,
        refused: Vec::new(),
        groups,
    }
}

fn locks(group: &[PlannedCell]) -> impl Iterator<Item = &LockSubject> {
    group.iter().filter_map(|planned| planned.cell.lock())
}

#[test]
fn every_group_has_the_reference_and_the_thread_alone_that_its_cells_are_against() {
    for scenario in SCENARIOS {
        for work in [Work::Spin, Work::Sleep] {
            let overrides = Overrides { work: Some(work), ..Overrides::default() };
            let (groups, _) = planned(scenario.name, &[], overrides);
            assert!(!groups.is_empty(), "{scenario:?}");
            for group in &groups {
                assert!(group.len() <= 8 && group[0].cell.lock().is_none(), "{scenario:?}");
                let alone = group[1].cell.lock().unwrap();
                assert!(alone.is_alone() && group.len() > 2, "{scenario:?}");
                let (twins, originals): (Vec<_>, Vec<_>) =
                    group.iter().partition(|planned| planned.cell.is_twin());
                assert_eq!(twins.len(), 1);
                let of =
                    originals.iter().position(|planned| planned.cell == twins[0].cell.original());
                assert_eq!(originals[of.unwrap()].cell.name(), originals[2].cell.name());
                assert_eq!(twins[0].budget, originals[of.unwrap()].budget);
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
    let all =
        || groups.iter().flat_map(|group| locks(group)).filter(|lock| lock.origin == Origin::Ours);
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
