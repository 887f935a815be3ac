use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::roles::{Observed, SCRIPT, eventually};
use crate::process::{HeldProgram, LaunchError, Process, exit_code};

fn shell(script: &str) -> HeldProgram {
    HeldProgram::spawn("sh".as_ref(), &["-c".into(), script.into()]).unwrap()
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn programs_end_with_their_own_code() {
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
    {
        let mut program = shell(script).release().unwrap();
        let status = program.wait().unwrap();
        assert_eq!(exit_code(status), code, "{script}");
        assert_eq!(program.try_wait().unwrap(), Some(status));
        assert!(!exists(program.pid()));
        // The PID may belong to another process now.
        program.forward(libc::SIGKILL).unwrap();
    }
}

#[test]
fn programs_that_do_not_start_have_the_codes_of_a_shell() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode| {
        let path = directory.path().join(name);
        // `tee` writes the file: if this process did, children that other tests fork meanwhile
        // would inherit the open descriptor, and the file could not be executed.
        let mut tee = Command::new("tee");
        tee.arg(&path).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut tee = tee.spawn().unwrap();
        tee.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(tee.wait().unwrap().success());
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.into_os_string()
    };
    let start = |program: &OsStr| HeldProgram::spawn(program, &[]).and_then(HeldProgram::release);
    let code = |program: &OsStr| start(program).unwrap_err().exit_code();
    for name in ["", "no-such-program", "./no-such-program", "/etc/passwd/x"] {
        assert_eq!(code(name.as_ref()), 127, "{name}");
    }
    assert_eq!(code(&file("plain", "", 0o644)), 126);
    assert_eq!(code(directory.path().as_os_str()), 126);
    assert_eq!(code(&file("interpreter", "#!/no/such/interpreter\n", 0o755)), 126);
    assert_eq!(code(&file("another-machine", "\x7fELF\u{1}", 0o755)), 126);
    assert_eq!(code(&file("binary", "a\0", 0o755)), 126);
    let words = ["a\0b".into()];
    assert!(matches!(
        HeldProgram::spawn("sh".as_ref(), &words),
        Err(LaunchError::NotExecutable { .. })
    ));
    // A script that names no interpreter is run by the shell.
    let script = file("script", "exit $(($1 + $#))", 0o755);
    let mut script =
        HeldProgram::spawn(&script, &["5".into(), "x".into()]).unwrap().release().unwrap();
    assert_eq!(exit_code(script.wait().unwrap()), 7);
}

#[test]
fn a_program_waits_for_its_release() {
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("mark");
    let script = format!("echo > {}", mark.display());

    let held = shell(&script);
    let mut process = Process::open(held.pid()).unwrap();
    process.refresh().unwrap();
    assert_eq!(process.threads().len(), 1);
    let before = process.image().unwrap();
    assert_eq!(process.program().unwrap(), std::env::current_exe().unwrap());
    assert!(!mark.exists());
    let mut program = held.release().unwrap();
    assert_ne!(process.image().ok(), Some(before));
    assert!(program.wait().unwrap().success());
    assert!(mark.exists() && !process.is_running());

    fs::remove_file(&mark).unwrap();
    let held = shell(&script);
    let pid = held.pid();
    drop(held);
    assert!(!exists(pid) && !mark.exists());
}

#[test]
fn a_program_killed_before_its_start_has_ended() {
    let held = shell("exit 0");
    // SAFETY: touches no memory; the process is a child that nobody has reaped.
    assert_eq!(unsafe { libc::kill(held.pid() as i32, libc::SIGTERM) }, 0);
    let mut program = held.release().unwrap();
    assert_eq!(exit_code(program.wait().unwrap()), 143);
}

#[test]
fn signals_are_forwarded() {
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("mark");
    let script =
        format!("trap 'exit 9' USR1; echo > {}; while :; do sleep 0.01; done", mark.display());
    let mut program = shell(&script).release().unwrap();
    eventually(|| mark.exists());
    assert_eq!(program.try_wait().unwrap(), None);
    assert!(program.forward(1_000).is_err());
    program.forward(libc::SIGUSR1).unwrap();
    assert_eq!(exit_code(program.wait().unwrap()), 9);
}

#[test]
fn a_program_goes_on_when_the_profiler_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let (go, mark) = (directory.path().join("go"), directory.path().join("mark"));
    for released in [false, true] {
        let _ = fs::remove_file(&go);
        let script = format!(
            "while [ ! -e {} ]; do sleep 0.01; done; echo > {}",
            go.display(),
            mark.display()
        );
        let (mut profiler, pid) = Observed::start_with("launch", &[(SCRIPT, &script)]);
        let pid: u32 = pid.parse().unwrap();
        if released {
            profiler.tell();
            profiler.wait_ready();
        }
        let program = Process::open(pid).unwrap();
        profiler.kill();
        assert!(program.is_running() && !mark.exists());
        fs::write(&go, "").unwrap();
        eventually(|| mark.exists());
        // The program may stay a zombie: not every init reaps.
        eventually(|| !program.is_running());
        fs::remove_file(&mark).unwrap();
    }
}

#[test]
fn a_program_finds_all_as_if_started_directly() {
    let script = "ls /proc/self/fd; ulimit -Sn; ulimit -Hn; nice; pwd; \
                  grep -E '^(Sig(Blk|Ign|Cgt)|Cap|Seccomp|NoNewPrivs|Cpus_allowed)' \
                  /proc/self/status; cut -d' ' -f5-8,19,41 /proc/self/stat; \
                  env | grep -v '^_=' | sort";
    let (mut launcher, _) = Observed::start_with("launch twice", &[(SCRIPT, script)]);
    // `Command` may leave signals ignored that the C library uses itself.
    let public = |line: String| match line.strip_prefix("SigIgn:\t") {
        Some(mask) => {
            let mask = u64::from_str_radix(mask, 16).unwrap();
            format!("SigIgn:\t{:x}", mask & !(0b11 << 31))
        }
        None => line,
    };
    let mut program = || launcher.lines_until_ready().into_iter().map(public).collect::<Vec<_>>();
    let directly = program();
    assert!(directly.contains(&"200".to_owned()), "{directly:?}");
    assert_eq!(program(), directly);
}

#[test]
fn names_of_programs_may_be_anything() {
    let program = OsString::from("no\x1bsuch\nprogram");
    let error = HeldProgram::spawn(&program, &[]).unwrap_err();
    assert!(matches!(error, LaunchError::NotFound(name) if name == program));
}
