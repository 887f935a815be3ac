//! Reading rejects invalid files by line number, and accepts interrupted ones.

use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use tempfile::TempDir;
use threadtoll_record::file::{Fault, Results, read};
use threadtoll_record::{Block, Line, fold};

use crate::fixture::{AT, group, machine, plan};

/// A complete file with two groups of two cells.
fn finished() -> Vec<Value> {
    let (machine, plan) =
        (machine(), plan(3, &[&["atomic-store", "futex"], &["atomic-store", "park"]]));
    let mut lines =
        vec![Line::Machine(Box::new(machine.clone())), Line::Plan(Box::new(plan.clone()))];
    for index in 0..2 {
        let blocks = group(index, 2, 3, 1);
        let records = fold(&machine, &plan, index, 1, &blocks, &[], AT);
        lines.extend(blocks.into_iter().map(|block| Line::Block(Box::new(block))));
        lines.extend(records.into_iter().map(|record| Line::Record(Box::new(record))));
    }
    lines.iter().map(|line| serde_json::to_value(line).unwrap()).collect()
}

/// Line numbers in it.
const PLAN: usize = 1;
const BLOCK: usize = 2;
const RECORD: usize = 14;
const SECOND_GROUP: usize = 16;

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn read_text(text: &str) -> Result<Results, Fault> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    std::fs::write(&path, text).unwrap();
    let results = read(&path);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "reading changes nothing");
    results
}

