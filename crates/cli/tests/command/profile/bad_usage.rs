//! Bad usage: one sentence, one hint, and nothing started or changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::Stage;
use crate::program::{Held, each, threadtoll, words};

#[test]
fn options_are_checked_before_anything_starts() {
    let cases = [
        ("profile", "profile needs a program", "-p PID"),
        ("profile -p 1 -- true", "-p cannot be used with a program", "one of them"),
        ("profile true", "does not know what to do with “true”", "profile -- true"),
        ("profile shwo file", "does not know what to do with “shwo”", "profile show FILE"),
        ("profile -p", "needs a value", "--help"),
        ("profile -p 0", "at least 1", "from 1"),
        ("profile -p -1", "negative", "from 1"),
        ("profile -p server", "not a whole number", "from 1"),
        ("profile -p 99999999999", "at most 2147483647", "smaller"),
        ("profile -p 1 -p 2", "given twice", "once"),
        ("profile -p 1 --seconds 0", "longer than zero", "2.5us"),
        ("profile -p 1 --seconds -1s", "negative", "2.5us"),
        ("profile -p 1 --seconds long", "not a duration", "2.5us"),
        ("profile -p 1 --seconds 1e9s", "", ""),
        ("profile -p 1 --rate 0", "at least 1", "from 1"),
        ("profile -p 1 --rate 1000000", "at most 20000", "smaller"),
        ("profile -p 1 --budget 0", "from 0.01% to 100%", "1% or 0.01"),
        ("profile -p 1 --budget 101%", "to 100% of one CPU", "1% or 0.01"),
        ("profile -p 1 --budget -1%", "not a share", "1% or 0.01"),
        ("profile -p 1 --budget much", "not a share", "1% or 0.01"),
        ("profile -p 1 --seed -1", "negative", "from 0"),
        ("profile -p 1 --only=", "the name is empty", "--only worker"),
        ("profile -p 1 --only worker", "launched program and its descendants", "give its PID"),
        ("profile -p 1 --openmetrics :http", "not a port", ":9100"),
        ("profile -p 1 --openmetrics=", "neither a file nor a port", ":9100"),
        ("profile -p 1 --openmetrics 192.0.2.1:1", "cannot listen at 192.0.2.1:1", ":0"),
        ("profile --json -- true", "--json cannot be used", "profile show FILE --json"),
        ("profile show", "missing", "--help"),
        ("profile show a b", "b", "--help"),
        ("profile show /nonexistent", "cannot read /nonexistent", "measuring command"),
        ("profile show / ", "not a regular file", "measuring command"),
        ("profile show f --openmetrics :9100", "cannot be served", "--openmetrics FILE"),
        ("profile --seconds 1 show f", "", ""),
        ("profile -p 1 --replay /nonexistent", "--replay /nonexistent", ""),
    ];
    each(&cases, |_, (line, error, hint)| {
        threadtoll(words(line, &[])).bad().says(error).says(hint);
    });
}

#[test]
fn expressions_are_parsed_before_anything_starts() {
    let stage = Stage::new();
    let kept = stage.kept();
    let file = kept.to_str().unwrap();
    for (expression, error, hint) in [
        ("", "a comparison is missing", "queue_mean > 0.5"),
        ("quene_mean > 1", "locks have no figure called “quene_mean”", "did you mean queue_mean"),
        ("queue_mean", "is compared with nothing", "queue_mean > 0.5"),
        ("queue_mean >", "not followed by a value", "queue_mean > 0.5"),
        ("queue_mean = 1", "use <, >, <= or >=", "queue_mean > 0.5"),
        ("queue_mean > x", "it must be a number", "0.5"),
        ("held_share > 80", "it is more than 100%", "80%"),
        ("queue_mean > 1 or queue_max > 1", "expected “and”, found “or”", "queue_mean > 0.5"),
        ("wait.p99 > 1ms", "locks have no figure called “wait.p99”", "queue_mean"),
        ("name > x", "compared with “=”", "queue_mean > 0.5"),
    ] {
        let witness = stage.path("witness");
        let touch = witness.to_str().unwrap();
        threadtoll(["profile", "--fail-if", expression, "--", "touch", touch])
            .bad()
            .says(error)
            .says(hint);
        assert!(!witness.exists(), "{expression}: nothing was started");
        threadtoll(["profile", "show", file, "--fail-if", expression]).bad().says(error);
    }
}

#[test]
fn programs_that_cannot_be_started_have_the_codes_of_a_shell() {
    let stage = Stage::new();
    let plain = stage.path("plain");
    fs::write(&plain, "text").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    for (program, code) in [
        ("/nonexistent/program", 127),
        ("no-such-program-anywhere", 127),
        ("./plain", 126),
        (".", 126),
    ] {
        stage.profile("--quiet", &[program]).failed(code).says(program);
    }
    assert!(!stage.path("threadtoll-results").join("profile").exists());
    let kept = fs::read_dir(stage.path("threadtoll-results")).map_or(0, Iterator::count);
    assert_eq!(kept, 0, "no file of a profile that never was");
}

#[test]
fn files_that_are_no_profiles_are_refused() {
    let stage = Stage::new();
    let kept = stage.kept();
    let whole = fs::read(&kept).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let header = lines[0].len() + lines[1].len();
    let measured = stage.path("measured.jsonl");
    let line = "latency function-call --time 1ms --simulated-machine 1 --quiet --out";
    threadtoll(words(line, &[&measured])).done();
    for (contents, error, hint) in [
        (Vec::new(), "is not a threadtoll file", "did not change it"),
        (b"\x7fELF\x02\x01\x01".to_vec(), "is not a threadtoll file", "did not change it"),
        (whole[..header / 2].to_vec(), "is not a threadtoll file", "did not change it"),
        (whole[..header].to_vec(), "has no profile yet", "try again"),
        (whole[..header + 100].to_vec(), "has no profile yet", "try again"),
        ([&whole[..], b"x\n"].concat(), "is not a threadtoll file", "did not change it"),
        (fs::read(&measured).unwrap(), "is a measurement, not a profile", "threadtoll report"),
    ] {
        let path = stage.path("foreign.jsonl");
        fs::write(&path, &contents).unwrap();
        let held = Held::of(&path);
        threadtoll(words("profile show", &[&path])).bad().says(error).says(hint);
        held.unchanged();
    }
}

#[test]
fn nothing_is_overwritten() {
    let stage = Stage::new();
    fs::write(stage.path("mine"), "not to be lost\n").unwrap();
    let held = Held::of(&stage.path("mine"));
    for (line, error) in [
        ("--out mine", "exists and is not empty"),
        ("--folded mine", "exists and is not empty"),
        ("--openmetrics mine", "is not a threadtoll metrics file"),
        ("--html mine", "is not a threadtoll page"),
        ("--out .", "not a regular file"),
        ("--openmetrics .", "not a regular file"),
        ("--out new --folded new", "new is given twice"),
        ("--out /proc/nope/x", "cannot write"),
        ("--out replay.jsonl/x", "replay.jsonl"),
    ] {
        stage.profile(&format!("-p 1 --seconds 50ms {line}"), &[]).bad().says(error).says("hint: ");
        held.unchanged();
        assert!(!stage.path("new").exists());
    }
}
