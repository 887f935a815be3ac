//! Bad input gets one clear sentence with advice, exit code 2, and changes no file.

use std::path::Path;

use tempfile::TempDir;

use crate::program::{Held, Kept, command, each, kept, ran, threadtoll, words};

/// A command line, and parts of its error and hint.
type Case = (&'static str, &'static str, &'static str);

#[track_caller]
fn all_bad(cases: &[Case]) {
    each(cases, |_, (line, error, hint)| {
        let ended = threadtoll(words(line, &[]));
        ended.bad().says(error).says(hint);
    });
}

#[test]
fn names_that_are_not_known_bring_the_nearest() {
    all_bad(&[
        ("latency futx", "no mechanism is called “futx”", "did you mean futex"),
        ("latency condvar", "no mechanism is called “condvar”", "std-condvar"),
        ("latency FUTEX", "no mechanism is called “FUTEX”", "did you mean futex"),
        ("latency zzzzzz", "no mechanism is called “zzzzzz”", "list mechanisms"),
        ("latency futex futex", "given twice", "once"),
        ("matrix atomic-stor", "no mechanism is called", "did you mean atomic-store"),
        ("matrix function-call", "one thread", "two threads"),
        ("servey", "no command is called “servey”", "did you mean survey"),
        ("", "no command was given", "threadtoll survey"),
        ("latency --tme 5ms", "--tme", "did you mean --time"),
        ("list mechanism", "“mechanism” is not a list", "did you mean mechanisms"),
        ("list", "is missing", "--help"),
        ("latency --line both", "--line both", "own, shared"),
        ("latency --pause perhaps", "--pause perhaps", "on, off"),
        ("latency --neighbour loud", "--neighbour loud", "spin, memory, churn"),
        ("matrix --level socket", "--level socket", "smt, llc, node, all"),
        ("check --color mauve", "mauve", "always"),
        ("matrix --placement free", "pinned", "omit --placement"),
        ("survey --quick --full", "--quick", "give one of them"),
    ]);
}

#[test]
fn numbers_and_durations_are_checked() {
    all_bad(&[
        ("latency --cpus 0,0", "given twice", "once"),
        ("latency --cpus a", "“a” is not a CPU number", "0,2 or 0-3"),
        ("latency --cpus 0-1,1", "CPU 1 is given twice", "once"),
        ("latency --cpus 1-0", "1-0 counts down", "0-3"),
        ("latency --cpus 0-99999", "too long", "range"),
        ("latency --cpus -1", "“-1” is not a CPU number", "0,2 or 0-3"),
        ("latency --cpus=", "“” is not a CPU number", "0,2 or 0-3"),
        ("latency --cpus 0,", "“” is not a CPU number", "0,2 or 0-3"),
        ("latency --cpus 99999999999999", "not a CPU number", "0,2 or 0-3"),
        ("latency --out nowhere/run.jsonl", "there is no folder nowhere", "writable"),
        ("latency --html nowhere/page.html", "there is no folder nowhere", "writable"),
        ("matrix --csv nowhere/pairs.csv", "there is no folder nowhere", "writable"),
        ("latency --simulated-machine 1 --cpus 8", "CPU 8", "0-7"),
        ("latency --time 0", "longer than zero", "2.5us"),
        ("latency --time 0s", "longer than zero", "2.5us"),
        ("latency --time -1s", "negative", "2.5us"),
        ("latency --time nonsense", "not a duration", "2.5us"),
        ("latency --time=", "not a duration", "2.5us"),
        ("latency --time 5", "unit is missing", "2.5us"),
        ("latency --time 5weeks", "unknown unit", "2.5us"),
        ("latency --time 99999999999999999999999999s", "longer than a day", "2.5us"),
        ("latency --time 0.1ns", "shorter than a nanosecond", "2.5us"),
        ("latency --over nonsense", "not a duration", "2.5us"),
        ("latency --over 0", "longer than zero", "2.5us"),
        ("latency --samples 0", "at least 1", "from 1"),
        ("latency --samples -5", "negative", "from 1"),
        ("latency --samples 1.5", "not a whole number", "from 1"),
        ("latency --samples 99999999999999999999", "not a whole number", "from 1"),
        ("latency --samples 999999999999", "at most 2000000000", "smaller"),
        ("latency --seed x", "not a whole number", "from 0"),
        ("latency --payload 4", "at least 8", "from 8"),
        ("latency --payload 12", "multiple of 8", "try 16"),
        ("latency --payload 99999999", "at most 1048576", "smaller"),
        ("latency --payload -8", "negative", "from 8"),
        ("latency --payload fat", "not a whole number", "from 8"),
        ("latency --placement nowhere", "--placement nowhere", "pinned, same-cpu, free"),
        ("latency --placement pinned --placement pinned", "given twice", "once"),
        ("latency --time 5ms --time 6ms", "given twice", "once"),
        ("latency --simulated-machine x", "not a whole number", "from 0"),
    ]);
}

#[test]
fn cpus_that_are_not_there_are_named_before_anything_is_watched() {
    let first = threadtoll_machine::allowed_cpus()[0];
    for line in [format!("latency --cpus {first},99999"), "survey --cpus 99999".into()] {
        threadtoll(words(&line, &[]))
            .bad()
            .says("CPU 99999: no such CPU is online")
            .says("usable CPUs: ");
    }
}

#[test]
fn endless_and_unprintable_arguments_are_not_echoed_whole() {
    let endless = "9".repeat(100_000);
    let ended = threadtoll(["latency", "--time", &endless]);
    assert!(ended.bad().err.len() < 10_000);
    let ended = threadtoll(["latency", "\u{1b}]0;title\u{7}\u{1b}[2J\nnext"]);
    assert!(!ended.bad().err.contains(['\u{1b}', '\u{7}']));
    let mut command = command();
    command
        .arg("latency")
        .arg(std::os::unix::ffi::OsStrExt::from_bytes(b"fut\xff" as &[u8]) as &std::ffi::OsStr);
    ran(command).bad().says("UTF-8");
}

/// `latency … --out PATH`, and what becomes of an existing file.
#[track_caller]
fn out(path: &Path, error: &str) {
    for line in
        ["latency futex --simulated-machine 1 --out", "survey --quick --simulated-machine 1 --out"]
    {
        let held = Held::of(path);
        threadtoll(words(line, &[path])).bad().says(error).says("hint: choose a");
        held.unchanged();
    }
}

#[test]
fn results_go_only_where_nothing_is_lost() {
    let directory = TempDir::new().unwrap();
    let full = directory.path().join("full.jsonl");
    std::fs::write(&full, "not to be lost\n").unwrap();
    out(&full, "exists and is not empty");
    out(&full.join("below"), "full.jsonl");
    out(directory.path(), "not a regular file");
    out(Path::new("/dev/null"), "not a regular file");
    out(Path::new("/proc/nope/x"), "cannot");
    out(&directory.path().join("x".repeat(300)), "cannot");
    let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing was left behind: {names:?}");

    let empty = directory.path().join("empty.jsonl");
    std::fs::write(&empty, "").unwrap();
    threadtoll(words(
        "latency function-call --time 1ms --simulated-machine 1 --quiet --out",
        &[&empty],
    ))
    .done();
    threadtoll(words("report", &[&empty])).done();
}

#[test]
fn a_page_that_cannot_be_written_is_found_before_anything_is_measured() {
    let directory = TempDir::new().unwrap();
    let full = directory.path().join("mine.html");
    std::fs::write(&full, "<!doctype html>\n<title>My own page</title>\n").unwrap();
    let results = directory.path().join("run.jsonl");
    let places = [
        full.clone(),
        full.join("below.html"),
        directory.path().to_path_buf(),
        "/proc/nope/x.html".into(),
        results.clone(),
    ];
    for page in &places {
        let held = Held::of(page);
        let mut arguments = words("survey --quick --simulated-machine 1 --out", &[&results]);
        arguments.extend(words("--html", &[page]));
        threadtoll(arguments).bad().says("hint: choose a");
        held.unchanged();
        assert!(!results.exists(), "nothing was started for {}", page.display());
    }
}

#[test]
fn reports_replace_nothing_but_their_own_pages() {
    let directory = TempDir::new().unwrap();
    let results = directory.path().join("run.jsonl");
    threadtoll(words("latency futex --time 1ms --simulated-machine 1 --quiet --out", &[&results]))
        .done();
    let report = |page: &Path| {
        let mut arguments = words("report", &[&results]);
        arguments.extend(words("--html", &[page]));
        threadtoll(arguments)
    };
    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "mine").unwrap();
    let html = directory.path().join("index.html");
    std::fs::write(&html, "<!doctype html><html><title>mine</title></html>").unwrap();
    let link = directory.path().join("link.html");
    std::os::unix::fs::symlink(&results, &link).unwrap();
    for page in [&results, &text, &html, &link, &text.join("x.html"), &"/proc/nope/x.html".into()] {
        let held = Held::of(page);
        report(page).bad();
        held.unchanged();
    }
    report(&directory.path().join("new/page.html")).bad().says("there is no folder");
    let page = directory.path().join("page.html");
    report(&page).done();
    report(&page).done();
    assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!doctype html>"));
}

