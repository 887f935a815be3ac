//! The tables of a report, independent of the format that renders them.
//!
//! A [`Table`] contains the measurements of one [`Topic`], in [`Section`]s of comparable rows. The
//! module of a topic (`ladder`, `matrix`, `queues`, `locks`, `overload`) lists its columns once: a
//! [`Column`] is a [`Heading`] and a function from the topic's own row type to a [`Cell`].
//! [`Section::new`] applies all functions to all rows, and renderers see only the result.
//!
//! A cell contains its figure (for sorting and export), its text, and its importance, but not its
//! appearance. Texts are [clean](crate::clean()) but not escaped, because only a format knows its
//! special characters.

use std::borrow::Cow;
use std::fmt;

use threadtoll_record::{Experiment, Placement, Record, Verdict};

use crate::disturbance::too_disturbed;
use crate::figure::Figure;
use crate::units::UNKNOWN;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Ladder,
    Matrix,
    Queues,
    Locks,
    Overload,
}

/// Name of the scenario of locks that has a topic of its own.
const OVERLOAD: &str = "overload";

impl Topic {
    pub(crate) const ALL: [Topic; 5] =
        [Topic::Ladder, Topic::Matrix, Topic::Queues, Topic::Locks, Topic::Overload];

    pub(crate) fn of(experiment: &Experiment) -> Self {
        match experiment {
            Experiment::Latency => Topic::Ladder,
            Experiment::Matrix => Topic::Matrix,
            Experiment::Queue(_) => Topic::Queues,
            Experiment::Contention(scenario) if scenario == OVERLOAD => Topic::Overload,
            Experiment::Contention(_) => Topic::Locks,
        }
    }

    pub(crate) fn subject(self) -> &'static str {
        match self {
            Topic::Ladder => "hand-off",
            Topic::Matrix => "pair of CPUs",
            Topic::Queues => "queue",
            Topic::Locks => "lock",
            Topic::Overload => "overload",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) topic: Topic,
    /// Empty if the sections' headings are enough.
    pub(crate) heading: String,
    pub(crate) introduction: String,
    pub(crate) sections: Vec<Section>,
    pub(crate) notes: Vec<Note>,
}

#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) heading: String,
    /// Heading of the rows' labels.
    pub(crate) row_heading: &'static str,
    pub(crate) columns: Vec<Heading>,
    pub(crate) rows: Vec<Row>,
    pub(crate) figure: Option<Figure>,
}

impl Section {
    pub(crate) fn new<R>(
        heading: impl Into<String>,
        row_heading: &'static str,
        columns: Vec<Column<'_, R>>,
        rows: &[R],
        label: impl Fn(&R) -> Label,
    ) -> Self {
        let rows = rows
            .iter()
            .map(|row| Row {
                label: label(row),
                cells: columns.iter().map(|column| column.cell(row)).collect(),
            })
            .collect();
        let columns = columns.into_iter().map(|column| column.heading).collect();
        Section { heading: heading.into(), row_heading, columns, rows, figure: None }
    }

    /// Drops the columns whose figure is unknown in all rows.
    pub(crate) fn without_unknown(mut self) -> Self {
        for column in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|row| row.cells[column].text == UNKNOWN) {
                self.columns.remove(column);
                self.rows.iter_mut().for_each(|row| _ = row.cells.remove(column));
            }
        }
        self
    }
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) label: Label,
    pub(crate) cells: Vec<Cell>,
}

#[derive(Debug, Default)]
pub(crate) struct Label {
    pub(crate) text: String,
    /// Placement of the row's figures, if it is not the expected one. Renderers that have no column
    /// for each placement show it.
    pub(crate) placement: Option<Placement>,
    pub(crate) marks: Marks,
}

impl Label {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Label { text: text.into(), ..Label::default() }
    }

    pub(crate) fn of(text: impl Into<String>, record: &Record) -> Self {
        Label { marks: Marks::of(record), ..Label::new(text) }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, self.marks)
    }
}

/// Reasons to read a row with care.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) disturbed: bool,
    pub(crate) oversubscribed: bool,
}

impl Marks {
    pub(crate) fn of(record: &Record) -> Self {
        Marks {
            disturbed: too_disturbed(&record.disturbance),
            oversubscribed: record.cell.oversubscribed(),
        }
    }

