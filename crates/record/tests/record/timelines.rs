//! Timelines in files: one of each cell is kept, and none that cannot be.

use serde_json::{Value, json};
use tempfile::TempDir;
use threadtoll_record::file::{Fault, Results, fold, read};
use threadtoll_record::limits::TIMELINE;
use threadtoll_record::{Block, BlockFigures, Count, Line, Timeline, Work};

use crate::contention::{plan_of, worked};
use crate::fixture::{AT, RUN, machine, stretches, strike};

/// The cell with two threads.
const CELL: usize = 3;

/// The second of two threads waits while the first one holds the lock.
pub(crate) fn timeline(seq: u32, clean: bool) -> Timeline {
    let at = |moments: [u64; 3]| moments.map(Count::from);
    Timeline {
        run: RUN.into(),
        group: 0,
        attempt: 1,
        cell: CELL,
        seq,
        clean,
        elapsed_ns: 1000.into(),
        acquisitions: vec![vec![at([0, 0, 400]), at([600, 900, 1000])], vec![at([100, 450, 900])]],
    }
}

fn block(cell: usize, seq: u32, threads: u64) -> Block {
    let mut block = worked(cell, seq, 1000.0, &[]);
    if let BlockFigures::Contention { contention } = &mut block.figures {
        contention.acquisitions = (0..threads).map(|_| 1.into()).collect();
    }
    Block { count: threads.into(), ..block }
}

/// A complete run whose first block of two threads was disturbed.
fn run() -> Vec<Value> {
    let plan = plan_of(Work::Spin, 2);
    let mut lines = vec![Line::Machine(Box::new(machine())), Line::Plan(Box::new(plan.clone()))];
    let mut blocks = Vec::new();
    for seq in 0..2 {
        lines.push(Line::Timeline(Box::new(timeline(seq, seq > 0))));
        let of_round =
            [stretches(0, seq, &[100.0]), block(1, seq, 1), block(2, seq, 1), block(CELL, seq, 2)];
        lines.extend(of_round.iter().map(|block| Line::Block(Box::new(block.clone()))));
        blocks.extend(of_round);
    }
    let records = threadtoll_record::fold(&machine(), &plan, 0, 1, &blocks, &[], AT);
    lines.extend(records.into_iter().map(|record| Line::Record(Box::new(record))));
    lines.iter().map(|line| serde_json::to_value(line).unwrap()).collect()
}

/// Line numbers in it.
const FIRST: usize = 2;
const SECOND: usize = 7;
const RECORD: usize = 12;

fn read_lines(lines: &[Value]) -> Result<Results, Fault> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).unwrap();
    read(&path)
}

#[test]
fn the_timeline_of_the_first_undisturbed_block_is_kept_whenever_the_run_ends() {
    let of = |lines: &[Value]| read_lines(lines).unwrap().groups.remove(0).timelines;
    let lines = run();
    assert_eq!(of(&lines), [timeline(1, true)]);
    assert_eq!(of(&lines[..RECORD]), [timeline(1, true)], "without records");
    assert_eq!(of(&lines[..SECOND]), [timeline(0, false)], "disturbed, but the only one");
    let mut again = lines[..SECOND].to_vec();
    let mut next = lines[FIRST + 1].clone();
    next["attempt"] = 2.into();
    again.push(next);
    assert_eq!(of(&again), [], "another attempt began");
}

#[test]
fn a_folded_file_keeps_timelines_unless_samples_are_dropped() {
    let directory = TempDir::new().unwrap();
    let [raw, folded, bare] = ["raw", "folded", "bare"].map(|name| directory.path().join(name));
    let text: String = run().iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&raw, text).unwrap();
    let mut results = read(&raw).unwrap();
    fold(&raw, &results, &folded).unwrap();
    assert_eq!(read(&folded).unwrap().groups, results.groups);
    results.drop_samples();
    fold(&raw, &results, &bare).unwrap();
    assert!(read(&bare).unwrap().groups[0].timelines.is_empty());
}

#[test]
fn timelines_that_cannot_be_are_rejected() {
    let lines = run();
    let said = |change: &dyn Fn(&mut Vec<Value>), at: usize, part: &str| {
        let mut lines = lines.clone();
        change(&mut lines);
        match read_lines(&lines) {
            Err(Fault::Line { line, what, .. }) => {
                assert!(what.contains(part), "{what}");
                assert_eq!(line, at as u64 + 1, "{what}");
            }
            other => panic!("{part}: {other:?}"),
        }
    };
    let spoilt = |member: &str, value: Value, part: &str| {
        said(&|lines| lines[FIRST][member] = value.clone(), FIRST, part);
    };
    spoilt("run", json!("another"), "another run");
    spoilt("group", json!(1), "no cell 3 in group 1");
    spoilt("cell", json!(4), "no cell 4 in group 0");
    spoilt("cell", json!(0), "does not match its cell's lock");
    spoilt("cell", json!(2), "does not match its cell's lock");
    spoilt("seq", json!(2), "no round 2");
    spoilt("attempt", json!(2), "does not follow");
    spoilt("attempt", json!(0), "does not follow");
    spoilt("elapsed_ns", json!(0), "not in order");
    spoilt("elapsed_ns", json!(999), "not in order");
    spoilt("elapsed_ns", json!(u64::MAX), "out of range");
    spoilt("acquisitions", json!([[]]), "number of threads");
    spoilt("acquisitions", json!([[], []]), "1 to 1000 acquisitions");
    spoilt("acquisitions", json!([[[0, 1]], []]), "invalid length 2");
    spoilt("acquisitions", json!([[[0, 1, -1]], []]), "invalid value");
    spoilt("acquisitions", json!([[[3, 2, 4]], []]), "not in order");
    spoilt("acquisitions", json!([[[0, 5, 9], [8, 9, 10]], []]), "not in order");
    spoilt("acquisitions", json!([vec![[0, 0, 0]; TIMELINE], [[0, 0, 0]]]), "1 to 1000");
    spoilt("clean", json!("yes"), "invalid type");
    let second = |lines: &mut Vec<Value>| lines.insert(SECOND, lines[FIRST].clone());
    said(&second, SECOND, "second timeline");
    said(&|lines| lines.push(lines[SECOND].clone()), RECORD + 4, "complete before this timeline");
    let given_up = serde_json::to_value(Line::Strike(Box::new(strike(0, 1, CELL)))).unwrap();
    said(&|lines| lines.insert(SECOND, given_up.clone()), SECOND + 1, "was given up before");
}
