//! The order of a plan's blocks.

use std::collections::BTreeSet;

use threadtoll_record::{BlockKind, Line, Plan};

use crate::lines::{blocks, line, lines, plan};
use crate::program::kept;
use crate::simulated::QUICK;

fn measured(line: &str) -> Vec<Line> {
    lines(&kept(line).file)
}

/// Surveys have as many groups however short their blocks are.
pub(crate) const SURVEY: &str = "survey --time 1ms --simulated-machine 7";

/// The plan of a run.
fn planned(command: &str) -> Plan {
    let text = std::fs::read_to_string(&kept(command).file).unwrap();
    match line(text.lines().nth(1).unwrap()) {
        Line::Plan(plan) => *plan,
        other => panic!("{other:?}"),
    }
}

type Place = (usize, u32, usize, BlockKind);

fn order(lines: &[Line]) -> Vec<Place> {
    blocks(lines).iter().map(|block| (block.group, block.seq, block.cell, block.kind)).collect()
}

#[test]
fn groups_have_at_most_eight_cells_and_begin_with_the_reference() {
    let latency = "latency --time 1ms --simulated-machine 7";
    for line in [SURVEY, latency, "matrix --simulated-machine 7"] {
        let plan = planned(line);
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
    let lines = measured(QUICK);
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
        "latency std-condvar park eventfd futex os-pipe --time 1ms --simulated-machine 7 \
         --placement pinned",
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
            "latency futex park --time 1ms --simulated-machine 7 --placement pinned --seed {seed}"
        )))
    };
    assert_ne!(of("5"), of("6"));
}

#[test]
fn forms_that_are_to_be_compared_are_interleaved() {
    let groups = &planned(SURVEY).groups;
    for plain in ["std-condvar", "pthread-condvar", "parking-lot-condvar"] {
        let after = format!("{plain}-after");
        let holds = |group: usize, name: &str| {
            groups[group].iter().any(|planned| planned.cell.name() == name)
        };
        for group in (0..groups.len()).filter(|group| holds(*group, &after)) {
            assert!(holds(group, plain), "{plain} is not with its other form in group {group}");
        }
    }
}
