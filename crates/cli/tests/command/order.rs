//! The order of a plan's blocks.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use tempfile::TempDir;
use threadtoll_record::{BlockKind, Line};

use crate::lines::{blocks, lines, plan};
use crate::program::{threadtoll, words};

fn measured(line: &str) -> Vec<Line> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    threadtoll(words(&format!("{line} --quiet --out"), &[&path])).done();
    lines(&path)
}

/// The survey of a machine.
fn surveyed() -> &'static [Line] {
    static LINES: OnceLock<Vec<Line>> = OnceLock::new();
    LINES.get_or_init(|| measured("survey --simulated-machine 7"))
}

type Place = (usize, u32, usize, BlockKind);

fn order(lines: &[Line]) -> Vec<Place> {
    blocks(lines).iter().map(|block| (block.group, block.seq, block.cell, block.kind)).collect()
}

#[test]
fn groups_have_at_most_eight_cells_and_begin_with_the_reference() {
    let (latency, matrix) = (
        measured("latency --time 20ms --simulated-machine 7"),
        measured("matrix --time 20ms --simulated-machine 7"),
    );
    for (line, lines) in [("survey", surveyed()), ("latency", &latency), ("matrix", &matrix)] {
        let plan = plan(lines);
        let reference = &plan.groups[0][0].cell;
        assert_eq!((reference.name(), reference.payload_bytes), ("atomic-store", 8));
        for group in &plan.groups {
            assert!((1..=8).contains(&group.len()), "{line}: {} cells", group.len());
            assert_eq!(&group[0].cell, reference, "{line}");
            let distinct: BTreeSet<_> = group.iter().map(|planned| &planned.cell).collect();
            assert_eq!(distinct.len(), group.len(), "{line}: a cell is twice in its group");
        }
    }
}

#[test]
fn each_round_measures_each_cell_once_in_each_way() {
    let lines = measured("survey --quick --simulated-machine 7");
    let order = order(&lines);
    let mut at = 0;
    for (index, group) in plan(&lines).groups.iter().enumerate() {
        for round in 0..group[0].budget.rounds {
            let blocks = &order[at..at + 2 * group.len()];
            at += blocks.len();
            assert!(
                blocks.iter().all(|block| (block.0, block.1) == (index, round)),
                "rounds are not mixed"
            );
            let distinct: BTreeSet<&Place> = blocks.iter().collect();
            assert_eq!(distinct.len(), blocks.len());
            // Both variants of a cell are neighbours, so that conditions are equal.
            assert!(blocks.chunks(2).all(|pair| pair[0].2 == pair[1].2));
        }
    }
    assert_eq!(at, order.len());
}

#[test]
fn rounds_differ_in_their_order() {
    let lines = measured(
        "latency std-condvar park eventfd futex os-pipe --simulated-machine 7 --placement pinned",
    );
    let rounds: BTreeSet<Vec<(usize, BlockKind)>> = order(&lines)
        .chunks(12)
        .map(|round| round.iter().map(|block| (block.2, block.3)).collect())
        .collect();
    // Of 21 among 6! · 2⁶ orders, hardly two are equal.
    assert!(rounds.len() > 15, "{} orders in 21 rounds", rounds.len());
    let first: BTreeSet<usize> = order(&lines).chunks(12).map(|round| round[0].2).collect();
    assert!(first.len() > 3, "the same cells always go first: {first:?}");
}

#[test]
fn the_seed_decides_about_the_order() {
    let of = |seed: &str| {
        order(&measured(&format!(
            "latency futex park --simulated-machine 7 --placement pinned --seed {seed}"
        )))
    };
    assert_eq!(of("5"), of("5"));
    assert_ne!(of("5"), of("6"));
}

#[test]
fn forms_that_are_to_be_compared_are_interleaved() {
    let lines = surveyed();
    for plain in ["std-condvar", "pthread-condvar", "parking-lot-condvar"] {
        let after = format!("{plain}-after");
        let groups = &plan(lines).groups;
        let holds = |group: usize, name: &str| {
            groups[group].iter().any(|planned| planned.cell.name() == name)
        };
        for group in (0..groups.len()).filter(|group| holds(*group, &after)) {
            assert!(holds(group, plain), "{plain} is not with its other form in group {group}");
        }
    }
}
