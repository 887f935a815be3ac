//! Plans depend only on the topology: every promise about groups holds on every machine.

use std::collections::{BTreeMap, BTreeSet};

use tempfile::TempDir;
use threadtoll_lab::mechanism::{Class, Mechanism};
use threadtoll_lab::plan::{
    CpuSelection, Depth, MAX_NS, MAX_PAYLOAD, MAX_SAMPLES, MechanismChoice, Missing, Planned,
    ROUNDS, budget, estimate_ns, latency, matrix, split_blocks, validate,
};
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_machine::synthetic::Synthetic;
use threadtoll_machine::topology::{Level, Topology};
use threadtoll_record::fold::compared;
use threadtoll_record::{
    Budget, Cell, CpuNoise, Experiment, Layout, MAX_ROUNDS, Pause, Placement, Plan, PlannedCell,
    Refused, Relation, Subject,
};

use super::{OURS, mechanism};

const BUDGET: Budget =
    Budget { rounds: 21, stretch_ns: 1000, stamped_ns: 1000, stamped_count: None };

fn topologies() -> Vec<Topology> {
    let read = |machine: &Synthetic| {
        let directory = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
        machine.write(directory.path()).unwrap();
        Topology::read(directory.path())
    };
    Synthetic::ALL.iter().map(read).chain([SimulatedBackend::topology()]).collect()
}

fn cpus(topology: &Topology) -> Vec<u32> {
    topology.places.iter().map(|place| place.cpu).collect()
}

fn all() -> Vec<&'static Mechanism> {
    OURS.mechanisms.all().collect()
}

fn survey(site: &CpuSelection<'_>, depth: Depth) -> Planned {
    threadtoll_lab::plan::survey(site, &OURS.mechanisms, depth, &[], None)
}

fn everything() -> MechanismChoice {
    MechanismChoice {
        placements: Placement::ALL.to_vec(),
        layouts: vec![Layout::Own, Layout::Shared],
        pauses: vec![Pause::Off, Pause::On],
        payloads: vec![8, 64, 4096],
        awake: vec![false, true],
        neighbour: None,
    }
}

fn plan_of(groups: Vec<Vec<PlannedCell>>) -> Plan {
    Plan {
        processes: 1,
        run: "a run".into(),
        command: vec!["latency".into()],
        seed: 1,
        over_ns: 10_000,
        options: BTreeMap::new(),
        folded: None,
        repeat: None,
        until_saturated: false,
        refused: Vec::new(),
        groups,
    }
}

fn cells(groups: &[Vec<PlannedCell>]) -> Vec<&Cell> {
    groups.iter().flatten().map(|planned| &planned.cell).collect()
}

fn reasons(refused: &[Refused]) -> String {
    refused.iter().map(|refused| format!("{}: {}\n", refused.what, refused.why)).collect()
}

/// At most eight cells, the reference first and nowhere else, no duplicate cells, equal numbers of
/// rounds, and nothing empty.
#[track_caller]
fn keeps_promises(groups: &[Vec<PlannedCell>], site: &CpuSelection<'_>) {
    let reference = site.reference();
    for group in groups {
        assert!((1..=8).contains(&group.len()), "{} cells", group.len());
        assert_eq!(group[0].cell, reference);
        let distinct: BTreeSet<&Cell> = group.iter().map(|planned| &planned.cell).collect();
        assert_eq!(distinct.len(), group.len(), "duplicate cell in a group");
        assert!(group.iter().all(|planned| planned.budget.rounds == group[0].budget.rounds));
    }
    let plan = plan_of(groups.to_vec());
    assert_eq!(validate(&plan, site.topology, &OURS), Ok(()), "a plan can be resumed");
}

#[test]
fn every_plan_for_every_machine_keeps_its_promises() {
    for topology in topologies() {
        let cpus = cpus(&topology);
        let half: Vec<u32> = cpus.iter().copied().step_by(2).collect();
        let sites = [
            CpuSelection::whole(&topology, &cpus),
            CpuSelection::named(&topology, &half),
            CpuSelection::named(&topology, &cpus[..1]),
        ];
        for site in &sites {
            let (groups, _) = latency(site, &OURS.mechanisms, &all(), &everything(), BUDGET, true);
            keeps_promises(&groups, site);
            for depth in [Depth::Quick, Depth::Standard, Depth::Full] {
                let (groups, _) = survey(site, depth);
                assert!(!groups.is_empty());
                keeps_promises(&groups, site);
            }
        }
        let (groups, refused) = matrix(&sites[0], Some(mechanism("futex")), Level::All, BUDGET);
        keeps_promises(&groups, &sites[0]);
        // One CPU has no pairs.
        assert_eq!(refused.is_empty(), cpus.len() > 1);
    }
}

