//! Findings: the figures in a few plain sentences.
//!
//! A sentence appears only if its figures exist, and claims a difference only if an interval
//! does. What intervals leave open is called undecided, with both figures.

mod mechanisms;
mod remarks;
mod repeat;
mod run;

use threadtoll_record::{Record, file::Results};

pub(crate) use mechanisms::{is_plain, representative};
pub(crate) use remarks::remarks;
pub(crate) use run::command;

use crate::regimes::Regimes;
use crate::sentences::Sentence;
use crate::{locks, queues};

/// Makes the findings. Those about figures are all of one regime, but for the claims on other
/// languages and on CPU time, which are answered if their rows were measured at all.
pub(crate) fn findings(results: &Results, records: &[Record]) -> Vec<Sentence> {
    let regimes = Regimes::of(results, records);
    let of_one = regimes.records(records);
    let all = regimes.all_records(records);
    let mut findings = mechanisms::findings(&of_one);
    findings.extend(mechanisms::claims(&all));
    findings.extend(queues::findings(results, &of_one));
    findings.extend(queues::peer_findings(&all));
    findings.extend(locks::findings(&of_one, records));
    findings.extend(run::findings(results, records, &regimes));
    if !records.is_empty() {
        findings.push(repeat::finding(results, &regimes));
    }
    findings
}
