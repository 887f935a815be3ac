use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;

use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::stdio::{dup2_stdin, dup2_stdout};

/// The process that started this one and exchanges lines with it.
#[derive(Debug)]
pub(crate) struct Parent {
    from: BufReader<File>,
    to: File,
}

impl Parent {
    /// Takes over standard input and output. Code of peers then finds standard input empty, and
    /// standard output redirected to standard error.
    pub(crate) fn take() -> io::Result<Self> {
        // If a sandbox forbids this, the process still ends when it next exchanges a line.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        let from = io::stdin().as_fd().try_clone_to_owned()?;
        let to = io::stdout().as_fd().try_clone_to_owned()?;
        dup2_stdin(File::open("/dev/null")?)?;
        dup2_stdout(io::stderr())?;
        Ok(Parent { from: BufReader::new(from.into()), to: to.into() })
    }

    /// The next line; empty if there are no more.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut text = String::new();
        self.from.read_line(&mut text)?;
        Ok(text)
    }

    pub(crate) fn tell(&mut self, text: &str) -> io::Result<()> {
        self.to.write_all(format!("{text}\n").as_bytes())
    }
}