#[test]
fn reports_need_files_that_are_there() {
    all_bad(&[
        ("report", "missing", "--help"),
        (
            "report /nonexistent/run.jsonl",
            "cannot read /nonexistent/run.jsonl",
            "written by a measuring command",
        ),
        ("report /", "not a regular file", "written by a measuring command"),
        (
            "latency --resume /nonexistent/run.jsonl",
            "cannot read",
            "written by a measuring command",
        ),
        ("latency --resume a --out b", "--out", "give one of them"),
    ]);
}

#[test]
fn what_is_resumed_must_not_be_contradicted() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run.jsonl");
    let began =
        "latency futex --simulated-machine 1 --time 5ms --payload 64 --seed 3 --quiet --out";
    threadtoll(words(began, &[&path])).done();
    // Unfinished, so that there is something to measure.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    let held = Held::of(&path);
    for (options, error) in [
        ("latency park", "park contradicts"),
        ("latency --time 6ms", "--time 6000000ns contradicts"),
        ("latency --seed 4", "--seed 4 contradicts"),
        ("latency --payload 8", "--payload 8 contradicts"),
        ("latency --samples 10", "started without it"),
        ("latency --keep-awake", "--keep-awake contradicts"),
        ("latency --cpus 0,1", "--cpus 0,1 contradicts"),
        ("latency --placement free", "--placement free contradicts"),
        ("latency --simulated-machine 2", "--simulated-machine 2 contradicts"),
        ("survey", "started by `threadtoll latency`"),
        ("matrix", "started by `threadtoll latency`"),
    ] {
        threadtoll(words(&format!("{options} --resume"), &[&path]))
            .bad()
            .says(error)
            .says("hint: ");
        held.unchanged();
    }
    // Repeating an option is not a contradiction; a plan measures nothing.
    let planned = threadtoll(words("latency futex --time 5ms --plan --resume", &[&path])).done();
    assert!(planned.out.contains("futex"));
    held.unchanged();
    threadtoll(words("latency futex --time 5000us --seed 3 --resume", &[&path])).done();
}

