//! Files of runs in which rows were given up.

use serde_json::{Value, json};
use tempfile::TempDir;
use threadtoll_record::file::{Fault, Results, fold, read};
use threadtoll_record::{Block, Line, Plan};

use crate::fixture::{AT, group, machine, plan, strike};

const PLAN: &[&[&str]] =
    &[&["atomic-store", "futex", "park"], &["atomic-store", "park"], &["atomic-store", "futex"]];

fn blocks(group_index: usize, attempt: u32, cells: &[usize]) -> Vec<Block> {
    let all = group(group_index, PLAN[group_index].len(), 3, attempt);
    all.into_iter().filter(|block| cells.contains(&block.cell)).collect()
}

fn lines_of(blocks: &[Block]) -> Vec<Line> {
    blocks.iter().map(|block| Line::Block(Box::new(block.clone()))).collect()
}

/// A group that was measured, with its records.
fn measured(plan: &Plan, group_index: usize, attempt: u32, cells: &[usize]) -> Vec<Line> {
    let blocks = blocks(group_index, attempt, cells);
    let records = threadtoll_record::fold(&machine(), plan, group_index, attempt, &blocks, &[], AT);
    let records = records.into_iter().map(|record| Line::Record(Box::new(record)));
    lines_of(&blocks).into_iter().chain(records).collect()
}

/// A complete run that gave up `park` in its first group.
fn run() -> Vec<Value> {
    let plan = plan(3, PLAN);
    let mut lines = vec![Line::Machine(Box::new(machine())), Line::Plan(Box::new(plan.clone()))];
    lines.extend(lines_of(&blocks(0, 1, &[0, 1, 2])[..7]));
    lines.push(Line::Strike(Box::new(strike(0, 1, 2))));
    lines.extend(measured(&plan, 0, 2, &[0, 1]));
    lines.extend(measured(&plan, 2, 1, &[0, 1]));
    lines.iter().map(|line| serde_json::to_value(line).unwrap()).collect()
}

const STRIKE: usize = 9;

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn read_lines(lines: &[Value]) -> Result<Results, Fault> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    std::fs::write(&path, text(lines)).unwrap();
    read(&path)
}

fn names(results: &Results) -> Vec<(usize, String)> {
    let records = results.records();
    records.iter().map(|record| (record.group, record.cell.label())).collect()
}

#[test]
fn a_row_that_was_given_up_has_no_records_in_its_group_and_later_ones() {
    let results = read_lines(&run()).unwrap();
    assert!(results.complete() && !results.nothing_left());
    let expected = [(0, "atomic-store"), (0, "futex"), (2, "atomic-store"), (2, "futex")];
    assert_eq!(names(&results), expected.map(|(group, name)| (group, name.to_string())));
    let [strike] = results.strikes.as_slice() else { panic!("{:?}", results.strikes) };
    assert_eq!(strike.name(&results.plan), "park");
    assert_eq!(results.groups[0].attempts, 2);
}

#[test]
fn a_run_that_ends_with_the_line_shows_the_other_rows_and_measures_them_again() {
    let mut lines = run();
    lines.truncate(STRIKE + 1);
    let results = read_lines(&lines).unwrap();
    assert!(!results.complete());
    assert_eq!((results.groups[0].attempts, results.remaining(0)), (1, vec![0, 1]));
    assert!(results.groups[0].blocks.iter().all(|block| block.cell != 2));
    // The reference alone would tell nothing.
    assert_eq!(results.groups[1].records.as_deref(), Some(&[][..]));
    assert!(names(&results).iter().all(|(_, name)| name != "park"));
}

#[test]
fn nothing_is_left_if_every_row_was_given_up() {
    let plan = plan(3, &[&["atomic-store", "park"], &["atomic-store", "park"]]);
    let mut lines = vec![
        serde_json::to_value(Line::Machine(Box::new(machine()))).unwrap(),
        serde_json::to_value(Line::Plan(Box::new(plan))).unwrap(),
    ];
    assert!(!read_lines(&lines).unwrap().nothing_left());
    lines.push(serde_json::to_value(Line::Strike(Box::new(strike(0, 1, 1)))).unwrap());
    let results = read_lines(&lines).unwrap();
    assert!(results.nothing_left() && results.complete());
}

#[test]
fn a_folded_file_keeps_the_line_and_folds_again_to_itself() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("run.jsonl"), text(&run())).unwrap();
    let raw = read(&at("run.jsonl")).unwrap();
    fold(&at("run.jsonl"), &raw, &at("folded.jsonl")).unwrap();
    let folded = read(&at("folded.jsonl")).unwrap();
    assert_eq!((folded.records(), &folded.strikes), (raw.records(), &raw.strikes));
    assert!(folded.complete());
    fold(&at("folded.jsonl"), &folded, &at("again.jsonl")).unwrap();
    let read_text = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    assert_eq!(read_text("folded.jsonl"), read_text("again.jsonl"));

    let mut lines: Vec<Value> =
        read_text("folded.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = lines.remove(2);
    lines.insert(4, line);
    assert!(read_lines(&lines).unwrap_err().to_string().contains("after its group"));
}

#[test]
fn lines_that_contradict_the_run_are_rejected() {
    let rejected = |change: &dyn Fn(&mut Vec<Value>), at: usize, part: &str| {
        let mut lines = run();
        change(&mut lines);
        match read_lines(&lines) {
            Err(Fault::Line { line, what, .. }) => {
                assert!(what.contains(part), "{what}");
                assert_eq!(line, at as u64 + 1, "{what}");
            }
            other => panic!("{other:?}"),
        }
    };
    let strike_of = |member: &'static str, value: Value| {
        move |lines: &mut Vec<Value>| lines[STRIKE][member] = value.clone()
    };
    rejected(&strike_of("run", json!("another")), STRIKE, "another run");
    rejected(&strike_of("group", json!(3)), STRIKE, "no group 3");
    rejected(&strike_of("cell", json!(3)), STRIKE, "no cell 3");
    rejected(&strike_of("cell", json!(0)), STRIKE, "a reference");
    rejected(&strike_of("attempt", json!(3)), STRIKE, "does not follow");
    let again = |lines: &mut Vec<Value>| {
        let mut line = lines[STRIKE].clone();
        line["attempt"] = 2.into();
        lines.insert(STRIKE + 1, line);
    };
    rejected(&again, STRIKE + 1, "given up twice");
    let block = |lines: &mut Vec<Value>| lines.insert(STRIKE + 1, lines[STRIKE - 1].clone());
    rejected(&block, STRIKE + 1, "had ended before this block");
    let its_block = |lines: &mut Vec<Value>| {
        let found = lines.iter().find(|line| line["cell"] == 2 && line["seq"].is_u64()).cloned();
        let mut block = found.unwrap();
        block["attempt"] = 2.into();
        lines.insert(STRIKE + 1, block);
    };
    rejected(&its_block, STRIKE + 1, "given up before");
    let late = |lines: &mut Vec<Value>| {
        let mut line = lines[STRIKE].clone();
        (line["attempt"], line["cell"]) = (2.into(), 1.into());
        lines.push(line);
    };
    let end = run().len();
    rejected(&late, end, "complete before this line");
}
