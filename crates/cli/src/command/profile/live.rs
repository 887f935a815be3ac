//! `--live`: the first screen of the report on the terminal, redrawn at most twice a second.
//!
//! A separate thread draws and reads keys, so that neither waits for the sampler. The thread uses
//! the controlling terminal, because the standard streams belong to a launched program. Keys arrive
//! one by one, but Ctrl-C is still a signal.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;

use anstream::{AutoStream, ColorChoice};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, Winsize, tcgetattr,
    tcgetwinsize, tcsetattr,
};
use threadtoll_record::Profile;
use threadtoll_report::text::{self, Style};

use super::signals::Signals;
use crate::failure::Failure;

const TTY: &str = "/dev/tty";
/// Selects the alternate screen, cuts long lines and hides the cursor.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?7l\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?7h\u{1b}[?1049l";
const LINE_END: &str = "\u{1b}[K";
/// Maximum wait for a key before the next check for a new profile.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The taken terminal, and its previous settings.
static TAKEN: Mutex<Option<(File, Termios)>> = Mutex::new(None);

#[derive(Debug)]
pub(super) struct Live {
    tty: File,
}

impl Live {
    pub(super) fn check() -> Result<Self, Failure> {
        let tty = OpenOptions::new().read(true).write(true).open(TTY).map_err(|error| {
            Failure::usage(format!("--live needs a terminal: {error}"))
                .hint("omit --live, or look at the file with `threadtoll profile show FILE`")
        })?;
        Ok(Live { tty })
    }

    /// `more` is the command that shows more.
    pub(super) fn start(&self, signals: Signals, more: String) -> Result<Screen, Failure> {
        let failed =
            |error: io::Error| Failure::run(format!("--live cannot use the terminal: {error}"));
        let mut keys = OpenOptions::new();
        // Non-blocking, because a launched program may read the key before this thread does.
        let keys = keys.read(true).custom_flags(libc::O_NONBLOCK).open(TTY).map_err(failed)?;
        let (profiles, receiver) = channel();
        // If the rest fails, dropping the screen restores the terminal.
        let mut screen = Screen { profiles: Some(profiles), thread: None };
        take(self.tty.try_clone().map_err(failed)?).map_err(failed)?;
        let thread = std::thread::Builder::new()
            .name("live".into())
            .spawn(move || run(keys, &more, &signals, &receiver));
        screen.thread = Some(thread.map_err(failed)?);
        Ok(screen)
    }
}

/// The terminal while it shows a profile. Dropping this restores the terminal.
pub(super) struct Screen {
    profiles: Option<Sender<Profile>>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    pub(super) fn show(&self, profile: Profile) {
        if let Some(profiles) = &self.profiles {
            // After `q`, nobody receives profiles.
            let _ = profiles.send(profile);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.profiles = None;
        if let Some(thread) = self.thread.take() {
            // The terminal is restored even if the thread panicked.
            let _ = thread.join();
        }
        restore();
    }
}

fn run(mut tty: File, more: &str, signals: &Signals, profiles: &Receiver<Profile>) {
    let color = AutoStream::choice(&tty) != ColorChoice::Never;
    let (mut profile, mut drawn_at) = (None, None);
    loop {
        let size = tcgetwinsize(&tty).ok();
        let mut changed = drawn_at != Some(size);
        loop {
            match profiles.try_recv() {
                Ok(newer) => (profile, changed) = (Some(newer), true),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        if changed && draw(&frame(profile.as_ref(), more, size, color)).is_err() {
            // The terminal is gone; SIGHUP ends the sampling.
            return;
        }
        drawn_at = Some(size);
        match poll(&mut [PollFd::new(&tty, PollFlags::IN)], Some(&PATIENCE)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        let mut keys = [0; 64];
        match tty.read(&mut keys) {
            Ok(count @ 1..) if keys[..count].contains(&b'q') => return signals.end(),
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => return,
        }
    }
}

/// The first screen, cut to the lines of the terminal.
fn frame(profile: Option<&Profile>, more: &str, size: Option<Winsize>, color: bool) -> String {
    let size = size.filter(|size| size.ws_row > 0 && size.ws_col > 0);
    let (lines, width) = size.map_or((24, 80), |size| (size.ws_row, size.ws_col));
    let style = Style { color, width: Some(width.into()) };
    let screen = profile.map(|profile| text::first_screen(profile, more, &style));
    let screen = screen.unwrap_or_else(|| "Waiting for the first samples.".into());
    let shown = screen.lines().take(usize::from(lines) - 1);
    let above: String = shown.map(|line| format!("{line}{LINE_END}\r\n")).collect();
    format!("\u{1b}[H{above}q quits{LINE_END}\u{1b}[J")
}

fn taken() -> MutexGuard<'static, Option<(File, Termios)>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the terminal, until [`restore`] or a panic.
fn take(tty: File) -> io::Result<()> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Restores the terminal first: the message would be lost with the alternate screen.
            restore();
            report(panic);
        }));
    });
    let before = tcgetattr(&tty)?;
    let mut settings = before.clone();
    settings.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    // Ctrl-S would stop the drawing thread. Ctrl-Z would leave an unusable terminal to the shell.
    settings.input_modes -= InputModes::IXON;
    settings.special_codes[SpecialCodeIndex::VSUSP] = 0;
    settings.special_codes[SpecialCodeIndex::VMIN] = 1;
    settings.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(&tty, OptionalActions::Now, &settings)?;
    *taken() = Some((tty, before));
    draw(ENTER)
}

