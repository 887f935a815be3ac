//! For the terminal.

mod contention;
mod ladder;
mod machine;
mod matrix;
mod plot;
mod prediction;
mod queue;
mod table;

pub use crate::findings::findings as verdict;
pub use contention::contention;
pub use ladder::ladder;
pub use machine::machine;
pub use matrix::matrix;
pub use prediction::prediction;
pub use queue::queues;

use anstyle::{AnsiColor, Effects};

/// How text is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether colours may be used.
    pub color: bool,
    /// Columns of the terminal; null where it is not one, and everything is drawn as wide as it is.
    pub width: Option<usize>,
}

const PLAIN: anstyle::Style = anstyle::Style::new();
const BOLD: anstyle::Style = anstyle::Style::new().effects(Effects::BOLD);
const DIM: anstyle::Style = anstyle::Style::new().effects(Effects::DIMMED);
const GOOD: anstyle::Style = AnsiColor::Green.on_default().effects(Effects::BOLD);
const MIDDLING: anstyle::Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);
const BAD: anstyle::Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
const ACCENT: anstyle::Style = AnsiColor::Cyan.on_default();

/// Lines of running text are no longer than this, however wide the terminal: longer ones are hard
/// to read.
const READABLE: usize = 100;

impl Style {
    fn paint(&self, with: anstyle::Style, text: &str) -> String {
        if self.color && with != PLAIN && !text.is_empty() {
            format!("{}{text}{}", with.render(), with.render_reset())
        } else {
            text.to_string()
        }
    }

    /// Breaks running text into lines; those after the first begin with `indent` spaces.
    fn wrap(&self, text: &str, indent: usize) -> Vec<String> {
        let blank = " ".repeat(indent);
        let width = self.width.unwrap_or(READABLE).clamp(indent + 20, READABLE.max(indent + 20));
        let options = textwrap::Options::new(width).subsequent_indent(&blank);
        textwrap::wrap(text, options).into_iter().map(std::borrow::Cow::into_owned).collect()
    }

    /// Breaks running text into lines and paints each.
    fn paragraph(&self, with: anstyle::Style, text: &str) -> String {
        self.wrap(text, 0).iter().map(|line| self.paint(with, line) + "\n").collect()
    }

    /// Says on top of everything that nothing real was measured; empty where it was.
    fn simulated(&self, simulated: bool) -> String {
        if !simulated {
            return String::new();
        }
        let text = "SIMULATED: a simulated machine made these figures. They say nothing about any real one.";
        self.paragraph(BAD, text)
    }
}