const QUEUE: &str = "queue stream pipe --wait spin --batch 1";
const CONTENTION: &str = "contention hold-think mcs --threads 1,2";
/// Short runs of each command that writes files.
pub(crate) const SHORT: [&str; 5] =
    ["survey --quick", "latency futex", "matrix futex", QUEUE, CONTENTION];

pub(crate) fn short(line: &str) -> &'static Kept {
    kept(&format!("{line} --time 1ms --simulated-machine 1 --quiet"))
}

#[test]
fn a_contradiction_is_named_as_it_is_typed() {
    let cases = [
        ("survey --quick", "survey --full", "--full contradicts", "with quick"),
        ("survey --quick", "survey --over 5us", "--over 5000ns contradicts", "with 10000ns"),
        ("matrix futex", "matrix park", "park contradicts", "with futex"),
        ("matrix futex", "matrix --level smt", "--level smt contradicts", "without it"),
        (QUEUE, "queue ask-reply", "ask-reply contradicts", "with stream"),
        (QUEUE, "queue stream --senders 1,2", "--senders 1,2 contradicts", "without it"),
        (CONTENTION, "contention hold-think mcs spin", "mcs,spin contradicts", "with mcs"),
        (CONTENTION, "contention hold-think --hold 6us", "--hold 6000ns", "without it"),
    ];
    each(&cases, |_, (began, options, error, reason)| {
        let directory = TempDir::new().unwrap();
        let path = short(began).copied_to(directory.path());
        let held = Held::of(&path);
        threadtoll(words(&format!("{options} --resume"), &[&path])).bad().says(error).says(reason);
        held.unchanged();
    });
}
