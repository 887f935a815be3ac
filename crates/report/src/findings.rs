//! Findings: the figures summarised in a few plain sentences.
//!
//! A sentence appears only if its figures exist, and it claims a difference only if an interval
//! supports it. If the intervals are inconclusive, the difference is called undecided, and both
//! figures are given.

mod mechanisms;
mod remarks;
mod repeat;
mod run;

use threadtoll_record::{Record, file::Results};

pub(crate) use mechanisms::{is_plain, representative};
pub(crate) use remarks::remarks;
pub(crate) use run::command;

use crate::regimes::Regimes;
use crate::screen::screen;
use crate::sentences::Sentence;
use crate::table::{Cell, Column, Label, Section};
use crate::{locks, queues};

/// Findings, and the questions that intervals leave open.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) told: Vec<Sentence>,
    pub(crate) undecided: Vec<Undecided>,
}

/// A question that the figures do not answer, and the figures.
#[derive(Debug)]
pub(crate) struct Undecided {
    pub(crate) question: String,
    pub(crate) figures: String,
}

impl Findings {
    /// The open questions as a table; `None` without any.
    pub(crate) fn undecided(&self) -> Option<Section> {
        let columns =
            vec![Column::new("", "figures", 0, "", |open: &Undecided| Cell::text(&open.figures))];
        let label = |open: &Undecided| Label::new(&open.question);
        (!self.undecided.is_empty())
            .then(|| Section::new("Not decided", "question", columns, &self.undecided, label))
    }
}

/// Makes the findings: those of the first screen, and more. Those about figures are all of one
/// regime, but for the claims on other languages and on CPU time, which are answered if their rows
/// were measured at all.
pub(crate) fn findings(results: &Results, records: &[Record]) -> Findings {
    let regimes = Regimes::of(results, records);
    let of_one = regimes.records(records);
    let all = regimes.all_records(records);
    let mut findings = mechanisms::findings(&of_one);
    let told = &mut findings.told;
    let answer = screen(results, records).map_or_else(Vec::new, |screen| screen.answer);
    told.splice(0..0, answer);
    told.extend(mechanisms::claims(&all));
    told.extend(queues::findings(results, &of_one));
    told.extend(queues::peer_findings(&all));
    told.extend(locks::findings(&of_one, records));
    told.extend(run::findings(results, records, &regimes));
    if !records.is_empty() {
        told.push(repeat::finding(results, &regimes));
    }
    findings
}