/// The line and the reason with which a file is rejected.
fn rejected(lines: &[Value]) -> (u64, String) {
    match read_text(&text(lines)) {
        Err(Fault::Line { line, what, .. }) => (line, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_finished_file_gives_its_records_in_the_order_of_the_plan() {
    let results = read_text(&text(&finished())).unwrap();
    assert!(results.complete());
    assert!(results.groups.iter().all(|group| group.attempts == 1 && group.blocks.is_empty()));
    let records = results.records();
    let names: Vec<(usize, &str)> =
        records.iter().map(|record| (record.group, record.cell.name())).collect();
    assert_eq!(names, [(0, "atomic-store"), (0, "futex"), (1, "atomic-store"), (1, "park")]);
}

#[test]
fn a_file_cut_anywhere_after_its_plan_is_read_and_before_is_not() {
    let whole = text(&finished());
    let complete = read_text(&whole).unwrap();
    let header: usize = whole.split_inclusive('\n').take(2).map(str::len).sum();
    for at in (0..whole.len()).step_by(41) {
        let cut = read_text(&whole[..at]);
        if at < header {
            assert!(matches!(cut, Err(Fault::Line { .. })), "cut at {at}");
            continue;
        }
        let cut = cut.unwrap();
        assert!(cut.length <= at as u64 && cut.read_length == at as u64);
        assert_eq!(cut.notes.len(), usize::from(cut.length < at as u64), "cut at {at}");
        for (group, whole) in cut.groups.iter().zip(&complete.groups) {
            assert!(group.records.is_none() || group.records == whole.records, "cut at {at}");
        }
        // A record that lost its neighbour is folded again from the blocks, and differs only in its
        // time.
        assert!(cut.records().len() <= 4);
    }
}

#[test]
fn a_group_whose_records_are_not_all_there_is_not_complete() {
    let mut lines = finished();
    lines.truncate(RECORD + 1);
    let results = read_text(&text(&lines)).unwrap();
    assert!(results.groups[0].records.is_none());
    assert_eq!(results.groups[0].blocks.len(), 12);
    assert_eq!(results.records().len(), 2, "both are folded from the blocks");
}

#[test]
fn the_last_complete_attempt_counts() {
    let mut lines = finished();
    lines.truncate(SECOND_GROUP + 5);
    let again = group(1, 2, 3, 2);
    lines.extend(
        again
            .iter()
            .map(|block| serde_json::to_value(Line::Block(Box::new(block.clone()))).unwrap()),
    );
    let results = read_text(&text(&lines)).unwrap();
    assert_eq!((results.groups[1].attempts, results.groups[1].blocks.len()), (2, 12));
    let records = fold(&machine(), &results.plan, 1, 2, &again, &[], AT);
    lines.extend(
        records
            .iter()
            .map(|record| serde_json::to_value(Line::Record(Box::new(record.clone()))).unwrap()),
    );
    let results = read_text(&text(&lines)).unwrap();
    assert_eq!(results.groups[1].records, Some(records.clone()));
    // A third attempt, started and abandoned, does not replace it.
    let block = Block { attempt: 3, ..again[0].clone() };
    lines.push(serde_json::to_value(Line::Block(Box::new(block))).unwrap());
    assert_eq!(read_text(&text(&lines)).unwrap().groups[1].records, Some(records));
}

#[test]
fn lines_out_of_place_are_rejected_where_they_stand() {
    let whole = finished();
    let changed = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut lines = whole.clone();
        change(&mut lines);
        rejected(&lines)
    };
    let said = |(line, what): (u64, String), at: usize, part: &str| {
        assert_eq!(line, at as u64 + 1, "{what}");
        assert!(what.contains(part), "{what}");
    };
    said(changed(&|lines| lines.swap(0, 1)), 0, "describe the machine");
    said(changed(&|lines| lines.truncate(1)), 1, "the plan is missing");
    said(changed(&|lines| lines.clear()), 0, "empty");
    said(changed(&|lines| lines.swap(1, 2)), 1, "not the plan");
    said(
        changed(&|lines| lines.insert(5, lines[0].clone())),
        5,
        "a second machine or a second plan",
    );
    said(
        changed(&|lines| lines.insert(5, lines[1].clone())),
        5,
        "a second machine or a second plan",
    );
    said(changed(&|lines| lines.insert(5, lines[4].clone())), 5, "twice");
    said(changed(&|lines| lines.insert(RECORD, lines[RECORD].clone())), RECORD + 1, "already has");
    said(
        changed(&|lines| lines.insert(RECORD + 2, lines[RECORD].clone())),
        RECORD + 2,
        "complete before",
    );
    said(
        changed(&|lines| lines.insert(RECORD + 2, lines[BLOCK].clone())),
        RECORD + 2,
        "complete before",
    );
    said(
        changed(&|lines| lines.insert(BLOCK, lines[RECORD].clone())),
        BLOCK,
        "no blocks of attempt 1",
    );
    said(changed(&|lines| lines.insert(BLOCK, json!(["an", "array"]))), BLOCK, "");
    said(
        changed(&|lines| lines.insert(BLOCK, json!({"schema": "threadtoll.block/2"}))),
        BLOCK,
        "unknown variant",
    );
}

#[test]
fn edited_lines_are_rejected() {
    let whole = finished();
    let queue = |batch: u64, senders: u32, version: String| {
        json!({"queue": "pipe", "origin": "ours", "wait": "spin", "batch": batch, "version": version,
            "senders": senders, "placement": "pinned", "cpus": [0, 1], "relation": "same-llc", "payload_bytes": 8})
    };
    let against = |cell: Value| json!([{"cell": cell, "of": "rate_per_s", "ratio": 1.0, "interval95": [1.0, 1.0], "blocks": 2, "verdict": "open"}]);
    let edits: [(usize, &str, Value, &str); 48] = [
        (PLAN, "/run", json!("other"), "another run"),
        (BLOCK, "/run", json!("other"), "another run"),
        (RECORD, "/run", json!("other"), "another run"),
        (BLOCK, "/group", json!(2), "no group 2"),
        (RECORD, "/group", json!(7), "no group 7"),
        (BLOCK, "/group", json!(-1), "invalid value"),
        (BLOCK, "/cell", json!(2), "no cell 2"),
        (BLOCK, "/cell", json!(u64::MAX), "no cell"),
        (BLOCK, "/seq", json!(3), "no round 3"),
        (BLOCK, "/process", json!(1), "process 1 does not measure round 0"),
        (BLOCK, "/attempt", json!(2), "does not follow"),
        (BLOCK, "/attempt", json!(0), "does not follow"),
        (RECORD, "/attempt", json!(2), "no blocks of attempt 2"),
        (RECORD, "/attempt", json!(0), "no blocks of attempt 0"),
        (RECORD, "/cell/mechanism", json!("park"), "not in the group"),
        (RECORD, "/cell/payload_bytes", json!(64), "not in the group"),
        (RECORD, "/experiment", json!("matrix"), "different experiments"),
        (RECORD, "/simulated", json!(true), "simulated"),
        (BLOCK, "/mean", json!(-1.0), "out of range"),
        (BLOCK, "/mean", json!("NaN"), "invalid type"),
        (BLOCK, "/mean", Value::Null, "invalid type"),
        (BLOCK, "/mean", json!(1e300), "out of range"),
        (BLOCK, "/count", json!(0), "no values"),
        (BLOCK, "/count", json!(u64::MAX), "out of range"),
        (BLOCK, "/elapsed_ns", json!(u64::MAX), "out of range"),
        (BLOCK, "/cost/user_ns", json!(u64::MAX), "out of range"),
        (BLOCK, "/same_cpu_share", json!(1.5), "out of range"),
        (
            BLOCK,
            "/one_way",
            json!({"histogram": null, "negative": 1, "clock_bound_ns": 1.0}),
            "invalid type",
        ),
        (BLOCK, "/open_loop", json!({"window_ns": "x"}), "invalid type"),
        (BLOCK, "/calls", json!({"send_ns": 1.0}), "missing field"),
        (BLOCK, "/histogram/data", json!("AAAA"), "damaged"),
        (BLOCK, "/histogram/encoding", json!("other"), "encoding"),
        (RECORD, "/one_way/p50", json!(-5.0), "out of range"),
        (RECORD, "/quantiles/p99", json!(-0.5), "out of range"),
        (RECORD, "/over/share", json!(2.0), "out of range"),
        (RECORD, "/cost/user_ns_per_op", json!(-1.0), "out of range"),
        (RECORD, "/count", json!(u64::MAX), "out of range"),
        (RECORD, "/disturbance/disturbed", json!(99), "more disturbed blocks"),
        (RECORD, "/disturbance/blocks", json!(u32::MAX), "more disturbed blocks"),
        (RECORD, "/interval95/p50", json!([-1.0, 2.0]), "out of range"),
        (RECORD, "/interval95/rate_per_s", json!([1.0, 1e300]), "out of range"),
        (RECORD, "/rate_per_s", json!(-1.0), "out of range"),
        (RECORD, "/workers", json!({"bundle": true, "fairness": 1.0}), "do not match its kind"),
        (RECORD, "/one_way", Value::Null, "must have one-way times"),
        (RECORD, "/cell", queue(1, 1, "1.0.0".into()), "not in the group"),
        (
            RECORD,
            "/against",
            against(queue(0, 1, "1.0.0".into())),
            "a batch of 0 messages is out of range",
        ),
        (
            RECORD,
            "/against",
            against(queue(1, u32::MAX, "1.0.0".into())),
            "4294967295 senders are out of range",
        ),
        (RECORD, "/against", against(queue(1, 1, "x".repeat(20_000))), "too long"),
    ];
    for (line, pointer, value, part) in edits {
        let mut lines = whole.clone();
        // Absent members are inserted.
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        lines[line].pointer_mut(parent).unwrap()[member] = value.clone();
        let (at, what) = rejected(&lines);
        assert_eq!(at, line as u64 + 1, "{pointer} {value}: {what}");
        assert!(what.contains(part), "{pointer} {value}: {what}");
    }
}

#[test]
fn impossible_machines_and_plans_are_rejected() {
    let whole = finished();
    let queue = |batch: u64, senders: u32| {
        json!({"queue": "pipe", "origin": "ours", "wait": "spin", "batch": batch, "version": "1.0.0",
            "senders": senders, "placement": "pinned", "cpus": [0, 1], "relation": "same-llc", "payload_bytes": 8})
    };
    let edits: [(usize, &str, Value, &str); 17] = [
        (0, "/cpus", json!(3), "number of CPUs"),
        (0, "/cpus", json!(0), "number of CPUs"),
        (0, "/topology", json!([]), "number of CPUs"),
        (0, "/topology/1/cpu", json!(0), "ascending"),
        (0, "/allowed", json!([1, 1]), "ascending"),
        (0, "/clock/step_ns", json!(-1.0), "out of range"),
        (0, "/quota_cpus", json!(-1.0), "out of range"),
        (0, "/kernel", json!("x".repeat(20_000)), "too long"),
        (0, "/warnings", json!([{"code": "x", "text": "x".repeat(20_000)}]), "too long"),
        (PLAN, "/groups", json!([]), "no groups"),
        (PLAN, "/groups/1", json!([]), "group 1 of the plan is empty"),
        (PLAN, "/groups/0/0/budget/rounds", json!(0), "impossible number of rounds"),
        (PLAN, "/groups/0/0/budget/rounds", json!(u32::MAX), "impossible number of rounds"),
        (PLAN, "/groups/0/1/cell/cpus", json!([]), "without CPUs"),
        (PLAN, "/groups/0/1/cell", queue(0, 1), "a batch of 0 messages"),
        (PLAN, "/groups/0/1/cell", queue(u64::MAX, 1), "a batch of"),
        (PLAN, "/groups/0/1/cell", queue(1, 0), "0 senders"),
    ];
    for (line, pointer, value, part) in edits {
        let mut lines = whole.clone();
        *lines[line].pointer_mut(pointer).unwrap() = value.clone();
        let (at, what) = rejected(&lines);
        assert_eq!(at, line as u64 + 1, "{pointer}: {what}");
        assert!(what.contains(part), "{pointer}: {what}");
    }
}

#[test]
fn a_repetition_is_that_of_a_group_in_the_plan() {
    let mut lines = finished();
    let groups = |lines: &mut Vec<Value>, repeat: Value| {
        lines[PLAN]["groups"][1] = lines[PLAN]["groups"][0].clone();
        lines[PLAN]["repeat"] = repeat;
        lines.truncate(SECOND_GROUP);
    };
    let why = "the plan's last group differs from the one that it repeats";
    lines[PLAN]["repeat"] = json!({"group": 0, "after_ns": 1});
    assert_eq!(rejected(&lines), (PLAN as u64 + 1, why.into()), "its last group has another cell");
    for group in [1, 2] {
        groups(&mut lines, json!({"group": group, "after_ns": 1}));
        assert_eq!(rejected(&lines), (PLAN as u64 + 1, why.into()));
    }
    groups(&mut lines, json!({"group": 0, "after_ns": 1}));
    let first = read_text(&text(&lines)).unwrap();
    assert_eq!((first.records().len(), first.repetition()), (2, None));
    lines[RECORD]["repeats"] = json!(0);
    let (line, what) = rejected(&lines);
    assert!(line == RECORD as u64 + 1 && what.contains("disagree"), "{line}: {what}");
}

#[test]
fn what_is_not_text_of_ours_is_rejected_at_its_first_line() {
    for foreign in [
        "\u{89}PNG\r\n\u{1a}\n",
        "root:x:0:0:root:/root:/bin/bash\n",
        "[1, 2, 3]\n",
        "{}\n",
        "\n",
        "\0\0\0\n",
        "no line feed",
    ] {
        match read_text(foreign) {
            Err(Fault::Line { line: 1, .. }) => {}
            other => panic!("{foreign:?}: {other:?}"),
        }
    }
}

#[test]
fn what_is_no_regular_file_is_not_waited_for() {
    let directory = TempDir::new().unwrap();
    let pipe = directory.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for path in [
        pipe,
        PathBuf::from("/dev/null"),
        directory.path().to_path_buf(),
        directory.path().join("absent"),
    ] {
        assert!(matches!(read(&path), Err(Fault::System { .. })), "{}", path.display());
    }
}

#[test]
fn what_was_quoted_from_a_file_is_short_and_cannot_steer_a_terminal() {
    let mut lines = finished();
    lines[BLOCK]["kind"] = json!(format!("\u{1b}[2J{}", "x".repeat(100_000)));
    let (_, what) = rejected(&lines);
    assert!(what.len() < 400 && !what.contains('\u{1b}'), "{what:?}");
}

#[test]
fn every_line_comes_back_as_it_was_written() {
    for value in finished() {
        let line: Line = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&line).unwrap(), value);
    }
}
