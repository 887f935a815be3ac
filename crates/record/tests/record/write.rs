//! Files appear complete, grow, and have one writer.

use std::path::Path;

use tempfile::TempDir;
use threadtoll_record::file::{Appender, WriteFault, read};
use threadtoll_record::{Block, Line, fold};

use crate::fixture::{AT, group, machine, plan};

fn lines(blocks: &[Block]) -> Vec<Line> {
    blocks.iter().map(|block| Line::Block(Box::new(block.clone()))).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_file_holds_machine_and_plan_and_nothing_is_left_beside_it() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let appender = Appender::create(&path, &machine(), &plan(3, &[&["futex"]])).unwrap();
    assert_eq!(appender.path(), path);
    assert_eq!(names(path.parent().unwrap()), ["run.jsonl"]);
    let results = read(&path).unwrap();
    assert_eq!((results.machine, results.plan), (machine(), plan(3, &[&["futex"]])));
    assert!(results.notes.is_empty());
}

#[test]
fn what_exists_is_never_replaced_unless_it_is_empty() {
    let directory = TempDir::new().unwrap();
    let create = |name: &str| {
        Appender::create(&directory.path().join(name), &machine(), &plan(3, &[&["futex"]]))
    };
    std::fs::write(directory.path().join("full"), "mine").unwrap();
    std::fs::write(directory.path().join("empty"), "").unwrap();
    std::fs::create_dir(directory.path().join("directory")).unwrap();
    std::os::unix::fs::symlink("nowhere", directory.path().join("dangling")).unwrap();
    assert!(matches!(create("full"), Err(WriteFault::Exists(_))));
    assert!(matches!(create("directory"), Err(WriteFault::NotAFile(_))));
    assert!(matches!(create("full/below"), Err(WriteFault::System { .. })));
    assert!(matches!(create("nowhere/below"), Err(WriteFault::System { .. })));
    assert!(matches!(create("dangling"), Err(WriteFault::Exists(_))));
    assert_eq!(std::fs::read_to_string(directory.path().join("full")).unwrap(), "mine");
    create("empty").unwrap();
    read(&directory.path().join("empty")).unwrap();
    assert_eq!(names(directory.path()), ["dangling", "directory", "empty", "full"]);
}

#[test]
fn two_writers_exclude_each_other() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let appender = Appender::create(&path, &machine(), &plan(3, &[&["futex"]])).unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(matches!(Appender::resume(&path, length, length), Err(WriteFault::Busy(_))));
    drop(appender);
    let mut resumed = Appender::resume(&path, length, length).unwrap();
    assert!(matches!(Appender::resume(&path, length, length), Err(WriteFault::Busy(_))));
    resumed.append(&lines(&group(0, 1, 1, 1))).unwrap();
    resumed.sync().unwrap();
    drop(resumed);
    // A process that read the file before would append after lines that it does not know.
    assert!(matches!(Appender::resume(&path, length, length), Err(WriteFault::Busy(_))));
    assert_eq!(read(&path).unwrap().groups[0].blocks, group(0, 1, 1, 1));
}

#[test]
fn resuming_cuts_the_incomplete_last_line_and_goes_on_there() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let mut appender = Appender::create(&path, &machine(), &plan(2, &[&["futex"]])).unwrap();
    let blocks = group(0, 1, 2, 1);
    appender.append(&lines(&blocks[..2])).unwrap();
    drop(appender);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 40]).unwrap();
    let results = read(&path).unwrap();
    assert_eq!(results.notes.len(), 1);
    assert_eq!(std::fs::read(&path).unwrap(), whole[..whole.len() - 40], "reading changes nothing");
    let mut appender = Appender::resume(&path, results.length, results.read_length).unwrap();
    let again = group(0, 1, 2, 2);
    appender.append(&lines(&again)).unwrap();
    let records = fold(&results.machine, &results.plan, 0, 2, &again, &[], AT);
    let records: Vec<Line> =
        records.into_iter().map(|record| Line::Record(Box::new(record))).collect();
    appender.append(&records).unwrap();
    let results = read(&path).unwrap();
    assert!(results.notes.is_empty() && results.complete());
    assert_eq!(results.groups[0].attempts, 2);
}