#[test]
fn every_group_of_mechanisms_has_what_its_others_are_compared_with() {
    for topology in topologies() {
        let cpus = cpus(&topology);
        let sites =
            [CpuSelection::whole(&topology, &cpus), CpuSelection::named(&topology, &cpus[..1])];
        for site in &sites {
            let plans = [
                survey(site, Depth::Quick),
                survey(site, Depth::Full),
                latency(site, &OURS.mechanisms, &all(), &everything(), BUDGET, true),
            ];
            let is_ladder = |group: &&Vec<PlannedCell>| group[0].experiment == Experiment::Latency;
            for group in plans.iter().flat_map(|(groups, _)| groups).filter(is_ladder) {
                assert_eq!(group[0].cell, site.reference());
                let sleeps =
                    |planned: &PlannedCell| planned.cell.subject.class() == Some(Class::Sleep);
                let sleeping = group[1..].iter().filter(|planned| sleeps(planned)).count();
                assert!(sleeping == 0 || sleeping == group.len() - 1);
                if sleeping > 0 {
                    let of = group.iter().position(|planned| planned.cell.name() == "futex");
                    let of = of.unwrap();
                    assert!(
                        (1..group.len()).all(|at| at == of || compared(group, at).contains(&of))
                    );
                }
            }
        }
    }
}

#[test]
fn every_mechanism_stands_in_every_survey_of_two_cpus() {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    for depth in [Depth::Quick, Depth::Standard, Depth::Full] {
        let (groups, _) = survey(&site, depth);
        for mechanism in all() {
            let found = cells(&groups)
                .iter()
                .any(|cell| cell.name() == mechanism.name && cell.placement == Placement::Pinned);
            assert!(found, "{depth:?} leaves {} out", mechanism.name);
        }
        let placements: BTreeSet<Placement> =
            cells(&groups).iter().map(|cell| cell.placement).collect();
        assert_eq!(placements.len(), 3, "{depth:?}");
        assert!(
            cells(&groups).iter().any(|cell| cell.keep_awake),
            "{depth:?} shows what leaving idle costs"
        );
        let experiments: BTreeSet<&Experiment> =
            groups.iter().flatten().map(|planned| &planned.experiment).collect();
        assert!(experiments.into_iter().eq(&[Experiment::Latency, Experiment::Matrix]));
    }
}

#[test]
fn surveys_are_foreseen_to_keep_their_promise() {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let seconds =
        |depth| estimate_ns(survey(&site, depth).0.iter().map(Vec::as_slice), 1) as f64 / 1e9;
    assert!(seconds(Depth::Quick) < 15.0, "{}", seconds(Depth::Quick));
    assert!(seconds(Depth::Standard) < 75.0, "{}", seconds(Depth::Standard));
    assert!(seconds(Depth::Full) > seconds(Depth::Standard));
}

#[test]
fn what_is_to_be_compared_stays_together() {
    for topology in topologies() {
        let site = CpuSelection::whole(&topology, &cpus(&topology));
        let plans: [Planned; 2] = [
            survey(&site, Depth::Standard),
            latency(&site, &OURS.mechanisms, &all(), &MechanismChoice::default(), BUDGET, true),
        ];
        for (groups, _) in plans {
            for group in &groups {
                for planned in
                    group.iter().filter(|planned| planned.cell.name().ends_with("-after"))
                {
                    let plain = planned.cell.name().trim_end_matches("-after");
                    let together = group.iter().any(|other| {
                        other.cell.name() == plain && other.cell.placement == planned.cell.placement
                    });
                    assert!(together, "{plain} is not grouped with its other form");
                }
            }
            // So do the forms of one mechanism: with and without a pause, on own and shared lines.
            for name in ["atomic-store", "atomic-rmw"] {
                let pinned = |group: &&Vec<PlannedCell>| {
                    group[1..].iter().any(|planned| {
                        planned.cell.name() == name
                            && planned.cell.placement == Placement::Pinned
                            && planned.experiment == Experiment::Latency
                    })
                };
                assert!(groups.iter().filter(pinned).count() <= 1, "{name} is split over groups");
            }
        }
    }
}

