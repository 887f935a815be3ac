//! A run in several processes: each measures its share, and one file holds everything.

use std::collections::BTreeMap;
use std::path::Path;

use tempfile::TempDir;
use threadtoll_record::{Block, Line};

use crate::lines::{blocks, lines, plan, records};
use crate::program::{Ended, command, ran, threadtoll, words};

fn run_in(directory: &Path, line: &str) -> Ended {
    let mut command = command();
    command.current_dir(directory).args(words(line, &[]));
    ran(command)
}

fn measured(line: &str) -> Vec<Line> {
    let directory = TempDir::new().unwrap();
    run_in(directory.path(), &format!("{line} --simulated-machine 5 --quiet --out run.jsonl"))
        .done();
    lines(&directory.path().join("run.jsonl"))
}

#[test]
fn every_process_measures_its_share_of_each_group() {
    let lines = measured("latency futex park --placement pinned --relaunch 3");
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
        ("queue stream pipe --wait spin --batch 1", 3),
        ("queue stream pipe --wait spin --batch 1 --relaunch 1", 1),
        ("latency futex --placement pinned", 1),
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
    let line =
        "latency futex --simulated-machine 5 --relaunch 2 --placement pinned --out run.jsonl";
    run_in(directory.path(), line).done();
    run_in(directory.path(), "latency --resume run.jsonl --relaunch 3").bad().says("contradicts");
    run_in(directory.path(), "latency --resume run.jsonl --relaunch 2").done();
}
