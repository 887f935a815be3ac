//! The first screen of a run: its answer, the one picture that shows it, and what limits it.
//!
//! Each topic makes its [`Screen`] in its own `screen` module; the terminal draws it alone, the
//! page at its top. Both leave out what does not fit, the last remarks first.

use threadtoll_record::{Record, file::Results};

use crate::figure::{Map, Pairs};
use crate::sentences::Sentence;
use crate::table::{Column, Label, Section};

/// Rows of a picture.
pub(crate) const ROWS: usize = 8;

#[derive(Debug)]
pub(crate) struct Screen {
    /// The question.
    pub(crate) title: String,
    /// The most important sentence first.
    pub(crate) answer: Vec<Sentence>,
    pub(crate) picture: Option<Picture>,
    /// What to know of these figures, the most important first.
    pub(crate) remarks: Vec<Sentence>,
}

#[derive(Debug)]
pub(crate) enum Picture {
    Bars(Vec<Bar>),
    Rows(Rows),
    SpeedUp(Map),
    Pairs(Pairs),
}

/// A time on a logarithmic scale.
#[derive(Debug)]
pub(crate) struct Bar {
    /// Kind of the row, the same for neighbours.
    pub(crate) kind: &'static str,
    pub(crate) label: String,
    /// Time in nanoseconds.
    pub(crate) ns: f64,
    /// The time as text.
    pub(crate) figure: String,
    pub(crate) note: String,
    /// True if its figure is of another speed of the machine than the others’.
    pub(crate) faint: bool,
}

/// The first rows of a table.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) section: Section,
    /// Number of rows that are left out, and a word for one: `queue`.
    pub(crate) more: (usize, &'static str),
}

impl Rows {
    /// The first rows of a section, at most [`ROWS`].
    pub(crate) fn first(mut section: Section, one: &'static str) -> Self {
        let more = section.rows.len().saturating_sub(ROWS);
        section.rows.truncate(ROWS);
        Rows { section, more: (more, one) }
    }

    pub(crate) fn none(one: &'static str) -> Self {
        let columns: Vec<Column<'_, ()>> = Vec::new();
        Rows { section: Section::new("", one, columns, &[], |()| Label::default()), more: (0, one) }
    }
}

/// What a topic makes its screen of.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) results: &'a Results,
    pub(crate) records: &'a [Record],
    /// The records with the figures of the main speed of the machine, without those that did not
    /// see it.
    pub(crate) of_one: &'a [Record],
}
