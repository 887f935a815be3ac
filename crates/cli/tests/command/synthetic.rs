//! Plans for other machines, from directories in place of `/sys`.

use std::collections::BTreeSet;
use std::path::Path;

use tempfile::TempDir;
use threadtoll_machine::synthetic::Synthetic;

use crate::program::{Ended, threadtoll, words};

/// A directory of thousands of small files: in memory if possible.
pub(crate) fn tree(machine: Synthetic) -> TempDir {
    let directory = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    machine.write(directory.path()).unwrap();
    directory
}

fn on(tree: &Path, line: &str) -> Ended {
    threadtoll(words(&format!("{line} --sysfs"), &[tree]))
}

/// The cells of a printed plan: experiment, name, placement, relation and CPUs.
fn cells(plan: &str) -> Vec<&str> {
    plan.lines().filter(|line| line.starts_with("  ")).map(str::trim).collect()
}

/// Pairs within a core, a last-level cache, a node, and the whole machine, counted by hand: of n
/// CPUs within one, n(n-1)/2.
const PAIRS: [(Synthetic, [usize; 4]); 4] = [
    (Synthetic::TwoSockets, [16, 2 * 120, 2 * 120, 496]),
    (Synthetic::HybridLaptop, [4, 120, 120, 120]),
    (Synthetic::ArmServer, [0, 0, 2 * 780, 3160]),
    // Of sixteen caches of 32 CPUs, four have a core offline and one has two; of the nodes' 256
    // CPUs, 248 and 252 are online.
    (Synthetic::FiveHundred, [250, 11 * 496 + 4 * 435 + 378, 30_628 + 31_626, 124_750]),
];

#[test]
fn matrices_hold_every_pair_of_their_level_once() {
    for (machine, counts) in PAIRS {
        let tree = tree(machine);
        for (level, pairs) in ["smt", "llc", "node", "all"].into_iter().zip(counts) {
            // The larger levels of the largest machine are as slow to print as they are long; tests
            // of `crates/machine` count their pairs.
            if pairs > 10_000 {
                continue;
            }
            let ended = on(tree.path(), &format!("matrix futex --plan --level {level}"));
            if pairs == 0 {
                ended.failed(3).says("within");
                continue;
            }
            let ended = ended.done();
            let all = cells(&ended.out);
            let distinct: BTreeSet<&str> =
                all.iter().copied().filter(|cell| cell.contains(" futex ")).collect();
            let listed = all.iter().filter(|cell| cell.contains(" futex ")).count();
            assert_eq!((distinct.len(), listed), (pairs, pairs), "{machine} {level}");
            // Every group of seven pairs has the reference too.
            let references = all.iter().filter(|cell| cell.contains(" atomic-store ")).count();
            assert_eq!(references, pairs.div_ceil(7), "{machine} {level}");
        }
    }
}

#[test]
fn surveys_are_planned_for_every_machine_and_show_its_relations() {
    for (machine, relations) in [
        (Synthetic::TwoSockets, &["smt", "same-llc", "other-node"][..]),
        (Synthetic::HybridLaptop, &["smt", "same-llc"]),
        (Synthetic::ArmServer, &["same-node", "other-node"]),
        (Synthetic::FiveHundred, &["smt", "same-llc", "same-node", "other-node"]),
    ] {
        let tree = tree(machine);
        for depth in ["--quick", "", "--full"] {
            let ended = on(tree.path(), &format!("survey --plan {depth}")).done();
            let cells = cells(&ended.out);
            for part in relations.iter().chain(&["same-thread", "same-cpu", "free"]) {
                let shown =
                    cells.iter().any(|cell| cell.split_whitespace().any(|word| word == *part));
                assert!(shown, "{machine} {depth}: no cell is {part}:\n{}", ended.out);
            }
            // A survey keeps its time limit on any machine: its matrices grow with the square of
            // the CPUs, its time does not.
            assert!(cells.len() < 1000, "{machine} {depth}: {} cells", cells.len());
        }
    }
}

#[test]
fn named_cpus_are_those_of_the_tree() {
    let tree = tree(Synthetic::FiveHundred);
    let ended = on(
        tree.path(),
        "latency futex --plan --cpus 510,1,300 --placement pinned --placement free",
    )
    .done();
    assert!(ended.out.contains("CPUs 510, 1"), "{}", ended.out);
    assert!(ended.out.contains("CPUs 510, 1, 300"), "{}", ended.out);
    on(tree.path(), "latency futex --plan --cpus 0,1").bad().says("CPU 0: no such CPU is online");
}

#[test]
fn nothing_is_measured_on_a_machine_that_is_not_this_one() {
    let tree = tree(Synthetic::TwoSockets);
    let results = tree.path().join("run.jsonl");
    for line in ["latency futex --sysfs", "survey --quick --sysfs", "matrix --sysfs"] {
        let mut arguments = words(line, &[tree.path()]);
        arguments.extend(words("--out", &[&results]));
        threadtoll(arguments).failed(3).says("can be planned but not measured").says("--plan");
        assert!(!results.exists());
    }
    let ended = on(tree.path(), "check --json").done();
    assert!(ended.out.contains("\"synthetic\":true"), "{}", ended.out);
}

#[test]
fn a_tree_with_nothing_in_it_is_planned_for_like_a_machine_that_hides_its_topology() {
    let empty = TempDir::new().unwrap();
    for root in [empty.path(), Path::new("/nonexistent")] {
        on(root, "survey --plan").done();
        on(root, "latency futex").failed(3);
    }
}
