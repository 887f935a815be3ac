//! `--peers DIR`: adapters that behave are measured, and each that misbehaves costs its rows and a
//! line.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use threadtoll_machine::machine_lock;
use threadtoll_record::Line;
use threadtoll_record::file::read;

use crate::interrupted::Started;
use crate::lines::{lines, plan, records};
use crate::program::{Held, command, ran, run_in, wait_until, words};

/// Seconds after which what hangs is left out.
pub(crate) const PATIENCE: (&str, &str) = ("THREADTOLL_PATIENCE_S", "2");

/// Compiles adapters into a folder. A machine that links Rust has `cc`.
fn build(folder: &Path, names: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in names {
        let status = Command::new("cc")
            .args(["-O2", "-fPIC", "-shared", "-I"])
            .arg(root.join("peers"))
            .arg("-o")
            .arg(folder.join(format!("{name}.so")))
            .arg(root.join(format!("crates/lab/tests/adapters/{name}.c")))
            .status()
            .unwrap();
        assert!(status.success(), "{name}");
    }
}

/// A folder with adapters in `peers`.
fn built(names: &[&str]) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("peers")).unwrap();
    build(&folder.path().join("peers"), names);
    folder
}

/// Numbers of the processes whose environment has this variable.
fn processes(variable: &str) -> Vec<i32> {
    let has = |environment: Vec<u8>| {
        environment.split(|byte| *byte == 0).any(|one| one.starts_with(variable.as_bytes()))
    };
    let found = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|process| {
        let number = process.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(process.path().join("environ")).ok()?;
        has(environment).then_some(number)
    });
    found.collect()
}

#[test]
fn adapters_are_listed_and_each_that_cannot_be_used_costs_a_line() {
    let early = [
        ("close-early", "it closed its files before it had sent its description"),
        (
            "crash-early",
            "it ended its process (signal: 11 (SIGSEGV)) before it had sent its description",
        ),
        ("flood-early", "it printed more than 1 MiB before it had sent its description"),
        ("hang-early", "it did not send its description within 2 s"),
        ("huge", "its description is longer than 64 KiB"),
        ("lacking", "it has no function tt_create"),
        ("rubbish", "its description is not UTF-8"),
    ];
    let folder = built(&["good", "full", "clash"]);
    let peers = folder.path().join("peers");
    early.iter().for_each(|(name, _)| build(&peers, &[name]));
    std::fs::write(peers.join("notes.txt"), "not a peer").unwrap();
    std::fs::create_dir(peers.join("folder.so")).unwrap();
    let mut list = command();
    list.current_dir(folder.path()).env("TT_EARLY", "").env(PATIENCE.0, PATIENCE.1);
    list.args(["list", "peers", "--peers", "peers"]);
    let ended = ran(list).done();
    for name in ["good", "full", "twice"] {
        assert!(ended.out.lines().any(|line| line.starts_with(name)), "{}", ended.out);
    }
    let mut expected: Vec<String> = early
        .iter()
        .map(|(name, why)| format!("warning: {name}.so was left out: {why}."))
        .collect();
    let taken = "of clash.so was left out: another queue has this name.";
    expected.extend(["pipe", "twice"].map(|name| format!("warning: {name} {taken}")));
    let warnings: Vec<&str> = ended.err.lines().collect();
    // Descriptors that are closed under its feet may also abort the process.
    let (closed, others): (Vec<&str>, Vec<&str>) =
        warnings.iter().partition(|warning| warning.contains("close-early"));
    assert_eq!(closed.len(), 1, "{warnings:#?}");
    assert_eq!(others, expected[1..]);
    assert_eq!(processes("TT_EARLY="), [] as [i32; 0], "all of them have ended");
}

#[test]
fn a_folder_without_peers_is_bad_input() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for (given, why) in [
        ("none", "--peers none: there is no such folder"),
        ("file", "file: it is a file, not a folder"),
        ("file/x", "--peers file/x: it is a file, not a folder"),
        ("empty", "empty: it has no peers, neither adapters (NAME.so) nor programs"),
    ] {
        for start in ["queue ask-reply", "latency", "contention hold-sweep", "list peers"] {
            run_in(folder.path(), &format!("{start} --peers {given}")).bad().says(why);
        }
    }
    build(&folder.path().join("empty"), &["good"]);
    let plan = "latency futex --peers empty --simulated-machine 5 --plan";
    run_in(folder.path(), plan).done().says("only `threadtoll queue` measures them");
    run_in(folder.path(), "list queues --peers empty")
        .bad()
        .says("--peers does not apply to queues");
    run_in(folder.path(), "matrix --peers empty").bad();
}

