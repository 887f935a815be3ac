//! `--twins`: rows of ours once more, for `ci/long/twins.sh` alone.

use tempfile::TempDir;

use crate::lines::{lines, plan, records};
use crate::program::{threadtoll, words};

const TWINS: &str = "queue stream pipe pipe-twin --wait spin --batch 1 --time 4ms";

#[test]
fn twins_are_rows_of_their_own_next_to_the_rows_that_they_repeat() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    for (command, line, row) in [
        ("queue", TWINS, "pipe"),
        ("latency", "latency futex futex-twin --placement pinned --time 4ms", "futex"),
        ("contention", "contention hold-think ticket ticket-twin --threads 2 --time 4ms", "ticket"),
    ] {
        let options = "--twins --simulated-machine 5 --quiet --out";
        threadtoll(words(&format!("{line} {options}"), &[&path])).done();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        threadtoll(words(&format!("{command} --quiet --resume"), &[&path])).done();
        let all = lines(&path);
        let together = plan(&all).groups.iter().any(|group| {
            let has = |name: &str| group.iter().any(|planned| planned.cell.name() == name);
            has(row) && has(&format!("{row}-twin"))
        });
        assert!(together, "{line}");
        let is_pair = |one: &str, other: &str| one == row && other == format!("{row}-twin");
        let paired = records(&all).iter().any(|record| {
            let own = record.cell.name();
            let mut others = record.against.iter().map(|against| against.cell.name());
            others.any(|other| is_pair(own, other) || is_pair(other, own))
        });
        // Locks are compared with one thread alone.
        assert_eq!(paired, command != "contention", "{line}");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn other_runs_know_no_twins() {
    let line = format!("{TWINS} --simulated-machine 5 --quiet --out -");
    threadtoll(words(&line, &[])).bad().says("pipe-twin");
}
