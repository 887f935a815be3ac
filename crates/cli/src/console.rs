//! Prints text. Errors are ignored: the reader may go away (`| head`), and nothing can be done
//! about other errors.

use std::io::{IsTerminal, Write};

use anstream::ColorChoice;
use threadtoll_report::clean;
use threadtoll_report::text::Style;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdStream {
    Out,
    Err,
}

impl StdStream {
    pub(crate) fn print(self, text: &str) {
        match self {
            StdStream::Out => write(&mut anstream::stdout(), text),
            StdStream::Err => write(&mut anstream::stderr(), text),
        }
    }

    /// Style of tables: no wider than the terminal, if this stream is one.
    pub(crate) fn style(self) -> Style {
        let size = match self {
            StdStream::Out => {
                let stream = std::io::stdout();
                stream.is_terminal().then(|| terminal_size::terminal_size_of(stream))
            }
            StdStream::Err => {
                let stream = std::io::stderr();
                stream.is_terminal().then(|| terminal_size::terminal_size_of(stream))
            }
        };
        let width = size.flatten().map(|(width, _)| usize::from(width.0));
        Style { color: true, width }
    }
}

pub(crate) fn out(text: &str) {
    StdStream::Out.print(text);
}

pub(crate) fn err(text: &str) {
    StdStream::Err.print(text);
}

pub(crate) fn err_text(text: &str) {
    err(&StdStream::Err.style().wrapped(text));
}

pub(crate) fn note(text: &str) {
    err_text(&format!("note: {text}"));
}

/// Prints text for other programs to standard output.
pub(crate) fn data(text: &str) {
    write(&mut anstream::stdout(), text);
}

pub(crate) fn entries<'e>(entries: impl Iterator<Item = (&'e str, &'e str)> + Clone) {
    let widest = entries.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    if widest == 0 {
        err("note: this build has none.");
    }
    for (name, sentence) in entries {
        out(&format!("{name:widest$}  {sentence}"));
    }
}

/// The command that started this program: a path, or only the name if the shell found the program
/// in `PATH`.
pub(crate) fn program() -> String {
    std::env::args_os()
        .next()
        .map(|started| clean(&started.to_string_lossy()))
        .filter(|started| started.contains('/') && !started.contains(char::is_whitespace))
        .unwrap_or_else(|| "threadtoll".into())
}

fn write(stream: &mut impl Write, text: &str) {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let _ = write!(stream, "{text}{end}").and_then(|()| stream.flush());
}

/// Coloured output.
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
    /// Applies this setting to everything printed from now on.
    pub(crate) fn apply(self) {
        match self {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
        .write_global();
    }
}
