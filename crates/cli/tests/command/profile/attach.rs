//! Attaching to real processes.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use threadtoll_record::Line;

use crate::lines::line;
use crate::program::{Ended, command, ran, wait_until};

use super::ending::send;
use super::latest;

/// A child that ends with the test.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Self {
        Sleeper(Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn profile(directory: &Path, pid: &str) -> Ended {
    let mut command = command();
    command.current_dir(directory).args(["profile", "--seconds", "300ms", "-p", pid]);
    ran(command)
}

#[test]
fn processes_that_cannot_be_profiled_get_a_sentence() {
    let directory = TempDir::new().unwrap();
    let refused = |pid: &str, why: &str| {
        profile(directory.path(), pid).bad().says(why);
        assert_eq!(kept(&directory), 0, "no file of a profile that never was");
    };
    refused("2147483647", "no process has PID 2147483647");
    std::thread::scope(|scope| {
        // A harness of one thread runs tests on the first, whose number is the process's.
        // SAFETY: it takes no arguments.
        let other = || refused(&unsafe { libc::gettid() }.to_string(), "is a thread of process");
        scope.spawn(other).join().unwrap();
    });
    if std::fs::read("/proc/2/cmdline").is_ok_and(|line| line.is_empty()) {
        refused("2", "kernel thread");
    } else {
        println!("skipped: no kernel thread is visible");
    }
}

fn kept(directory: &TempDir) -> usize {
    std::fs::read_dir(directory.path().join("threadtoll-results")).map_or(0, Iterator::count)
}

#[test]
fn what_is_not_permitted_gets_the_sentence_that_helps() {
    // SAFETY: it takes no arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can be another user");
        return;
    }
    let directory = TempDir::new().unwrap();
    let copy = directory.path().join("threadtoll");
    // By another process: a file that this one has open to write cannot be executed as long as any
    // child of another test, forked meanwhile, has it open, too.
    let program = env!("CARGO_BIN_EXE_threadtoll");
    assert!(Command::new("cp").arg(program).arg(&copy).status().unwrap().success());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let sleeper = Sleeper::new();
    let mut command = Command::new(&copy);
    command.current_dir(directory.path()).uid(65534).gid(65534);
    command.args(["profile", "--seconds", "300ms", "-p", &sleeper.0.id().to_string()]);
    ran(command).bad().says("not permitted").says("hint: ").says("sudo");
}

#[test]
fn a_sleeping_process_is_profiled() {
    let directory = TempDir::new().unwrap();
    let sleeper = Sleeper::new();
    let path = directory.path().join("run.jsonl");
    let mut command = command();
    command.args(["profile", "--json", "-p", &sleeper.0.id().to_string(), "--out"]).arg(&path);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("a sample", || latest(&path).is_some_and(|profile| profile.samples > 0));
    send(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let Line::Profile(found) = line(printed.trim_end()) else { panic!("{printed}") };
    assert_eq!(found.processes[0].pid, sleeper.0.id());
    assert!(found.samples > 0 && found.finished && found.processes[0].locks.is_empty());
    assert_eq!(found.exit_code, None);
    assert!(path.with_extension("html").exists(), "the page of the profile");
}

#[test]
fn a_name_that_no_process_has_fails() {
    for (script, code) in [("true", 1), ("exit 4", 4)] {
        let directory = TempDir::new().unwrap();
        let mut command = command();
        command.current_dir(directory.path());
        command.args(["profile", "--only", "absent", "--", "sh", "-c", script]);
        let ended = ran(command);
        ended.failed(code).says("--only absent: no process of this name was seen");
        assert!(!ended.err.contains("Nothing seen"), "{ended:?}");
    }
}

#[test]
fn a_launched_program_is_profiled() {
    for (script, code) in [("sleep 0.1; exit 4", 4), ("true", 0), ("kill -9 $$", 137)] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("run.jsonl");
        let mut command = command();
        command.args(["profile", "--quiet", "--out"]).arg(&path).args(["--", "sh", "-c", script]);
        let ended = ran(command);
        assert_eq!(ended.code, Some(code), "{script}: {ended:?}");
        assert!(ended.out.is_empty() && !ended.err.contains("error"), "{script}: {ended:?}");
        let last = super::profiles(&path).pop().unwrap();
        assert_eq!(last.program, ["sh", "-c", script]);
        assert_eq!(last.exit_code.map(i32::from), Some(code));
    }
    for (program, code) in [("/nonexistent/program", 127), ("/", 126)] {
        let directory = TempDir::new().unwrap();
        let mut command = command();
        command.current_dir(directory.path()).args(["profile", "--", program]);
        ran(command).failed(code).says(program);
        assert_eq!(kept(&directory), 0, "{program}");
    }
}
