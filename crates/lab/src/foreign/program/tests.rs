//! Against small programs that misbehave, in C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use threadtoll_record::StrikeReason::{self, Crashed, Hung, Refused, WrongMessage};

use super::answer::{Besides, Question};
use super::*;

/// The program that another run of these tests is to hold.
const HELD: &str = "THREADTOLL_TEST_PROGRAM";

/// A folder with the program under any name.
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
        // A copy would be open for writing in whatever another test forks meanwhile.
        fs::hard_link(self.0.path().join("peer"), &path).unwrap();
        path
    }

    /// Processes of its programs, and processes that these left behind.
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

/// Short where the program is to hang.
fn patience(mode: &str) -> Patience {
    let (long, short) = (Duration::from_secs(30), Duration::from_secs(1));
    Patience {
        hello: if mode == "mute" { short } else { long },
        prepare: long,
        block: if mode == "silent" || mode == "drips" { short } else { long },
    }
}

const LENGTH_NS: u64 = 10_000_000;
const OPEN: Question = deliveries(Besides::Nothing);
const BURST: Question = deliveries(Besides::Bursts);
const FUNNEL: Question = Question::Deliveries { per_s: 1_000.0, besides: Besides::Chatty(3) };
const WORKERS: Question = Question::Shared { receivers: 2 };
const DEPTH: Question = Question::Calls { depth: 50 };
const FLOOD: Question = Question::SendCalls;
const POOL: Question = Question::Pool { tasks: 20, threads: 4 };

const fn deliveries(besides: Besides) -> Question {
    Question::Deliveries { per_s: 100_000.0, besides }
}

fn request(question: Question) -> Request {
    let what = match question {
        Question::RoundTrips => "queue made-up ask-reply wait=poll",
        Question::Stream => "queue made-up stream wait=poll",
        OPEN => "queue made-up open-loop wait=poll",
        FUNNEL => "queue made-up funnel senders=4 important=1 wait=poll",
        Question::Deliveries { .. } => "queue made-up burst wait=poll",
        Question::Shared { .. } => "queue made-up workers receivers=2 wait=poll",
        Question::Calls { .. } => "queue made-up depth depth=50 wait=poll",
        Question::SendCalls => "queue made-up flood wait=poll",
        Question::Pool { .. } => "contention pool",
    };
    Request { prepare: format!("prepare {what} cpus="), question, roams: Vec::new() }
}

fn measure(path: &Path, question: Question) -> Result<(Option<u64>, Answer), Fault> {
    let mode = path.file_name().unwrap().to_str().unwrap();
    let request = request(question);
    let mut program = Program::start(path, &[], patience(mode))?;
    let warm_up_ms = program.prepare(&request)?;
    let (answer, settling_ns) = program.block(&request, LENGTH_NS)?;
    assert_eq!(settling_ns, if mode == "settles" { 6_000_000 } else { 0 });
    assert!(program.quit());
    Ok((warm_up_ms, answer))
}

