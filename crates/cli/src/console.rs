//! Printing. A reader that goes away (`| head`) is no error, and nothing else can be done about one
//! that cannot be printed.

use std::io::{IsTerminal, Write};

use anstream::ColorChoice;

/// Prints a line, or several, to standard output.
pub(crate) fn out(text: &str) {
    print(&mut anstream::stdout(), text);
}

/// Prints a line, or several, to standard error.
pub(crate) fn err(text: &str) {
    print(&mut anstream::stderr(), text);
}

fn print(stream: &mut impl Write, text: &str) {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let _ = write!(stream, "{text}{end}").and_then(|()| stream.flush());
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Makes it so for everything that is printed from now on.
    pub(crate) fn apply(self) {
        match self {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
        .write_global();
    }
}

/// How wide a table may be on standard output or standard error; null where it is no terminal.
pub(crate) fn width(to_stderr: bool) -> Option<usize> {
    let size = if to_stderr {
        std::io::stderr()
            .is_terminal()
            .then(|| terminal_size::terminal_size_of(std::io::stderr()))?
    } else {
        std::io::stdout()
            .is_terminal()
            .then(|| terminal_size::terminal_size_of(std::io::stdout()))?
    };
    size.map(|(width, _)| usize::from(width.0))
}
