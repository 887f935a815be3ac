//! `--live` on a terminal, which is restored however it ends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::ending::send;
use super::{Stage, profiles};
use crate::program::{ran, wait_until};
use crate::terminal::terminal;

const ENTERED: &str = "\u{1b}[?1049h";
const LEFT: &str = "\u{1b}[?1049l";

/// A program on a terminal of its own.
struct Session {
    child: Child,
    ours: File,
    /// Keeps the terminal and its settings after the program has ended.
    its: OwnedFd,
    /// Bytes: a character may come in two parts.
    shown: Arc<Mutex<Vec<u8>>>,
    /// Length of what was looked for and found.
    found: usize,
    settings: String,
}

/// Makes standard input the controlling terminal of a new session.
fn control(command: &mut Command) {
    let lead = || {
        // SAFETY: it takes no arguments.
        let session = unsafe { libc::setsid() };
        // SAFETY: standard input is open, and the last argument is a number.
        let controlled = unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) };
        if session < 0 || controlled != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec only two system calls are made.
    unsafe { command.pre_exec(lead) };
}

fn settings(terminal: &impl AsRawFd) -> String {
    let mut settings = std::mem::MaybeUninit::<libc::termios>::uninit();
    // SAFETY: the settings are written where they fit.
    assert_eq!(unsafe { libc::tcgetattr(terminal.as_raw_fd(), settings.as_mut_ptr()) }, 0);
    // SAFETY: they were written.
    let settings = unsafe { settings.assume_init() };
    format!("{:?}", (settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag))
}

impl Session {
    /// `None` if there is no terminal. Output that the program shares goes to the terminal, too,
    /// unless `redirected`.
    fn start(mut command: Command, redirected: bool) -> Option<Self> {
        let (ours, its) = terminal()?;
        let output = |name: &str| match redirected {
            true => {
                let path = command.get_current_dir().unwrap().join(name);
                Stdio::from(File::create(path).unwrap())
            }
            false => Stdio::from(its.try_clone().unwrap()),
        };
        let (out, err) = (output("out"), output("err"));
        command.stdin(Stdio::from(its.try_clone().unwrap())).stdout(out).stderr(err);
        command.env("TERM", "xterm-256color");
        control(&mut command);
        let settings = settings(&its);
        let child = command.spawn().unwrap();
        drop(command);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, seen) = (ours.try_clone().unwrap(), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut part) {
                seen.lock().unwrap().extend_from_slice(&part[..count]);
            }
        });
        Some(Session { child, ours, its, shown, found: 0, settings })
    }

    /// Waits until it shows this, after what it was waited for before.
    #[track_caller]
    fn shows(&mut self, text: &str) {
        let (shown, found) = (&self.shown, &mut self.found);
        wait_until(text, || {
            let shown = shown.lock().unwrap();
            let at = shown[*found..].windows(text.len()).position(|part| part == text.as_bytes());
            *found += at.map_or(0, |at| at + text.len());
            at.is_some()
        });
    }

    fn press(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end of the program: the terminal is as it was.
    #[track_caller]
    fn ends(&mut self, code: i32) {
        let status = self.child.wait().unwrap();
        let shown = String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned();
        assert_eq!(status.code(), Some(code), "{shown}");
        self.restored();
    }

    #[track_caller]
    fn restored(&mut self) {
        self.shows(LEFT);
        wait_until("the old settings", || settings(&self.its) == self.settings);
    }
}

#[test]
fn q_leaves_the_program_running() {
    let stage = Stage::new();
    let script = "while ! test -e go; do sleep 0.02; done; exit 6";
    let command = stage.command("--live --out run.jsonl", &["sh", "-c", script]);
    let Some(mut session) = Session::start(command, true) else { return };
    session.shows(ENTERED);
    session.shows("cache_lock");
    session.shows("q quits");
    session.press("x\r\u{1b}[A");
    session.shows("so far");
    session.press("q");
    session.restored();
    wait_until("the report", || {
        std::fs::read_to_string(stage.path("err")).unwrap().contains("cache_lock")
    });
    assert!(session.child.try_wait().unwrap().is_none(), "it waits for the program");
    std::fs::write(stage.path("go"), "").unwrap();
    assert_eq!(session.child.wait().unwrap().code(), Some(6));
    assert!(profiles(&stage.path("run.jsonl")).last().unwrap().finished);
    assert_eq!(std::fs::read_to_string(stage.path("out")).unwrap(), "");
}

#[test]
fn signals_and_ctrl_c_restore_the_terminal() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, 0] {
        let stage = Stage::new();
        let command = stage.command("-p 1 --live --out run.jsonl", &[]);
        let Some(mut session) = Session::start(command, false) else { return };
        session.shows("cache_lock");
        match signal {
            0 => session.press("\u{3}"),
            signal => send(&session.child, signal),
        }
        session.ends(0);
        session.shows("cache_lock");
        assert!(profiles(&stage.path("run.jsonl")).last().unwrap().finished);
    }
}

#[test]
fn ctrl_c_reaches_a_launched_program_once() {
    let script = "trap 'echo INT >> got' INT; trap 'exit 9' TERM; echo > ready; \
        while :; do sleep 0.02; done";
    for live in ["--live", ""] {
        let stage = Stage::new();
        let command = stage.command(&format!("{live} --out run.jsonl"), &["sh", "-c", script]);
        let Some(mut session) = Session::start(command, true) else { return };
        wait_until("the program", || stage.path("ready").exists());
        if !live.is_empty() {
            session.shows("cache_lock");
        }
        session.press("\u{3}");
        wait_until("the report", || {
            std::fs::read_to_string(stage.path("err")).unwrap().contains("results")
        });
        wait_until("the signal", || stage.path("got").exists());
        send(&session.child, libc::SIGTERM);
        assert_eq!(session.child.wait().unwrap().code(), Some(9));
        assert_eq!(std::fs::read_to_string(stage.path("got")).unwrap(), "INT\n", "{live}");
        assert_eq!(settings(&session.its), session.settings);
    }
}

#[test]
fn live_needs_a_terminal_of_its_own() {
    let stage = Stage::new();
    let mut command = stage.command("-p 1 --live", &[]);
    let leave = || {
        // SAFETY: it takes no arguments. In a new session there is no terminal.
        if unsafe { libc::setsid() } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec only one system call is made.
    unsafe { command.pre_exec(leave) };
    ran(command).bad().says("--live needs a terminal").says("profile show FILE");

    let command = stage.command("--live", &["touch", "witness"]);
    let Some(mut session) = Session::start(command, false) else { return };
    session.shows("the launched program would write to it");
    assert_eq!(session.child.wait().unwrap().code(), Some(2));
    assert!(!stage.path("witness").exists());
}