#[test]
fn figures_are_read() {
    let folder = Folder::new();
    let path = folder.peer("good");
    let (warm_up_ms, answer) = measure(&path, Question::RoundTrips).unwrap();
    let stamped = Tally(vec![(500, 5), (1000, 3000)]);
    assert_eq!(answer, Answer::RoundTrips { stamped, others: 13_000, mean_ns: 500.5 });
    assert_eq!((warm_up_ms, answer.operations()), (Some(0), 16_005));
    let (_, stream) = measure(&path, Question::Stream).unwrap();
    assert_eq!(stream, Answer::Stream { messages: 30_000, rate_per_s: 2e6 });
    let (_, settled) = measure(&folder.peer("settles"), Question::Stream).unwrap();
    assert_eq!(settled, stream);
    let (_, open) = measure(&path, OPEN).unwrap();
    let Answer::Deliveries(open) = open else { panic!("{open:?}") };
    assert_eq!((open.delivered.count(), open.late.max_ns(), open.sent), (900, 40, 1000));
    assert_eq!(
        (open.busy_ns, open.due, open.received, open.bursts),
        (Some(450_000), 900, 890, None)
    );
    let (_, burst) = measure(&path, BURST).unwrap();
    let Answer::Deliveries(burst) = burst else { panic!("{burst:?}") };
    let bursts =
        Bursts { first_ns: 300.0, last_ns: 600.0, drain_ns: 100.5, bursts: 9, found_empty: 9 };
    assert_eq!(burst.bursts, Some(bursts));
    let (_, funnel) = measure(&path, FUNNEL).unwrap();
    let Answer::Deliveries(funnel) = funnel else { panic!("{funnel:?}") };
    let chatty = Chatty { delivered: Tally(vec![(700, 800)]), means_ns: vec![700.0; 3] };
    assert_eq!((funnel.delivered.count(), funnel.chatty), (9, Some(chatty)));
    let (_, workers) = measure(&path, WORKERS).unwrap();
    let received = vec![1000, 1000];
    assert_eq!(workers, Answer::Shared { elapsed_ns: 9_500_000, received, bundle: false });
    let (_, depth) = measure(&path, DEPTH).unwrap();
    let expected = Answer::Calls {
        count: 6400,
        send_ns: 10.0,
        receive_ns: 20.5,
        elapsed_ns: 9_000_000,
        messages: 6450,
    };
    assert_eq!(depth, expected);
    let (_, flood) = measure(&path, FLOOD).unwrap();
    let calls = Tally(vec![(250, 90)]);
    assert_eq!(flood, Answer::SendCalls { calls, elapsed_ns: 9_000_000, messages: 5000 });
    let (_, pool) = measure(&path, POOL).unwrap();
    let expected = Answer::Pool { tasks: 20, elapsed_ns: 9_000_000, queue_on_entry_mean: 1.5 };
    assert_eq!(pool, expected);
    assert_eq!(folder.processes(), []);
}

