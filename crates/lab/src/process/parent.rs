//! The process of this program that started this one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;

use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::stdio::{dup2_stdin, dup2_stdout};

/// The process that started this one, which talks with it in lines.
#[derive(Debug)]
pub(crate) struct Parent {
    from: BufReader<File>,
    to: File,
}

impl Parent {
    /// Takes standard input and output. Code of peers then finds the one empty, and what it writes
    /// to the other is an error message.
    pub(crate) fn take() -> io::Result<Self> {
        // Where a sandbox forbids it, this process still ends when it next talks.
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
