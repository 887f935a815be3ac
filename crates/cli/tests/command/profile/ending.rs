//! Signals, exit codes, and programs that outlive their profile.

use std::os::unix::process::CommandExt;
use std::process::{Child, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::{Stage, latest, profiles, show};
use crate::program::{Seeded, wait_until};

pub(super) fn send(child: &Child, signal: i32) {
    // SAFETY: the process has not been waited for, so its number is still its own.
    let sent = unsafe { libc::kill(child.id() as i32, signal) };
    assert_eq!(sent, 0);
}

fn start(stage: &Stage, line: &str, program: &[&str]) -> Child {
    let mut command = stage.command(line, program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn signals_end_the_profile_of_a_running_program_with_its_report() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let stage = Stage::new();
        let child = start(&stage, "-p 1 --seconds 600s --out run.jsonl", &[]);
        wait_until("the first line", || stage.path("run.jsonl").exists());
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(text(&output).0.contains("cache_lock"), "{output:?}");
        assert!(profiles(&stage.path("run.jsonl")).last().unwrap().finished);
    }
}

#[test]
fn a_launched_program_keeps_its_output_and_its_exit_code() {
    for (script, code) in
        [("echo out; echo err >&2", 0), ("echo out; exit 7", 7), ("echo out; kill -9 $$", 137)]
    {
        let stage = Stage::new();
        let ended = stage.profile("--out run.jsonl", &["sh", "-c", script]);
        assert_eq!(ended.code, Some(code), "{script}: {ended:?}");
        assert_eq!(ended.out, "out\n", "standard output is the program's");
        assert!(ended.err.contains("cache_lock"), "the report: {ended:?}");
        let last = profiles(&stage.path("run.jsonl")).pop().unwrap();
        assert_eq!(last.exit_code.map(i32::from), Some(code), "{script}");
        assert!(last.finished);
    }
}

#[test]
fn a_program_that_failed_comes_before_fail_if() {
    let stage = Stage::new();
    for (script, code) in [("exit 0", 5), ("exit 3", 3)] {
        let ended = stage.profile("--quiet --fail-if queue_mean>0.4", &["sh", "-c", script]);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        ended.says("--fail-if holds");
    }
}

#[test]
fn a_program_that_outlives_its_profile_is_waited_for() {
    let stage = Stage::new();
    let script = "while ! test -e go; do sleep 0.02; done; exit 6";
    let child = start(&stage, "--seconds 50ms --out run.jsonl", &["sh", "-c", script]);
    let finished = || latest(&stage.path("run.jsonl")).is_some_and(|profile| profile.finished);
    wait_until("the end of the profile", finished);
    std::fs::write(stage.path("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    let all = profiles(&stage.path("run.jsonl"));
    let codes: Vec<_> = all.iter().map(|profile| profile.exit_code).collect();
    assert_eq!(codes[codes.len() - 2..], [None, Some(6)]);
}

/// A program that writes each signal it gets to `got`, and ends at SIGTERM and SIGHUP.
const LISTENER: &str = "trap 'echo INT >> got' INT; trap 'echo TERM >> got; exit 9' TERM; \
    trap 'echo HUP >> got; exit 8' HUP; echo > ready; while :; do sleep 0.02; done";

#[test]
fn signals_to_the_profiler_alone_go_on_to_the_program() {
    for (signal, code, name) in [(libc::SIGTERM, 9, "TERM\n"), (libc::SIGHUP, 8, "HUP\n")] {
        let stage = Stage::new();
        let child = start(&stage, "--quiet", &["sh", "-c", LISTENER]);
        wait_until("the program", || stage.path("ready").exists());
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(text(&output).1.contains("cache_lock"), "{output:?}");
        assert_eq!(std::fs::read_to_string(stage.path("got")).unwrap(), name);
    }
    let stage = Stage::new();
    let child = start(&stage, "--out run.jsonl", &["sh", "-c", LISTENER]);
    wait_until("the program", || stage.path("ready").exists());
    send(&child, libc::SIGINT);
    wait_until("the signal", || stage.path("got").exists());
    // The profile is over, and the program runs on.
    let finished = || latest(&stage.path("run.jsonl")).is_some_and(|profile| profile.finished);
    wait_until("the report", finished);
    send(&child, libc::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(9), "{output:?}");
    assert_eq!(std::fs::read_to_string(stage.path("got")).unwrap(), "INT\nTERM\n");
}

#[test]
fn a_kill_at_any_instant_leaves_a_file_that_is_shown() {
    let mut random = Seeded::new(12);
    for _ in 0..8 {
        let stage = Stage::new();
        let mut child = start(&stage, "-p 1 --seconds 600s --out run.jsonl", &[]);
        wait_until("the file", || stage.path("run.jsonl").exists());
        sleep(Duration::from_micros(random.below(40_000) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        let shown = show(&stage.path("run.jsonl"), "");
        match shown.code {
            Some(0) => assert!(shown.out.contains("cache_lock"), "{shown:?}"),
            _ => drop(shown.bad().says("has no profile yet")),
        }
    }
}

#[test]
fn a_full_disk_costs_the_file_and_not_the_report() {
    let stage = Stage::new();
    let mut command = stage.command("-p 1 --seconds 50ms --out run.jsonl", &[]);
    let limit = || {
        let small = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
        // SAFETY: a limit to be read, alive during the call.
        match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const small) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec only one system call is made.
    unsafe { command.pre_exec(limit) };
    let ignore = || {
        // SAFETY: no handler is given.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: between fork and exec only one system call is made.
    unsafe { command.pre_exec(ignore) };
    let ended = crate::program::ran(command);
    ended.failed(1).says("cannot");
    assert!(ended.out.contains("cache_lock"), "{ended:?}");
}
