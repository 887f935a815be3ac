//! Findings that `--details` and the page add to the first screen.
//!
//! A sentence appears only if its figures exist. It claims a difference only if an interval
//! supports that difference; undecided differences are in the table of compared rows.

mod compared;
mod remarks;
mod repeat;
mod run;

pub(crate) use remarks::{is_noisy, pointers, remarks};
pub(crate) use run::command;

use crate::screen::Run;
use crate::sentences::Sentence;
use crate::table::Section;
use crate::{claims, locks};

#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) told: Vec<Sentence>,
    pub(crate) compared: Option<Section>,
}

/// Findings beyond those of the first screen. Their figures are from the main regime, with one
/// exception: claims about mechanisms, other languages and CPU time are also tested on rows that
/// were measured only in other regimes.
pub(crate) fn findings(run: &Run<'_>) -> Findings {
    let mut told = claims::sentences(run);
    told.extend(locks::limits(run.of_one));
    told.extend(run::findings(run));
    told.extend(repeat::finding(run.results, run.regimes));
    Findings { told, compared: compared::section(run.of_one) }
}
