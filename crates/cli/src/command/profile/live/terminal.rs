//! The terminal, in raw mode and on its alternate screen until this is dropped or anything panics.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::queue;
use crossterm::style::Print;
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap,
    EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
};

/// Columns and lines of a terminal that does not say.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

static TAKEN: AtomicBool = AtomicBool::new(false);

pub(super) struct Terminal {
    tty: File,
    /// The frame on the screen.
    shown: Vec<String>,
    size: (u16, u16),
}

impl Terminal {
    pub(super) fn enter(mut tty: File) -> io::Result<Self> {
        restore_on_panic();
        terminal::enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let terminal = |tty| Terminal { tty, shown: Vec::new(), size: (0, 0) };
        match queue!(tty, EnterAlternateScreen, DisableLineWrap, Hide).and_then(|()| tty.flush()) {
            Ok(()) => Ok(terminal(tty)),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Columns and lines.
    pub(super) fn size(&self) -> (u16, u16) {
        let (columns, lines) = terminal::size().unwrap_or(DEFAULT_SIZE);
        if columns == 0 || lines == 0 { DEFAULT_SIZE } else { (columns, lines) }
    }

    /// Draws the lines of a frame that are not on the screen already.
    pub(super) fn draw(&mut self, frame: Vec<String>) -> io::Result<()> {
        let size = self.size();
        if self.shown == frame && self.size == size {
            return Ok(());
        }
        // One write, so that a slow connection shows no half frames.
        let mut bytes = Vec::new();
        queue!(bytes, BeginSynchronizedUpdate)?;
        if self.size != size || frame.len() < self.shown.len() {
            queue!(bytes, Clear(ClearType::All))?;
            self.shown.clear();
        }
        for (row, line) in frame.iter().enumerate() {
            if self.shown.get(row) != Some(line) {
                let row = u16::try_from(row).unwrap_or(u16::MAX);
                queue!(bytes, MoveTo(0, row), Print(line), Clear(ClearType::UntilNewLine))?;
            }
        }
        queue!(bytes, EndSynchronizedUpdate)?;
        self.tty.write_all(&bytes)?;
        self.shown = frame;
        self.size = size;
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal if it is taken. Errors are ignored: a terminal that is gone needs nothing.
fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    if let Ok(mut tty) = OpenOptions::new().write(true).open("/dev/tty") {
        let _ = queue!(tty, EndSynchronizedUpdate, Show, EnableLineWrap, LeaveAlternateScreen);
        let _ = tty.flush();
    }
    let _ = terminal::disable_raw_mode();
}

/// The message of a panic would otherwise be lost with the alternate screen.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            report(panic);
        }));
    });
}