#[test]
fn peers_stand_in_the_groups_of_ours_and_in_the_file_with_their_build() {
    let folder = built(&["good", "full", "lacking"]);
    let line = "queue stream pipe full good rtrb --peers peers --wait spin --time 4ms \
                --details --simulated-machine 5 --out run.jsonl";
    let ended = run_in(folder.path(), line).done();
    let lacking = "warning: lacking.so was left out: it has no function tt_create.";
    assert_eq!(ended.err.matches("warning: ").count(), 1, "{}", ended.err);
    assert!(ended.err.contains(lacking), "{}", ended.err);
    let built = "full: c, compiled by cc 1.2 -O2.";
    assert!(ended.out.contains(built), "{}", ended.out);
    let path = folder.path().join("run.jsonl");
    let written = lines(&path);
    let group = plan(&written).groups.iter().find(|group| {
        let has = |name: &str| group.iter().any(|planned| planned.cell.name() == name);
        has("full") && has("good")
    });
    let group = group.unwrap();
    assert!(group.iter().any(|planned| planned.cell.name() == "pipe"));
    for record in records(&written) {
        let built = record.cell.built.as_ref().map(|built| built.compiler.as_str());
        let expected = match record.cell.name() {
            "full" => Some("cc 1.2"),
            "good" => Some("cc"),
            _ => None,
        };
        assert_eq!(built, expected, "{}", record.cell.label());
    }
    let report = run_in(folder.path(), "report run.jsonl --details --html page.html").done();
    assert!(report.out.contains(built), "{}", report.out);
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains(built));
    run_in(folder.path(), "report run.jsonl --fold folded.jsonl.gz").done();
    let folded = run_in(folder.path(), "report folded.jsonl.gz --details").done();
    assert_eq!(folded.out, report.out);
    // A queue that was left out cannot be named.
    run_in(folder.path(), "queue stream lacking --peers peers")
        .failed(2)
        .says("no queue is called");
    run_in(folder.path(), "queue stream good").bad().says("no queue is called “good”");
}

#[test]
fn a_resumed_run_has_its_peers_or_says_what_is_wrong_with_them() {
    let folder = built(&["good", "full"]);
    let line = "queue ask-reply pipe good --peers peers --wait spin --time 4ms --quiet \
                --simulated-machine 5 --out run.jsonl";
    let whole = run_in(folder.path(), line).done();
    let path = folder.path().join("run.jsonl");
    let text = std::fs::read(&path).unwrap();
    let begun: Vec<u8> =
        text.split_inclusive(|byte| *byte == b'\n').take(2).collect::<Vec<_>>().concat();
    // From anywhere, because the file has the whole path.
    std::fs::write(&path, &begun).unwrap();
    let mut elsewhere = command();
    elsewhere.args(words("queue --quiet --resume", &[&path]));
    assert_eq!(ran(elsewhere).done().out, whole.out);
    assert!(read(&path).unwrap().complete());

    std::fs::write(&path, &begun).unwrap();
    let held = Held::of(&path);
    let resume = "queue --quiet --resume run.jsonl";
    let peers = folder.path().join("peers");
    std::fs::create_dir(folder.path().join("others")).unwrap();
    std::fs::copy(peers.join("full.so"), folder.path().join("others/full.so")).unwrap();
    run_in(folder.path(), &format!("{resume} --peers others")).bad().says("contradicts run.jsonl");
    let good = std::fs::read(peers.join("good.so")).unwrap();
    std::fs::write(peers.join("good.so"), [&good[..], b"\0"].concat()).unwrap();
    run_in(folder.path(), resume).bad().says("the peer has changed since the run began");
    std::fs::remove_file(peers.join("good.so")).unwrap();
    run_in(folder.path(), resume).bad().says("the peer is no longer in the folder");
    std::fs::remove_dir_all(&peers).unwrap();
    run_in(folder.path(), resume).bad().says("there is no such folder");
    held.unchanged();
}

