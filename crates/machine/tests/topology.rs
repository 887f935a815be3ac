//! Topologies of synthetic machines and of invalid trees.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use proptest::prelude::*;
use tempfile::TempDir;
use threadtoll_machine::synthetic::Synthetic;
use threadtoll_machine::{Level, Topology, allowed_cpus};
use threadtoll_record::Relation;

/// In memory if possible: a tree is thousands of small files.
fn directory() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

/// Writes files given as pairs of path and content, and reads the tree.
fn read(files: &[(&str, &str)]) -> Topology {
    let root = directory();
    write(root.path(), files);
    Topology::read(root.path())
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, content) in files {
        let path = root.join("devices").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn synthetic(machine: Synthetic) -> (Topology, Vec<u32>) {
    let root = directory();
    machine.write(root.path()).unwrap();
    let topology = Topology::read(root.path());
    assert!(topology.readable && topology.synthetic);
    let cpus = topology.places.iter().map(|place| place.cpu).collect();
    (topology, cpus)
}

fn pair_counts(topology: &Topology, cpus: &[u32]) -> [usize; 4] {
    Level::ALL.map(|level| topology.pairs(cpus, level).len())
}

#[test]
fn two_sockets() {
    let (topology, cpus) = synthetic(Synthetic::TwoSockets);
    assert_eq!(cpus, (0..32).collect::<Vec<_>>());
    let place = topology.place(27).unwrap();
    assert_eq!(
        (place.core, place.llc, place.node, &place.smt, &place.kind),
        (11, Some(8), 1, &vec![11, 27], &None)
    );
    for (a, b, expected) in [
        (3, 3, Relation::SameCpu),
        (3, 19, Relation::Smt),
        (19, 3, Relation::Smt),
        (3, 4, Relation::SameLlc),
        (3, 20, Relation::SameLlc),
        (3, 8, Relation::OtherNode),
    ] {
        assert_eq!(topology.relation(a, b), expected, "{a} {b}");
    }
    assert_eq!(pair_counts(&topology, &cpus), [16, 240, 240, 496]);
    assert_eq!(topology.pairs(&cpus, Level::Smt)[..2], [(0, 16), (1, 17)]);
    assert_eq!(topology.default_pair(&cpus), Some((1, 2)), "not the core of CPU 0");
    assert_eq!(
        topology.one_per_relation(&cpus),
        [(Relation::Smt, (1, 17)), (Relation::SameLlc, (1, 2)), (Relation::OtherNode, (1, 8))]
    );
}

#[test]
fn hybrid_laptop() {
    let (topology, cpus) = synthetic(Synthetic::HybridLaptop);
    let kind = |cpu| topology.place(cpu).unwrap().kind.as_deref();
    assert_eq!(
        (kind(0), kind(7), kind(8), kind(15)),
        (Some("performance"), Some("performance"), Some("efficiency"), Some("efficiency"))
    );
    assert_eq!(pair_counts(&topology, &cpus), [4, 120, 120, 120]);
    assert_eq!(
        topology.default_pair(&cpus),
        Some((2, 4)),
        "two fast cores, no siblings, not the first core"
    );
    // Kinds are mixed, and small cores used, only if there is no other pair.
    assert_eq!(topology.default_pair(&[0, 1, 8, 9]), Some((8, 9)));
    assert_eq!(topology.default_pair(&[0, 8]), Some((0, 8)));
}

#[test]
fn aarch64_server_with_hidden_system_cache() {
    let (topology, cpus) = synthetic(Synthetic::ArmServer);
    assert_eq!(cpus.len(), 80);
    assert!(
        topology.places.iter().all(|place| place.llc.is_none() && place.kind.is_none()),
        "{topology:?}"
    );
    assert_eq!(pair_counts(&topology, &cpus), [0, 0, 1_560, 3_160]);
    assert_eq!(topology.default_pair(&cpus), Some((1, 2)));
    assert_eq!(
        topology.one_per_relation(&cpus),
        [(Relation::SameNode, (1, 2)), (Relation::OtherNode, (1, 40))]
    );
}

#[test]
fn five_hundred_cpus_with_holes() {
    let (topology, cpus) = synthetic(Synthetic::FiveHundred);
    assert_eq!(cpus.len(), 500);
    assert!(topology.place(0).is_none() && topology.place(256).is_none(), "offline");
    assert_eq!(topology.place(257).unwrap().core, 1);
    assert_eq!(pair_counts(&topology, &cpus), [250, 7_574, 62_254, 124_750]);
    assert_eq!(
        topology.one_per_relation(&cpus),
        [
            (Relation::Smt, (1, 257)),
            (Relation::SameLlc, (1, 2)),
            (Relation::SameNode, (1, 16)),
            (Relation::OtherNode, (1, 129)),
        ]
    );
}

#[test]
fn names_of_synthetic_machines_and_levels() {
    for machine in Synthetic::ALL {
        assert_eq!(machine.name().parse(), Ok(machine));
    }
    assert!("pdp-11".parse::<Synthetic>().unwrap_err().contains("two-sockets"));
    for level in Level::ALL {
        assert_eq!(level.to_string().parse(), Ok(level));
    }
    assert!("l3".parse::<Level>().is_err());
}

#[test]
fn the_default_pair_is_as_near_as_different_cores_can_be() {
    let (two, _) = synthetic(Synthetic::TwoSockets);
    assert_eq!(two.default_pair(&[]), None);
    assert_eq!(two.default_pair(&[5]), None);
    assert_eq!(two.default_pair(&[5, 5]), None, "one CPU, named twice");
    assert_eq!(two.default_pair(&[16, 0]), Some((0, 16)), "siblings where there is nothing else");
    assert_eq!(two.default_pair(&[0, 16, 8]), Some((0, 8)), "another node before siblings");
    assert_eq!(
        two.default_pair(&[0, 16, 1]),
        Some((0, 1)),
        "with few CPUs, CPU 0 is as good as any"
    );
    assert_eq!(
        two.default_pair(&[0, 1, 8, 16, 24]),
        Some((0, 1)),
        "near matters more than interrupts"
    );
}

/// AMD's small parts and Intel's sub-NUMA clusters: a cache may be smaller than a node, or span
/// two.
#[test]
fn caches_and_nodes_need_not_nest() {
    let mut files = vec![("system/cpu/online".to_owned(), "0-3".to_owned())];
    for cpu in 0..4 {
        let base = format!("system/cpu/cpu{cpu}");
        files.push((format!("{base}/topology/core_cpus_list"), cpu.to_string()));
        files.push((format!("{base}/cache/index0/level"), "3".into()));
        files.push((format!("{base}/cache/index0/type"), "Unified".into()));
        files.push((format!("{base}/cache/index0/shared_cpu_list"), "0-3".into()));
    }
    files.push(("system/node/node0/cpulist".into(), "0-1".into()));
    files.push(("system/node/node1/cpulist".into(), "2-3".into()));
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let topology = read(&files);
    assert_eq!(topology.relation(1, 2), Relation::SameLlc);
    assert_eq!(topology.place(2).unwrap().node, 1);
    assert_eq!(pair_counts(&topology, &[0, 1, 2, 3]), [0, 6, 6, 6]);
}

/// A board with four cores on one second-level cache (Raspberry Pi 4), with the old name of
/// siblings.
#[test]
fn a_shared_second_level_is_the_last() {
    let mut files = vec![("system/cpu/online".to_owned(), "0-3\n".to_owned())];
    for cpu in 0..4 {
        let base = format!("system/cpu/cpu{cpu}");
        files.push((format!("{base}/topology/thread_siblings_list"), format!("{cpu}\n")));
        for (index, level, kind, sharers) in [
            (0, 1, "Data", cpu.to_string()),
            (1, 1, "Instruction", "0-3".into()),
            (2, 2, "Unified", "0-3".into()),
        ] {
            files.push((format!("{base}/cache/index{index}/level"), format!("{level}\n")));
            files.push((format!("{base}/cache/index{index}/type"), format!("{kind}\n")));
            files.push((format!("{base}/cache/index{index}/shared_cpu_list"), sharers));
        }
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let topology = read(&files);
    assert!(topology.readable);
    assert!(topology.places.iter().all(|place| place.llc == Some(0) && place.node == 0));
    assert_eq!(topology.default_pair(&[0, 1, 2, 3]), Some((0, 1)));
}

#[test]
fn capacities_tell_big_cores_from_little_ones() {
    let machine = |capacities: [&str; 4]| {
        let mut files = vec![("system/cpu/online".to_owned(), "0-3".to_owned())];
        for (cpu, capacity) in capacities.into_iter().enumerate() {
            files.push((format!("system/cpu/cpu{cpu}/topology/core_cpus_list"), cpu.to_string()));
            files.push((format!("system/cpu/cpu{cpu}/cpu_capacity"), capacity.to_owned()));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        read(&files).places.into_iter().map(|place| place.kind).collect::<Vec<_>>()
    };
    let kinds = |names: [&str; 4]| names.map(|name| Some(name.into())).to_vec();
    assert_eq!(
        machine(["250", "250", "870", "1024"]),
        kinds(["efficiency", "efficiency", "performance", "performance"])
    );
    // Favoured cores are not a kind of their own.
    assert_eq!(machine(["1024", "1009", "990", "960"]), [None, None, None, None]);
    assert_eq!(machine(["x", "", "-1", "99999999999"]), [None, None, None, None]);
}

#[test]
fn this_machine_is_real() {
    let topology = Topology::read(Path::new("/sys"));
    assert!(!topology.synthetic);
    for cpu in allowed_cpus() {
        assert!(topology.place(cpu).is_some(), "an allowed CPU is always there: {cpu}");
    }
    assert!(topology.places.is_sorted_by_key(|place| place.cpu));
}

#[test]
fn without_a_tree_each_allowed_cpu_stands_alone() {
    for root in ["/nonexistent", "/dev/null", ""] {
        let topology = Topology::read(Path::new(root));
        assert!(!topology.readable && topology.synthetic);
        let cpus: Vec<u32> = topology.places.iter().map(|place| place.cpu).collect();
        assert_eq!(cpus, allowed_cpus());
        for place in &topology.places {
            assert_eq!((place.core, place.llc, place.node), (place.cpu, None, 0));
            assert_eq!(place.smt, [place.cpu]);
        }
        if let [first, second, ..] = cpus[..] {
            assert_eq!(topology.relation(first, second), Relation::SameNode);
            assert!(topology.default_pair(&cpus).is_some());
        }
    }
}

#[test]
fn a_cpu_that_nobody_knows_is_near_to_none() {
    let (two, _) = synthetic(Synthetic::TwoSockets);
    assert_eq!(two.relation(99, 99), Relation::SameCpu);
    assert_eq!(two.relation(0, 99), Relation::SameNode);
    assert_eq!(two.relation(99, 8), Relation::OtherNode);
    assert!(two.place(99).is_none());
}

#[test]
fn hostile_content_is_not_believed() {
    let garbage = "\u{0}\u{ff}\u{fffd},,--";
    let topology = read(&[
        ("system/cpu/online", "0-3"),
        ("system/cpu/cpu0/topology/core_cpus_list", garbage),
        ("system/cpu/cpu0/topology/thread_siblings_list", "0-4294967295"),
        ("system/cpu/cpu0/cache/index0/level", "99999999999"),
        ("system/cpu/cpu0/cache/index1/level", "3"),
        ("system/cpu/cpu0/cache/index1/type", "Unified"),
        ("system/cpu/cpu0/cache/index1/shared_cpu_list", "7-9"),
        ("system/cpu/cpu1/topology/core_cpus_list", "7,8"),
        ("system/node/node0/cpulist", garbage),
        ("system/node/node99999999999/cpulist", "0"),
        ("system/node/nodes/cpulist", "0"),
        ("cpu_core/cpus", "5000"),
    ]);
    assert!(!topology.readable);
    assert_eq!(topology.places.len(), 4);
    for place in &topology.places {
        assert_eq!((place.core, place.node), (place.cpu, 0), "{place:?}");
        assert!(place.kind.is_none());
    }
    assert_eq!(topology.places[0].llc, Some(0), "sharers that are not online are none");
}

#[test]
fn an_online_list_without_end_is_cut_off() {
    let began = Instant::now();
    let topology = read(&[("system/cpu/online", "0-4294967295")]);
    assert_eq!(topology.places.len(), 65_536);
    assert!(!topology.readable);
    assert!(began.elapsed().as_secs() < 60);
}

#[test]
fn a_core_of_two_hundred_threads_is_no_core() {
    // Plausible lists that contradict each other.
    let mut files = vec![("system/cpu/online".to_owned(), "0-199".to_owned())];
    for cpu in 0..200 {
        files.push((format!("system/cpu/cpu{cpu}/topology/core_cpus_list"), format!("0,{cpu}")));
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let topology = read(&files);
    assert!(!topology.readable);
    assert!(topology.places.iter().all(|place| place.smt == [place.cpu]));
}

#[test]
fn links_and_pipes_in_a_tree_do_not_hold_the_reader_up() {
    let root = directory();
    write(root.path(), &[("system/cpu/online", "0-1")]);
    let cpu = root.path().join("devices/system/cpu");
    std::os::unix::fs::symlink(".", cpu.join("cpu0")).unwrap();
    fs::create_dir_all(cpu.join("cpu1/topology")).unwrap();
    let loop_to_itself = cpu.join("cpu1/topology/core_cpus_list");
    std::os::unix::fs::symlink(&loop_to_itself, &loop_to_itself).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(cpu.join("cpu1/topology/thread_siblings_list"))
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("no named pipe could be made: only links are tried");
    }
    std::os::unix::fs::symlink("/dev/zero", cpu.join("cpu1/cpu_capacity")).unwrap();
    let topology = Topology::read(root.path());
    assert_eq!(topology.places.len(), 2);
    assert!(!topology.readable);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the files say, relations are symmetric, siblings are on one core, and pairs agree
    /// with relations.
    #[test]
    fn any_tree_gives_relations_that_hold(
        siblings in prop::collection::vec("([0-7],){0,3}[0-7]|[0-7]-[0-7]|[a-z]{0,3}", 6),
        caches in prop::collection::vec("([0-7],){0,3}[0-7]|[0-7]-[0-7]|[a-z]{0,3}", 6),
        nodes in prop::collection::vec("([0-7],){0,3}[0-7]|", 2),
    ) {
        let mut files = BTreeMap::from([("system/cpu/online".to_owned(), "0-5".to_owned())]);
        for cpu in 0..6 {
            let base = format!("system/cpu/cpu{cpu}");
            files.insert(format!("{base}/topology/core_cpus_list"), siblings[cpu].clone());
            files.insert(format!("{base}/cache/index0/level"), "3".into());
            files.insert(format!("{base}/cache/index0/type"), "Unified".into());
            files.insert(format!("{base}/cache/index0/shared_cpu_list"), caches[cpu].clone());
        }
        for (node, cpus) in nodes.iter().enumerate() {
            files.insert(format!("system/node/node{node}/cpulist"), cpus.clone());
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let topology = read(&files);
        let cpus: Vec<u32> = (0..6).collect();
        for place in &topology.places {
            prop_assert!(place.smt.contains(&place.cpu));
            prop_assert_eq!(place.smt[0], place.core);
            prop_assert!(place.llc.is_none_or(|llc| topology.place(llc).unwrap().llc == place.llc));
            for &sibling in &place.smt {
                prop_assert_eq!(&topology.place(sibling).unwrap().smt, &place.smt);
            }
        }
        for level in Level::ALL {
            for pair in topology.pairs(&cpus, level) {
                prop_assert!(pair.0 < pair.1);
                prop_assert!(topology.relation(pair.0, pair.1) <= level.farthest());
            }
        }
        for &a in &cpus {
            for &b in &cpus {
                prop_assert_eq!(topology.relation(a, b), topology.relation(b, a));
            }
        }
        let best = topology.one_per_relation(&cpus);
        prop_assert!(best.iter().all(|&(relation, (a, b))| topology.relation(a, b) == relation));
        prop_assert!(best.iter().any(|&(_, pair)| Some(pair) == topology.default_pair(&cpus)));
    }
}
