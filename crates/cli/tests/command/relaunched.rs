//! A run in several processes: each measures its share, and one file holds everything.

use std::collections::BTreeMap;
use std::path::Path;

use tempfile::TempDir;
use threadtoll_record::{Block, Line};

use crate::interrupted::Started;
use crate::lines::{blocks, lines, plan, records};
use crate::program::{command, run_in, threadtoll, wait_until, words};

fn measured(line: &str) -> Vec<Line> {
    let directory = TempDir::new().unwrap();
    run_in(directory.path(), &format!("{line} --simulated-machine 5 --quiet --out run.jsonl"))
        .done();
    lines(&directory.path().join("run.jsonl"))
}

#[test]
fn every_process_measures_its_share_of_each_group() {
    let lines = measured("latency futex park --placement pinned --time 5ms --relaunch 3");
    let plan = plan(&lines);
    assert_eq!(plan.processes, 3);
    for (index, group) in plan.groups.iter().enumerate() {
        let rounds = group[0].budget.rounds;
        let mut by_process: BTreeMap<u32, Vec<&Block>> = BTreeMap::new();
        for block in blocks(&lines).into_iter().filter(|block| block.group == index) {
            assert_eq!(block.process, plan.process(block.seq, rounds));
            by_process.entry(block.process).or_default().push(block);
        }
        assert_eq!(by_process.len(), 3);
        let all: usize = group.iter().map(|cell| cell.budget.kinds().len()).sum();
        assert_eq!(by_process.values().map(Vec::len).sum::<usize>(), all * rounds as usize);
        // They go on where the others ended, and find figures of their own.
        let begins: Vec<&str> = by_process.values().map(|blocks| &*blocks[0].at).collect();
        assert!(begins.is_sorted(), "{begins:?}");
        let means = |process: u32| {
            let blocks = by_process[&process].iter().filter(|block| block.cell == 0);
            blocks.map(|block| block.mean.get()).collect::<Vec<f64>>()
        };
        assert_ne!(means(0)[..5], means(1)[..5]);
        assert_eq!(
            records(&lines).iter().filter(|record| record.group == index).count(),
            group.len()
        );
    }
}

#[test]
fn queues_and_full_surveys_have_three_processes_by_default() {
    for (line, processes) in [
        ("queue stream pipe --wait spin --batch 1 --time 4ms", 3),
        ("queue stream pipe --wait spin --batch 1 --time 4ms --relaunch 1", 1),
        ("latency futex --placement pinned --time 1ms", 1),
    ] {
        let lines = measured(line);
        assert_eq!(plan(&lines).processes, processes, "{line}");
        let last = blocks(&lines).iter().map(|block| block.process).max();
        assert_eq!(last, Some(processes - 1), "{line}");
    }
    let planned = threadtoll(words("survey --full --simulated-machine 5 --plan", &[])).done();
    assert!(planned.out.contains("each in 3 processes"), "{}", planned.out);
}

#[test]
fn a_number_of_processes_that_cannot_be_is_refused() {
    for number in ["0", "101", "-1", "many"] {
        let line = format!("latency futex --simulated-machine 5 --relaunch {number}");
        threadtoll(words(&line, &[])).bad().says("--relaunch");
    }
    let directory = TempDir::new().unwrap();
    let line = "latency futex --time 1ms --simulated-machine 5 --relaunch 2 --placement pinned \
                --out run.jsonl";
    run_in(directory.path(), line).done();
    run_in(directory.path(), "latency --resume run.jsonl --relaunch 3").bad().says("contradicts");
    run_in(directory.path(), "latency --resume run.jsonl --relaunch 2").done();
}

/// A run that has started another process, and the number of that process.
fn in_two_processes(path: &Path) -> (Started, i32) {
    let mut survey = command();
    let line = "survey --full --relaunch 2 --simulated-machine 1 --quiet --out";
    survey.args(words(line, &[path]));
    let started = Started::new(survey);
    let mut other = None;
    wait_until("another process", || {
        other = started.measuring().first().copied();
        other.is_some()
    });
    (started, other.unwrap())
}

fn runs(process: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat"));
    state.is_ok_and(|state| !state.contains(") Z "))
}

#[test]
fn a_process_that_is_killed_at_the_reference_ends_the_run_in_one_line() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let line = "latency futex --time 1ms --relaunch 2 --simulated-machine 1 --quiet \
                --simulated-faults atomic-store=killed --out run.jsonl";
    let ended = run_in(directory.path(), line);
    let [error, hint] = ended.err.lines().collect::<Vec<&str>>()[..] else { panic!("{ended:?}") };
    ended.failed(1);
    assert!(error.starts_with("error: atomic-store (pinned) was killed (signal: 9"), "{error}");
    assert!(hint.contains("complete it with --resume"), "{hint}");
    threadtoll(words("report --text", &[&path])).done().says("incomplete");
}

#[test]
fn no_process_outlives_the_first() {
    for (signal, code) in
        [(libc::SIGINT, Some(130)), (libc::SIGTERM, Some(130)), (libc::SIGKILL, None)]
    {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("run.jsonl");
        let (started, other) = in_two_processes(&path);
        started.signal(signal);
        let (ended, err) = started.ended();
        assert_eq!(ended, code, "{err}");
        wait_until("the end of the other process", || !runs(other));
        assert!(!blocks(&lines(&path)).is_empty());
    }
}

#[test]
fn several_processes_write_records_to_standard_output_too() {
    let line = "latency futex --placement pinned --time 5ms --relaunch 2 --simulated-machine 5 \
                --json --out -";
    let ended = threadtoll(words(line, &[]));
    let records: Vec<serde_json::Value> =
        ended.done().out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 2, "the reference and the futex");
    for record in records {
        assert_eq!(record["processes"], 2, "{record}");
        assert!(record["between_processes_share"].is_number(), "{record}");
    }
}