/// The user reads a clause of each fault.
#[test]
fn each_misbehaviour_is_named_and_leaves_no_process() {
    let folder = Folder::new();
    let trips = Question::RoundTrips;
    let other_pool = Question::Pool { tasks: 25, threads: 4 };
    let cases: &[(&str, Question, StrikeReason, &str)] = &[
        ("mute", trips, Hung, "it gave no whole answer within 1 s"),
        ("not-json", trips, Crashed, "its description cannot be read: expected value"),
        ("own-wait", trips, Crashed, "waits by poll, poll-backoff or block, not by spin"),
        ("dies", trips, Crashed, "its program ended by itself (exit status: 1)"),
        ("ahead", trips, WrongMessage, "its clock is 3.0 s ahead of CLOCK_MONOTONIC"),
        ("fast", trips, WrongMessage, "its clock gained "),
        ("refuses", trips, Refused, "it cannot be prepared: there is no memory for that"),
        ("boasts", trips, WrongMessage, "it warmed up for 600000 ms within "),
        ("talks", trips, Crashed, "it said “by the way” without being asked"),
        ("closes-input", trips, Crashed, "it closed its input"),
        ("unsettled", trips, Crashed, "it said “end settled” instead of “end”"),
        ("slow-stamps", trips, WrongMessage, "its round trips take 3.2 ms of a block of 10 ms"),
        ("early", trips, WrongMessage, "its block of 100000 ms was over after "),
        ("exits", trips, Crashed, "its program ended by itself (exit status: 3)"),
        ("crashes", trips, Crashed, "its program ended by itself (signal: 6 (SIGABRT))"),
        ("silent", trips, Hung, "it gave no whole answer within 1 s"),
        ("drips", trips, Hung, "it gave no whole answer within 1 s"),
        ("floods", trips, Crashed, "its answer has a line of over 4096 bytes"),
        ("many-lines", trips, Crashed, "its answer has over 2000000 lines"),
        ("rubbish", trips, Crashed, "its answer is not text"),
        ("words", trips, Crashed, "it said “segmentation” instead of “count”"),
        ("closes-output", trips, Crashed, "it closed its output"),
        ("reports", trips, WrongMessage, "it reports: a message was lost"),
        ("disorder", trips, Crashed, "its values after “count” do not ascend"),
        ("disorder", BURST, WrongMessage, "the first message of its bursts comes after the last"),
        ("twice", trips, Crashed, "its values after “count” do not ascend"),
        ("negative", trips, Crashed, "it said “-500” where the figure of “mean_ns” was expected"),
        ("no-mean", trips, Crashed, "it said “mean” instead of “mean_ns”"),
        ("loses", trips, WrongMessage, "it checked 3004 round trips, of which 3005 had a stamp"),
        ("loses", Question::Stream, WrongMessage, "it counted 30000 messages, but checked 29999"),
        ("repeats", Question::Stream, WrongMessage, "30000 messages, but checked 30001"),
        ("brags", Question::Stream, WrongMessage, "200000000 messages came, but it counted 30000"),
        ("hurries", Question::Stream, WrongMessage, "its block of 10 ms was over after 0 ms"),
        ("loses", OPEN, WrongMessage, "it counted 1000 messages, but checked 999"),
        ("slow", OPEN, WrongMessage, "its messages were due at 44444/s instead of 100000/s"),
        ("loses", WORKERS, WrongMessage, "it counted 2000 messages, but checked 1999"),
        ("hides", WORKERS, WrongMessage, "its receivers got another number of them"),
        ("early-workers", WORKERS, WrongMessage, "its block of 1000000 ms was over after "),
        ("loses", FUNNEL, WrongMessage, "it counted 1000 messages, but checked 999"),
        ("disorder", FUNNEL, WrongMessage, "the mean of a chatty sender is above all of its"),
        ("loses", DEPTH, WrongMessage, "it counted 6450 messages, but checked 6449"),
        ("long-calls", DEPTH, WrongMessage, "its calls take longer than its block"),
        ("loses", FLOOD, WrongMessage, "it counted 5000 messages, but checked 4999"),
        ("long-calls", FLOOD, WrongMessage, "its send calls take longer than its block"),
        ("more", trips, Crashed, "it said “checked 5” instead of “end”"),
        ("good", other_pool, WrongMessage, "it did 20 tasks instead of 25"),
    ];
    for (mode, question, reason, line) in cases {
        let path = folder.0.path().join(mode);
        let path = if path.exists() { path } else { folder.peer(mode) };
        let fault = match measure(&path, *question) {
            Err(fault) => fault,
            Ok(measured) => panic!("{mode}: {measured:?}"),
        };
        assert!(fault.clause.contains(line), "{mode}: {fault}");
        assert_eq!(fault.reason, *reason, "{mode}");
        assert_eq!(folder.processes(), [], "{mode}");
    }
    let fault = measure(&folder.0.path().join("nobody"), trips).unwrap_err();
    assert!(fault.clause.starts_with("it cannot be started: "), "{fault}");
    assert_eq!(fault.reason, Refused);
}

#[test]
fn whatever_a_program_leaves_behind_ends_with_it() {
    let folder = Folder::new();
    for (mode, obeys) in
        [("good", true), ("forks", true), ("escapes", true), ("ignores-quit", false)]
    {
        let path = folder.peer(mode);
        for quits in [true, false] {
            let mut program = Program::start(&path, &[], patience(mode)).unwrap();
            let request = request(Question::RoundTrips);
            program.prepare(&request).unwrap();
            program.block(&request, LENGTH_NS).unwrap();
            let processes = if matches!(mode, "forks" | "escapes") { 2 } else { 1 };
            assert_eq!(folder.processes().len(), processes, "{mode}");
            let begun = Instant::now();
            if quits {
                assert_eq!(program.quit(), obeys, "{mode}");
            } else {
                drop(program);
            }
            assert_eq!(folder.processes(), [], "{mode}");
            assert!(begun.elapsed() < Duration::from_secs(8), "{mode}: {:?}", begun.elapsed());
        }
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
    let fault = program.prepare(&request(Question::RoundTrips)).unwrap_err();
    assert_eq!(fault.clause, "its program ended by itself (signal: 9 (SIGKILL))");
}

/// As if the tool were killed: another run of this test binary holds the program.
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
        // The program may be about to fork, so that something would be left.
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