#[test]
fn more_forms_than_a_group_holds_fill_groups_in_order() {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let payloads: Vec<u64> = (1..=20).map(|words| words * 8).collect();
    let choice = MechanismChoice {
        placements: vec![Placement::Pinned],
        payloads: payloads.clone(),
        ..MechanismChoice::default()
    };
    let (groups, _) =
        latency(&site, &OURS.mechanisms, &[mechanism("futex")], &choice, BUDGET, true);
    let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
    // Six in addition to the reference and the futex.
    assert_eq!(sizes, [8, 8, 8, 3]);
    let found: Vec<u64> = groups
        .iter()
        .flat_map(|group| &group[2..])
        .map(|planned| planned.cell.payload_bytes)
        .collect();
    assert_eq!(found, payloads[1..]);
}

#[test]
fn asking_for_the_reference_measures_it_once() {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let plain =
        MechanismChoice { placements: vec![Placement::Pinned], ..MechanismChoice::default() };
    let (groups, _) =
        latency(&site, &OURS.mechanisms, &[mechanism("atomic-store")], &plain, BUDGET, true);
    let reference = site.reference();
    assert_eq!(cells(&groups), [&reference]);
    let both = [mechanism("atomic-store"), mechanism("futex")];
    let (groups, _) = latency(&site, &OURS.mechanisms, &both, &plain, BUDGET, true);
    let names: Vec<String> = cells(&groups).iter().map(|cell| cell.label()).collect();
    assert_eq!(names, ["atomic-store", "atomic-store", "futex"]);
}

#[test]
fn one_cpu_has_a_reference_of_its_own_and_what_can_be_measured_on_it() {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[3]);
    let reference = site.reference();
    assert_eq!((reference.name(), reference.placement), ("futex", Placement::SameCpu));
    assert_eq!(reference.cpus, [3]);
    let (groups, refused) = survey(&site, Depth::Standard);
    assert!(cells(&groups).iter().all(|cell| cell.cpus == [3]));
    let measured: BTreeSet<&str> = cells(&groups).iter().map(|cell| cell.name()).collect();
    for mechanism in all() {
        assert_eq!(
            measured.contains(mechanism.name.as_str()),
            mechanism.class != Class::Spin,
            "{}",
            mechanism.name
        );
    }
    assert!(reasons(&refused).contains("its partner off"), "{}", reasons(&refused));
    let (groups, refused) = matrix(&site, Some(mechanism("futex")), Level::All, BUDGET);
    assert!(groups.is_empty() && reasons(&refused).contains("a matrix needs two"));
}

#[test]
fn what_cannot_be_measured_is_refused_with_its_reason() {
    let topology = SimulatedBackend::topology();
    let (two, one) =
        (CpuSelection::named(&topology, &[0, 2]), CpuSelection::named(&topology, &[0]));
    let refused = |site: &CpuSelection<'_>, name: &str, placement: Placement| {
        let choice = MechanismChoice { placements: vec![placement], ..MechanismChoice::default() };
        let (groups, refused) =
            latency(site, &OURS.mechanisms, &[mechanism(name)], &choice, BUDGET, false);
        assert_eq!(groups.is_empty(), !refused.is_empty(), "{name} {placement}");
        reasons(&refused)
    };
    let spins = "its partner off";
    assert!(refused(&two, "atomic-rmw", Placement::SameCpu).contains(spins));
    assert!(refused(&one, "atomic-rmw", Placement::Free).contains(spins));
    assert!(refused(&one, "atomic-rmw", Placement::Pinned).contains("two pinned threads need two"));
    assert!(refused(&one, "futex", Placement::Pinned).contains("two pinned threads need two"));
    assert!(refused(&one, "futex", Placement::Free).contains("free placement equals same-cpu"));
    assert!(refused(&two, "fiber-switch", Placement::Free).contains("one thread"));
    assert!(refused(&two, "fiber-switch", Placement::SameCpu).contains("one thread"));
    for (site, name, placement) in [
        (&two, "futex", Placement::SameCpu),
        (&two, "spin-yield", Placement::SameCpu),
        (&two, "atomic-rmw", Placement::Free),
        (&one, "function-call", Placement::Pinned),
        (&one, "futex", Placement::SameCpu),
    ] {
        assert_eq!(refused(site, name, placement), "");
    }
}

