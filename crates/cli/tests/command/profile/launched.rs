//! Real programs that are launched, and that execute others or go into the background.

use std::path::Path;

use tempfile::TempDir;

use super::profiles;
use crate::program::{Ended, command, ran, words};

fn launch(directory: &Path, options: &str, script: &str) -> Ended {
    let mut command = command();
    command.current_dir(directory).args(words("profile --out kept.jsonl", &[]));
    command.args(words(options, &[])).args(["--", "sh", "-c", script]);
    ran(command)
}

#[test]
fn a_daemon_is_named_and_does_not_keep_the_profile_waiting() {
    let directory = TempDir::new().unwrap();
    let ended = launch(directory.path(), "", "setsid sleep 30 >/dev/null 2>&1 & sleep 0.05").done();
    let kept = profiles(&directory.path().join("kept.jsonl"));
    let daemon = kept.last().and_then(|last| last.background.first()).copied();
    let Some(daemon) = daemon else { panic!("{ended:?}") };
    let said = format!(
        "The program went on in the background as PID {daemon}: threadtoll profile -p {daemon}"
    );
    assert!(ended.err.contains(&said), "{ended:?}");
    let name = std::fs::read_to_string(format!("/proc/{daemon}/comm")).unwrap();
    assert_eq!(name, "sleep\n");
    // SAFETY: ends the sleep that this test has started.
    unsafe { libc::kill(daemon as libc::pid_t, libc::SIGKILL) };
}

#[test]
fn a_program_is_known_by_what_it_executes() {
    let directory = TempDir::new().unwrap();
    let ended = launch(directory.path(), "", "exec sleep 0.4").done();
    assert!(ended.err.starts_with("sleep 0.4 (PID "), "{ended:?}");
    let kept = profiles(&directory.path().join("kept.jsonl"));
    let last = kept.last().unwrap();
    assert!(last.background.is_empty());
    let sleep = last.processes.last().unwrap();
    assert_eq!(&*sleep.command[0], "sleep");
    assert_eq!(sleep.pid, last.processes[0].pid);
}

#[test]
#[ignore = "needs PID namespaces: ci/long/real.sh"]
fn a_container_need_not_know_the_session_of_its_processes() {
    let directory = TempDir::new().unwrap();
    let threadtoll = command().get_program().to_owned();
    let mut unshare = std::process::Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]).arg(threadtoll);
    unshare.current_dir(directory.path()).args(["profile", "--", "sh", "-c", "exec sleep 0.4"]);
    ran(unshare).done().says("sleep 0.4 (PID ");
}
