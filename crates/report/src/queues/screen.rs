//! The screen of a scenario: one line per queue, with its main figure.

use threadtoll_record::{Neighbour, Origin, WaitFamily, file::Results};

use super::view::{Shown, View};
use super::{Comparison, Criteria, Row, VIEWS, comparisons, load_parts};
use crate::clean::clean;
use crate::label::plural;
use crate::screen::{Picture, ROWS, Rows, Run, Screen};
use crate::sentences::{self as say, Sentence};
use crate::table::{Cell, Column, Emphasis, Label, Section};
use crate::units::size;

/// Columns up to this rank fit on a screen if there is a single case.
const MAX_RANK: u8 = 4;

pub(crate) fn screen(run: &Run<'_>) -> Option<Screen> {
    let of_one = comparisons(run.of_one);
    let all = if of_one.is_empty() { comparisons(run.records) } else { of_one };
    VIEWS.iter().find_map(|view| {
        let own = all.iter().filter(|comparison| std::ptr::eq(comparison.view(), view));
        let own: Vec<&Comparison<'_>> = own.collect();
        if own.is_empty() {
            return None;
        }
        let (answer, picture) = (view.screen)(run.results, &own);
        Some(Screen { title: view.question.into(), answer, picture, ..Screen::default() })
    })
}

const ONE_BY_ONE: &str = "one by one";

/// Conditions of a measurement, except for the receiver's way of waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case(Vec<Option<String>>);

impl Case {
    pub(super) fn of(criteria: &Criteria<'_>) -> Self {
        let placement = criteria.placement;
        let mut parts = vec![
            Some(size(criteria.payload_bytes)),
            Some(if criteria.batched { "in batches" } else { ONE_BY_ONE }.into()),
            Some(plural(criteria.senders.into(), "sender")),
            Some(placement.to_string()),
            Some(match criteria.neighbour.map(Neighbour::threads) {
                Some(others) => format!("beside {others}"),
                None => "alone".into(),
            }),
        ];
        parts.extend(load_parts(criteria.load));
        Case(parts)
    }

    /// The conditions in which this case differs from others. If there are several, the usual `one
    /// by one` is omitted.
    pub(super) fn name(&self, all: &[Case]) -> String {
        let differs = |nth: &usize| all.iter().any(|other| other.0.get(*nth) != self.0.get(*nth));
        let parts = (0..self.0.len()).filter(differs).filter_map(|nth| self.0[nth].clone());
        let mut parts: Vec<String> = parts.collect();
        if parts.len() > 1 {
            parts.retain(|part| part != ONE_BY_ONE);
        }
        parts.join(", ")
    }
}