    pub(crate) fn notes(sections: &[Section]) -> Vec<Note> {
        let any = |marked: fn(&Marks) -> bool| {
            sections.iter().flat_map(|section| &section.rows).any(|row| marked(&row.label.marks))
        };
        let mut notes = Vec::new();
        if any(|marks| marks.disturbed) {
            notes.push(Note::new("!  more than a quarter of the measurements were disturbed."));
        }
        if any(|marks| marks.oversubscribed) {
            notes.push(Note::new(
                "*  oversubscribed: more threads than CPUs, so figures include time slices.",
            ));
        }
        notes
    }
}

impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.disturbed { " !" } else { "" })?;
        f.write_str(if self.oversubscribed { " *" } else { "" })
    }
}

#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) text: String,
    /// The column to which the note refers: without this column, the note is omitted.
    pub(crate) column: Option<&'static str>,
}

impl Note {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Note { text: text.into(), column: None }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Heading {
    /// Heading shared with neighbouring columns; empty if none.
    pub(crate) group: &'static str,
    pub(crate) text: Cow<'static, str>,
    /// A narrow terminal first drops the columns with the highest rank. Rank 0 is never dropped,
    /// and a column without a rank is never shown on a terminal.
    pub(crate) rank: Option<u8>,
}

pub(crate) struct Column<'a, R> {
    heading: Heading,
    emphasis: Emphasis,
    cell: Box<dyn Fn(&R) -> Cell + 'a>,
}

impl<'a, R> Column<'a, R> {
    pub(crate) fn new(
        group: &'static str,
        heading: impl Into<Cow<'static, str>>,
        rank: impl Into<Option<u8>>,
        cell: impl Fn(&R) -> Cell + 'a,
    ) -> Self {
        let heading = Heading { group, text: heading.into(), rank: rank.into() };
        Column { heading, emphasis: Emphasis::Plain, cell: Box::new(cell) }
    }

    /// Sets the emphasis of the cells that have none.
    pub(crate) fn emphasis(self, emphasis: Emphasis) -> Self {
        Column { emphasis, ..self }
    }

    pub(crate) fn main(self) -> Self {
        self.emphasis(Emphasis::Main)
    }

    pub(crate) fn faint(self) -> Self {
        self.emphasis(Emphasis::Faint)
    }

    pub(crate) fn ranked(mut self, heading: &str, rank: u8) -> Self {
        if self.heading.text == heading {
            self.heading.rank = Some(rank);
        }
        self
    }

    pub(crate) fn rank(&self) -> Option<u8> {
        self.heading.rank
    }

    pub(crate) fn of_reference<'r>(self) -> Column<'a, &'r R>
    where
        R: 'a,
        'a: 'r,
    {
        let Column { heading, emphasis, cell } = self;
        Column { heading, emphasis, cell: Box::new(move |row: &&R| cell(row)) }
    }

    fn cell(&self, row: &R) -> Cell {
        let mut cell = (self.cell)(row);
        if cell.emphasis == Emphasis::Plain {
            cell.emphasis = self.emphasis;
        }
        cell
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Emphasis {
    #[default]
    Plain,
    Main,
    /// The main figure of the recommended row, or a good verdict.
    Best,
    /// A verdict between good and bad.
    Middling,
    Bad,
    /// A comparison with the main figure, such as a ratio.
    Accent,
    Faint,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// Figure to sort by; `None` if unknown, or if rows are sorted by text.
    pub(crate) value: Option<f64>,
    pub(crate) text: String,
    /// Tooltip; empty if none.
    pub(crate) title: String,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) emphasis: Emphasis,
}

impl Cell {
    pub(crate) fn new(value: Option<f64>, text: impl Into<String>) -> Self {
        Cell { value, text: text.into(), ..Cell::default() }
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Cell::new(None, text)
    }

    pub(crate) fn empty() -> Self {
        Cell::default()
    }

    pub(crate) fn unknown() -> Self {
        Cell::text(UNKNOWN)
    }

    pub(crate) fn figure(value: Option<impl Into<f64>>, format: impl Fn(f64) -> String) -> Self {
        let value = value.map(Into::into);
        Cell::new(value, value.map_or_else(|| UNKNOWN.into(), format))
    }

    pub(crate) fn range(
        ends: Option<[impl Into<f64>; 2]>,
        text: impl Fn([f64; 2]) -> String,
    ) -> Self {
        ends.map_or_else(Cell::unknown, |ends| {
            let ends: [f64; 2] = ends.map(Into::into);
            Cell::new(Some(ends[0]), text(ends))
        })
    }

    pub(crate) fn emphasis(self, emphasis: Emphasis) -> Self {
        Cell { emphasis, ..self }
    }
}