/// Writes in one step, so that a slow connection shows no half frames. Does nothing unless the
/// terminal is taken.
fn draw(text: &str) -> io::Result<()> {
    taken().as_mut().map_or(Ok(()), |(tty, _)| tty.write_all(text.as_bytes()))
}

/// Restores the terminal if it is taken. Errors are ignored, because a terminal that is gone needs
/// no restoring.
fn restore() {
    if let Some((mut tty, before)) = taken().take() {
        let _ = tty.write_all(LEAVE.as_bytes());
        let _ = tcsetattr(&tty, OptionalActions::Now, &before);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{FromRawFd, OwnedFd};

    use super::*;

    #[test]
    fn frames_fit_any_terminal_and_steer_nothing() {
        let text = include_str!("../../../../record/tests/record/profile.json");
        let mut hostile: Profile = serde_json::from_str(text).unwrap();
        hostile.processes[0].locks[0].name = format!("\u{1b}[2J中文{}", "x".repeat(9000)).into();
        hostile.program = vec!["\u{1b}]0;title\u{7}".into()];
        for (ws_row, ws_col) in [(24, 80), (1, 1), (3, 10), (100, 400), (8, 40), (0, 0)] {
            let size = Some(Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 });
            for profile in [None, Some(&hostile)] {
                let frame = frame(profile, "threadtoll profile show f", size, false);
                let lines = if ws_row == 0 { 24 } else { ws_row };
                assert!(frame.lines().count() <= usize::from(lines), "{size:?}: {frame:?}");
                let plain = frame.replace(LINE_END, "");
                let plain = plain.strip_prefix("\u{1b}[H").unwrap();
                let plain = plain.strip_suffix("q quits\u{1b}[J").unwrap();
                assert!(!plain.contains(['\u{1b}', '\u{7}']), "{plain:?}");
                assert_eq!(plain.contains("held"), profile.is_some() && lines > 8, "{plain}");
            }
        }
    }

    #[test]
    fn a_panic_restores_the_terminal() {
        let (mut ours, mut its) = (0, 0);
        let none = std::ptr::null_mut();
        // SAFETY: the two numbers to be written are alive during the call; nothing else is given.
        let opened = unsafe {
            libc::openpty(&raw mut ours, &raw mut its, none, none.cast(), std::ptr::null_mut())
        };
        if opened != 0 {
            println!("skipped: no terminal available: {}", io::Error::last_os_error());
            return;
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        let mut ours = File::from(unsafe { OwnedFd::from_raw_fd(ours) });
        // SAFETY: as above.
        let its = File::from(unsafe { OwnedFd::from_raw_fd(its) });
        let modes = || tcgetattr(&its).unwrap().local_modes;
        let before = modes();
        let panicked = std::panic::catch_unwind(|| {
            take(its.try_clone().unwrap()).unwrap();
            assert_ne!(modes(), before);
            panic!("on purpose");
        });
        assert!(panicked.is_err());
        assert_eq!(modes(), before);
        draw("not drawn any more").unwrap();
        let expected = format!("{ENTER}{LEAVE}");
        let mut shown = vec![0; 2 * expected.len()];
        let count = ours.read(&mut shown).unwrap();
        assert_eq!(String::from_utf8_lossy(&shown[..count]), expected);
    }
}