/// Measures an adapter next to one that behaves. Returns why its row was left out.
fn cost(name: &str) -> String {
    let _alone = machine_lock().unwrap();
    let folder = built(&[name, "good"]);
    let variable = format!("TT_{}", name.replace('-', "_"));
    // The only one whose queue has another name.
    let name = if name == "refuse" { "refused" } else { name };
    let mut queue = command();
    let line = format!(
        "queue stream {name} good --peers peers --wait poll --batch 1 --time 20ms --relaunch 1 \
         --quiet --out run.jsonl"
    );
    queue.current_dir(folder.path()).env(&variable, "").env(PATIENCE.0, PATIENCE.1);
    queue.args(words(&line, &[]));
    let ended = ran(queue).done();
    let written = lines(&folder.path().join("run.jsonl"));
    let strikes: Vec<_> = written
        .iter()
        .filter_map(|line| if let Line::Strike(strike) = line { Some(&**strike) } else { None })
        .collect();
    let [strike] = strikes[..] else { panic!("{ended:#?}") };
    let (warnings, others): (Vec<&str>, Vec<&str>) =
        ended.err.lines().partition(|line| line.starts_with("warning: "));
    assert!(warnings.len() == 1 && others.is_empty(), "{}", ended.err);
    assert!(warnings[0].starts_with(&format!("warning: {name}")), "{}", ended.err);
    let measured = records(&written);
    assert!(measured.iter().any(|record| record.cell.name() == "good"), "{}", ended.out);
    assert!(measured.iter().all(|record| record.cell.name() != name), "{}", ended.out);
    assert!(read(&folder.path().join("run.jsonl")).unwrap().complete());
    assert_eq!(processes(&format!("{variable}=")), [] as [i32; 0], "nothing outlives the run");
    strike.what.to_string()
}

macro_rules! costs {
    ($($test:ident: $name:literal, $what:literal;)+) => {$(
        #[test]
        #[ignore = "real machine: ci/long/real.sh"]
        fn $test() {
            let what = cost($name);
            assert!(what.starts_with($what), "{what}");
        }
    )+};
}

costs! {
    // The receiver waits for as many as were sent.
    a_lost_message_costs_the_row: "lose", "it made no progress for 2 s";
    a_changed_message_costs_the_row: "harm", "a message was wrong, lost, repeated or out of order";
    a_wrong_length_costs_the_row: "miscount",
        "a message was wrong, lost, repeated or out of order";
    a_closed_queue_costs_the_row: "closed", "one of its threads ended early";
    a_crash_costs_the_row: "crash", "it ended its process (signal: 11 (SIGSEGV))";
    a_hang_costs_the_row: "hang", "it made no progress for 2 s";
    a_flood_costs_the_row: "flood", "it printed more than 1 MiB";
    a_queue_that_is_not_made_costs_the_row: "refuse", "it cannot be measured here: ";
    a_hang_while_it_is_made_costs_the_row: "hang-create", "it made no progress for 2 s";
    a_crash_while_it_is_made_costs_the_row: "crash-create",
        "it ended its process (signal: 11 (SIGSEGV))";
}

/// An adapter's processes end with the tool, even those in sessions of their own.
#[test]
#[ignore = "real machine: ci/long/real.sh"]
fn no_process_of_an_adapter_outlives_a_tool_that_is_killed() {
    let _alone = machine_lock().unwrap();
    let folder = built(&["orphan"]);
    let mut queue = command();
    let line = "queue stream orphan --peers peers --wait poll --batch 1 --time 20ms --relaunch 1 \
                --quiet --out run.jsonl";
    queue.current_dir(folder.path()).env("TT_ORPHAN", "").args(words(line, &[]));
    let started = Started::new(queue);
    // The tool, the guardian, the process that measures, and its three.
    wait_until("six processes", || processes("TT_ORPHAN=").len() >= 6);
    started.signal(libc::SIGKILL);
    wait_until("none", || processes("TT_ORPHAN=").is_empty());
}
