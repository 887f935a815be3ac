//! `--live`: the report on the terminal, updated at most twice a second.
//!
//! A thread of its own draws and reads keys, so that neither waits for the sampler. It uses the
//! controlling terminal itself: the standard streams belong to a launched program.

mod terminal;
mod view;

use std::fs::{File, OpenOptions};
use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::event::{self, Event};
use threadtoll_record::Profile;

use super::signals::Signals;
use crate::failure::Failure;
use terminal::Terminal;
use view::{Action, View};

/// Longest wait for a key before the next look for a new profile.
const PATIENCE: Duration = Duration::from_millis(100);

/// A terminal that can be drawn on.
#[derive(Debug)]
pub(super) struct Live {
    tty: File,
}

impl Live {
    pub(super) fn check() -> Result<Self, Failure> {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(|error| {
            Failure::usage(format!("--live needs a terminal: {error}"))
                .hint("omit --live, or look at the file with `threadtoll profile show FILE`")
        })?;
        Ok(Live { tty })
    }

    /// `more` is the command that shows more.
    pub(super) fn start(&self, signals: Signals, more: String) -> Result<Screen, Failure> {
        let failed =
            |error: io::Error| Failure::run(format!("--live cannot use the terminal: {error}"));
        let terminal = Terminal::enter(self.tty.try_clone().map_err(failed)?).map_err(failed)?;
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("live".into())
            .spawn(move || run(terminal, View::new(more), &signals, &receiver))
            .map_err(failed)?;
        Ok(Screen { profiles: Some(sender), thread: Some(thread) })
    }
}

/// The terminal while it shows a profile. Dropped, it is restored.
pub(super) struct Screen {
    profiles: Option<Sender<Profile>>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    pub(super) fn show(&self, profile: Profile) {
        if let Some(profiles) = &self.profiles {
            // After `q` nobody looks any more.
            let _ = profiles.send(profile);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.profiles = None;
        if let Some(thread) = self.thread.take() {
            // The terminal is restored even if it panicked.
            let _ = thread.join();
        }
    }
}

fn run(mut terminal: Terminal, mut view: View, signals: &Signals, profiles: &Receiver<Profile>) {
    loop {
        let size = terminal.size();
        if terminal.draw(view.frame(size)).is_err() {
            // The terminal is gone; SIGHUP ends the sampling.
            return;
        }
        match event::poll(PATIENCE).and_then(|ready| ready.then(event::read).transpose()) {
            Ok(Some(Event::Key(key))) => match view.key(key, size) {
                Action::Stay => {}
                Action::Quit => return signals.end(),
                Action::Interrupt => return signals.interrupt(),
            },
            Ok(_) => {}
            Err(_) => return,
        }
        loop {
            match profiles.try_recv() {
                Ok(profile) => view.update(profile),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }
}
