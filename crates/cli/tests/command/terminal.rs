//! Output for a terminal only: progress, colours, tables that fit.

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Stdio;

use crate::listing::strip;
use crate::program::{command, kept, words};

const COLUMNS: u16 = 80;

/// A terminal of 80 columns: our end and the program's. `None` if there cannot be one.
pub(crate) fn terminal() -> Option<(File, OwnedFd)> {
    let size = libc::winsize { ws_row: 40, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut ours, mut its) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: two numbers to be written and a size to be read, alive during the call; no name and
    // no settings.
    if unsafe {
        libc::openpty(&raw mut ours, &raw mut its, none, none.cast(), (&raw const size).cast_mut())
    } != 0
    {
        println!("skipped: no terminal available: {}", std::io::Error::last_os_error());
        return None;
    }
    // SAFETY: just opened, and nobody else's.
    let ours = unsafe { OwnedFd::from_raw_fd(ours) };
    // SAFETY: as above.
    let its = unsafe { OwnedFd::from_raw_fd(its) };
    Some((File::from(ours), its))
}

/// Output on a terminal that is the program's standard error, or both its outputs.
fn shown(line: &str, both: bool) -> Option<String> {
    let (mut ours, its) = terminal()?;
    let mut command = command();
    command.args(words(line, &[])).env("TERM", "xterm-256color");
    command.stdout(if both { Stdio::from(its.try_clone().unwrap()) } else { Stdio::null() });
    command.stderr(Stdio::from(its));
    let mut child = command.spawn().unwrap();
    // Our copy of its end is the only other one; without it, the terminal ends with the program.
    drop(command);
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    // The kernel returns EIO when the last program has left a terminal.
    while let Ok(count @ 1..) = ours.read(&mut part) {
        bytes.extend_from_slice(&part[..count]);
    }
    assert!(child.wait().unwrap().success());
    Some(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))
}

#[test]
fn progress_tells_how_far_it_is_and_how_long_it_takes() {
    // Enough rounds for several redraws.
    let line = "latency futex --samples 2000000 --simulated-machine 7";
    let Some(shown_loud) = shown(line, false) else { return };
    for part in ["%", " s left", "futex"] {
        assert!(shown_loud.contains(part), "no “{part}” in {shown_loud:?}");
    }
    let bar = shown_loud.rfind("left").unwrap();
    assert!(
        shown_loud[bar..].contains("\u{1b}[2K"),
        "the bar is removed at the end: {shown_loud:?}"
    );
    let quiet = shown("latency futex --time 1ms --simulated-machine 7 --quiet", false).unwrap();
    assert!(quiet.is_empty(), "{quiet:?}");
}

#[test]
fn tables_fit_the_terminal_and_are_coloured() {
    let run = &kept("latency --time 1ms --simulated-machine 7").file;
    let Some(shown) = shown(&format!("report --details {}", run.display()), true) else { return };
    assert!(shown.contains("\u{1b}[1m"), "{shown:?}");
    let plain = strip(&shown);
    assert!(plain.contains("futex"));
    for line in plain.lines() {
        assert!(
            line.chars().count() <= usize::from(COLUMNS),
            "{} columns: {line}",
            line.chars().count()
        );
    }
}