/// A single case shows the rows of all receivers, best first. Several cases become columns.
pub(super) fn by_case(results: &Results, comparisons: &[&Comparison<'_>]) -> Shown {
    let mut cases: Vec<Case> = Vec::new();
    for case in comparisons.iter().map(|comparison| Case::of(&comparison.criteria)) {
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    match cases.as_slice() {
        [_] => (best_of_each_family(comparisons), one_case(results, comparisons)),
        _ => several_cases(comparisons, &cases),
    }
}

fn ranked<'r, 'a>(comparison: &'r Comparison<'a>) -> impl Iterator<Item = &'r Row<'a>> {
    let is_queue = |row: &&Row<'_>| row.origin().is_some_and(|origin| origin != Origin::Raw);
    comparison.rows.iter().filter(is_queue).filter(|row| row.ns().is_some())
}

/// Such as `pipe, adaptive`.
fn named(row: &Row<'_>) -> String {
    format!("{}, {}", clean(row.record.cell.name()), row.wait())
}

fn may_be_first(row: &Row<'_>) -> bool {
    row.place.is_some_and(|place| place.first == 1)
}

fn best_of_each_family(comparisons: &[&Comparison<'_>]) -> Vec<Sentence> {
    let best = |comparison: &&Comparison<'_>| {
        let first = ranked(comparison).next()?;
        let level = |row: &&Row<'_>| may_be_first(first) && may_be_first(row);
        let level = ranked(comparison).skip(1).filter(level).count() as u64;
        let level = (level > 0).then(|| say::level(plural(level, "other")));
        let figure = (comparison.view().text)(&first.record);
        Some(best_that(comparison.criteria.family, &named(first), figure).and(level))
    };
    comparisons.iter().filter_map(best).collect()
}

fn best_that(family: WaitFamily, queue: &str, figure: String) -> Sentence {
    match family {
        WaitFamily::Spinning => say::best_that_spins(queue, figure),
        WaitFamily::Blocking => say::best_that_sleeps(queue, figure),
    }
}

fn one_case(results: &Results, comparisons: &[&Comparison<'_>]) -> Option<Picture> {
    let first = comparisons.first()?;
    let mut rows: Vec<&Row<'_>> = comparisons.iter().flat_map(|one| ranked(one)).collect();
    let ns = |row: &Row<'_>| row.ns().unwrap_or(f64::INFINITY);
    rows.sort_by(|a, b| ns(a).total_cmp(&ns(b)));
    let answers: Vec<&Row<'_>> = comparisons.iter().filter_map(|one| ranked(one).next()).collect();
    bring_into_sight(&mut rows, |row| answers.iter().any(|answer| std::ptr::eq(*answer, *row)));
    let view = first.view();
    let figures = (view.columns)(results, first).into_iter().map(|column| column.of_reference());
    let wait = Column::new("", "wait", 1, |row: &&Row<'_>| Cell::text(row.wait())).faint();
    let columns = std::iter::once(wait).chain(figures);
    let columns = columns.filter(|column| column.rank().is_some_and(|rank| rank <= MAX_RANK));
    let section = Section::new("", "queue", columns.collect(), &rows, |row: &&Row<'_>| {
        Label::of(row.name(), &row.record)
    });
    Rows::first(section, "row")
}

struct Line<'r, 'a> {
    name: String,
    rows: Vec<Option<&'r Row<'a>>>,
}

fn lines<'r, 'a>(comparisons: &[&'r Comparison<'a>], cases: &[Case]) -> Vec<Line<'r, 'a>> {
    let mut lines: Vec<Line<'r, 'a>> = Vec::new();
    for &comparison in comparisons {
        let case = Case::of(&comparison.criteria);
        let Some(nth) = cases.iter().position(|other| *other == case) else { continue };
        for row in ranked(comparison) {
            let name = named(row);
            let at = lines.iter().position(|line| line.name == name).unwrap_or_else(|| {
                lines.push(Line { name, rows: vec![None; cases.len()] });
                lines.len() - 1
            });
            lines[at].rows[nth].get_or_insert(row);
        }
    }
    // The queues that were measured in the most cases come first; among them, those that are
    // fastest over all cases.
    let key = |line: &Line<'_, '_>| {
        let known = || line.rows.iter().flatten().filter_map(|row| row.ns());
        let number = known().count();
        (line.rows.len() - number, known().map(f64::ln).sum::<f64>() / number.max(1) as f64)
    };
    lines.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    lines
}

/// Moves hidden answers up into the last rows that are shown.
fn bring_into_sight<T>(rows: &mut Vec<T>, is_answer: impl Fn(&T) -> bool) {
    let hidden = (ROWS..rows.len()).filter(|at| is_answer(&rows[*at])).take(ROWS);
    let hidden: Vec<usize> = hidden.collect();
    for (nth, at) in hidden.iter().enumerate() {
        let row = rows.remove(*at);
        rows.insert(ROWS - hidden.len() + nth, row);
    }
}

/// For each kind of receiver, the queue that is unbeaten in the most cases, and the number of these
/// cases.
fn best_of_cases<'l, 'r, 'a>(
    lines: &'l [Line<'r, 'a>],
) -> Vec<(WaitFamily, &'l Line<'r, 'a>, usize)> {
    let is_best = |row: &&&Row<'_>| may_be_first(row);
    let best = |line: &Line<'_, '_>| line.rows.iter().flatten().filter(is_best).count();
    let best_of = |family: WaitFamily| {
        let is_own = |line: &&Line<'_, '_>| {
            let mut rows = line.rows.iter().flatten().filter_map(|row| row.queue());
            rows.next().is_some_and(|queue| queue.wait.family() == family)
        };
        let own = lines.iter().filter(is_own);
        // Of several equally good lines, chooses the first, which is the fastest over all cases.
        let line = own.rev().max_by_key(|line| best(line)).filter(|line| best(line) > 0)?;
        Some((family, line, best(line)))
    };
    [WaitFamily::Spinning, WaitFamily::Blocking].into_iter().filter_map(best_of).collect()
}

fn several_cases(comparisons: &[&Comparison<'_>], cases: &[Case]) -> Shown {
    let mut lines = lines(comparisons, cases);
    let best = best_of_cases(&lines);
    let answer = best.iter().map(|(family, line, times)| {
        let cases = plural(cases.len() as u64, "case");
        best_that(*family, &line.name, format!("not beaten in {times} of {cases}"))
    });
    let answer: Vec<Sentence> = answer.collect();
    let names: Vec<String> = best.iter().map(|(_, line, _)| line.name.clone()).collect();
    bring_into_sight(&mut lines, |line| names.contains(&line.name));
    let first = comparisons.first();
    (answer, first.and_then(|first| each_case(first.view(), &lines, cases)))
}

fn each_case(view: &View, lines: &[Line<'_, '_>], cases: &[Case]) -> Option<Picture> {
    let column = |(nth, case): (usize, &Case)| {
        let heading = case.name(cases);
        Column::new("", heading, rank(nth, cases.len()), move |line: &Line<'_, '_>| {
            let Some(row) = line.rows[nth] else { return Cell::unknown() };
            let best = may_be_first(row);
            let text = (view.text)(&row.record);
            Cell::new(row.ns(), text.trim_end_matches(" a message")).emphasis(if best {
                Emphasis::Best
            } else {
                Emphasis::Plain
            })
        })
    };
    let columns = cases.iter().enumerate().map(column).collect();
    let section = Section::new("", "queue", columns, lines, |line| Label::new(&line.name));
    Rows::first(section, "row")
}

/// Rank of a case's column. Narrow screens keep the columns at both ends longest, then the middle,
/// then the middles of the halves, and so on.
pub(super) fn rank(nth: usize, cases: usize) -> u8 {
    if nth == 0 || nth + 1 == cases {
        return 0;
    }
    // Number of times that the list must be halved until a boundary is at this case.
    let halvings = (1..8).find(|power| (nth << power).is_multiple_of(cases.next_power_of_two()));
    halvings.unwrap_or(8)
}
