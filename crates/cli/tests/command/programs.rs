//! Programs of other languages, as `--peers` takes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use threadtoll_machine::allowed_cpus;
use threadtoll_machine::lock::machine_lock;
use threadtoll_record::{Line, Origin};

use crate::lines::{blocks, lines, records};
use crate::program::{command, threadtoll, wait_until, words};

/// A folder with programs that misbehave as they are called.
struct Folder(TempDir);

impl Folder {
    fn of(names: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let source =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/src/foreign/program/tests/peer.c");
        for name in names {
            let path = folder.path().join(name);
            let mut compiler = Command::new("cc");
            compiler.args(["-O1", "-pthread", "-o"]).arg(path).arg(source);
            assert!(compiler.status().unwrap().success());
        }
        Folder(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Processes of its programs, and those that these left behind.
    fn processes(&self) -> usize {
        let own = self.path().to_str().unwrap().as_bytes();
        let is_own =
            |path: PathBuf| fs::read(path.join("cmdline")).is_ok_and(|line| line.starts_with(own));
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.filter(|entry| is_own(entry.path())).count()
    }
}

#[test]
fn a_program_that_cannot_be_asked_costs_a_line() {
    let folder = Folder::of(&["good", "dies", "not-json", "own-wait", "ignores-quit"]);
    fs::write(folder.path().join("notes.txt"), "neither adapter nor program").unwrap();
    let listed = threadtoll(words("list peers --peers", &[folder.path()])).done();
    for (name, why) in [
        ("dies", "its program ended by itself (exit status: 1)"),
        ("not-json", "its description cannot be read: expected value at line 1 column 1"),
        ("own-wait", "own-wait must have some of the wait strategies poll, poll-backoff and block"),
    ] {
        let line = listed.err.lines().find(|line| line.contains(&format!("warning: {name} ")));
        let line = line.unwrap_or_else(|| panic!("{name}: {listed:#?}"));
        assert!(line.contains(why), "{line}");
    }
    assert_eq!(listed.err.lines().count(), 3, "{listed:#?}");
    for name in ["good ", "good-spin ", "good-fair ", "ignores-quit "] {
        assert!(listed.out.lines().any(|line| line.starts_with(name)), "{name}: {listed:#?}");
    }
    assert_eq!(folder.processes(), 0);
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn programs_stand_in_the_groups_of_our_queues() {
    let _alone = machine_lock().unwrap();
    if allowed_cpus().len() < 2 {
        println!("skipped: queues between two CPUs, of which there is one");
        return;
    }
    let folder = Folder::of(&["good", "loses", "forks", "escapes", "ignores-quit"]);
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let line = "queue stream pipe good loses forks escapes ignores-quit --wait spin --time 20ms";
    let mut arguments = words(line, &[]);
    arguments.extend(words("--batch 1 --peers", &[folder.path()]));
    arguments.extend(words("--out", &[&path]));
    let ended = threadtoll(arguments).done();
    ended.says("loses (poll) was left out: it counted 30000 operations, but verified 29999");
    let lines = lines(&path);
    assert_eq!(lines.iter().filter(|line| matches!(line, Line::Strike(_))).count(), 1);
    let records = records(&lines);
    for name in ["good", "forks", "escapes", "ignores-quit"] {
        let record = records.iter().find(|record| record.cell.name() == name).unwrap();
        assert_eq!(record.cell.queue().unwrap().origin, Origin::C);
        assert_eq!(record.rate_per_s.unwrap().get(), 2e6, "{name}");
        assert_eq!(record.own_program.unwrap().warm_up_ms, Some(0.into()));
        assert!(record.cell.built.is_some(), "{name}");
        assert!(!record.against.is_empty(), "{name}: compared with nothing");
    }
    let own = blocks(&lines).iter().filter(|block| block.own_program.is_some()).count();
    assert!(own >= 4 * 31, "{own} blocks");
    let shown = threadtoll(words("report --text", &[&path])).done();
    assert!(shown.out.contains("warm-up"), "{}", shown.out);
    assert_eq!(folder.processes(), 0);
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn a_pool_of_a_program_can_be_read_again() {
    let _alone = machine_lock().unwrap();
    let folder = Folder::of(&["good"]);
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let line = "contention pool good-fair --threads 4 --tasks 20 --hold 1ms --think 9ms --quiet";
    let mut arguments = words(line, &[]);
    arguments.extend(words("--peers", &[folder.path()]));
    arguments.extend(words("--out", &[&path]));
    threadtoll(arguments).done();
    let shown = threadtoll(words("report --text", &[&path])).done();
    assert!(shown.out.contains("good-fair"), "{}", shown.out);
}

#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn no_program_outlives_the_command() {
    let _alone = machine_lock().unwrap();
    if allowed_cpus().len() < 2 {
        println!("skipped: queues between two CPUs, of which there is one");
        return;
    }
    let folder = Folder::of(&["escapes", "ignores-quit"]);
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("run.jsonl");
        let mut threadtoll = command();
        threadtoll
            .args(words(
                "queue stream pipe escapes ignores-quit --wait spin --peers",
                &[folder.path()],
            ))
            .args(words("--batch 1 --out", &[&path]))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut run = threadtoll.spawn().unwrap();
        // Both are asked what they are, one after the other, and run together only as rows.
        wait_until("three processes", || folder.processes() >= 3);
        kill_process(Pid::from_child(&run), signal).unwrap();
        run.wait().unwrap();
        wait_until("their end", || folder.processes() == 0);
    }
}
