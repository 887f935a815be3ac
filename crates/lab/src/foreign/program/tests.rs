//! Tests with a small C program that misbehaves in many ways.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::answer::Question;
use super::*;
use crate::samples::{Samples, Stretches};

/// Environment variable with the path of the program that `holds_a_program` keeps running.
const HELD: &str = "THREADTOLL_TEST_PROGRAM";

/// A folder with hard links to one test program, whose file name selects how it misbehaves.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/foreign/program/tests/peer.c");
        let status = Command::new("cc")
            .args(["-O1", "-Wall", "-Werror", "-pthread", "-o"])
            .arg(folder.path().join("peer"))
            .arg(source)
            .status();
        assert!(status.unwrap().success());
        Folder(folder)
    }

    pub(crate) fn peer(&self, mode: &str) -> PathBuf {
        let path = self.0.path().join(mode);
        // Not a copy: if another test forked while the copy was being written, the child would hold
        // the file open for writing, and the file could not be executed.
        fs::hard_link(self.0.path().join("peer"), &path).unwrap();
        path
    }

    /// Processes whose command line starts with the path of this folder.
    fn processes(&self) -> Vec<Pid> {
        let own = self.0.path().to_str().unwrap().as_bytes();
        let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            line.starts_with(own).then(|| Pid::from_raw(pid))?
        });
        pids.collect()
    }

    fn wait_for(&self, processes: bool) {
        let begun = Instant::now();
        while self.processes().is_empty() == processes {
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", self.processes());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Short for the modes in which the program hangs.
fn patience(mode: &str) -> Duration {
    Duration::from_secs(match mode {
        "mute" | "silent" | "drips" | "deaf" => 1,
        "closes-input" => 4,
        _ => 20,
    })
}

const LENGTH_NS: u64 = 10_000_000;
const POOL: Question = Question::Pool { tasks: 20, cycle_ns: 1_000_000 };

fn request(question: Question) -> Request {
    let what = match question {
        Question::RoundTrips => "queue made-up ask-reply wait=poll",
        Question::Stream => "queue made-up stream wait=poll",
        Question::Pool { .. } => "contention pool",
    };
    Request::pinned(format!("prepare {what} cpus="), question)
}

fn measure(
    path: &Path,
    question: Question,
    kind: BlockKind,
) -> Result<(Option<u64>, MeasuredBlock), String> {
    let mode = path.file_name().unwrap().to_str().unwrap();
    let request = request(question);
    let mut program = Program::start(path, &[], patience(mode))?;
    let warm_up_ms = program.prepare(&request)?;
    let measured = program.block(&request, kind, LENGTH_NS)?;
    Ok((warm_up_ms, measured))
}

#[test]
fn figures_are_read() {
    let folder = Folder::new();
    let path = folder.peer("good");
    let (warm_up_ms, measured) = measure(&path, Question::RoundTrips, BlockKind::Stamped).unwrap();
    assert_eq!((warm_up_ms, measured.operations, measured.settling_ns), (Some(0), 16_005, 0));
    let Samples::Exchange(trips) = measured.samples else { panic!("{measured:?}") };
    let (lengths_ps, each) = (trips.stretches.lengths_ps, trips.stretches.operations_each);
    assert_eq!((lengths_ps.len(), each), (3005, 1));
    assert_eq!((lengths_ps[4], lengths_ps[5]), (500_000, 1_000_000));
    let (_, measured) = measure(&path, Question::RoundTrips, BlockKind::Stretch).unwrap();
    let Samples::Exchange(trips) = measured.samples else { panic!("{measured:?}") };
    let stretch =
        |elapsed_ps, operations_each| Stretches { lengths_ps: vec![elapsed_ps], operations_each };
    assert_eq!(trips.stretches, stretch(6_506_500_000, 13_000));
    let settles = folder.peer("settles");
    let (_, measured) = measure(&settles, Question::Stream, BlockKind::Stretch).unwrap();
    assert_eq!(measured.samples, Samples::Stream(stretch(15_000_000_000, 30_000)));
    assert_eq!(measured.settling_ns, 6_000_000);
    let (_, measured) = measure(&path, POOL, BlockKind::Stretch).unwrap();
    let Samples::Contention(pool) = measured.samples else { panic!("{measured:?}") };
    assert_eq!((pool.elapsed_ns, measured.operations), (9_000_000, 20));
    assert_eq!(pool.block.work.get(), 20e6);
    assert_eq!(pool.block.queue_on_entry_mean.map(|mean| mean.get()), Some(1.5));
    assert_eq!(folder.processes(), []);
}

#[test]
fn each_misbehaviour_is_named_and_leaves_no_process() {
    let trips = Question::RoundTrips;
    let other_pool = Question::Pool { tasks: 25, cycle_ns: 1 };
    let cases: &[(&str, Question, &str)] = &[
        ("mute", trips, "it gave no complete answer within 1 s"),
        ("not-json", trips, "its description cannot be read: expected value"),
        ("own-wait", trips, "must have some of the wait strategies poll, poll-backoff and block"),
        ("dies", trips, "its program ended by itself (exit status: 1)"),
        ("refuses", trips, "it cannot be prepared: there is no memory for that"),
        ("talks", trips, "it said “by” instead of “count”"),
        ("closes-input", trips, "it closed its input"),
        ("deaf", trips, "it closed its input"),
        ("unsettled", trips, "it said “end settled” instead of “end”"),
        ("early", trips, "its block of 100000 ms was over after "),
        ("exits", trips, "its program ended by itself (exit status: 3)"),
        ("crashes", trips, "its program ended by itself (signal: 6 (SIGABRT))"),
        ("silent", trips, "it gave no complete answer within 1 s"),
        ("drips", trips, "it gave no complete answer within 1 s"),
        ("floods", trips, "a line of its answer exceeds 256 KiB"),
        ("many-trips", trips, "it reports 99999999 stamped round trips, more than 2000000"),
        ("rubbish", trips, "its answer is not text"),
        ("words", trips, "it said “segmentation” instead of “count”"),
        ("closes-output", trips, "it closed its output"),
        ("reports", trips, "it reports: a message was lost"),
        ("negative", trips, "it said “-500” where a number for “mean_ns” was expected"),
        ("no-mean", trips, "it said “mean” instead of “mean_ns”"),
        ("loses", trips, "it reports 3004 verified round trips, 3005 of them with a stamp"),
        ("loses", Question::Stream, "it counted 30000 operations, but verified 29999"),
        ("good", other_pool, "it did 20 tasks instead of 25"),
    ];
    // Several cases run at a time, because they mostly wait.
    const AT_A_TIME: usize = 8;
    let each = |nth: usize| {
        let folder = Folder::new();
        for (mode, question, line) in cases.iter().skip(nth).step_by(AT_A_TIME) {
            let path = folder.0.path().join(mode);
            let path = if path.exists() { path } else { folder.peer(mode) };
            let why = match measure(&path, *question, BlockKind::Stamped) {
                Err(why) => why,
                Ok(measured) => panic!("{mode}: {measured:?}"),
            };
            assert!(why.contains(line), "{mode}: {why}");
            assert_eq!(folder.processes(), [], "{mode}");
        }
    };
    std::thread::scope(|scope| {
        for nth in 0..AT_A_TIME {
            scope.spawn(move || each(nth));
        }
    });
    let nobody = Folder::new().0.path().join("nobody");
    let why = measure(&nobody, trips, BlockKind::Stamped).unwrap_err();
    assert!(why.starts_with("it cannot be started: "), "{why}");
}

#[test]
fn whatever_a_program_leaves_behind_ends_with_it() {
    let folder = Folder::new();
    for mode in ["good", "forks", "escapes", "ignores-quit"] {
        let mut program = Program::start(&folder.peer(mode), &[], patience(mode)).unwrap();
        let request = request(Question::RoundTrips);
        program.prepare(&request).unwrap();
        program.block(&request, BlockKind::Stamped, LENGTH_NS).unwrap();
        let processes = if matches!(mode, "forks" | "escapes") { 2 } else { 1 };
        assert_eq!(folder.processes().len(), processes, "{mode}");
        let begun = Instant::now();
        drop(program);
        assert_eq!(folder.processes(), [], "{mode}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{mode}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_program_ends_with_its_guardian() {
    let folder = Folder::new();
    let mut program = Program::start(&folder.peer("good"), &[], patience("good")).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", program.pid().as_raw_nonzero()));
    let stat = stat.unwrap();
    let parent = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(1));
    let guardian = Pid::from_raw(parent.unwrap().parse().unwrap()).unwrap();
    kill_process(guardian, Signal::KILL).unwrap();
    folder.wait_for(false);
    let why = program.prepare(&request(Question::RoundTrips)).unwrap_err();
    assert_eq!(why, "its program ended by itself (signal: 9 (SIGKILL))");
}

/// A second process of this test binary plays the tool: it runs the program, and is killed.
#[test]
fn no_process_outlives_a_tool_that_is_killed() {
    let folder = Folder::new();
    for mode in ["good", "escapes", "ignores-quit"] {
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "foreign::program::tests::holds_a_program"])
            .env(HELD, folder.peer(mode))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        folder.wait_for(true);
        // Time for the program to fork a process that could be left behind.
        std::thread::sleep(Duration::from_millis(100));
        holder.kill().unwrap();
        holder.wait().unwrap();
        folder.wait_for(false);
    }
}

#[test]
#[ignore = "a part of another test, which kills it"]
fn holds_a_program() {
    let Some(path) = std::env::var_os(HELD) else { return };
    let _program = Program::start(Path::new(&path), &[], patience("good")).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}
