//! Machines, plans and blocks with figures that can be checked by hand.

use std::collections::BTreeMap;

use serde_json::json;
use threadtoll_record::{
    Block, BlockCost, BlockFigures, BlockKind, Budget, Cell, Disturbance, Experiment, Histogram,
    Line, Machine, Placement, Plan, PlannedCell, Relation, Strike, Subject,
};

pub(crate) const RUN: &str = "20261121T100000000-1";
pub(crate) const AT: &str = "2026-11-21T10:00:00.000Z";

/// A machine whose clock steps by 10 ns and costs 10 ns to read.
pub(crate) fn machine() -> Machine {
    let line = json!({
        "schema": "threadtoll.machine/1", "run": RUN, "at": AT, "tool": "threadtoll test", "simulated": false,
        "cpu": "a CPU", "arch": "x86_64", "cpus": 2, "allowed": [0, 1],
        "topology": [
            {"cpu": 0, "core": 0, "llc": 0, "node": 0, "smt": [0]},
            {"cpu": 1, "core": 1, "llc": 0, "node": 0, "smt": [1]},
        ],
        "quota_cpus": null, "kernel": "6.1", "governor": null, "boost": null, "virtualised": null,
        "idle_driver": null, "timer_slack_ns": 50_000, "membarrier": true,
        "clock": {"source": "tsc", "step_ns": 10.0, "read_ns": 10.0, "invariant": true, "tick_ns": 0.5, "drift_ppm": 0.0},
        "noise": [], "grade": "B", "warnings": [],
    });
    match serde_json::from_value(line).unwrap() {
        Line::Machine(machine) => *machine,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn cell(mechanism: &str) -> Cell {
    Cell {
        subject: Subject::Mechanism { mechanism: mechanism.into(), class: None },
        placement: Placement::Pinned,
        cpus: vec![0, 1],
        relation: Relation::SameLlc,
        payload_bytes: 8,
        line: None,
        pause: None,
        keep_awake: false,
        neighbour: None,
        built: None,
    }
}

/// A row that hung.
pub(crate) fn strike(group: usize, attempt: u32, cell: usize) -> Strike {
    Strike {
        run: RUN.into(),
        at: AT.into(),
        group,
        attempt,
        cell,
        what: "it made no progress for 20 s".into(),
    }
}

/// A plan of groups of cells by mechanism, the first of each its reference.
pub(crate) fn plan(rounds: u32, groups: &[&[&str]]) -> Plan {
    let budget =
        Budget { rounds, stretch_ns: 1_000_000, stamped_ns: 1_000_000, stamped_count: None };
    let planned = |name: &&str| PlannedCell::new(Experiment::Latency, cell(name), budget);
    Plan {
        processes: 1,
        run: RUN.into(),
        command: vec!["latency".into()],
        seed: 1,
        over_ns: 10_000,
        options: BTreeMap::new(),
        folded: None,
        repeat: None,
        until_saturated: false,
        refused: Vec::new(),
        groups: groups.iter().map(|group| group.iter().map(planned).collect()).collect(),
    }
}

pub(crate) fn histogram(values_ns: &[f64]) -> Histogram {
    let mut histogram = Histogram::new();
    values_ns.iter().for_each(|ns| histogram.record_ps((ns * 1000.0) as u64));
    histogram
}

/// States of two threads over time, and of the others.
pub(crate) fn trace() -> serde_json::Value {
    serde_json::json!({
        "schema": "threadtoll.trace/1", "run": "20261121T100000000-1",
        "start_ns": 1000.0, "column_ns": 17_600_000.0, "columns": 4,
        "states": [
            {"state": "running"},
            {"state": "lock", "pid": 4711, "lock": 3, "name": "cache_lock"},
            {"state": "idle"}
        ],
        "threads": [
            {"pid": 4711, "tid": 4712, "name": "worker", "samples": [[3, 1], [0, 2, 4, 3]]},
            {"pid": 4711, "tid": 4711, "name": "server", "samples": [[], [], [3, 3, 4, 3]]}
        ],
        "others": [[12, 9, 11, 12]],
        "holders": {
            "pid": 4711, "lock": 3, "name": "cache_lock",
            "threads": [{"tid": 4713, "name": "refresher", "samples": [0, 2, 4]}],
            "others": [], "not_seen": [0, 0, 0, 3]
        }
    })
}

/// A profile of one lock.
pub(crate) fn profile() -> serde_json::Value {
    serde_json::from_str(include_str!("profile.json")).unwrap()
}

fn block(kind: BlockKind, group: usize, cell: usize, seq: u32, values_ns: &[f64]) -> Block {
    let sum: f64 = values_ns.iter().sum();
    let stamped = kind == BlockKind::Stamped;
    Block {
        run: RUN.into(),
        group,
        attempt: 1,
        cell,
        process: 0,
        seq,
        at: AT.into(),
        kind,
        count: (values_ns.len() as u64).into(),
        elapsed_ns: (sum as u64).into(),
        mean: (sum / values_ns.len() as f64).into(),
        min: values_ns.iter().copied().fold(f64::INFINITY, f64::min).into(),
        max: values_ns.iter().copied().fold(0.0, f64::max).into(),
        histogram: Some(histogram(values_ns)),
        over: stamped
            .then(|| (values_ns.iter().filter(|ns| **ns > 10_000.0).count() as u64).into()),
        figures: BlockFigures::default(),
        own_program: None,
        worst: Vec::new(),
        cost: BlockCost::default(),
        cost_round_trips: (values_ns.len() as u64).into(),
        disturbance: Disturbance::default(),
        clean: true,
    }
}

/// A block of stretches, each with this round trip.
pub(crate) fn stretches(cell: usize, seq: u32, values_ns: &[f64]) -> Block {
    block(BlockKind::Stretch, 0, cell, seq, values_ns)
}

pub(crate) fn stamped(cell: usize, seq: u32, values_ns: &[f64]) -> Block {
    block(BlockKind::Stamped, 0, cell, seq, values_ns)
}

/// All blocks of a group in order, each with its own figure.
pub(crate) fn group(index: usize, cells: usize, rounds: u32, attempt: u32) -> Vec<Block> {
    let mut blocks = Vec::new();
    for seq in 0..rounds {
        for cell in 0..cells {
            let ns = 1000.0 * (1 + cell) as f64 + f64::from(seq);
            for kind in [BlockKind::Stretch, BlockKind::Stamped] {
                blocks.push(Block { attempt, ..block(kind, index, cell, seq, &[ns, ns + 1.0]) });
            }
        }
    }
    blocks
}
