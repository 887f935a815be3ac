//! Findings: what `--details` and the page say beyond the first screen.
//!
//! A sentence appears only if its figures exist, and it claims a difference only if an interval
//! supports it. If the intervals leave a difference undecided, the table of compared rows says so.

mod compared;
mod remarks;
mod repeat;
mod run;

pub(crate) use remarks::{pointers, remarks};
pub(crate) use run::command;

use crate::screen::Run;
use crate::sentences::Sentence;
use crate::table::Section;
use crate::{claims, locks};

/// Findings, and a table of pairs of rows that differ in one setting, with a verdict on each pair.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) told: Vec<Sentence>,
    pub(crate) compared: Option<Section>,
}

/// Returns the findings beyond those of the first screen. All their figures are from the main
/// regime, with one exception: claims about mechanisms, about other languages and about CPU time
/// are also tested against rows that were measured only in other regimes.
pub(crate) fn findings(run: &Run<'_>) -> Findings {
    let mut told = claims::sentences(run);
    told.extend(locks::limits(run.of_one));
    told.extend(run::findings(run));
    told.extend(repeat::finding(run.results, run.regimes));
    Findings { told, compared: compared::section(run.of_one) }
}
