//! The first screen of a run: its answer, the picture that shows the answer, and remarks.
//!
//! Each topic makes its [`Screen`] in its own `screen` module. A terminal shows nothing but the
//! screen; the page shows it at the top. Both omit what does not fit, beginning with the last
//! remarks.

use threadtoll_record::{Record, file::Results};

use crate::figure::{Map, Pairs};
use crate::regimes::Regimes;
use crate::scale::Axis;
use crate::sentences::Sentence;
use crate::table::{Row, Section};

pub(crate) const ROWS: usize = 8;
/// Number of curves that can be distinguished on a terminal.
pub(crate) const CURVES: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// The question.
    pub(crate) title: String,
    /// Details that follow the question on the same line, as far as there is room.
    pub(crate) about: Vec<String>,
    /// The most important sentence first.
    pub(crate) answer: Vec<Sentence>,
    /// Figures of the answer, shown large on a page.
    pub(crate) cards: Vec<Card>,
    pub(crate) picture: Option<Picture>,
    /// Remarks on these figures, the most important first.
    pub(crate) remarks: Vec<Sentence>,
}

#[derive(Debug)]
pub(crate) struct Card {
    pub(crate) figure: String,
    pub(crate) caption: String,
    pub(crate) detail: String,
}

#[derive(Debug)]
pub(crate) enum Picture {
    Bars(Vec<Bar>),
    Rows(Rows),
    Curves(Curves),
    SpeedUp(Map),
    Pairs(Pairs),
}

/// A time on a logarithmic scale.
#[derive(Debug)]
pub(crate) struct Bar {
    /// Kind of the row; rows of one kind are neighbours.
    pub(crate) kind: &'static str,
    pub(crate) label: String,
    pub(crate) ns: f64,
    pub(crate) figure: String,
    pub(crate) note: String,
    /// True if the other bars' figures were measured at a different speed of the machine.
    pub(crate) faint: bool,
}

#[derive(Debug)]
pub(crate) struct Curves {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) texts: [fn(f64) -> String; 2],
    pub(crate) curves: Vec<Curve>,
}

impl Curves {
    /// Curves on logarithmic axes. `None` if each curve is a single point.
    pub(crate) fn of(
        [x, y]: [&str; 2],
        texts: [fn(f64) -> String; 2],
        curves: Vec<Curve>,
    ) -> Option<Picture> {
        let all = || curves.iter().flat_map(|curve| &curve.points);
        let across = Axis::log(all().map(|point| point.0), 1.0, texts[0])?;
        let up = Axis::log(all().map(|point| point.1), 1.2, texts[1])?;
        let is_curve = |curve: &Curve| curve.points.windows(2).any(|two| two[0].0 < two[1].0);
        let (x, y) = (across.titled(x), up.titled(y));
        curves.iter().any(is_curve).then_some(Picture::Curves(Curves { x, y, texts, curves }))
    }
}

#[derive(Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) section: Section,
    /// Number of omitted rows, and the noun for a row, such as `queue`.
    pub(crate) more: (usize, &'static str),
}

impl Rows {
    /// The first [`ROWS`] rows of a section, without columns that are empty in these rows. `None`
    /// if the section has no rows.
    pub(crate) fn first(mut section: Section, one: &'static str) -> Option<Picture> {
        let more = section.rows.len().saturating_sub(ROWS);
        section.rows.truncate(ROWS);
        for (nth, column) in section.columns.iter_mut().enumerate() {
            let says = |row: &Row| row.cells.get(nth).is_some_and(|cell| !cell.text.is_empty());
            column.rank = column.rank.filter(|_| section.rows.iter().any(says));
        }
        (!section.rows.is_empty()).then_some(Picture::Rows(Rows { section, more: (more, one) }))
    }
}

/// At most `most` of the numbers below `number`, evenly spread, including the first and the last.
pub(crate) fn spread(number: usize, most: usize) -> Vec<usize> {
    let shown = number.min(most);
    (0..shown).map(|nth| nth * (number - 1) / (shown - 1).max(1)).collect()
}

#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) results: &'a Results,
    pub(crate) records: &'a [Record],
    pub(crate) regimes: &'a Regimes,
    /// The records with their figures at the machine's main speed. Records that were not measured
    /// at that speed are omitted.
    pub(crate) of_one: &'a [Record],
    /// Like `of_one`, but includes the records that were not measured at the main speed.
    pub(crate) all: &'a [Record],
}