#[test]
fn placements_that_nobody_named_are_left_out_of_one_thread_rungs_without_a_word() {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let rung = [mechanism("function-call")];
    let (_, refused) =
        latency(&site, &OURS.mechanisms, &rung, &MechanismChoice::default(), BUDGET, true);
    assert_eq!(refused, []);
    let (_, refused) =
        latency(&site, &OURS.mechanisms, &rung, &MechanismChoice::default(), BUDGET, false);
    assert_eq!(refused.len(), 2);
}

#[test]
fn what_the_machine_refuses_costs_its_cells_and_nothing_else() {
    let topology = SimulatedBackend::topology();
    let missing = Missing {
        mechanisms: vec![
            ("tcp-loopback".into(), "no network".into()),
            ("semaphore".into(), "no semaphores".into()),
        ],
        awake: Some("no priorities".into()),
    };
    let site = CpuSelection::named(&topology, &[0, 2]);
    let without = site.clone().without(missing);
    let (all, _) = survey(&site, Depth::Full);
    let (some, refused) = survey(&without, Depth::Full);
    let allowed =
        |cell: &&Cell| !["tcp-loopback", "semaphore"].contains(&cell.name()) && !cell.keep_awake;
    let all: BTreeSet<&Cell> = cells(&all).into_iter().filter(allowed).collect();
    assert_eq!(cells(&some).into_iter().collect::<BTreeSet<_>>(), all);
    for why in ["no network", "no semaphores", "no priorities"] {
        assert!(reasons(&refused).contains(why), "{}", reasons(&refused));
    }
    keeps_promises(&some, &without);
    let (groups, refused) = matrix(&without, Some(mechanism("semaphore")), Level::All, BUDGET);
    assert!(groups.is_empty() && reasons(&refused).contains("no semaphores"));
}

#[test]
fn small_surveys_show_every_relation_of_a_machine() {
    for topology in topologies() {
        let site = CpuSelection::whole(&topology, &cpus(&topology));
        let relations: BTreeSet<Relation> = topology
            .one_per_relation(&site.pool)
            .into_iter()
            .map(|(relation, _)| relation)
            .collect();
        for depth in [Depth::Quick, Depth::Standard, Depth::Full] {
            let (groups, _) = survey(&site, depth);
            let shown: BTreeSet<Relation> = groups
                .iter()
                .flatten()
                .filter(|planned| {
                    planned.experiment == Experiment::Matrix && planned.cell.name() == "futex"
                })
                .map(|planned| planned.cell.relation)
                .collect();
            assert_eq!(shown, relations, "{depth:?}");
        }
    }
}

#[test]
fn time_and_samples_become_rounds_and_blocks() {
    let second = budget(1_000_000_000, None);
    assert_eq!((second.rounds, second.stamped_count), (ROUNDS, None));
    assert_eq!(second.stretch_ns, 1_000_000_000 / 2 / 21);
    for time in [1, 1_000, 1_000_000_000, 60_000_000_000, MAX_NS] {
        let spread = budget(time, None);
        assert!((ROUNDS..=MAX_ROUNDS).contains(&spread.rounds), "{time}: {spread:?}");
        let whole = u64::from(spread.rounds) * (spread.stretch_ns + spread.stamped_ns);
        assert!(whole <= time.max(42) && whole >= time - time / 10, "{time}: {spread:?}");
    }
    for samples in [1, 1000, 5_000_000, MAX_SAMPLES] {
        let spread = budget(1_000_000, Some(samples));
        let count = spread.stamped_count.unwrap();
        assert!(
            spread.rounds <= MAX_ROUNDS && count <= threadtoll_lab::plan::MAX_BLOCK_SAMPLES,
            "{samples}: {spread:?}"
        );
        assert!(u64::from(spread.rounds) * count >= samples, "{samples}: {spread:?}");
    }
}

#[test]
fn plans_that_were_edited_are_refused() {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let (groups, _) =
        latency(&site, &OURS.mechanisms, &all(), &MechanismChoice::default(), BUDGET, true);
    let spoilt = |edit: &dyn Fn(&mut PlannedCell)| {
        let mut groups = groups.clone();
        // A pinned mechanism that sleeps.
        let futex =
            groups.iter_mut().flatten().find(|planned| planned.cell.name() == "futex").unwrap();
        edit(futex);
        validate(&plan_of(groups), &topology, &OURS).err().unwrap_or_default()
    };
    assert_eq!(spoilt(&|_| {}), "");
    assert!(
        spoilt(&|planned| planned.cell.subject = Subject::mechanism("telepathy", Class::Spin))
            .contains("no such mechanism")
    );
    assert!(spoilt(&|planned| planned.cell.payload_bytes = 4).contains("size is out of range"));
    assert!(
        spoilt(&|planned| planned.cell.payload_bytes = MAX_PAYLOAD + 8)
            .contains("size is out of range")
    );
    assert!(
        spoilt(&|planned| planned.cell.line = Some(Layout::Own))
            .contains("not apply to this mechanism")
    );
    assert!(spoilt(&|planned| planned.cell.cpus = vec![0]).contains("placed as planned"));
    assert!(spoilt(&|planned| planned.cell.cpus = vec![2, 2]).contains("twice"));
    assert!(spoilt(&|planned| planned.cell.relation = Relation::Smt).contains("placed as planned"));
    assert!(
        spoilt(&|planned| planned.cell.placement = Placement::SameCpu)
            .contains("placed as planned")
    );
    assert!(
        spoilt(&|planned| planned.budget.stamped_ns = MAX_NS + 1).contains("block is too long")
    );
    // Spinning on a single CPU would never end.
    let mut groups = groups.clone();
    let spinning =
        groups.iter_mut().flatten().find(|planned| planned.cell.name() == "atomic-rmw").unwrap();
    spinning.cell.placement = Placement::SameCpu;
    spinning.cell.cpus = vec![0];
    spinning.cell.relation = Relation::SameCpu;
    assert!(
        validate(&plan_of(groups), &topology, &OURS).unwrap_err().contains("placed as planned")
    );
}

/// Noise of a CPU with this many gaps in a second.
fn noise(cpu: u32, short: u64, long: u64) -> CpuNoise {
    CpuNoise {
        cpu,
        watched_ns: 1_000_000_000.into(),
        gaps: vec![
            (1_000.into(), 1000.into()),
            (10_000.into(), short.into()),
            (100_000.into(), long.into()),
            (1_000_000.into(), long.into()),
        ],
        lost_share: 0.1.into(),
        longest_ns: 10_000_000.into(),
    }
}

#[test]
fn blocks_fit_between_the_gaps_of_the_machine() {
    let topology = SimulatedBackend::topology();
    let site = CpuSelection::named(&topology, &[0, 2]);
    let second = budget(1_000_000_000, Some(42_000));
    let planned = |noise: &[CpuNoise], placement: Placement| {
        let choice = MechanismChoice { placements: vec![placement], ..MechanismChoice::default() };
        let (mut groups, _) =
            latency(&site, &OURS.mechanisms, &[mechanism("futex")], &choice, second, false);
        split_blocks(&mut groups, noise);
        groups.concat()
    };
    let calm = planned(&[noise(0, 500, 0), noise(2, 500, 0)], Placement::Pinned);
    assert!(calm.iter().all(|planned| planned.budget == second), "every block has interrupts");
    // 20 gaps a second on each of two CPUs, and fewer on a third: one every 25 ms on the two CPUs.
    let busy = [noise(0, 500, 10), noise(1, 0, 1), noise(2, 500, 10)];
    for planned in planned(&busy, Placement::Pinned) {
        let budget = planned.budget;
        assert!((7_000_000..9_000_000).contains(&budget.stretch_ns), "{budget:?}");
        assert_eq!(budget.rounds % second.rounds, 0);
        let whole = budget.stretch_ns * u64::from(budget.rounds);
        assert!(
            (500_000_000..510_000_000).contains(&whole),
            "the time stays what it was: {budget:?}"
        );
        assert!(budget.stamped_count.unwrap() * u64::from(budget.rounds) >= 42_000);
    }
    assert!(planned(&busy, Placement::Free).iter().all(|planned| planned.budget == second));
    let hopeless = planned(&[noise(0, 0, 100_000), noise(2, 0, 100_000)], Placement::Pinned);
    assert!(hopeless.iter().all(|planned| planned.budget.rounds == 6 * second.rounds));
}
